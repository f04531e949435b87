//! The folds over recorded runs of the real server: events and message list must agree.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use bobbin_core::records::ask::{About, Opt, Question};
use bobbin_core::records::card::{PlanLineState, StepState};
use bobbin_core::records::run::{RunAnswer, RunEnd};
use serde_json::{Value, json};

use super::answer::conclude;
use super::order::{in_order, is_whole};
use super::reading::{Reading, RunSnapshot};
use super::types::{OpenCodeMessage, Role};
use crate::observe::RunState;
use crate::reason::Reason;
use crate::sse::Sse;
use crate::steps::PLAN_MAX;

fn fixture(name: &str) -> String {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opencode").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn events(name: &str) -> Vec<Value> {
    let stream = fixture(&format!("{name}.event.sse"));
    let data = Sse::default().push(stream.as_bytes()).unwrap();
    data.iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn list(name: &str) -> Value {
    serde_json::from_str(&fixture(&format!("{name}.messages.json"))).unwrap()
}

fn messages(name: &str) -> Vec<OpenCodeMessage> {
    read(&list(name))
}

fn read(list: &Value) -> Vec<OpenCodeMessage> {
    serde_json::from_value(list.clone()).unwrap()
}

/// The session of a recording and the id of its first prompt.
fn subject(events: &[Value]) -> (String, String) {
    let heads = events.iter().map(|one| (one["type"].as_str(), &one["properties"]["info"]));
    let mut ids = heads.map(|(kind, info)| (kind, info["role"].as_str(), info["id"].as_str()));
    let session =
        ids.clone().find(|(kind, ..)| kind.is_some_and(|kind| kind.starts_with("session.")));
    let session = session.unwrap().2.unwrap().to_owned();
    let prompt = ids.find(|(_, role, _)| *role == Some("user"));
    let prompt = prompt.map(|(.., id)| id.unwrap().to_owned());
    (session, prompt.unwrap_or_else(|| "msg_missing".into()))
}

fn unread(events: &[Value]) -> Reading {
    let (session, prompt) = subject(events);
    Reading::new(&session, &prompt, &[])
}

fn heard(name: &str) -> Reading {
    let events = events(name);
    let mut reading = unread(&events);
    events.into_iter().for_each(|event| reading.receive(event));
    reading
}

/// State of a recorded run, by the list that its events leave.
fn concluded(name: &str) -> RunState {
    let events = events(name);
    let (_, prompt) = subject(&events);
    conclude(&read(&left_by(&events)), &prompt, &[], None)
}

/// The message list that these events leave.
fn left_by(events: &[Value]) -> Value {
    let (session, _) = subject(events);
    let mut list: Vec<Value> = Vec::new();
    for properties in events.iter().map(|event| &event["properties"]) {
        let (info, part) = (&properties["info"], &properties["part"]);
        if info["sessionID"] == session.as_str() && info["role"].is_string() {
            match list.iter_mut().find(|one| one["info"]["id"] == info["id"]) {
                Some(known) => known["info"] = info.clone(),
                None => list.push(json!({"info": info, "parts": []})),
            }
        }
        let of = list.iter_mut().find(|one| one["info"]["id"] == part["messageID"]);
        if let Some(Value::Array(parts)) = of.map(|one| &mut one["parts"]) {
            parts.retain(|known| known["id"] != part["id"]);
            parts.push(part.clone());
            parts.sort_by_key(|part| part["id"].as_str().unwrap().to_owned());
        }
    }
    json!(list)
}

fn event(kind: &str, properties: Value) -> Value {
    json!({"type": kind, "properties": properties})
}

fn done(state: RunState) -> RunAnswer {
    match state {
        RunState::Done(answer) => answer,
        other => panic!("not done: {other:?}"),
    }
}

fn steps(reading: &Reading) -> Vec<String> {
    let steps = reading.fold().steps(false).0.into_iter();
    steps.map(|step| format!("{:?} {}", step.state, step.text)).collect()
}

#[test]
fn text_joined_midway_is_shown_from_its_beginning() {
    let mut shown_midway = 0;
    for name in ["simple", "two-tools", "abort-text"] {
        let events = events(name);
        let (session, prompt) = subject(&events);
        let whole = heard(name).fold().words();
        let first = events.iter().position(|one| one["properties"]["info"]["role"] == "user");
        for joined in first.unwrap()..events.len() {
            let mut reading = Reading::new(&session, &prompt, &[]);
            reading.read_messages(&read(&left_by(&events[..joined])));
            for event in &events[joined..] {
                reading.receive(event.clone());
                let words = reading.fold().words();
                for (shown, whole) in words.iter().zip(&whole) {
                    assert!(
                        whole.starts_with(shown),
                        "{name} from {joined}: {shown:?} in {whole:?}"
                    );
                }
                shown_midway += usize::from(words.last() != whole.get(words.len().wrapping_sub(1)));
            }
            assert_eq!(reading.fold().words(), whole, "{name} from {joined}");
        }
    }
    assert!(shown_midway > 0, "a text whose beginning was heard is shown while it grows");
}

#[test]
fn events_agree_with_message_list() {
    for name in [
        "simple",
        "tool-bash",
        "tool-write",
        "empty",
        "abort-text",
        "abort-tool",
        "abort-perm",
        "abort-question",
        "perm-once",
        "perm-oldapi",
        "perm-reject",
        "perm-reject-msg",
        "question",
        "question-reject",
        "error-once",
        "error400",
        "error401",
        "error402",
        "error404",
        "error500-exhausted",
        "overflow",
        "rst-once",
        "cut-once",
    ] {
        let told = heard(name);
        let (told, list) = (told.fold(), messages(name));
        let prompt = &list.iter().find(|m| m.info.role == Role::User).unwrap().info.id;
        let answer = done(conclude(&list, prompt, &[], None));
        assert_eq!(told.text(), answer.text, "{name}");
        assert_eq!(told.usage(), answer.usage, "{name}");
        assert_eq!(told.plan(), answer.plan, "{name}");
        assert_eq!(told.steps(false), (answer.steps, answer.earlier), "{name}");
        assert_eq!(told.asks(), [], "{name}: nothing is open after the end");
        let mut caught_up = Reading::new(&list[0].info.session_id, prompt, &[]);
        caught_up.catch_up(RunSnapshot { messages: list, ..RunSnapshot::default() });
        let caught_up = caught_up.fold();
        assert_eq!(caught_up.steps(false), told.steps(false), "{name}");
        assert_eq!(caught_up.words(), told.words(), "{name}");
        assert_eq!(caught_up.messages(), told.messages(), "{name}");
        let steps = told.steps(false).0;
        assert!(steps.iter().all(|step| step.state != StepState::Running), "{name}: {steps:?}");
    }
}

#[test]
fn run_end_is_read_from_messages() {
    let table: [(&str, RunEnd, &str); 14] = [
        ("simple", RunEnd::Completed, "Hello there from the fake model"),
        ("empty", RunEnd::Completed, ""),
        ("rst-once", RunEnd::Completed, "complete after one cut"),
        ("cut-once", RunEnd::Completed, "complete after one cut"),
        ("tool-bash", RunEnd::Completed, "Tool result: hello-from-bash"),
        ("question", RunEnd::Completed, "Tool result: User has answered your questions: \"Which database?\"=\"Postgres\". You can now continue with the user's answers in mind."),
        ("abort-text", RunEnd::Aborted, "holding"),
        ("abort-tool", RunEnd::Aborted, "Running."),
        ("abort-perm", RunEnd::Aborted, "Running."),
        ("abort-question", RunEnd::Aborted, ""),
        ("perm-reject", RunEnd::Rejected, "Running."),
        ("two-asks-reject", RunEnd::Rejected, ""),
        ("error401", RunEnd::Error { reason: "The model's vendor refused the key: Incorrect API key provided. The operator has to check the model key.".into() }, ""),
        ("overflow", RunEnd::Error { reason: "The conversation no longer fits into the model's context. A reset that keeps the files starts a new one.".into() }, ""),
    ];
    for (name, end, text) in table {
        let answer = done(concluded(name));
        assert_eq!((answer.end, answer.text.as_str()), (end, text), "{name}");
    }
}

#[test]
fn unknown_finish_reason_is_unexplained() {
    let ended = |finish: Option<&str>| {
        let list = json!([
            {"info": {"id": "msg_000000000001aaaaaaaaaaaaaa", "role": "user", "time": {"created": 1.0}}},
            {
                "info": {
                    "id": "msg_2", "role": "assistant", "finish": finish,
                    "time": {"created": 2.0, "completed": 3.0},
                },
                "parts": [{"id": "prt_1", "sessionID": "s", "messageID": "msg_2", "type": "text", "text": "half of it"}],
            },
        ]);
        let list: Vec<OpenCodeMessage> = serde_json::from_value(list).unwrap();
        let answer = done(conclude(&list, &list[0].info.id, &[], None));
        assert_eq!(answer.text, "half of it");
        answer.end
    };
    assert_eq!(ended(Some("stop")), RunEnd::Completed);
    assert_eq!(ended(Some("length")), RunEnd::Cut);
    // The result of an abort while it waits to retry the model.
    assert_eq!(ended(None), RunEnd::Unexplained);
    assert_eq!(ended(Some("unknown")), RunEnd::Unexplained);
    assert_eq!(ended(Some("a word of tomorrow")), RunEnd::Unexplained);
    let refused = ended(Some("content-filter"));
    assert!(matches!(refused, RunEnd::Error { .. }), "{refused:?}");
}

#[test]
fn recovered_overflow_completes_the_turn() {
    let told = heard("overflow-recovered");
    assert!(told.fold().trouble().is_some(), "the stream holds a session.error");
    let answer = done(concluded("overflow-recovered"));
    assert_eq!(told.fold().text(), answer.text);
    assert_eq!(answer.end, RunEnd::Completed);
    assert!(!answer.text.is_empty());
    assert!(
        steps(&told).contains(&"Done Summarised the conversation".to_owned()),
        "{:?}",
        steps(&told)
    );
}

#[test]
fn steps_are_worded_for_people() {
    assert_eq!(steps(&heard("tool-bash")), ["Done Ran `echo hello-from-bash && ls /project`"]);
    assert_eq!(steps(&heard("two-tools")), ["Done Ran `echo a`", "Done Ran `echo b`"]);
    assert_eq!(steps(&heard("tool-write")), ["Done Wrote hello.txt"]);
    assert_eq!(steps(&heard("question")), ["Done Asked: Which database?"]);
    assert_eq!(steps(&heard("task")), ["Done Delegated: sub job"]);
    assert_eq!(steps(&heard("perm-reject")), ["Failed Ran `echo rejected`"]);
}

#[test]
fn running_step_uses_present_tense() {
    let events = events("tool-bash");
    let mut reading = unread(&events);
    let mut seen = Vec::new();
    for event in events {
        reading.receive(event);
        seen.extend(steps(&reading));
    }
    seen.dedup();
    assert!(
        seen.contains(&"Running Running `echo hello-from-bash && ls /project`".to_owned()),
        "{seen:?}"
    );
}

#[test]
fn ask_stays_open_until_answered() {
    let option = |label: &str, description: &str| Opt {
        label: label.into(),
        description: description.into(),
    };
    for (name, about) in [
        (
            "perm-once",
            About::Permission {
                action: "bash".into(),
                subject: "echo permitted\ndescription: Runs a command".into(),
                left_out: 0,
                places: [].into(),
                always: ["echo *".into()].into(),
            },
        ),
        (
            "question",
            About::Question {
                questions: vec![Question {
                    header: "DB".into(),
                    text: "Which database?".into(),
                    options: vec![option("Postgres", "Relational"), option("DynamoDB", "NoSQL")],
                    multiple: false,
                    free: true,
                }],
            },
        ),
    ] {
        let events = events(name);
        let mut reading = unread(&events);
        let mut open = Vec::new();
        for event in events {
            reading.receive(event);
            open.extend(reading.fold().asks().into_iter().map(|(_, about)| about));
        }
        open.dedup();
        assert_eq!(open, [about], "{name}");
    }
}

/// The permission in a recording.
fn asked(name: &str) -> Value {
    let asked = events(name).into_iter().find(|one| one["type"] == "permission.asked");
    asked.unwrap()["properties"].clone()
}

#[test]
fn reconnect_drops_idle_sessions_asks() {
    let asked = asked("abort-perm");
    let session = asked["sessionID"].as_str().unwrap().to_owned();
    let mut reading = Reading::new(&session, "msg_x", &[]);
    let snapshot = RunSnapshot { permissions: vec![asked], ..RunSnapshot::default() };
    reading.catch_up(snapshot.clone());
    assert_eq!(reading.fold().asks(), []);
    let statuses = [(session, super::types::OpenCodeStatus::Busy)].into();
    reading.catch_up(RunSnapshot { statuses, ..snapshot });
    assert_eq!(reading.fold().asks().len(), 1);
}

#[test]
fn bare_ask_waits_for_its_call() {
    let part = |state: Value| {
        let part = json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_2", "type": "tool",
            "callID": "call_1", "tool": "sandbox_run_command", "state": state});
        event("message.part.updated", json!({"part": part}))
    };
    let mut run = Reading::new("ses_1", "msg_1", &[]);
    run.receive(event(
        "message.updated",
        json!({"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user"}}),
    ));
    let info = json!({"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "parentID": "msg_1", "time": {"created": 1}});
    run.receive(event("message.updated", json!({"info": info})));
    run.receive(part(json!({"status": "pending", "input": {}})));
    let asked = json!({"id": "per_1", "sessionID": "ses_1", "permission": "sandbox_run_command", "patterns": ["*"],
        "metadata": {}, "always": ["*"], "tool": {"messageID": "msg_2", "callID": "call_1"}});
    run.receive(event("permission.asked", asked));
    assert_eq!(run.fold().asks(), []);
    run.receive(part(json!({"status": "running", "input": {"cmd": "date"}})));
    let told: Vec<String> = run
        .fold()
        .asks()
        .into_iter()
        .map(|(_, about)| match about {
            About::Permission { subject, .. } => subject.to_string(),
            About::Question { .. } => String::new(),
        })
        .collect();
    assert_eq!(told, ["date"]);
}

#[test]
fn subagent_ask_needs_known_session() {
    let mut asked = asked("perm-once");
    asked["sessionID"] = json!("ses_child");
    let mut reading = Reading::new("ses_parent", "msg_x", &[]);
    reading.receive(event("permission.asked", asked));
    let open = |reading: &Reading| (reading.fold().asks().len(), reading.strangers());
    assert_eq!(open(&reading), (0, vec!["ses_child".to_owned()]));
    let child = serde_json::from_str(r#"{"id":"ses_child","parentID":"ses_parent"}"#).unwrap();
    reading.meet(&child);
    assert_eq!(open(&reading), (1, vec![]));
    let idle = json!({"sessionID": "ses_child", "status": {"type": "idle"}});
    reading.receive(event("session.status", idle));
    assert_eq!(open(&reading), (0, vec![]));
}

#[test]
fn idle_subagent_keeps_turn_running() {
    let events = events("task");
    let mut reading = unread(&events);
    let mut looks = 0;
    let last = events.len() - 1;
    for (at, event) in events.into_iter().enumerate() {
        let is_idle = event["type"] == "session.idle";
        let is_own = event["properties"]["sessionID"] == reading.session();
        reading.receive(event);
        if reading.suggests_end() {
            looks += 1;
            assert!(!is_idle || is_own, "event {at} of {last}");
        }
    }
    assert!(looks > 0);
}

#[test]
fn unknown_model_or_agent_keeps_reason() {
    let run = heard("badmodel");
    assert_eq!(run.fold().messages(), 0);
    assert_eq!(
        run.fold().trouble().map(Reason::text),
        Some(
            "Model not found: fake/nope. The operator has to set MODEL to one that its vendor knows."
        )
    );
    let run = heard("badagent");
    assert_eq!(run.fold().messages(), 0);
    assert!(
        run.fold()
            .trouble()
            .unwrap()
            .text()
            .starts_with("The agent failed: Agent not found: \"nope\""),
        "{:?}",
        run.fold().trouble()
    );
}

#[test]
fn loops_and_retries_are_visible() {
    let run = heard("cut");
    assert!(run.fold().messages() >= 3);
    let run = heard("error429");
    assert_eq!(
        steps(&run),
        [
            "Running The model did not answer: scripted error 429, trying again at Nov 21, 20:14 UTC (attempt 2)"
        ]
    );
    let retrying = run.fold().retrying().unwrap();
    assert_eq!(retrying.later_than(1_795_292_079_598), None);
    assert!(retrying.later_than(1_795_292_079_597).is_some());
}

/// What `OpenCode` writes into the message, with what vendors answer.
#[test]
fn spent_limit_of_the_vendor_ends_by_budget() {
    let ended = |status: u16, said: &str, code: &str| {
        let mut list = list("error401");
        let body = json!({"error": {"message": said, "type": code, "code": code}}).to_string();
        let data = &mut list[1]["info"]["error"]["data"];
        data["message"] = json!(said);
        data["statusCode"] = json!(status);
        data["responseBody"] = json!(body);
        let list = read(&list);
        done(conclude(&list, &list[0].info.id, &[], None)).end
    };
    for (status, said, code) in [
        (
            403,
            "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys",
            "403",
        ),
        (402, "Insufficient credits. Add more using https://openrouter.ai/settings/credits", "402"),
        (400, "Budget has been exceeded! Current cost: 26.075, Max budget: 0.25", "400"),
        (400, "This key is over its limit.", "budget_exceeded"),
        (429, "Your project has reached its limit.", "project_spend_limit_exceeded"),
        (429, "Your organization has reached its limit.", "organization_spend_limit_exceeded"),
        (429, "You have no credits.", "credit_balance_exhausted"),
    ] {
        let RunEnd::OverBudget { reason, .. } = ended(status, said, code) else {
            panic!("{said}");
        };
        let told = said.trim_end_matches('.');
        assert_eq!(
            reason,
            format!(
                "The model's vendor accepts no more requests, because its account or key has reached a spending limit ({told}). That is not a budget of Bobbin's: only the operator can raise it, at the vendor."
            )
        );
    }
    assert!(matches!(
        ended(429, "Rate limit reached", "rate_limit_exceeded"),
        RunEnd::Error { .. }
    ));
}

/// `OpenCode` asks again for more than a minute.
#[test]
fn spent_limit_of_the_vendor_is_not_retried() {
    let over = |message: &str| {
        let mut run = heard("cut");
        let status = json!({"type": "retry", "attempt": 1, "message": message, "next": 1_795_292_075_099_u64});
        let session = run.session().to_owned();
        run.receive(event("session.status", json!({"sessionID": session, "status": status})));
        run.fold().retrying().unwrap().over_budget().map(str::to_owned)
    };
    for code in ["project_spend_limit_exceeded", "organization_spend_limit_exceeded"] {
        assert!(over(&format!("429 {code}")).unwrap().contains(code));
    }
    assert!(over("Your organization has reached its spend limit.").is_some());
    assert_eq!(over("scripted error 429"), None);
}

#[test]
fn run_of_dead_server_is_stopped() {
    let mut list = messages("tool-bash");
    list.last_mut().unwrap().info.time.completed = None;
    let prompt = list[0].info.id.clone();
    assert_eq!(conclude(&list, &prompt, &[], None), RunState::Stopped);
    assert_eq!(conclude(&list[..1], &prompt, &[], None), RunState::Pending);
    assert_eq!(conclude(&list, "msg_other", &[], None), RunState::Pending);
    assert_eq!(
        conclude(&list, &prompt, &[], Some(&super::types::OpenCodeStatus::Busy)),
        RunState::Busy
    );
    let compaction = messages("overflow");
    assert_eq!(
        conclude(&compaction[..3], &compaction[0].info.id, &[], None),
        RunState::Stopped,
        "died while it summarised"
    );
}

#[test]
fn next_prompt_ends_the_turn() {
    let first = messages("tool-bash");
    let mut list = first.clone();
    let mut next = messages("simple");
    next[0].info.id = "msg_19aabbccddee0123456789abcd".into();
    list.extend(next);
    assert_eq!(
        conclude(&list, &first[0].info.id, &[], None),
        conclude(&first, &first[0].info.id, &[], None)
    );
    assert_eq!(
        done(conclude(&list, "msg_19aabbccddee0123456789abcd", &[], None)).text,
        "Hello there from the fake model"
    );
}

#[test]
fn resent_prompt_keeps_its_answer() {
    const OURS: &str = "msg_19aabbccddee0123456789abcd";
    let mut list = messages("tool-bash");
    let theirs = std::mem::replace(&mut list[0].info.id, OURS.to_owned());
    for answer in &mut list[1..] {
        assert_eq!(answer.info.parent_id.as_ref(), Some(&theirs));
        answer.info.parent_id = Some(OURS.to_owned());
    }
    let answered = conclude(&list, OURS, &[], None);
    assert!(matches!(answered, RunState::Done(_)));
    // As OpenCode 1.18.33 does: its time becomes the present, and the list is ordered by time.
    let mut moved = list.clone();
    moved[0].info.time.created = 9e12;
    moved.rotate_left(1);
    assert_eq!(conclude(&moved, OURS, &[], None), answered);
    assert_eq!(*in_order(&list), list[..]);
    // The same from the stream: its update comes after the answer.
    let session = &list[0].info.session_id;
    let mut reading = Reading::new(session, OURS, &[]);
    reading.catch_up(RunSnapshot { messages: list.clone(), ..RunSnapshot::default() });
    let info = json!({"id": OURS, "sessionID": session, "role": "user", "time": {"created": 9e12}});
    reading.receive(event("message.updated", json!({ "info": info })));
    assert_eq!(reading.fold().text(), done(answered).text);
    // If a page begins within the turn, it is unknown what came before.
    assert!(!is_whole(&in_order(&moved), OURS));
    assert!(!is_whole(&in_order(&moved[1..]), OURS));
    let mut all = messages("simple");
    all[0].info.id = "msg_19aabbccddee0123456789abce".into();
    all.extend(moved);
    assert!(is_whole(&in_order(&all), OURS));
}

#[test]
fn resent_prompt_makes_run_pending() {
    const OURS: &str = "msg_19aabbccddee0123456789abcd";
    let mut list = messages("tool-bash");
    list[0].info.id = OURS.to_owned();
    list.truncate(2);
    list[1].info.parent_id = Some(OURS.to_owned());
    list[1].info.time.completed = None;
    assert_eq!(conclude(&list, OURS, &[], None), RunState::Stopped);
    list[0].info.time.created = list[1].info.time.created + 1.0;
    list.rotate_left(1);
    assert_eq!(conclude(&list, OURS, &[], None), RunState::Pending);
}

#[test]
fn usage_is_summed_over_messages() {
    let answer = done(concluded("tool-bash"));
    assert_eq!((answer.usage.tokens, answer.usage.cost_micro_usd), (240, 0));
    let mut list = list("tool-bash");
    list[1]["info"]["cost"] = json!(0.001_234_5);
    list[2]["info"]["cost"] = json!(0.000_1);
    let list = read(&list);
    assert_eq!(done(conclude(&list, &list[0].info.id, &[], None)).usage.cost_micro_usd, 1335);
}

#[test]
fn unexpected_field_shapes_are_tolerated() {
    let part = |id: &str, more: Value| {
        let mut part = json!({"id": id, "sessionID": "ses_1", "messageID": "msg_1"});
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    };
    let list = read(&json!([
        {"info": {"id": "msg_0", "role": "user"}},
        {"info": {"id": "msg_1", "role": "assistant", "cost": "free", "tokens": 7, "time": {"created": 1, "completed": 2},
            "error": "odd", "new": {}},
        "parts": [part("prt_1", json!({"type": "from-the-future", "text": 5})),
            part("prt_2", json!({"type": "text", "text": "hi"})),
            part("prt_3", json!({"type": "tool", "tool": "bash", "state": {"status": "paused", "input": "x", "metadata": 7}}))]},
    ]));
    assert_eq!(done(conclude(&list, "msg_0", &[], None)).text, "hi");
    let mut reading = Reading::new("ses_1", "msg_0", &[]);
    reading.receive(json!("no object"));
    reading.receive(event("message.updated", json!({})));
    assert_eq!(reading.fold().words(), [""; 0]);
}

#[test]
fn command_output_is_not_held() {
    let mut reading = Reading::new("ses_1", "msg_0", &[]);
    let message = |id: &str, role: &str| json!({"info": {"id": id, "sessionID": "ses_1", "role": role, "time": {"created": 1}}});
    reading.receive(event("message.updated", message("msg_0", "user")));
    reading.receive(event("message.updated", message("msg_1", "assistant")));
    let mut printed = String::new();
    for _ in 0..20 {
        printed.push_str(&"x".repeat(10_000));
        let state = json!({"status": "running", "input": {"command": "make"}, "metadata": {"output": printed}});
        let part = json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "tool",
            "tool": "bash", "callID": "call_1", "state": state});
        reading.receive(event("message.part.updated", json!({ "part": part })));
    }
    assert_eq!(steps(&reading), ["Running Running `make`"]);
    // Everything that is held of it, as text.
    let held = format!("{reading:?}").len();
    assert!(held < 4_000, "{held} bytes are held of 2 MB that were told");
}

