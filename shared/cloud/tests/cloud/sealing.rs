//! Keys of tenants: sealed for one tenant and one provider, entered once with a link.

use bobbin_cloud::sealing::{Seal, SealError};
use bobbin_cloud::store::Store;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::base::secret::Secret;
use bobbin_core::records::message::Reply;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::sealed_for;
use bobbin_core::tenant::setup_link::{Purpose, SetupLink};
use bobbin_core::tenant::sign_in::SignInFound;

use crate::support::{Cloud, answering, aws};

const VALUE: &str = "dtn_canary_0123456789";

fn thread(guild: &str) -> ThreadKey {
    ThreadKey::discord(guild, "2").unwrap()
}

fn link(until_ms: u64) -> SetupLink {
    SetupLink {
        purpose: Purpose::Key(Key::DaytonaApiKey),
        thread: thread("41"),
        place: None,
        by: Person::default(),
        membership: Membership::default(),
        reply: Reply::Nobody,
        until_ms,
        sign_in: None,
        secret: None,
    }
}

#[tokio::test]
async fn sealed_key_needs_its_context() {
    let cloud = Cloud::start().await;
    let seal = Seal::new(&aws(cloud.engine.endpoint()), &cloud.resource("CredentialsKey"));
    let of = |stack, guild, key| sealed_for(stack, &thread(guild).tenant(), key);
    let here = of("test", "41", Key::DaytonaApiKey);
    let value = Secret::from(VALUE.to_owned());
    let sealed = seal.close(&value, &here).await.unwrap();
    assert!(!sealed.contains("canary"));
    assert_eq!(seal.open(&sealed, &here).await, Ok(value));
    for elsewhere in [
        of("test", "42", Key::DaytonaApiKey),
        of("test", "41", Key::OpenAiApiKey),
        of("prod", "41", Key::DaytonaApiKey),
    ] {
        let refused = seal.open(&sealed, &elsewhere).await;
        assert_eq!(refused, Err(SealError::Broken), "{elsewhere:?}");
    }
    let last = if sealed.ends_with('A') { "B" } else { "A" };
    let cut = &sealed[..sealed.len() - 5];
    for broken in
        [cut.to_owned(), format!("{cut}{last}AAA="), "no base64".to_owned(), String::new()]
    {
        let refused = seal.open(&broken, &here).await;
        assert!(
            matches!(refused, Err(SealError::Broken | SealError::Refused(_))),
            "{broken}: {refused:?}"
        );
        assert!(refused.is_err());
    }
}

