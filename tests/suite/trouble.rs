//! The provider misbehaves: people get an explanation, and the thread continues afterwards.

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::chat::Platform;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::run::trial;

const STOPPER: &str = "U0STOPPER01";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("embedded::trouble::provider_trouble_is_reported_in_words", provider),
        trial("embedded::trouble::openai_model_works_behind_own_endpoint", own_endpoint),
        trial("embedded::trouble::stop_waits_for_no_word_of_slack", stop),
    ]
}

/// Its own stack: armed faults hit the first caller.
async fn provider() {
    let mut limits = quick();
    limits["attempts"] = json!(2);
    limits["outage_ms"] = json!(4_000);
    // The second fault is armed as soon as the first is over: the breaker must be closed by then.
    for bound in ["breaker_open_ms", "breaker_open_ms_max", "breaker_probe_ms"] {
        limits[bound] = json!(500);
    }
    let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(limits) });
    let world = World::of(&stack);
    let faults = [
        (
            "an HTML page",
            json!({"fault": "html", "operation": "*", "status": 502, "for_ms": 600_000}),
        ),
        (
            "a refused key",
            json!({"fault": "answer", "operation": "*", "status": 401, "for_ms": 600_000}),
        ),
    ];
    for (what, fault) in faults {
        for platform in Platform::ALL {
            reported(&world, platform, what, &fault).await;
        }
    }
    world.check_orphans().await.unwrap();
    stack.end().unwrap();
}

/// `MODEL=openai/…` with a base URL, as an operator with their own gateway would set it.
async fn own_endpoint() {
    let stack = Stack::start(&Options {
        parameters: json!({"Model": "openai/scripted-1"}),
        keys: json!({"openai_api_key": "a-key"}),
        ..Options::limits(quick())
    });
    let world = World::of(&stack);
    let (talk, turn) = world.begin(Platform::Discord, "echo: over the gateway").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("over the gateway"));
    talk.finish().await;
    stack.end().unwrap();
}

/// A person presses Stop before anybody knows who they are, and Slack does not say.
async fn stop() {
    let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(quick()) });
    let world = World::of(&stack);
    let (talk, turn) =
        world.begin(Platform::Slack, "slow: 90 one two three four five six seven eight").await;
    talk.running(&turn).await;
    let card = talk.card(&turn).await;
    world.slack.set_user(STOPPER, &json!({})).await.unwrap();
    let fault = json!({"route": "users.info", "count": 1_000, "status": 429, "retry_after": 600});
    world.slack.arm(&fault).await.unwrap();
    let press = json!({"type": "block_action", "user_id": STOPPER,
        "channel_id": talk.thread.channel, "message_ts": card.id,
        "action_id": card.button("Stop").unwrap().id});
    world.slack.act(&press).await.unwrap();
    let ended = talk.ended(&turn).await;
    assert!(matches!(&ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);
    talk.finish().await;
    stack.end().unwrap();
}

async fn reported(world: &World, platform: Platform, what: &str, fault: &Value) {
    world.provider.arm(fault).await.unwrap();
    let (mut talk, turn) = world.begin(platform, "echo: never").await;
    let ended = talk.ended(&turn).await;
    world.provider.clear().await.unwrap();
    let Outcome::Failed { reason } = &ended.outcome else { panic!("{what}: {:?}", ended.outcome) };
    assert!(!reason.contains('<') && reason.len() > 20, "{what}: these are no words: {reason}");
    if what == "a refused key" {
        assert!(reason.contains("key"), "{what}: it does not say what to do: {reason}");
    }
    let next = talk.say("echo: it works again").await;
    assert_eq!(talk.ended(&next).await.outcome, Outcome::Answered, "{what}");
    talk.finish().await;
}