#[test]
fn plan_is_the_last_todo_list() {
    let todo = |content: &str, status: &str| json!({"content": content, "status": status, "priority": "high"});
    let wrote = |id: &str, todos: Value| {
        json!({"info": {"id": id, "sessionID": "ses_1", "role": "assistant", "time": {"created": 1, "completed": 2}},
            "parts": [{"id": "p", "sessionID": "ses_1", "messageID": id, "type": "tool", "tool": "todowrite", "callID": "c",
                "state": {"status": "completed", "input": {"todos": todos}}}]})
    };
    let planned = |messages: Vec<Value>| {
        let prompt = json!({"info": {"id": "msg_0", "role": "user"}});
        let all: Vec<Value> = std::iter::once(prompt).chain(messages).collect();
        let plan = done(conclude(&read(&json!(all)), "msg_0", &[], None)).plan.into_iter();
        plan.map(|item| (item.text, item.state)).collect::<Vec<_>>()
    };
    let turn = vec![
        wrote("a", json!([todo("old", "pending")])),
        wrote(
            "b",
            json!([
                todo("read it", "completed"), todo("fix it\nwith care", "in_progress"), todo("test it", "pending"),
                todo("ship it with GITHUB_TOKEN=abc", "cancelled"), todo("  ", "pending"), {"status": "pending"},
            ]),
        ),
        json!({"info": {"id": "c", "role": "assistant", "time": {"created": 1, "completed": 2}}, "parts": []}),
    ];
    assert_eq!(
        planned(turn),
        [
            ("read it".to_owned(), PlanLineState::Done),
            ("fix it…".to_owned(), PlanLineState::Now),
            ("test it".to_owned(), PlanLineState::Next),
            ("ship it with GITHUB_TOKEN=***".to_owned(), PlanLineState::Dropped),
        ]
    );
    let steps = 0..2 * PLAN_MAX;
    let many: Vec<Value> = steps.map(|n| todo(&format!("step {n}"), "pending")).collect();
    assert_eq!(planned(vec![wrote("a", many.into())]).len(), PLAN_MAX);
}
