//! Sessions: create, list, terminate.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::{json as answer, no_content};
use super::{DaemonApi, Problem};
use crate::agents::AgentKind;
use crate::limits::{ID_BYTES_MAX, OPEN_MS_MAX, SESSIONS_MAX};
use crate::names::file_name;
use crate::session::{AgentStatus, SessionHandle};
use crate::sessions::NotCreated;
use crate::state::{PermissionMode, SessionParameters};

/// Longest file name on common file systems, including a log's extension.
const FILE_NAME_BYTES_MAX: usize = 250;

impl DaemonApi {
    pub(super) async fn session(&self, id: &str) -> Result<SessionHandle, Problem> {
        self.sessions.get(id).await.ok_or_else(|| Problem::no_session(id))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateSessionBody {
    agent: String,
    agent_mode: Option<String>,
    permission_mode: Option<String>,
    model: Option<String>,
    variant: Option<String>,
    agent_version: Option<String>,
    /// Ours: the agent's working directory; by default the daemon's own.
    directory: Option<String>,
    /// Ours: a session of the agent itself to resume.
    agent_session_id: Option<String>,
    /// Ours: a title, for agents that keep one.
    title: Option<String>,
    /// Ours: instructions besides the prompts.
    instructions: Option<String>,
}

pub(super) async fn create(
    State(api): State<DaemonApi>,
    Path(id): Path<String>,
    body: Result<Json<CreateSessionBody>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(body) = body?;
    check_id(&id)?;
    let created = read(&api, body).await?;
    let session = match api.sessions.create(&id, created).await {
        Ok(session) => session,
        Err(NotCreated::Exists) => return Err(Problem::session_exists(&id)),
        Err(NotCreated::TooMany) => {
            return Err(Problem::invalid(format!(
                "there are already {SESSIONS_MAX} sessions, the most that a daemon keeps"
            )));
        }
        Err(NotCreated::Session(error)) => return Err(error.into()),
    };
    session.start().await;
    Ok(answer(&opened(&session).await))
}

/// Whether the agent is available, as soon as that is known.
async fn opened(session: &SessionHandle) -> Value {
    let mut progress = session.progress();
    let known = progress
        .wait_for(|progress| matches!(progress.agent, AgentStatus::Ready | AgentStatus::Down(_)));
    let status = match tokio::time::timeout(Duration::from_millis(OPEN_MS_MAX), known).await {
        Ok(Ok(progress)) => progress.agent.clone(),
        // Still starting: its first prompt waits for it.
        Ok(Err(_)) | Err(_) => AgentStatus::Starting,
    };
    let state = session.state().await;
    let mut body = json!({"healthy": !matches!(status, AgentStatus::Down(_))});
    if let Some(id) = &state.agent_session {
        body["agentSessionId"] = json!(id);
    }
    if let AgentStatus::Down(down) = status {
        let agent = state.created.as_ref().map(|created| &created.agent);
        body["error"] = json!({
            "type": down.kind, "message": down.message, "agent": agent, "session_id": session.id,
        });
    }
    body
}

fn check_id(id: &str) -> Result<(), Problem> {
    let is_name = !id.is_empty() && !id.chars().any(char::is_control);
    if is_name && id.len() <= ID_BYTES_MAX && file_name(id).len() <= FILE_NAME_BYTES_MAX {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "a session's id has 1 to {ID_BYTES_MAX} bytes; anything but letters, digits, - and _ counts as three of {FILE_NAME_BYTES_MAX}"
    )))
}

/// Reads and checks a request.
async fn read(api: &DaemonApi, body: CreateSessionBody) -> Result<SessionParameters, Problem> {
    let agent = api.host.agents.find(&body.agent).await?;
    let modes = api.host.agents.modes(&body.agent)?;
    if let Some(mode) = &body.agent_mode
        && agent.kind != AgentKind::Acp
        && !modes.iter().any(|known| known.id == mode)
    {
        let known: Vec<&str> = modes.iter().map(|mode| mode.id).collect();
        let detail = format!("{} has no mode {mode}; it has {}", agent.id, known.join(", "));
        return Err(Problem::mode(detail));
    }
    let permission_mode = match body.permission_mode.as_deref() {
        None | Some("default") => PermissionMode::Default,
        Some("plan")
            if modes.iter().any(|mode| mode.id == "plan") || agent.kind == AgentKind::Acp =>
        {
            PermissionMode::Plan
        }
        Some("bypass") => PermissionMode::Bypass,
        Some(other) => {
            return Err(Problem::mode(format!(
                "{} has no permission mode {other}; the modes are default, bypass and, except for amp, plan",
                agent.id
            )));
        }
    };
    if let Some(wanted) = &body.agent_version
        && let Some(found) = crate::agents::version(&agent).await
        && *wanted != found
    {
        return Err(Problem::invalid(format!(
            "{} is installed in version {found}, not {wanted}; leave agentVersion out, or install that one",
            agent.id
        )));
    }
    Ok(SessionParameters {
        agent: agent.id,
        agent_mode: body.agent_mode,
        permission_mode,
        model: body.model,
        variant: body.variant,
        directory: directory(body.directory.as_deref())?,
        resumes: body.agent_session_id,
        title: body.title,
        instructions: body.instructions,
        at_ms: now_ms(),
    })
}

fn directory(asked: Option<&str>) -> Result<String, Problem> {
    let path = match asked {
        Some(path) => std::path::PathBuf::from(path),
        None => std::env::current_dir().map_err(|error| {
            Problem::invalid(format!("name a directory: the daemon's own cannot be used ({error})"))
        })?,
    };
    match path.to_str() {
        Some(text) if path.is_absolute() && path.is_dir() => Ok(text.to_owned()),
        _ => Err(Problem::invalid(format!(
            "{} is not the absolute path of a directory in this sandbox; create it first",
            path.display()
        ))),
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(super) async fn list(State(api): State<DaemonApi>) -> Response {
    let mut sessions = Vec::new();
    for session in api.sessions.all().await {
        let count = session.progress().borrow().last_event;
        let state = session.state().await;
        if let Some(created) = &state.created {
            sessions.push(info(&session.id, created, &state, count));
        }
    }
    answer(&json!({"sessions": sessions}))
}

fn info(
    id: &str,
    created: &SessionParameters,
    state: &crate::state::SessionState,
    count: u64,
) -> Value {
    let mut info = json!({
        "sessionId": id,
        "agent": created.agent,
        "agentMode": created.agent_mode.as_deref().unwrap_or("build"),
        "permissionMode": created.permission_mode.name(),
        "ended": state.is_terminated,
        "eventCount": count,
        "directory": created.directory,
        "asks": state.asks().map(crate::state::WaitingAsk::id).collect::<Vec<_>>(),
    });
    let optional = [
        ("agentSessionId", &state.agent_session),
        ("model", &created.model),
        ("variant", &created.variant),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            info[name] = json!(value);
        }
    }
    info
}

pub(super) async fn terminate(
    State(api): State<DaemonApi>,
    Path(session): Path<String>,
) -> Result<Response, Problem> {
    api.session(&session).await?.terminate().await?;
    Ok(no_content())
}
