//! The status of the agent session.

use bobbin_core::base::ids::ThreadKey;
use serde_json::Value;

use super::{Fake, TURN, thread};
use crate::slack::render::AgentSessionStatus;

fn said(fake: &Fake) -> Vec<Value> {
    let calls = fake.sent("agents.sessions.setStatus");
    calls.iter().map(|call| call["status"].clone()).collect()
}

#[tokio::test]
async fn only_final_status_is_repeated() {
    let fake = Fake::start().await;
    let slack = fake.client();
    for status in [
        AgentSessionStatus::Processing,
        AgentSessionStatus::Processing,
        AgentSessionStatus::Suspended,
        AgentSessionStatus::Processing,
        AgentSessionStatus::Active,
    ] {
        slack.show_status(&thread(), &TURN.into(), status).await;
    }
    assert_eq!(said(&fake), ["processing", "suspended", "processing", "active"]);
    // Another process may have set something else meanwhile: for an end, this one does not rely on its memory.
    slack.show_status(&thread(), &TURN.into(), AgentSessionStatus::Active).await;
    assert_eq!(said(&fake).len(), 5);
}

#[tokio::test]
async fn next_turn_shows_status_anew() {
    let fake = Fake::start().await;
    let (here, there) = (fake.client(), fake.client());
    here.show_status(&thread(), &"one".into(), AgentSessionStatus::Processing).await;
    there.show_status(&thread(), &"one".into(), AgentSessionStatus::Active).await;
    here.show_status(&thread(), &"two".into(), AgentSessionStatus::Processing).await;
    here.show_status(&thread(), &"two".into(), AgentSessionStatus::Active).await;
    assert_eq!(said(&fake), ["processing", "active", "processing", "active"]);
}

#[tokio::test]
async fn refused_status_silences_only_its_tenant() {
    let fake = Fake::start().await;
    let slack = fake.client();
    fake.refuses("agents.sessions.setStatus", "unknown_method");
    slack.show_status(&thread(), &TURN.into(), AgentSessionStatus::Processing).await;
    assert_eq!(fake.sent("assistant.threads.setStatus")[0]["status"], "is working…");
    fake.refuses("assistant.threads.setStatus", "not_supported");
    for status in
        [AgentSessionStatus::Suspended, AgentSessionStatus::Processing, AgentSessionStatus::Active]
    {
        slack.show_status(&thread(), &TURN.into(), status).await;
    }
    assert_eq!(fake.sent("agents.sessions.setStatus").len(), 1);
    assert_eq!(fake.sent("assistant.threads.setStatus").len(), 2);
    let other = ThreadKey::slack("T2", "C9", "1790000000.000100").unwrap();
    slack.show_status(&other, &TURN.into(), AgentSessionStatus::Processing).await;
    assert_eq!(said(&fake).len(), 2, "the other tenant has refused nothing");
}

#[tokio::test]
async fn fallback_status_is_cleared_at_end() {
    let fake = Fake::start().await;
    let slack = fake.client();
    fake.refuses("agents.sessions.setStatus", "missing_scope");
    slack.show_status(&thread(), &TURN.into(), AgentSessionStatus::Processing).await;
    slack.show_status(&thread(), &TURN.into(), AgentSessionStatus::Active).await;
    let lines: Vec<Value> = fake
        .sent("assistant.threads.setStatus")
        .iter()
        .map(|call| call["status"].clone())
        .collect();
    assert_eq!(lines, ["is working…", ""]);
}
