//! The items of tenants in the table: settings under their version, catalogues as they come, each for its own tenant.

use aws_sdk_dynamodb::types::AttributeValue;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::base::ids::{Tenant, ThreadKey, TurnId};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::Settings;

use crate::support::{Cloud, alone, aws, sdk_dynamodb};

const ONE: &str = "discord:111";
const OTHER: &str = "discord:1111";

fn tenant(text: &str) -> Tenant {
    text.parse().unwrap()
}

fn store(cloud: &Cloud) -> Store {
    Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"))
}

fn with_model(model: &str) -> Settings {
    Settings {
        defaults: Selection { model: Some(model.to_owned()), ..Selection::default() },
        ..Settings::default()
    }
}

#[tokio::test]
async fn settings_write_is_compare_and_set() {
    let cloud = Cloud::start().await;
    let store = store(&cloud);
    assert_eq!(store.settings(&tenant(ONE)).await.unwrap(), Settings::default());
    let (first, second) = (with_model("anthropic/a"), with_model("openai/b"));
    let one = tenant(ONE);
    let (a, b) =
        tokio::join!(store.save_settings(&one, &first, 0), store.save_settings(&one, &second, 0));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(a != b, "{a} {b}");
    let stored = store.settings(&tenant(ONE)).await.unwrap();
    assert_eq!(stored.version, 1);
    assert_eq!(stored.defaults, if a { first } else { second }.defaults);

    assert!(!store.save_settings(&tenant(ONE), &stored, 7).await.unwrap());
    assert!(store.save_settings(&tenant(ONE), &stored, 1).await.unwrap());
    assert_eq!(store.settings(&tenant(ONE)).await.unwrap().version, 2);
}

#[tokio::test]
async fn record_has_its_own_tenants_settings() {
    let cloud = Cloud::start().await;
    let store = store(&cloud);
    let settings = with_model("anthropic/a");
    assert!(store.save_settings(&tenant(ONE), &settings, 0).await.unwrap());
    let catalogue = Catalogue { agents: vec!["build".to_owned()], ..Catalogue::default() };
    store.save_catalogue(&tenant(ONE), &catalogue).await.unwrap();

    let thread = ThreadKey::discord("111", "5").unwrap();
    let loaded = store.load(&thread, &"t1".into()).await.unwrap();
    assert_eq!(loaded.session, None);
    assert_eq!(loaded.settings, store.settings(&tenant(ONE)).await.unwrap());
    assert_eq!(loaded.settings.defaults, settings.defaults);
    assert_eq!(store.catalogue(&tenant(ONE)).await.unwrap(), catalogue);

    let stranger = ThreadKey::discord("1111", "5").unwrap();
    let loaded = store.load(&stranger, &"t1".into()).await.unwrap();
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(store.settings(&tenant(OTHER)).await.unwrap(), Settings::default());
    assert_eq!(store.catalogue(&tenant(OTHER)).await.unwrap(), Catalogue::default());
}

#[tokio::test]
async fn direct_message_is_taken_by_one_thread() {
    let cloud = Cloud::start().await;
    let store = store(&cloud);
    let own = ThreadKey::slack("T1", "D1", "1.1").unwrap();
    let all = ThreadKey::slack_direct("T1", "U1").unwrap();
    let (team, message) = (own.tenant(), TurnId::from("slack_T1_D1_1.1"));
    assert_eq!(store.direct_place(&team, &message).await.unwrap(), None);
    let (here, there) = tokio::join!(
        store.take_direct(&own, &message, Some(&message), 9_000),
        store.take_direct(&all, &message, None, 9_000)
    );
    let (here, there) = (here.unwrap(), there.unwrap());
    assert!(here != there, "{here} {there}");
    let (first, other) = if here { (own, all) } else { (all, own) };
    // At each delivery.
    for _ in 0..2 {
        assert!(store.take_direct(&first, &message, None, 9_000).await.unwrap());
        assert!(!store.take_direct(&other, &message, None, 9_000).await.unwrap());
        assert_eq!(store.direct_place(&team, &message).await.unwrap(), Some(first.clone()));
    }
    assert!(store.take_direct(&other, "slack_T1_D1_2.2", None, 9_000).await.unwrap());
    assert_eq!(store.direct_place(&tenant("slack:T2"), &message).await.unwrap(), None);
}