#[tokio::test]
async fn only_transient_kms_errors_wait() {
    let context = sealed_for("test", &thread("41").tenant(), Key::DaytonaApiKey);
    let value = Secret::from(VALUE.to_owned());
    for (status, body, is_waited_for) in [
        (400, r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#, true),
        (500, r#"{"__type":"KMSInternalException","message":"x"}"#, true),
        (400, r#"{"__type":"DisabledException","message":"x is disabled."}"#, false),
        (400, r#"{"__type":"KMSInvalidStateException","message":"pending deletion"}"#, false),
        (400, r#"{"__type":"AccessDeniedException","message":"no"}"#, false),
    ] {
        let (endpoint, _) = answering(status, body).await;
        let seal = Seal::new(&aws(&endpoint), "key");
        let error = seal.close(&value, &context).await.unwrap_err();
        let waited = matches!(error.failure(), Failure::Wait { .. });
        assert_eq!(waited, is_waited_for, "{body}: {error}");
        assert!(!error.to_string().contains("canary"), "{error}");
        assert_eq!(
            error.to_string().contains("CredentialsKey"),
            body.contains("Disabled") || body.contains("State"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn link_takes_one_key_in_time() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    assert_eq!(store.link("one").await, Ok(None));
    assert_eq!(store.enter("one", "c2VhbGVk", 100).await, Ok(false), "there is no such link");
    store.make_link("one", &link(1_000), None).await.unwrap();
    let made = store.link("one").await.unwrap().unwrap();
    assert_eq!((&made.link, made.is_open(999), made.is_open(1_000)), (&link(1_000), true, false));
    assert_eq!(store.enter("one", "bGF0ZQ==", 1_000).await, Ok(false), "it is over");

    assert_eq!(store.enter("one", "Zmlyc3Q=", 500).await, Ok(true));
    assert_eq!(store.enter("one", "c2Vjb25k", 501).await, Ok(false), "somebody else was first");
    assert_eq!(store.enter("one", "Zmlyc3Q=", 502).await, Ok(true), "the same, told again");
    store.make_link("one", &link(9_000), None).await.unwrap();
    let entered = store.link("one").await.unwrap().unwrap();
    assert_eq!(
        (entered.sealed.as_deref(), entered.entered_at_ms, entered.link.until_ms),
        (Some("Zmlyc3Q="), Some(500), 1_000)
    );

    store.reopen("one", "c2Vjb25k").await.unwrap();
    assert!(!store.link("one").await.unwrap().unwrap().is_open(600), "it was not theirs");
    store.reopen("one", "Zmlyc3Q=").await.unwrap();
    assert!(store.link("one").await.unwrap().unwrap().is_open(600));
}

#[tokio::test]
async fn sign_in_is_pressed_once_by_its_own_token() {
    let cloud = Cloud::start().await;
    let store = Store::new(&aws(cloud.engine.endpoint()), &cloud.resource("Table"));
    let code = |code: &'static str| (code, code);
    let signed_in = async |press, code, now_ms| store.signed_in("one", press, code, now_ms).await;
    assert_eq!(signed_in("p1", code("c1"), 100).await, Ok(false), "there is no such link");
    let link = SetupLink { purpose: Purpose::BindOwner, ..link(1_000) };
    store.make_link("one", &link, None).await.unwrap();
    assert_eq!(signed_in("p1", code("c1"), 1_000).await, Ok(false), "it is over");
    assert_eq!(signed_in("p1", code("c1"), 100).await, Ok(true));
    assert_eq!(signed_in("p1", code("c1"), 100).await, Ok(true), "the same, told again");
    assert_eq!(signed_in("p2", code("c1"), 101).await, Ok(false), "the code came before");
    let sign_in = async || store.link("one").await.unwrap().unwrap().sign_in.unwrap();
    assert_eq!((&*sign_in().await.press, sign_in().await.found), ("p1", None));

    let found = SignInFound::Refused { why: "No.".to_owned() };
    assert_eq!(store.press("one", "p1", "41", 102).await, Ok(false), "nobody has looked yet");
    store.note_sign_in("one", "p1", &found).await.unwrap();
    assert_eq!(sign_in().await.found, Some(found.clone()));
    assert_eq!(signed_in("p2", code("c2"), 103).await, Ok(true), "another one replaces it");
    store.note_sign_in("one", "p1", &found).await.unwrap();
    assert_eq!(sign_in().await.found, None, "what the first brought comes too late");
    store.note_sign_in("one", "p2", &found).await.unwrap();

    assert_eq!(store.press("one", "p1", "41", 104).await, Ok(false), "not by the first");
    assert_eq!(store.press("one", "p2", "41", 1_000).await, Ok(false), "it is over");
    assert_eq!(store.press("one", "p2", "41", 105).await, Ok(true));
    assert_eq!(store.press("one", "p2", "41", 105).await, Ok(true), "the same, told again");
    assert_eq!(store.press("one", "p2", "42", 106).await, Ok(false), "once");
    assert_eq!(signed_in("p3", code("c3"), 107).await, Ok(false), "nobody signs in any more");
    assert!(!store.link("one").await.unwrap().unwrap().is_open(107));
    store.take_press_back("one", 104).await.unwrap();
    assert_eq!(sign_in().await.pressed, Some(("41".to_owned(), 105)), "it was not that one");
    store.take_press_back("one", 105).await.unwrap();
    assert_eq!(sign_in().await.pressed, None);
    store.forget_sign_in("one", "p2").await.unwrap();
    assert_eq!(store.link("one").await.unwrap().unwrap().sign_in, None);
    assert_eq!(signed_in("p4", code("c2"), 108).await, Ok(true), "nobody was told of that code");

    store.note_sign_in("one", "p4", &found).await.unwrap();
    assert_eq!(store.press("one", "p4", "41", 109).await, Ok(true));
    store.end_sign_in("one", 108).await.unwrap();
    assert_eq!(sign_in().await.found, Some(found), "it was not that press");
    store.end_sign_in("one", 109).await.unwrap();
    let ended = sign_in().await;
    assert_eq!((ended.found, ended.pressed), (None, Some(("41".to_owned(), 109))));
}
