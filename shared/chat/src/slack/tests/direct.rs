//! The thread of a direct message: that of the message, or that of its author.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::message::{Body, Reply, Want};
use bobbin_core::tenant::settings::{DirectSwitch, Settings};
use serde_json::{Value, json};

use super::{app, request, signed};
use crate::Inbound;

const TEAM: &str = "T0BOBBIN01";
const DIRECT: &str = "D0DIRECT001";
const ANNA: &str = "U0ANNA00001";
const BOT: &str = "UBOT";

fn sent(stored: &Value) -> Inbound {
    let (endpoint, raw) = request(stored);
    signed(&endpoint, &raw, &app(TEAM, "", ""))
}

fn event(event: Value) -> Inbound {
    let mut whole = json!({"user": ANNA, "channel": DIRECT, "channel_type": "im", "team": TEAM});
    for (name, value) in event.as_object().unwrap() {
        whole[name] = value.clone();
    }
    sent(
        &json!({"endpoint": "events", "json": {"type": "event_callback", "team_id": TEAM, "event": whole,
        "authorizations": [{"team_id": TEAM, "user_id": BOT}]}}),
    )
}

fn said(ts: &str, thread_ts: Option<&str>) -> Inbound {
    event(json!({"type": "message", "text": "fix it", "ts": ts, "thread_ts": thread_ts}))
}

fn clicked(message: Value) -> Inbound {
    sent(&json!({"endpoint": "interactivity", "payload": {
        "type": "block_actions", "user": {"id": ANNA, "team_id": TEAM}, "team": {"id": TEAM},
        "container": {"type": "message", "channel_id": DIRECT, "message_ts": message["ts"]},
        "channel": {"id": DIRECT}, "message": message,
        "actions": [{"action_id": "v1:stop", "value": "turn-1", "action_ts": "1790000200.000100"}],
    }}))
}

/// The direct messages are one thread from this time on.
fn since(since_ms: u64) -> Settings {
    let switch = DirectSwitch {
        id: "c".to_owned(),
        at_ms: 0,
        since_ms,
        by: bobbin_core::base::person::Person::default(),
        one_thread: true,
    };
    Settings { direct: vec![switch], ..Settings::default() }
}

/// The threads to which it goes by these settings.
fn threads(inbound: &Inbound, settings: Option<&Settings>) -> Vec<String> {
    let own = inbound.enqueue.as_ref().unwrap_or_else(|| panic!("{inbound:?}"));
    let bodies = match &inbound.direct {
        Some(direct) => direct.bodies(own, settings),
        None => vec![own.clone()],
    };
    let thread = |body: &Body| body.thread().map(ToString::to_string);
    bodies.iter().filter_map(thread).collect()
}

fn of_message(ts: &str) -> String {
    format!("slack:{TEAM}:{DIRECT}:{ts}")
}

fn of_anna() -> String {
    ThreadKey::slack_direct(TEAM, ANNA).unwrap().to_string()
}

#[test]
fn direct_message_follows_settings_when_sent() {
    let inbound = said("1790000100.000100", None);
    let own = of_message("1790000100.000100");
    assert_eq!(threads(&inbound, Some(&Settings::default())), std::slice::from_ref(&own));
    assert_eq!(threads(&inbound, Some(&since(1_790_000_100_001))), std::slice::from_ref(&own));
    assert_eq!(threads(&inbound, Some(&since(1_790_000_100_000))), [of_anna()]);
    let body = &inbound.direct.expect("two places").body;
    let Body::Message(message) = body else { panic!("{body:?}") };
    assert_eq!(message.id, "slack_T0BOBBIN01_D0DIRECT001_1790000100.000100");
}

#[test]
fn without_settings_exactly_one_copy_counts() {
    let inbound = said("1790000100.000100", None);
    let copies = |inbound: &Inbound| {
        let own = inbound.enqueue.clone().unwrap();
        inbound.direct.as_ref().unwrap().bodies(&own, None)
    };
    assert_eq!(threads(&inbound, None), [of_message("1790000100.000100"), of_anna()]);
    for (settings, expected) in [
        (Settings::default(), of_message("1790000100.000100")),
        (since(1_790_000_100_001), of_message("1790000100.000100")),
        (since(1_790_000_100_000), of_anna()),
    ] {
        let counting = copies(&inbound).into_iter().filter_map(|copy| match copy {
            Body::Candidate(candidate) => candidate.chosen(&settings),
            other => panic!("{other:?}"),
        });
        let groups: Vec<String> = counting.map(|body| body.group()).collect();
        assert_eq!(groups, [expected]);
    }
    // As stored in the queue.
    for copy in copies(&inbound) {
        assert_eq!(Body::decode(&copy.encode()), Ok(copy));
    }
}

