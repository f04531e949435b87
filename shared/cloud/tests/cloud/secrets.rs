//! Secrets are read when they are needed, and no more often than the bound allows, whoever wants them to be.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bobbin_cloud::secrets::{CachedSecret, WorkerSecrets};
use bobbin_core::tenant::keys::Key;

use crate::support::{Cloud, answering, aws};

/// How old a copy may be.
const AGE_MS: u64 = 60_000;
/// When each test begins.
const NOW_MS: u64 = 1_800_000_000_000;

fn kept(endpoint: &str, id: &str) -> CachedSecret {
    CachedSecret::new(&aws(endpoint), id.to_owned(), AGE_MS, 5_000)
}

const STORED: &str = r#"{"SecretString":"{\"slack_signing_secret\":\"right\"}"}"#;

#[tokio::test]
async fn secret_rereads_are_rate_limited() {
    let (endpoint, reads) = answering(200, STORED).await;
    let secret = kept(&endpoint, "s");
    assert_eq!(reads.load(Ordering::SeqCst), 0, "nothing at the start");
    let known = secret.known(NOW_MS).await.unwrap();
    assert_eq!(known.of(Key::SlackSigningSecret).expose(), "right");
    for bad in 0..1_000 {
        assert_eq!(secret.newer(NOW_MS + bad).await, None);
    }
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    for bad in 0..1_000 {
        assert_eq!(secret.newer(NOW_MS + AGE_MS + bad).await, None);
    }
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    // Good ones have none made, a day later either, unless the copy has to be renewed.
    secret.known(NOW_MS + 86_400_000).await.unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    for good in 0..1_000 {
        secret.renewed(NOW_MS + 86_400_000 + good).await.unwrap();
    }
    assert_eq!(reads.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn replaced_signing_secret_ends() {
    let cloud = Cloud::start().await;
    let id = cloud.resource("IngressSecret");
    let secret = kept(cloud.engine.endpoint(), &id);
    for (nth, stored) in ["leaked", "new"].into_iter().enumerate() {
        cloud.store(&id, &format!(r#"{{"slack_signing_secret":"{stored}"}}"#)).await;
        let known = secret.renewed(NOW_MS + nth as u64 * AGE_MS).await.unwrap();
        assert_eq!(known.of(Key::SlackSigningSecret).expose(), stored);
    }
}

#[tokio::test]
async fn stale_secret_copy_is_refreshed() {
    let cloud = Cloud::start().await;
    let id = cloud.resource("ProviderSecret");
    let secret = kept(cloud.engine.endpoint(), &id);
    let empty = secret.fresh(NOW_MS).await.unwrap();
    assert!(empty.of(Key::DaytonaApiKey).is_empty());
    cloud.store(&id, r#"{"daytona_api_key":"first"}"#).await;
    let young = secret.fresh(NOW_MS + AGE_MS - 1).await.unwrap();
    assert!(Arc::ptr_eq(&young, &empty), "the copy is young enough");
    let first = secret.fresh(NOW_MS + AGE_MS).await.unwrap();
    assert_eq!(first.of(Key::DaytonaApiKey).expose(), "first");
    let same = secret.fresh(NOW_MS + 3 * AGE_MS).await.unwrap();
    assert!(Arc::ptr_eq(&same, &first), "the same value is the same copy");
    cloud.store(&id, r#"{"daytona_api_key":"second"}"#).await;
    let newer = secret.newer(NOW_MS + 4 * AGE_MS).await.unwrap();
    assert_eq!(newer.of(Key::DaytonaApiKey).expose(), "second");
}

#[tokio::test]
async fn failed_secret_read_keeps_copy() {
    let cloud = Cloud::start().await;
    let id = cloud.resource("IngressSecret");
    let secret = kept(cloud.engine.endpoint(), &id);
    cloud.store(&id, r#"{"slack_signing_secret":"right"}"#).await;
    secret.known(NOW_MS).await.unwrap();
    cloud.store(&id, r#"{"slack_signing_secret":5}"#).await;
    let still = secret.fresh(NOW_MS + AGE_MS).await.unwrap();
    assert_eq!(still.of(Key::SlackSigningSecret).expose(), "right");
    assert_eq!(secret.newer(NOW_MS + 2 * AGE_MS).await, None);

    let unread = kept(cloud.engine.endpoint(), &id);
    let why = unread.known(NOW_MS).await.unwrap_err();
    assert!(
        why.contains("is not a JSON object of texts (line 1, column 25)") && !why.contains("right"),
        "{why}"
    );
    let why = unread.known(NOW_MS + 1).await.unwrap_err();
    assert!(why.contains("could not be read a moment ago"), "{why}");
    cloud.store(&id, r#"{"slack_signing_secret":"right"}"#).await;
    unread.known(NOW_MS + 2_000).await.unwrap();
}

#[tokio::test]
async fn worker_secrets_include_stack_key() {
    let cloud = Cloud::start().await;
    let endpoint = cloud.engine.endpoint();
    let of = |id: &str| cloud.resource(id);
    let secrets = WorkerSecrets::new(
        kept(endpoint, &of("WorkerSecret")),
        kept(endpoint, &of("ProviderSecret")),
        kept(endpoint, &of("StackKey")),
    );
    let before = secrets.aged(NOW_MS, 1).await.unwrap();
    assert_eq!(before.of(Key::StackKey).expose().len(), 48);
    assert!(before.of(Key::SlackBotToken).is_empty());
    let stored = r#"{"slack_bot_token":"xoxb","anthropic_api_key":"sk"}"#;
    cloud.store(&of("WorkerSecret"), stored).await;
    assert_eq!(secrets.aged(NOW_MS + 1, 1).await.unwrap(), before);
    assert_eq!(secrets.aged(NOW_MS + AGE_MS, 2).await.unwrap(), before, "an older copy is enough");
    let after = secrets.aged(NOW_MS + AGE_MS, 1).await.unwrap();
    assert_eq!(after.of(Key::AnthropicApiKey).expose(), "sk");
    assert_eq!(after.of(Key::StackKey), before.of(Key::StackKey));

    let (endpoint, _) = answering(200, r#"{"SecretString":"{\"stack_key\":\"short\"}"}"#).await;
    let short =
        WorkerSecrets::new(kept(&endpoint, "w"), kept(&endpoint, "p"), kept(&endpoint, "k"));
    let why = short.aged(NOW_MS, 1).await.unwrap_err();
    assert!(why.starts_with("stack_key in the secret StackKey has fewer than 32"));
}
