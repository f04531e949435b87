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
    let mut metadata = asked.metadata.clone();
    let whole = metadata.remove("input").filter(Value::is_object);
    let mut input = whole.or_else(|| call.cloned());
    // An ask over JSON-RPC names beside it what the answer needs, and what the call does not say.
    if metadata.contains_key("method") {
        let told = ["cwd", "permissions", "reason"].into_iter();
        let told = told.filter_map(|name| Some((name, metadata.remove(name)?)));
        let fields = input.get_or_insert_with(|| json!({})).as_object_mut();
        if let Some(fields) = fields {
            for (name, value) in told {
                fields.entry(name).or_insert(value);
            }
        }
    }
    // What is left of it goes back with the answer, unless it is all that is known.
    if input.is_some() {
        metadata.retain(|name, _| matches!(name.as_str(), "command" | "filepath"));
    }
    // Universal events have the shape that OpenCode gives an ask.
    let shaped = json!({
        "id": asked.id, "permission": asked.permission, "patterns": asked.patterns,
        "metadata": metadata, "always": asked.always,
    });
    let shaped: Permission = serde_json::from_value(shaped).ok()?;
    Some(shaped.about(input.as_ref()))
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
