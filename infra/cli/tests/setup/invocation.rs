//! `env` and `event`, against a deployed stack; the laptop stack's are in the suite, with the functions that they are
//! for.

use bobbin_chat::slack::verify;
use serde_json::Value;

use crate::support::{SIGNING_SECRET, World};

const PING: &str = "../../events/discord/ping.json";
const MENTION: &str = "../../events/slack/app_mention.json";
const KEY: [(&str, &str); 1] = [("SLACK_SIGNING_SECRET", SIGNING_SECRET)];

#[tokio::test]
async fn slack_event_is_signed_unchanged() {
    let world = World::start().await;
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(MENTION).unwrap()).unwrap();
    let signed = |event: &Value, now_ms: u64| {
        let header = |name: &str| event["headers"][name].as_str().unwrap().to_owned();
        let (signature, time) = (header("x-slack-signature"), header("x-slack-request-timestamp"));
        let body = event["body"].as_str().unwrap().as_bytes();
        verify(SIGNING_SECRET, &signature, &time, body, now_ms).is_ok()
    };
    let now_ms = bobbin_cloud::clock::now_ms();
    assert!(!signed(&stored, now_ms));
    let said = world.run(&["event", MENTION], &KEY).await;
    let event: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, signed(&event, now_ms)), (0, true), "{}", said.err);
    assert_eq!(event["body"], stored["body"]);
    assert!(said.err.contains("unless AllowedTeams lists T0BOBBIN01"), "{}", said.err);
    let keyless = world.run(&["event", MENTION], &[]).await;
    keyless.refused("SLACK_SIGNING_SECRET is not set.");
}

#[tokio::test]
async fn discord_event_needs_the_laptop_stack() {
    let world = World::start().await;
    let said = world.run(&["event", PING], &[]).await;
    said.refused("Only Discord has the key");
    said.refused("sign one for the laptop stack with --laptop.");
    assert_eq!(said.out, "");
}

#[tokio::test]
async fn unreadable_event_or_stack_is_explained() {
    let world = World::start().await;
    for (arguments, words) in [
        (&["event", "../../events/nowhere.json"][..], "../../events/nowhere.json cannot be read"),
        (&["event", "../../events/README.md"], "../../events/README.md is not JSON"),
        (&["event", "-"], "- is not JSON"),
        (&["env", "--stack", "other"], "There is no stack other in us-east-1."),
        (&["env"], "Start it with cargo run -- --containers"),
        (
            &["env", "--container-host", "172.17.0.1"],
            "has no output MessagesQueueUrl: deploy the template.yaml of this version",
        ),
        (
            &["--laptop", "--state-dir", "/nowhere", "env"],
            "No laptop stack runs with the state folder /nowhere: start it with cargo run",
        ),
    ] {
        world.run(arguments, &[]).await.refused(words);
    }
    let half = world.run(&["--state-dir", "/nowhere", "env"], &[]).await;
    assert_eq!(half.code, 2, "{}", half.err);
}
