#![allow(clippy::unwrap_used)]

use bobbin_core::records::card::StepState;
use serde_json::{Value, json};

use super::*;
use crate::models::{ModelKeys, ModelSettings};

/// Events of a session, numbered, of these turns.
fn fold(events: &[(Option<&str>, Value)]) -> Fold {
    let mut fold = Fold::new("/work/project");
    fold.of(&["t1".to_owned()]);
    for (number, (turn, data)) in events.iter().enumerate() {
        let event = json!({
            "id": number + 1, "seq": number + 1, "timestamp": "2026-11-24T00:00:00Z", "sessionId": "s", "agent": "a",
            "turn": turn, "data": data,
        });
        fold.take(&serde_json::from_value(event).unwrap());
    }
    fold
}

fn said(id: &str, metadata: Value, parts: Value) -> Value {
    json!({"message": {"role": "assistant", "id": id, "metadata": metadata, "parts": parts}})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn last_text_is_the_answer() {
    let fold = fold(&[
        (Some("t0"), said("m0", json!({}), text("of another turn"))),
        (
            Some("t1"),
            json!({"message": {"role": "user", "id": "u", "parts": [{"type": "text", "text": "do it"}]}}),
        ),
        (Some("t1"), said("m1", json!({"part": "p1", "delta": true}), text("Hel"))),
        (Some("t1"), said("m1", json!({"part": "p1", "delta": true}), text("lo"))),
        (Some("t1"), said("m1", json!({"part": "p1"}), text("Hello."))),
        (Some("t1"), said("m1", json!({"part": "p2"}), text("Gone."))),
        (Some("t1"), said("m1", json!({"part": "p2"}), json!([]))),
        (Some("t1"), said("m2", json!({"summary": true}), text("What was said."))),
        (Some("t1"), said("m3", json!({"part": "p1", "synthetic": true}), text("Not for people."))),
        (Some("t1"), said("m3", json!({"part": "p2", "delta": true}), text("Done."))),
    ]);
    assert_eq!(fold.words(), ["Hello.", "Done."]);
    assert_eq!(fold.text(), "Done.");
    assert_eq!(fold.messages(), 3);
}

#[test]
fn duplicate_event_counts_once() {
    let mut fold =
        fold(&[(Some("t1"), said("m1", json!({"part": "p1", "delta": true}), text("one")))]);
    let again = json!({
        "id": 1, "seq": 1, "timestamp": "2026-11-24T00:00:00Z", "sessionId": "s", "agent": "a", "turn": "t1",
        "data": said("m1", json!({"part": "p1", "delta": true}), text("one")),
    });
    fold.take(&serde_json::from_value(again).unwrap());
    assert_eq!(fold.text(), "one");
}

#[test]
fn model_retry_shows_next_attempt() {
    let status = |state: &str| json!({"status": {"state": state, "message": "quota is used up", "nextMs": 1_795_514_400_000_u64}, "raw": null});
    let steps = |states: &[&str]| {
        let events: Vec<_> = states.iter().map(|state| (Some("t1"), status(state))).collect();
        let steps = fold(&events).steps(false).0;
        steps.into_iter().map(|step| step.text).collect::<Vec<_>>()
    };
    assert_eq!(
        steps(&["busy", "retrying"]),
        ["The model did not answer: quota is used up, trying again at Nov 24, 10:00 UTC"]
    );
    assert_eq!(steps(&["retrying", "busy"]), [""; 0]);
}

#[test]
fn agents_share_tool_step_wording() {
    let call = |id: &str, name: &str, input: Value| {
        said(
            "m",
            json!({"part": id}),
            json!([{"type": "tool_call", "id": id, "name": name, "input": input}]),
        )
    };
    let fold = fold(&[
        (Some("t1"), call("c1", "Bash", json!({"command": "cargo test"}))),
        (
            Some("t1"),
            json!({"message": {"role": "user", "parts": [{"type": "tool_result", "id": "c1", "output": "secret", "is_error": true}]}}),
        ),
        (
            Some("t1"),
            call("c2", "Write", json!({"file_path": "/work/project/src/a.rs", "content": "long"})),
        ),
        (
            Some("t1"),
            json!({"message": {"role": "user", "parts": [{"type": "tool_result", "id": "c2", "output": ""}]}}),
        ),
        (
            Some("t1"),
            call("c3", "fileChange", json!({"changes": [{"path": "/work/project/b.rs"}]})),
        ),
    ]);
    let (steps, earlier) = fold.steps(false);
    let shown: Vec<(&str, StepState)> =
        steps.iter().map(|step| (step.text.as_str(), step.state)).collect();
    assert_eq!(
        shown,
        [
            ("Ran `cargo test`", StepState::Failed),
            ("Wrote src/a.rs", StepState::Done),
            ("Editing b.rs", StepState::Running),
        ]
    );
    assert_eq!(earlier, 0);
    let (over, _) = fold.steps(true);
    assert_eq!(over[2].text, "Edited b.rs");
}

#[test]
fn completed_message_ends_its_calls() {
    let call = |id: &str| json!([{"type": "tool_call", "id": id, "name": "bash", "input": {"command": id}}]);
    let over = json!({"completed": 1});
    let told = [
        (Some("t1"), said("m1", json!({"part": "p1"}), call("before"))),
        (Some("t1"), said("m1", over, json!([]))),
        // A list gives the head of a message first.
        (Some("t1"), said("m1", json!({"part": "p2"}), call("after"))),
        (Some("t1"), said("m2", json!({"part": "p3"}), call("now"))),
    ];
    let steps = fold(&told).steps(false).0.into_iter();
    let steps: Vec<String> = steps.map(|step| step.text).collect();
    assert_eq!(steps, ["Ran `before`", "Ran `after`", "Running `now`"]);
}

/// The text of the one open permission, as a person reads it.
fn subject(call: Value, metadata: Value) -> String {
    let asked = json!({"permissionAsked": {
        "id": "0-7", "sessionId": "own", "permission": "tool", "patterns": ["*"], "always": [], "metadata": metadata,
        "tool": {"messageId": "m", "callId": "c1"},
    }});
    let call = said(
        "m",
        json!({"part": "c1"}),
        json!([{"type": "tool_call", "id": "c1", "name": "tool", "input": call}]),
    );
    match fold(&[(Some("t1"), call), (Some("t1"), asked)]).asks().pop() {
        Some((_, About::Permission { subject, .. })) => subject,
        _ => panic!("one permission"),
    }
}

#[test]
fn ask_shows_every_call_argument() {
    let call = json!({"cmd": "echo harmless", "env": {"A": "evil.sh"}, "cwd": "/x"});
    let shown = "echo harmless\nin: /x\nwith: A=evil.sh";
    assert_eq!(subject(call, json!({})), shown);
    let call = json!({"path": "a.txt", "content": "x".repeat(300)});
    assert_eq!(subject(call, json!({})), format!("a.txt\ncontent: {}", "x".repeat(300)));
    // Data for the answer is not shown; facts that only the ask has are.
    let metadata = json!({"requestId": 7, "method": "m", "cwd": "/x", "reason": "why"});
    assert_eq!(subject(json!({"command": "ls"}), metadata), "ls\nin: /x\nreason: why");
    let metadata = json!({"toolName": "Bash", "input": {"command": "ls", "timeout": 5}});
    assert_eq!(subject(json!({}), metadata), "ls\ntimeout: 5");
}

#[test]
fn ask_shows_command_until_closed() {
    let asked = json!({"permissionAsked": {
        "id": "0-7", "sessionId": "own", "permission": "Bash", "patterns": ["Bash(rm:*)"], "always": ["rm"],
        "tool": {"messageId": "m", "callId": "c1"},
    }});
    let call = said(
        "m",
        json!({"part": "c1"}),
        json!([{"type": "tool_call", "id": "c1", "name": "Bash", "input": {"command": "rm -r x"}}]),
    );
    let events = [(Some("t1"), call), (Some("t1"), asked)];
    let mut open = fold(&events);
    let [(id, About::Permission { subject, always, .. })] = &open.asks()[..] else {
        panic!("one permission")
    };
    assert_eq!((id.as_str(), subject.as_str(), always.len()), ("0-7", "rm -r x", 1));
    open.keep_asks(&BTreeSet::new());
    assert!(open.asks().is_empty());

    let closed = json!({"askClosed": {"id": "0-7"}, "raw": {}});
    let [one, two] = events;
    assert!(fold(&[one, two, (Some("t1"), closed)]).asks().is_empty());
}

#[test]
fn usage_covers_only_the_turn() {
    let usage = |scope: Value, total: u64, cost: f64| json!({"usage": {"scope": scope, "totalTokens": total, "costUsd": cost}, "raw": {}});
    let by_message = fold(&[
        (Some("t1"), usage(json!({"message": "m1"}), 5, 0.5)),
        (Some("t1"), usage(json!({"message": "m1"}), 10, 1.0)),
        (Some("t1"), usage(json!({"message": "m2"}), 20, 0.0)),
        (Some("t1"), usage(json!("context"), 999, 9.0)),
    ]);
    let used = by_message.usage();
    assert_eq!((used.tokens, used.cost_micro_usd), (30, 1_000_000));
    let by_session = fold(&[
        (Some("t0"), usage(json!("session"), 100, 1.0)),
        (Some("t1"), usage(json!("session"), 150, 1.5)),
    ]);
    let used = by_session.usage();
    assert_eq!((used.tokens, used.cost_micro_usd), (50, 500_000));
}

/// As Claude Code counts: messages by their tokens, and the turn with what it has cost.
#[test]
fn named_price_counts_until_the_turn_tells_its_cost() {
    let prices = json!({"anthropic/a": {"input": 5, "output": 25, "cache_read": 0.5}});
    let settings = ModelSettings {
        model: "anthropic/a".to_owned(),
        models: Vec::new(),
        model_base_url: None,
        keys: ModelKeys::default(),
        prices: serde_json::from_value(prices).expect("prices"),
    };
    let models = Arc::new(Models::new(&settings).expect("valid"));
    let message = |id: &str, model: &str| {
        json!({"usage": {"scope": {"message": id}, "inputTokens": 100, "outputTokens": 20,
        "cacheReadTokens": 1_000, "cacheWriteTokens": 40, "model": model}, "raw": {}})
    };
    let ended = |cost: Option<f64>| {
        let mut usage = json!({"scope": "turn", "inputTokens": 300, "outputTokens": 60});
        if let Some(cost) = cost {
            usage["costUsd"] = cost.into();
        }
        json!({"turnEnded": {"outcome": "done", "usage": usage}, "raw": {}})
    };
    let spent = |end: Option<Value>| {
        let mut fold = fold(&[]).priced_by(Arc::clone(&models));
        let messages = [message("m1", "anthropic/a"), message("m2", "anthropic/unknown")];
        for data in messages.into_iter().chain([message("m1", "anthropic/a")]).chain(end) {
            let data = serde_json::from_value(data).expect("data of an event");
            fold.receive(Some("t1"), None, &data);
        }
        fold.usage().cost_micro_usd
    };
    // 100 and 40 read, 20 written, 1,000 from a cache.
    assert_eq!(spent(None), 500 + 200 + 500 + 500);
    assert_eq!(spent(Some(ended(Some(0.25)))), 250_000);
    assert_eq!(spent(Some(ended(None))), 1_700, "it never said");
}

#[test]
fn failure_text_gives_advice() {
    let fold = fold(&[(
        Some("t1"),
        json!({"error": {"message": "Incorrect API key provided.", "kind": "APIError", "details": {"statusCode": 401}}}),
    )]);
    assert_eq!(
        fold.trouble().map(Reason::text),
        Some(
            "The model's vendor refused the key: Incorrect API key provided. The operator has to check the model key."
        )
    );
}