#[tokio::test]
async fn direct_thread_outlives_last_message_by_ledger() {
    let cloud = Cloud::start().await;
    let store = store(&cloud);
    let own = ThreadKey::slack("T1", "D1", "1.1").unwrap();
    let all = ThreadKey::slack_direct("T1", "U1").unwrap();
    let first = TurnId::from("slack_T1_D1_1.1");
    let expiry = async || {
        let got = sdk_dynamodb(cloud.engine.endpoint())
            .get_item()
            .table_name(cloud.resource("Table"))
            .key("thread", AttributeValue::S("tenant:slack:T1".to_owned()))
            .key("item", AttributeValue::S(format!("direct#{first}")))
            .send()
            .await
            .unwrap();
        got.item.map(|item| item["expires_at"].as_n().unwrap().clone())
    };
    // Nothing is known of a message that no worker has taken.
    assert!(store.take_direct(&own, "slack_T1_D1_2.2", Some(&first), 9_000).await.unwrap());
    assert_eq!(expiry().await, None);
    assert!(store.take_direct(&own, &first, Some(&first), 9_000).await.unwrap());
    assert_eq!(expiry().await.as_deref(), Some("9"));
    assert!(store.take_direct(&own, "slack_T1_D1_3.3", Some(&first), 12_000).await.unwrap());
    assert_eq!(expiry().await.as_deref(), Some("12"));
    // A reply that began a thread in an outage does not move the message that it answers.
    let second = TurnId::from("slack_T1_D1_4.4");
    let strayed = ThreadKey::slack("T1", "D1", "4.4").unwrap();
    assert!(store.take_direct(&all, &second, None, 9_000).await.unwrap());
    assert!(store.take_direct(&strayed, "slack_T1_D1_5.5", Some(&second), 9_000).await.unwrap());
    assert_eq!(store.direct_place(&own.tenant(), &second).await.unwrap(), Some(all));
}

#[tokio::test]
async fn tenant_items_are_never_due() {
    let cloud = Cloud::start().await;
    let store = store(&cloud);
    store.save_settings(&tenant(ONE), &Settings::default(), 0).await.unwrap();
    store.save_catalogue(&tenant(ONE), &Catalogue::default()).await.unwrap();
    let thread = ThreadKey::discord("111", "5").unwrap();
    let mut session = Session::new(thread.clone(), 1);
    session.due_at_ms = Some(5);
    let nothing: [LedgerEntry; 0] = [];
    store.save(&session, alone(0), &ControlFlags::default(), &nothing, 0).await.unwrap();
    let (mut due, mut armed) = (Vec::new(), Vec::new());
    for shard in 0..bobbin_cloud::store::DUE_SHARDS {
        due.extend(store.due(shard, u64::MAX / 2).await.unwrap());
        armed.extend(store.armed(shard).await.unwrap());
    }
    assert_eq!(due, [(thread.clone(), 5)]);
    assert_eq!(armed, [thread]);
}

#[tokio::test]
async fn unreadable_settings_are_an_error() {
    use aws_sdk_dynamodb::types::AttributeValue;
    let cloud = Cloud::start().await;
    let store = store(&cloud);
    sdk_dynamodb(cloud.engine.endpoint())
        .put_item()
        .table_name(cloud.resource("Table"))
        .item("thread", AttributeValue::S(format!("tenant:{ONE}")))
        .item("item", AttributeValue::S("settings".to_owned()))
        .item("settings", AttributeValue::S("{".to_owned()))
        .send()
        .await
        .unwrap();
    let read = store.settings(&tenant(ONE)).await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
    let thread = ThreadKey::discord("111", "5").unwrap();
    let loaded = store.load(&thread, &"t1".into()).await;
    assert!(matches!(loaded, Err(StoreError::Damaged(_))), "{loaded:?}");
}
