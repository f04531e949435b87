//! Cards in a workspace that does not take the newer blocks.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::{Card, CardState, CardStep, Post, StepState};
use serde_json::Value;

use super::{Chat, Fake, TURN, card, send};

fn with_steps() -> Post {
    let Post::Card(card) = card(CardState::Working) else { unreachable!("it is a card") };
    let step = CardStep { text: "Running cargo test".to_owned(), state: StepState::Running };
    Post::Card(Card { steps: vec![step], ..card })
}

fn first_blocks(calls: &[Value]) -> Vec<String> {
    let kind = |call: &Value| match call["blocks"][0]["type"].as_str() {
        Some(kind) => kind.to_owned(),
        None => "(text)".to_owned(),
    };
    calls.iter().map(kind).collect()
}

#[tokio::test]
async fn plan_refusal_switches_to_lines() {
    let fake = Fake::start().await;
    let slack = fake.client();
    fake.refuses("chat.postMessage", "invalid_blocks");
    let at = send(&slack, &PostKind::Card, None, &with_steps()).await.unwrap();
    send(&slack, &PostKind::Card, Some(&at), &with_steps()).await.unwrap();
    assert_eq!(first_blocks(&fake.sent("chat.postMessage")), ["plan", "section"]);
    assert_eq!(first_blocks(&fake.sent("chat.update")), ["section"]);
    let other = ThreadKey::slack("T2", "C9", "1790000000.000100").unwrap();
    slack.post(&other, &TURN.into(), &PostKind::Card, None, &with_steps()).await.unwrap();
    assert_eq!(
        first_blocks(&fake.sent("chat.postMessage"))[2],
        "plan",
        "another tenant has refused nothing"
    );
}

#[tokio::test]
async fn twice_refused_edit_shows_text() {
    let fake = Fake::start().await;
    let slack = fake.client();
    let at = send(&slack, &PostKind::Card, None, &with_steps()).await.unwrap();
    fake.refuses("chat.update", "invalid_blocks");
    fake.refuses("chat.update", "invalid_blocks");
    send(&slack, &PostKind::Card, Some(&at), &with_steps()).await.unwrap();
    let edits = fake.sent("chat.update");
    assert_eq!(first_blocks(&edits), ["plan", "section", "(text)"]);
    assert_eq!(edits[2]["text"], "Working");
}
