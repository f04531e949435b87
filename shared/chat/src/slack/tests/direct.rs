//! The thread of a direct message: that of the message, or that of its author.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::{Body, Reply};
use serde_json::{Value, json};

use super::{app, request, signed};
use crate::{Chats, Inbound};

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

/// The thread to which it goes where each direct message begins one, and where all of a person are one.
fn threads(inbound: &Inbound) -> (String, String) {
    let own = inbound.enqueue.as_ref().unwrap_or_else(|| panic!("{inbound:?}"));
    let one = inbound.direct.as_ref().map_or(own, |direct| &direct.body);
    let thread = |body: &Body| body.said_in().unwrap_or_else(|| panic!("{body:?}")).to_string();
    (thread(own), thread(one))
}

/// The earlier message that it belongs to.
fn after(inbound: &Inbound) -> Option<&str> {
    inbound.direct.as_ref()?.after.as_deref()
}

fn of_message(ts: &str) -> String {
    format!("slack:{TEAM}:{DIRECT}:{ts}")
}

fn of_anna() -> String {
    ThreadKey::slack_direct(TEAM, ANNA).unwrap().to_string()
}

#[test]
fn direct_message_is_the_same_in_either_thread() {
    let inbound = said("1790000100.000100", None);
    assert_eq!(threads(&inbound), (of_message("1790000100.000100"), of_anna()));
    let direct = inbound.direct.as_ref().expect("two threads");
    assert_eq!((direct.tenant.as_str(), &direct.after), ("slack:T0BOBBIN01", &None));
    // A worker knows a copy by this.
    for body in [inbound.enqueue.as_ref().expect("own"), &direct.body] {
        assert_eq!(body.id(), "slack_T0BOBBIN01_D0DIRECT001_1790000100.000100");
        assert!(Chats::is_direct(body.said_in().expect("said")));
    }
}

#[test]
fn thread_reply_belongs_to_its_first_message() {
    let reply = said("1790000900.000100", Some("1790000100.000100"));
    let own = of_message("1790000100.000100");
    assert_eq!(threads(&reply), (own.clone(), of_anna()));
    assert_eq!(after(&reply), Some("slack_T0BOBBIN01_D0DIRECT001_1790000100.000100"));
    // A worker keeps the thread's first message by the same id.
    let begun_by = |thread: &str| Chats::begun_by(&thread.parse().expect("a key"));
    assert_eq!(begun_by(&own).as_deref(), after(&reply));
    assert_eq!(begun_by(&of_anna()), None);
    assert_eq!(begun_by("slack:T0BOBBIN01:C0BUILD0001:1790000100.000100"), None);
    // Our posts are under no message only in the one thread: nothing is read.
    let under_ours = event(json!({"type": "message", "text": "go on", "ts": "1790000900.000100",
        "thread_ts": "1790000800.000100", "parent_user_id": BOT}));
    assert_eq!(threads(&under_ours), (of_anna(), of_anna()));
    assert!(under_ours.direct.is_none());
}

#[test]
fn control_messages_follow_their_prompt() {
    let word = event(json!({"type": "message", "text": "stop", "ts": "1790000100.000100"}));
    let stop = event(json!({"type": "agent_session_stopped", "channel_type": null,
        "thread_ts": "1790000100.000100", "event_ts": "1790000200.000100"}));
    let before = json!({"user": ANNA, "text": "fix it", "ts": "1790000100.000100"});
    let deleted = event(json!({"type": "message", "subtype": "message_deleted", "user": null,
        "deleted_ts": "1790000100.000100", "previous_message": before, "ts": "1790000300.000100"}));
    for inbound in [&word, &stop, &deleted] {
        assert_eq!(threads(inbound), (of_message("1790000100.000100"), of_anna()), "{inbound:?}");
    }
    assert_eq!(after(&word), None);
    for inbound in [&stop, &deleted] {
        assert_eq!(after(inbound), Some("slack_T0BOBBIN01_D0DIRECT001_1790000100.000100"));
    }
    let Some(Body::Control(control)) = word.direct.map(|direct| direct.body) else {
        panic!("no control")
    };
    // Written in the direct messages themselves, under no message.
    let expected =
        Reply::Slack { channel: DIRECT.to_owned(), thread_ts: None, user: ANNA.to_owned() };
    assert_eq!((control.reply, control.want), (expected, ControlAction::Stop { turn: None }));
}

#[test]
fn unthreaded_button_targets_direct_thread() {
    let plain = clicked(json!({"ts": "1790000150.000100"}));
    let begun = clicked(json!({"ts": "1790000150.000100", "thread_ts": "1790000150.000100"}));
    let within = clicked(json!({"ts": "1790000150.000100", "thread_ts": "1790000100.000100"}));
    let own = of_message("1790000100.000100");
    assert_eq!(threads(&plain), (of_anna(), of_anna()));
    assert_eq!(threads(&begun), (of_anna(), of_anna()));
    assert_eq!(threads(&within), (own.clone(), own));
}

#[test]
fn non_direct_events_have_one_destination() {
    let inbound =
        event(json!({"type": "app_mention", "text": "<@UBOT> fix it", "ts": "1790000100.000100",
        "channel": "C0BUILD0001", "channel_type": null}));
    assert!(inbound.direct.is_none());
    assert!(!Chats::is_direct(inbound.enqueue.as_ref().and_then(Body::said_in).expect("said")));
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
    assert_eq!((own.note, threads(&own)), ("stop", (of_anna(), of_anna())));
    let other = pressed("U0OTHER0001");
    assert_eq!((other.note, other.enqueue), ("direct messages of somebody else", None));
}
