//! Turns: send a message, answer asks, read or cancel a turn.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::response::Response;
use bobbin_agent_events::TurnOutcome;
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::{json as answer, no_content};
use super::{DaemonApi, OUTCOME_HEADER, Problem, TURN_HEADER};
use crate::limits::ID_BYTES_MAX;
use crate::nudge::NudgeTarget;
use crate::state::{
    Acceptance, AskAnswer, PromptAttachment, SessionState, TurnEnd, TurnPhase, TurnPrompt,
    WaitingAsk,
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageBody {
    message: String,
    /// Ours: the same id means the same turn.
    turn: Option<String>,
    #[serde(default)]
    attachments: Vec<PromptAttachment>,
    /// Ours: the model of this turn.
    model: Option<String>,
    /// Ours: the mode of this turn.
    agent_mode: Option<String>,
    /// Ours: nudge address and token for the turn's end and asks. An invalid one is no reason to refuse the message.
    nudge: Option<Value>,
}

pub(super) async fn message(
    State(api): State<DaemonApi>,
    Path(session): Path<String>,
    body: Result<Json<MessageBody>, JsonRejection>,
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
    let prompt = TurnPrompt {
        text: body.message,
        attachments: body.attachments,
        model: body.model,
        mode: body.agent_mode,
    };
    let nudge = body.nudge.and_then(NudgeTarget::given);
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
    State(api): State<DaemonApi>,
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
    State(api): State<DaemonApi>,
    Path((session, turn)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    match session.state().await.phase(&turn) {
        None => return Err(crate::state::RequestRefusal::UnknownTurn.into()),
        Some(TurnPhase::Queued(_) | TurnPhase::Running { .. }) => {
            return Ok(answer(&json!({"known": false, "files": []})));
        }
        Some(TurnPhase::Ended(_)) => {}
    }
    let files = api.host.changes.of(&session.id, &turn).await;
    Ok(answer(&json!({"known": files.is_some(), "files": files.unwrap_or_default()})))
}

fn described(turn: &str, session: &SessionState) -> Value {
    match session.phase(turn) {
        None => json!({"state": "not_seen"}),
        Some(TurnPhase::Queued(_)) => json!({"state": "running", "queued": true}),
        Some(TurnPhase::Running { is_cancelled, .. }) => {
            let asks: Vec<Value> = session.asks().map(ask_json).collect();
            let state = if asks.is_empty() { "running" } else { "waiting" };
            json!({"state": state, "asks": asks, "cancelling": is_cancelled})
        }
        Some(TurnPhase::Ended(ended)) => ended_json(ended),
    }
}

fn ask_json(ask: &WaitingAsk) -> Value {
    match ask {
        WaitingAsk::Permission(ask) => json!({"permission": ask}),
        WaitingAsk::Question(ask) => json!({"question": ask}),
    }
}

fn ended_json(ended: &TurnEnd) -> Value {
    let state = match ended.outcome {
        TurnOutcome::Done | TurnOutcome::Cancelled => "done",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Lost => "lost",
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
    State(api): State<DaemonApi>,
    Path((session, turn)): Path<(String, String)>,
) -> Result<Response, Problem> {
    api.session(&session).await?.cancel(turn).await?;
    Ok(no_content())
}

/// Cancels the running turn; succeeds if none runs.
pub(super) async fn cancel_running(
    State(api): State<DaemonApi>,
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
    reply: PermissionChoice,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PermissionChoice {
    Once,
    Always,
    Reject,
}

pub(super) async fn answer_permission(
    State(api): State<DaemonApi>,
    Path((session, ask)): Path<(String, String)>,
    body: Result<Json<PermissionReply>, JsonRejection>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let Json(body) = body?;
    let reply = match body.reply {
        PermissionChoice::Once => AskAnswer::Once,
        PermissionChoice::Always => AskAnswer::Always,
        PermissionChoice::Reject => AskAnswer::Reject,
    };
    session.answer(ask, reply).await?;
    Ok(no_content())
}

#[derive(Debug, Deserialize)]
pub(super) struct QuestionReply {
    answers: Vec<Vec<String>>,
}

pub(super) async fn answer_question(
    State(api): State<DaemonApi>,
    Path((session, ask)): Path<(String, String)>,
    body: Result<Json<QuestionReply>, JsonRejection>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    let Json(body) = body?;
    session.answer(ask, AskAnswer::Answers(body.answers)).await?;
    Ok(no_content())
}

pub(super) async fn reject_question(
    State(api): State<DaemonApi>,
    Path((session, ask)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let session = api.session(&session).await?;
    session.answer(ask, AskAnswer::Declined).await?;
    Ok(no_content())
}
