//! The event stream of an OpenCode server, and its list of messages.

use bobbin_agent::Sse;
use bobbin_agent::opencode::{
    OpenCodeMessage, OpenCodeStatus, Reading, Role, RunSnapshot, conclude, turn_of,
};
use bobbin_agent::{Fold, PLAN_MAX, RunState, STEPS_MAX};
use bobbin_core::records::ask::{About, OPTIONS_MAX, QUESTIONS_MAX, TEXT_CHARS_MAX};
use bobbin_core::records::card::CardStep;
use serde_json::Value;

/// Characters of a step: 80 of its subject, and the words around it.
const STEP_CHARS_MAX: usize = 160;
/// Characters of a permission's subject or a question's text, with its ellipsis.
const SUBJECT_CHARS_MAX: usize = 1_001;
/// Characters of a reason: 300 of the vendor's, and the words around them.
const REASON_CHARS_MAX: usize = 500;

/// The picture on a card.
type Picture = (Vec<CardStep>, Vec<(String, About)>, String, Option<String>, Vec<String>);

/// An input is the stream's bytes.
pub(super) fn events(input: &[u8]) {
    let data = Sse::default().push(input).expect("an input is shorter than an event may be");
    let size = 1 + input.len() % 61;
    let mut sse = Sse::default();
    let cut: Vec<String> =
        input.chunks(size).flat_map(|piece| sse.push(piece).expect("as long as before")).collect();
    assert_eq!(cut, data, "cut into pieces of {size} bytes");

    let events: Vec<Value> =
        data.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    let (session, prompt) = whose(&events);
    let new = || Reading::new(&session, &prompt, &[]);
    let (mut reading, mut again) = (new(), new());
    for event in events {
        // Only a delta has no other protection than the stream's own order: it is corrected by the part's next update.
        if event["type"] != "message.part.delta" {
            again.receive(event.clone());
        }
        again.receive(event.clone());
        reading.receive(event);
    }
    within_bounds(reading.fold());
    assert_eq!(picture(&again), picture(&reading), "an event that came twice changed the picture");
    for stranger in reading.strangers() {
        reading.dismiss(&stranger);
    }
    assert!(reading.strangers().is_empty(), "asked about again and again");
}

/// An input is the answer of `GET /session/{id}/message`.
pub(super) fn messages(input: &[u8]) {
    let Ok(messages) = serde_json::from_slice::<Vec<OpenCodeMessage>>(input) else {
        return;
    };
    let Some(prompt) = messages.iter().find(|one| one.info.role == Role::User) else {
        return;
    };
    let (session, prompt) = (prompt.info.session_id.clone(), prompt.info.id.clone());
    let turn = turn_of(&messages, &prompt, &[]).expect("the prompt is in the list");
    assert!(turn.len() < messages.len(), "a turn without its prompt");
    for status in [None, Some(OpenCodeStatus::Idle), Some(OpenCodeStatus::Busy)] {
        let verdict = conclude(&messages, &prompt, &[], status.as_ref());
        assert!(
            status != Some(OpenCodeStatus::Busy) || verdict == RunState::Busy,
            "it ended while it was busy"
        );
        let mut reading = Reading::new(&session, &prompt, &[]);
        reading.catch_up(RunSnapshot {
            statuses: status.into_iter().map(|status| (session.clone(), status)).collect(),
            messages: messages.clone(),
            ..RunSnapshot::default()
        });
        within_bounds(reading.fold());
        if let RunState::Done(answer) = verdict {
            steps_fit(&answer.steps);
            assert_eq!(reading.fold().text(), answer.text, "the list and its run differ");
        }
        assert!(reading.fold().asks().is_empty());
    }
}

/// The first prompt of the stream.
fn whose(events: &[Value]) -> (String, String) {
    let heads = events.iter().map(|event| &event["properties"]["info"]);
    let prompt = heads.into_iter().find(|info| info["role"] == "user" && info["id"].is_string());
    let text = |name: &str| prompt.and_then(|info| Some(info[name].as_str()?.to_owned()));
    (text("sessionID").unwrap_or_default(), text("id").unwrap_or_default())
}

fn picture(reading: &Reading) -> Picture {
    let fold = reading.fold();
    let trouble = fold.trouble().map(|reason| reason.text().to_owned());
    (fold.steps(false).0, fold.asks(), fold.text(), trouble, reading.strangers())
}

fn within_bounds(fold: &Fold) {
    steps_fit(&fold.steps(false).0);
    assert!(fold.plan().len() <= PLAN_MAX, "a plan without end");
    if let Some(reason) = fold.trouble() {
        let text = reason.text();
        assert!(text.chars().count() <= REASON_CHARS_MAX, "{text}");
    }
    for (id, about) in fold.asks() {
        let questions = match &about {
            About::Permission { subject, .. } => {
                assert!(subject.chars().count() <= SUBJECT_CHARS_MAX, "{subject}");
                continue;
            }
            About::Question { questions } => questions,
        };
        assert!(questions.len() <= QUESTIONS_MAX, "questions of {id}");
        for one in questions {
            assert!(one.options.len() <= OPTIONS_MAX, "options of {id}");
            assert!(one.text.chars().count() <= TEXT_CHARS_MAX, "{}", one.text);
        }
    }
}

fn steps_fit(steps: &[CardStep]) {
    assert!(steps.len() <= STEPS_MAX, "{} steps", steps.len());
    for step in steps {
        assert!(
            step.text.chars().count() <= STEP_CHARS_MAX && !step.text.contains('\n'),
            "a step that is too long or has lines: {:?}",
            step.text
        );
    }
}
