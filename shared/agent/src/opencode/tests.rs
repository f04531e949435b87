//! The folds over recorded runs of the real server: events and message list must tell the same.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use bobbin_core::ask::{About, Opt, Question};
use bobbin_core::card::StepState;
use bobbin_core::run::{Answer, RunEnd};
use serde_json::{Value, json};

use super::answer::{conclude, in_order, is_whole};
use super::event::Event;
use super::run::{Heard, Run, Snapshot};
use super::sse::Sse;
use super::types::{Message, Role};
use crate::runtime::RunState;

fn fixture(name: &str) -> String {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opencode").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn events(name: &str) -> Vec<Event> {
    let stream = fixture(&format!("{name}.event.sse"));
    Sse::default().push(stream.as_bytes()).unwrap().iter().map(|data| Event::parse(data)).collect()
}

fn messages(name: &str) -> Vec<Message> {
    serde_json::from_str(&fixture(&format!("{name}.messages.json"))).unwrap()
}

/// The session of a recording and the id of its first prompt.
fn subject(events: &[Event]) -> (String, String) {
    let session = events
        .iter()
        .find_map(|e| if let Event::Session(s) = e { Some(s.id.clone()) } else { None })
        .unwrap();
    let prompt = events.iter().find_map(|e| match e {
        Event::Message(info) if info.role == Role::User => Some(info.id.clone()),
        _ => None,
    });
    (session, prompt.unwrap_or_else(|| "msg_missing".into()))
}

fn folded(name: &str) -> Run {
    let events = events(name);
    let (session, prompt) = subject(&events);
    let mut run = Run::new(&session, &prompt);
    for event in events {
        run.apply(event);
    }
    run
}

fn done(state: RunState) -> Answer {
    match state {
        RunState::Done(answer) => answer,
        other => panic!("not done: {other:?}"),
    }
}

fn steps(run: &Run) -> Vec<String> {
    run.steps().0.into_iter().map(|step| format!("{:?} {}", step.state, step.text)).collect()
}

#[test]
fn events_and_message_list_of_every_recorded_run_agree() {
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
        let run = folded(name);
        let list = messages(name);
        let prompt = &list.iter().find(|m| m.info.role == Role::User).unwrap().info.id;
        let by_list = conclude(&list, prompt, &[], None);
        assert!(matches!(by_list, RunState::Done(_)), "{name}: {by_list:?}");
        assert_eq!(run.state(), by_list, "{name}");
        assert_eq!(run.asks(), [], "{name}: nothing is open after the end");
        let mut caught_up = Run::new(&list[0].info.session_id, prompt);
        caught_up.catch_up(Snapshot { messages: list, ..Snapshot::default() });
        assert_eq!(caught_up.steps(), run.steps(), "{name}");
        assert_eq!(caught_up.assistant_messages(), run.assistant_messages(), "{name}");
        assert!(
            run.steps().0.iter().all(|step| step.state != StepState::Running),
            "{name}: {:?}",
            run.steps()
        );
    }
}

#[test]
fn the_end_is_read_from_what_the_run_left() {
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
        ("error401", RunEnd::Error { reason: "The model's provider refused the key: Incorrect API key provided. The operator has to check the model key.".into() }, ""),
        ("overflow", RunEnd::Error { reason: "The conversation no longer fits into the model's context. A reset that keeps the files begins a new one.".into() }, ""),
    ];
    for (name, end, text) in table {
        let answer = done(folded(name).state());
        assert_eq!((answer.end, answer.text.as_str()), (end, text), "{name}");
    }
}