#[test]
fn thread_reply_follows_its_first_message() {
    let reply = said("1790000900.000100", Some("1790000100.000100"));
    let own = of_message("1790000100.000100");
    assert_eq!(threads(&reply, Some(&since(1_790_000_500_000))), [own]);
    assert_eq!(threads(&reply, Some(&since(1_790_000_000_000))), [of_anna()]);
    // Our posts are under no message only in the one thread: no setting is read.
    let under_ours = event(json!({"type": "message", "text": "go on", "ts": "1790000900.000100",
        "thread_ts": "1790000800.000100", "parent_user_id": BOT}));
    assert_eq!(threads(&under_ours, Some(&Settings::default())), [of_anna()]);
    assert!(under_ours.direct.is_none());
}

#[test]
fn control_messages_follow_their_prompt() {
    let settings = since(1_790_000_000_000);
    let word = event(json!({"type": "message", "text": "stop", "ts": "1790000100.000100"}));
    let stop = event(json!({"type": "agent_session_stopped", "channel_type": null,
        "thread_ts": "1790000100.000100", "event_ts": "1790000200.000100"}));
    let before = json!({"user": ANNA, "text": "fix it", "ts": "1790000100.000100"});
    let deleted = event(json!({"type": "message", "subtype": "message_deleted", "user": null,
        "deleted_ts": "1790000100.000100", "previous_message": before, "ts": "1790000300.000100"}));
    for inbound in [&word, &stop, &deleted] {
        assert_eq!(threads(inbound, Some(&settings)), [of_anna()], "{inbound:?}");
        assert_eq!(threads(inbound, Some(&Settings::default())), [of_message("1790000100.000100")]);
    }
    let Some(Body::Control(control)) = word.direct.map(|direct| direct.body) else {
        panic!("no control")
    };
    // Written in the direct messages themselves, under no message.
    let expected =
        Reply::Slack { channel: DIRECT.to_owned(), thread_ts: None, user: ANNA.to_owned() };
    assert_eq!((control.reply, control.want), (expected, Want::Stop { turn: None }));
}

#[test]
fn unthreaded_button_targets_direct_thread() {
    let plain = clicked(json!({"ts": "1790000150.000100"}));
    let begun = clicked(json!({"ts": "1790000150.000100", "thread_ts": "1790000150.000100"}));
    let within = clicked(json!({"ts": "1790000150.000100", "thread_ts": "1790000100.000100"}));
    assert_eq!(threads(&plain, None), [of_anna()]);
    assert_eq!(threads(&begun, None), [of_anna()]);
    assert_eq!(threads(&within, None), [of_message("1790000100.000100")]);
}

#[test]
fn non_direct_events_have_one_destination() {
    let inbound =
        event(json!({"type": "app_mention", "text": "<@UBOT> fix it", "ts": "1790000100.000100",
        "channel": "C0BUILD0001", "channel_type": null}));
    assert!(inbound.direct.is_none() && inbound.enqueue.is_some());
    let home =
        event(json!({"type": "app_home_opened", "tab": "home", "event_ts": "1790000100.000100"}));
    assert!(home.direct.is_none() && home.enqueue.is_some());
}

#[test]
fn home_stop_is_limited_to_owner() {
    let pressed = |whose: &str| {
        sent(&json!({"endpoint": "interactivity", "payload": {
            "type": "block_actions", "user": {"id": ANNA, "team_id": TEAM}, "team": {"id": TEAM},
            "view": {"type": "home"}, "actions": [{"action_id": "v1:home-stop:0",
            "value": format!("dm {whose} turn-1"), "action_ts": "1790000200.000100"}],
        }}))
    };
    let own = pressed(ANNA);
    assert_eq!((own.note, threads(&own, None)), ("stop", vec![of_anna()]));
    let other = pressed("U0OTHER0001");
    assert_eq!((other.note, other.enqueue), ("direct messages of somebody else", None));
}
