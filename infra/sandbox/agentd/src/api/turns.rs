//! Turns: send a message, answer asks, read or cancel a turn.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::response::Response;
use bobbin_agent_events::Outcome;
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::{json as answer, no_content};
use super::{Api, OUTCOME_HEADER, Problem, TURN_HEADER};
use crate::limits::ID_BYTES_MAX;
use crate::nudge::Nudge;
use crate::state::{Acceptance, Answer, Ask, Attachment, Ended, Phase, Prompt, State as Session};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    message: String,
    /// Ours: the same id means the same turn.
    turn: Option<String>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    /// Ours: the model of this turn.
    model: Option<String>,
    /// Ours: the mode of this turn.
    agent_mode: Option<String>,
    /// Ours: nudge address and token for the turn's end and asks. An invalid one is no reason to refuse the message.
    nudge: Option<Value>,
}

pub(super) async fn message(
    State(api): State<Api>,
    Path(session): Path<String>,
    body: Result<Json<Message>, JsonRejection>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let Json(body) = body?;
    if body.message.trim().is_empty() {
        return Err(Problem::invalid("the message is empty"));
    }
    if body.attachments.iter().any(|one| one.path.is_empty()) {
        return Err(Problem::invalid("an attachment has no path"));
    }
    let turn = body.turn.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let is_id = (1..=ID_BYTES_MAX).contains(&turn.len())
        && turn.bytes().all(|byte| byte.is_ascii_graphic());
    let header = HeaderValue::from_str(&turn).ok().filter(|_| is_id);
    let header = header.ok_or_else(|| {
        Problem::invalid(format!("a turn's id has 1 to {ID_BYTES_MAX} visible ASCII characters"))
    })?;
    let prompt = Prompt {
        text: body.message,
        attachments: body.attachments,
        model: body.model,
        mode: body.agent_mode,
    };
    let nudge = body.nudge.and_then(Nudge::given);
    let outcome = match session.prompt(turn, prompt, nudge).await? {
        Acceptance::Accepted => "Accepted",
        Acceptance::AlreadyKnown => "AlreadyKnown",
    };
    let mut response = no_content();
    response.headers_mut().insert(TURN_HEADER, header);
    response.headers_mut().insert(OUTCOME_HEADER, HeaderValue::from_static(outcome));
    Ok(response)
}

/// State of a turn; an unknown turn is an answer, not an error.
pub(super) async fn turn(
    State(api): State<Api>,
    Path((session, turn)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let state = session.state().await;
    let mut body = described(&turn, &state);
    body["turn"] = json!(turn);
    // Read under the lock, so that an ended turn is never returned with fewer events than it had.
    body["lastEvent"] = json!(session.progress().borrow().last_event);
    Ok(answer(&body))
}

/// Ours: file changes of an ended turn, if known.
pub(super) async fn changes(
    State(api): State<Api>,
    Path((session, turn)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    match session.state().await.phase(&turn) {
        None => return Err(crate::state::Refused::UnknownTurn.into()),
        Some(Phase::Queued(_) | Phase::Running { .. }) => {
            return Ok(answer(&json!({"known": false, "files": []})));
        }
        Some(Phase::Ended(_)) => {}
    }
    let files = api.host.changes.of(&session.id, &turn).await;
    Ok(answer(&json!({"known": files.is_some(), "files": files.unwrap_or_default()})))
}

fn described(turn: &str, session: &Session) -> Value {
    match session.phase(turn) {
        None => json!({"state": "not_seen"}),
        Some(Phase::Queued(_)) => json!({"state": "running", "queued": true}),
        Some(Phase::Running { is_cancelled, .. }) => {
            let asks: Vec<Value> = session.asks().map(ask_json).collect();
            let state = if asks.is_empty() { "running" } else { "waiting" };
            json!({"state": state, "asks": asks, "cancelling": is_cancelled})
        }
        Some(Phase::Ended(ended)) => ended_json(ended),
    }
}

fn ask_json(ask: &Ask) -> Value {
    match ask {
        Ask::Permission(ask) => json!({"permission": ask}),
        Ask::Question(ask) => json!({"question": ask}),
    }
}

fn ended_json(ended: &Ended) -> Value {
    let state = match ended.outcome {
        Outcome::Done | Outcome::Cancelled => "done",
        Outcome::Failed => "failed",
        Outcome::Lost => "lost",
    };
    let mut body = json!({"state": state, "outcome": ended.outcome});
    if let Some(reason) = &ended.reason {
        body["reason"] = json!(reason);
    }
    if let Some(message) = &ended.message {
        body["message"] = json!(message);
    }
    body
}

pub(super) async fn cancel(
    State(api): State<Api>,
    Path((session, turn)): Path<(String, String)>,
) -> Result<Response, Problem> {
    api.session(&session).await?.cancel(turn).await?;
    Ok(no_content())
}

/// Cancels the running turn; succeeds if none runs.
pub(super) async fn cancel_running(
    State(api): State<Api>,
    Path(session): Path<String>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let running = session.state().await.running().map(str::to_owned);
    if let Some(turn) = running {
        session.cancel(turn).await?;
    }
    Ok(no_content())
}

#[derive(Debug, Deserialize)]
pub(super) struct PermissionReply {
    reply: Reply,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Once,
    Always,
    Reject,
}

pub(super) async fn answer_permission(
    State(api): State<Api>,
    Path((session, ask)): Path<(String, String)>,
    body: Result<Json<PermissionReply>, JsonRejection>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let Json(body) = body?;
    let reply = match body.reply {
        Reply::Once => Answer::Once,
        Reply::Always => Answer::Always,
        Reply::Reject => Answer::Reject,
    };
    session.answer(ask, reply).await?;
    Ok(no_content())
}

#[derive(Debug, Deserialize)]
pub(super) struct QuestionReply {
    answers: Vec<Vec<String>>,
}

pub(super) async fn answer_question(
    State(api): State<Api>,
    Path((session, ask)): Path<(String, String)>,
    body: Result<Json<QuestionReply>, JsonRejection>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let Json(body) = body?;
    session.answer(ask, Answer::Answers(body.answers)).await?;
    Ok(no_content())
}

pub(super) async fn reject_question(
    State(api): State<Api>,
    Path((session, ask)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    session.answer(ask, Answer::Declined).await?;
    Ok(no_content())
}