#[test]
fn only_an_end_that_opencode_explains_is_an_answer() {
    let ended = |finish: Option<&str>| {
        let list = json!([
            {"info": {"id": "msg_000000000001aaaaaaaaaaaaaa", "role": "user", "time": {"created": 1.0}}},
            {
                "info": {
                    "id": "msg_2", "role": "assistant", "finish": finish,
                    "time": {"created": 2.0, "completed": 3.0},
                },
                "parts": [{"id": "prt_1", "type": "text", "text": "half of it"}],
            },
        ]);
        let list: Vec<Message> = serde_json::from_value(list).unwrap();
        let answer = done(conclude(&list, &list[0].info.id, &[], None));
        assert_eq!(answer.text, "half of it");
        answer.end
    };
    assert_eq!(ended(Some("stop")), RunEnd::Completed);
    assert_eq!(ended(Some("length")), RunEnd::Cut);
    // An abort while it waits to ask the model again leaves this.
    assert_eq!(ended(None), RunEnd::Unexplained);
    assert_eq!(ended(Some("unknown")), RunEnd::Unexplained);
    assert_eq!(ended(Some("a word of tomorrow")), RunEnd::Unexplained);
    let refused = ended(Some("content-filter"));
    assert!(matches!(refused, RunEnd::Error { .. }), "{refused:?}");
}

#[test]
fn an_overflow_that_was_recovered_is_an_answer_and_not_an_error() {
    let run = folded("overflow-recovered");
    assert!(run.trouble().is_some(), "the stream holds a session.error");
    let answer = done(run.state());
    assert_eq!(answer.end, RunEnd::Completed);
    assert!(!answer.text.is_empty());
    assert!(
        steps(&run).contains(&"Done Summarised the conversation".to_owned()),
        "{:?}",
        steps(&run)
    );
}

#[test]
fn steps_are_told_in_the_words_of_a_person() {
    assert_eq!(steps(&folded("tool-bash")), ["Done Ran `echo hello-from-bash && ls /project`"]);
    assert_eq!(steps(&folded("two-tools")), ["Done Ran `echo a`", "Done Ran `echo b`"]);
    assert_eq!(steps(&folded("tool-write")), ["Done Wrote hello.txt"]);
    assert_eq!(steps(&folded("question")), ["Done Asked: Which database?"]);
    assert_eq!(steps(&folded("task")), ["Done Delegated: sub job"]);
    assert_eq!(steps(&folded("perm-reject")), ["Failed Ran `echo rejected`"]);
}

#[test]
fn a_running_step_is_told_in_the_present_tense() {
    let events = events("tool-bash");
    let (session, prompt) = subject(&events);
    let mut run = Run::new(&session, &prompt);
    let mut seen = Vec::new();
    for event in events {
        run.apply(event);
        seen.extend(steps(&run));
    }
    seen.dedup();
    assert!(
        seen.contains(&"Running Running `echo hello-from-bash && ls /project`".to_owned()),
        "{seen:?}"
    );
}

#[test]
fn an_ask_is_open_until_it_is_answered() {
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
        let (session, prompt) = subject(&events);
        let mut run = Run::new(&session, &prompt);
        let mut open = Vec::new();
        for event in events {
            run.apply(event);
            open.extend(run.asks().into_iter().map(|(_, about)| about));
        }
        open.dedup();
        assert_eq!(open, [about], "{name}");
    }
}

#[test]
fn an_ask_of_an_aborted_session_is_not_open_after_a_reconnect() {
    let asked = events("abort-perm")
        .into_iter()
        .find_map(|e| if let Event::PermissionAsked(p) = e { Some(p) } else { None })
        .unwrap();
    let mut run = Run::new(&asked.session_id, "msg_x");
    let snapshot = Snapshot { permissions: vec![asked.clone()], ..Snapshot::default() };
    run.catch_up(snapshot.clone());
    assert_eq!(run.asks(), []);
    let statuses = [(asked.session_id, super::types::Status::Busy)].into();
    run.catch_up(Snapshot { statuses, ..snapshot });
    assert_eq!(run.asks().len(), 1);
}

