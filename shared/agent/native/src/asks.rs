//! Names of asks, and what they are about.

use bobbin_agent::opencode::{Permission, Question};
use bobbin_agent_events::{PermissionRequest, QuestionRequest};
use bobbin_core::ask::About;
use bobbin_core::ids::{AskId, digest};
use serde_json::{Value, json};

/// Digits of a name: as many as the ids of OpenCode's own asks have room for in a button.
const DIGITS: usize = 26;

/// What an ask is called outside of its session: agents count theirs anew in each session, and a button has little room.
pub(crate) fn name(session: &str, ask: &str) -> AskId {
    let digits = digest(&["native-ask", session, ask]);
    format!("ask_{}", &digits[..DIGITS]).into()
}

/// What the agent wants to be allowed. `call` is what the tool is called with, where that is known.
pub(crate) fn permission(asked: &PermissionRequest, call: Option<&Value>) -> Option<About> {
    // Universal events have the shape that OpenCode gives an ask.
    let shaped = json!({
        "id": asked.id, "permission": asked.permission, "patterns": asked.patterns,
        "metadata": asked.metadata, "always": asked.always,
    });
    let shaped: Permission = serde_json::from_value(shaped).ok()?;
    Some(shaped.about(call))
}

/// What the agent asks.
pub(crate) fn question(asked: &QuestionRequest) -> Option<About> {
    let questions = asked.questions.iter().map(|one| {
        let options = one.options.iter().map(|option| {
            json!({"label": option.label, "description": option.description.as_deref().unwrap_or_default()})
        });
        json!({
            "question": one.question, "header": one.header.as_deref().unwrap_or_default(),
            "options": options.collect::<Vec<_>>(),
            "multiple": one.multi_select.unwrap_or(false), "custom": one.custom,
        })
    });
    let shaped = json!({"id": asked.id, "questions": questions.collect::<Vec<_>>()});
    let shaped: Question = serde_json::from_value(shaped).ok()?;
    Some(shaped.about())
}
