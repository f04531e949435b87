//! The forge's webhooks at the real ingress: their origin, and that they are hints and not facts.

use bobbin_tests::chat::Platform;
use bobbin_tests::forge::TestForge;
use bobbin_tests::http;
use bobbin_tests::limits::{ANSWER_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use hmac::{Hmac, KeyInit as _, Mac as _};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::forge::{a_name, card_has, opened};
use crate::forge_fixes::published;
use crate::run::{CHAT, on};

/// An installation that the forge does not have.
const NOWHERE: u64 = 987_654_321;

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "webhooks::unsigned_webhooks_are_refused", unsigned),
        on(&CHAT, "webhooks::webhook_is_a_hint_and_no_fact", hints),
        on(&CHAT, "webhooks::failed_check_is_shown_without_a_sweep", failed_check),
    ]
}

/// GitHub's signature with this secret.
pub fn signature(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

pub fn deleted(installation: u64) -> String {
    let account = json!({"id": 9, "login": "acme", "type": "Organization"});
    let installation = json!({"id": installation, "account": account});
    json!({"action": "deleted", "installation": installation}).to_string()
}

/// The status of the answer.
pub async fn delivered(world: &World, event: &str, body: &str, signature: &str) -> u16 {
    let url = format!("{}/github/webhooks", world.deployment.ingress);
    let request = http::client().post(url).header("content-type", "application/json");
    let request = request.header("x-github-event", event).header("x-hub-signature-256", signature);
    http::send(request.body(body.to_owned())).await.unwrap().status
}

/// Whether the functions have logged this about that installation.
pub async fn is_logged(world: &World, event: &str, installation: u64) {
    is_logged_of(world, event, &format!("\"installation\":{installation}")).await;
}

/// Whether the functions have logged this, with these words in the line.
pub async fn is_logged_of(world: &World, event: &str, of: &str) {
    is_logged_again(world, (event, of), 0).await;
}

/// Whether the functions have logged this more than `before` times.
pub async fn is_logged_again(world: &World, (event, of): (&str, &str), before: usize) {
    eventually(VISIBLE_MS_MAX, event, async || match times_logged(world, event, of) {
        times if times > before => Ok(()),
        times => Err(format!("{times} times {event} of {of}")),
    })
    .await;
}

/// How often the functions have logged this, with these words in the line.
pub fn times_logged(world: &World, event: &str, of: &str) -> usize {
    let log = world.state_dir.parent().unwrap().join("output.log");
    let words = [format!("\"event\":\"{event}\""), of.to_owned()];
    let text = std::fs::read_to_string(&log).unwrap();
    text.lines().filter(|line| words.iter().all(|words| line.contains(words))).count()
}

async fn unsigned(world: World) {
    let secret = &world.ready.github_webhook_secret;
    let body = deleted(NOWHERE + 1);
    let good = signature(secret, &body);
    for (what, body, signature) in [
        ("none", body.clone(), String::new()),
        ("another secret's", body.clone(), signature("another", &body)),
        ("without a secret", body.clone(), signature("", &body)),
        ("cut", body.clone(), good[..good.len() - 2].to_owned()),
        ("SHA-1's name", body.clone(), good.replace("sha256=", "sha1=")),
        ("no hex", body.clone(), format!("{}zz", &good[..good.len() - 2])),
        ("of another body", deleted(NOWHERE + 2), good.clone()),
        ("of a longer body", format!("{body} "), good),
    ] {
        assert_eq!(delivered(&world, "installation", &body, &signature).await, 401, "{what}");
    }
    let url = format!("{}/github/webhooks", world.deployment.ingress);
    let looked = http::send(http::client().get(url)).await.unwrap();
    assert_eq!(looked.status, 405);
    let other = r#"{"zen": "…"}"#;
    assert_eq!(delivered(&world, "whatever", other, &signature(secret, other)).await, 202);
}

async fn failed_check(world: World) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let talk = published(&world, Platform::Discord, &repository).await;
    eventually(ANSWER_MS_MAX, "the next look by itself is far away", async || {
        world.sweep().await?;
        let publication = world.session(&talk.thread.key).await?.published.publication;
        let watch = publication.and_then(|one| one.watch).ok_or("it is not watched")?;
        let waits_ms = watch.due_at_ms.saturating_sub(watch.polled_at_ms);
        let is_far = waits_ms > 3 * ANSWER_MS_MAX;
        if is_far { Ok(()) } else { Err(format!("it waits {waits_ms} ms")) }
    })
    .await;
    eventually(ANSWER_MS_MAX, "the card has no checks", async || {
        card_has(&talk, |card| card.contains("Checks: none.")).await
    })
    .await;
    let pull = opened(&repository, 0).await;
    let failed = json!({
        "repository": repository.name, "sha": pull["head"]["sha"], "name": "test",
        "conclusion": "failure", "log": "It is broken.",
    });
    forge.control("checks", &failed).await;
    eventually(ANSWER_MS_MAX, "the webhook has it shown", async || {
        card_has(&talk, |card| card.contains("1 failed")).await
    })
    .await;
    talk.finish().await;
}

async fn hints(world: World) {
    let secret = &world.ready.github_webhook_secret;
    let state = std::fs::read(world.state_dir.join("forge/state.json")).unwrap();
    let state: Value = serde_json::from_slice(&state).unwrap();
    let there = state["identity"]["installation"].as_u64().unwrap();
    for (installation, seen) in
        [(there, "forge.installation_seen"), (NOWHERE, "forge.installation_ended")]
    {
        let body = deleted(installation);
        let signature = signature(secret, &body);
        assert_eq!(delivered(&world, "installation", &body, &signature).await, 202);
        is_logged(&world, seen, installation).await;
    }
}