#[test]
fn an_ask_of_a_tool_that_says_nothing_by_itself_waits_for_the_call_behind_it() {
    let event = |kind: &str, properties: Value| {
        Event::parse(&json!({"type": kind, "properties": properties}).to_string())
    };
    let part = |state: Value| {
        let part = json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_2", "type": "tool",
            "callID": "call_1", "tool": "sandbox_run_command", "state": state});
        event("message.part.updated", json!({"part": part}))
    };
    let mut run = Run::new("ses_1", "msg_1");
    let info = json!({"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "parentID": "msg_1", "time": {"created": 1}});
    run.apply(event("message.updated", json!({"info": info})));
    run.apply(part(json!({"status": "pending", "input": {}})));
    let asked = json!({"id": "per_1", "sessionID": "ses_1", "permission": "sandbox_run_command", "patterns": ["*"],
        "metadata": {}, "always": ["*"], "tool": {"messageID": "msg_2", "callID": "call_1"}});
    run.apply(event("permission.asked", asked));
    assert_eq!(run.asks(), []);
    run.apply(part(json!({"status": "running", "input": {"cmd": "date"}})));
    let told: Vec<String> = run
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
fn an_ask_of_a_subagent_counts_once_its_session_is_known() {
    let mut asked = events("perm-once")
        .into_iter()
        .find_map(|e| if let Event::PermissionAsked(p) = e { Some(p) } else { None })
        .unwrap();
    asked.session_id = "ses_child".into();
    let mut run = Run::new("ses_parent", "msg_x");
    run.apply(Event::PermissionAsked(asked));
    assert_eq!((run.asks().len(), run.strangers()), (0, vec!["ses_child".to_owned()]));
    let child = serde_json::from_str(r#"{"id":"ses_child","parentID":"ses_parent"}"#).unwrap();
    run.meet(&child);
    assert_eq!((run.asks().len(), run.strangers().len()), (1, 0));
}

#[test]
fn a_subagent_that_is_idle_does_not_end_the_run() {
    let events = events("task");
    let (session, prompt) = subject(&events);
    let mut run = Run::new(&session, &prompt);
    let mut looks = 0;
    for event in events {
        if run.apply(event) == Heard::EndSuggested {
            looks += 1;
            assert!(matches!(run.state(), RunState::Done(_)));
        }
    }
    assert!(looks > 0);
}

#[test]
fn an_unknown_model_or_agent_leaves_a_prompt_without_end_and_the_reason_is_kept() {
    let run = folded("badmodel");
    assert_eq!(run.state(), RunState::Pending);
    assert_eq!(
        run.trouble(),
        Some(
            "Model not found: fake/nope. The operator has to set MODEL to one that its provider knows."
        )
    );
    let run = folded("badagent");
    assert_eq!(run.state(), RunState::Pending);
    assert!(
        run.trouble().unwrap().starts_with("The agent failed: Agent not found: \"nope\""),
        "{:?}",
        run.trouble()
    );
}

#[test]
fn a_loop_without_end_is_seen_by_its_messages_and_a_retry_by_its_step() {
    let run = folded("cut");
    assert_eq!(run.state(), RunState::Busy);
    assert!(run.assistant_messages() >= 3);
    let run = folded("error429");
    assert_eq!(run.state(), RunState::Busy);
    assert_eq!(
        steps(&run),
        [
            "Running The model did not answer: scripted error 429, trying again at Nov 21, 20:14 UTC (attempt 2)"
        ]
    );
    let retrying = run.retrying().unwrap();
    assert_eq!(retrying.later_than(1_795_292_079_598), None);
    assert!(retrying.later_than(1_795_292_079_597).is_some());
}

#[test]
fn a_run_whose_server_died_is_stopped_and_not_done() {
    let mut list = messages("tool-bash");
    list.last_mut().unwrap().info.time.completed = None;
    let prompt = list[0].info.id.clone();
    assert_eq!(conclude(&list, &prompt, &[], None), RunState::Stopped);
    assert_eq!(conclude(&list[..1], &prompt, &[], None), RunState::Pending);
    assert_eq!(conclude(&list, "msg_other", &[], None), RunState::Pending);
    assert_eq!(conclude(&list, &prompt, &[], Some(&super::types::Status::Busy)), RunState::Busy);
    let compaction = messages("overflow");
    assert_eq!(
        conclude(&compaction[..3], &compaction[0].info.id, &[], None),
        RunState::Stopped,
        "died while it summarised"
    );
}

#[test]
fn the_next_prompt_of_ours_ends_a_turn() {
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
fn a_prompt_that_was_sent_again_after_its_answer_is_still_answered() {
    const OURS: &str = "msg_19aabbccddee0123456789abcd";
    let mut list = messages("tool-bash");
    let theirs = std::mem::replace(&mut list[0].info.id, OURS.to_owned());
    for answer in &mut list[1..] {
        assert_eq!(answer.info.parent_id.as_ref(), Some(&theirs));
        answer.info.parent_id = Some(OURS.to_owned());
    }
    let answered = conclude(&list, OURS, &[], None);
    assert!(matches!(answered, RunState::Done(_)));
    // As OpenCode 1.18.33 does: its time is moved to now, and the list is in order of time.
    let mut moved = list.clone();
    moved[0].info.time.created = 9e12;
    moved.rotate_left(1);
    assert_eq!(conclude(&moved, OURS, &[], None), answered);
    assert_eq!(*in_order(&list), list[..]);
    // The same from the stream: its update comes after the answer.
    let mut run = Run::new(&list[0].info.session_id, OURS);
    run.catch_up(Snapshot { messages: list.clone(), ..Snapshot::default() });
    run.apply(Event::Message(moved.last().unwrap().info.clone()));
    assert_eq!(run.state(), answered);
    // Of a page that begins within the turn nobody knows what came before.
    assert!(!is_whole(&in_order(&moved), OURS));
    assert!(!is_whole(&in_order(&moved[1..]), OURS));
    let mut all = messages("simple");
    all[0].info.id = "msg_19aabbccddee0123456789abce".into();
    all.extend(moved);
    assert!(is_whole(&in_order(&all), OURS));
}

#[test]
fn a_broken_run_whose_prompt_was_sent_again_is_waited_for() {
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
fn what_a_run_took_is_summed_over_its_messages() {
    let answer = done(folded("tool-bash").state());
    assert_eq!((answer.usage.tokens, answer.usage.cost_micro_usd), (240, 0));
    let mut list = messages("tool-bash");
    list[1].info.cost = 0.001_234_5;
    list[2].info.cost = 0.000_1;
    assert_eq!(done(conclude(&list, &list[0].info.id, &[], None)).usage.cost_micro_usd, 1335);
}

#[test]
fn a_message_with_fields_of_an_unexpected_shape_is_still_read() {
    let text = r#"[{"info":{"id":"msg_1","role":"assistant","cost":"free","tokens":7,"time":{"created":1,"completed":2},"error":"odd","new":{}},
        "parts":[{"id":"prt_1","type":"from-the-future","text":5},{"id":"prt_2","type":"text","text":"hi"},
        {"id":"prt_3","type":"tool","tool":"bash","state":{"status":"paused","input":"x","metadata":7}}]}]"#;
    let list: Vec<Message> = serde_json::from_str(text).unwrap();
    assert_eq!(list[0].parts.len(), 3);
    assert_eq!(Event::parse("no json"), Event::Other);
    assert_eq!(Event::parse(r#"{"type":"message.updated","properties":{}}"#), Event::Other);
}

#[test]
fn what_a_command_prints_is_not_kept_however_often_it_is_told() {
    let mut run = Run::new("ses_1", "msg_0");
    let told = |run: &mut Run, kind: &str, properties: serde_json::Value| {
        let event = serde_json::json!({"type": kind, "properties": properties});
        run.apply(Event::parse(&event.to_string()));
    };
    let message = |id: &str, role: &str| serde_json::json!({"info": {"id": id, "sessionID": "ses_1", "role": role, "time": {"created": 1}}});
    told(&mut run, "message.updated", message("msg_0", "user"));
    told(&mut run, "message.updated", message("msg_1", "assistant"));
    let mut printed = String::new();
    for _ in 0..20 {
        printed.push_str(&"x".repeat(10_000));
        let state = serde_json::json!({"status": "running", "input": {"command": "make"}, "metadata": {"output": printed}});
        let part = serde_json::json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "tool",
            "tool": "bash", "callID": "call_1", "state": state});
        told(&mut run, "message.part.updated", serde_json::json!({ "part": part }));
    }
    assert_eq!(steps(&run), ["Running Running `make`"]);
    // Everything that is held of it, in words.
    let held = format!("{run:?}").len();
    assert!(held < 4_000, "{held} bytes are held of 2 MB that were told");
}
