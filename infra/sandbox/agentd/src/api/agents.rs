//! Agents: list, modes, installation.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::{json as answer, no_content};
use super::{DaemonApi, Problem};

pub(super) async fn list(State(api): State<DaemonApi>) -> Response {
    let agents = &api.host.agents;
    let infos = join_all(agents.ids().map(async |id| match agents.find(id).await {
        Ok(agent) => {
            let mut info = json!({"id": id, "installed": true, "path": agent.path});
            if let Some(version) = crate::agents::version(&agent).await {
                info["version"] = json!(version);
            }
            info
        }
        Err(_) => json!({"id": id, "installed": false}),
    }));
    answer(&json!({"agents": infos.await}))
}

pub(super) async fn modes(
    State(api): State<DaemonApi>,
    Path(agent): Path<String>,
) -> Result<Response, Problem> {
    let modes = api.host.agents.modes(&agent)?;
    let modes: Vec<Value> = modes
        .iter()
        .map(|mode| json!({"id": mode.id, "name": mode.name, "description": mode.description}))
        .collect();
    Ok(answer(&json!({"modes": modes})))
}

#[derive(Debug, Deserialize)]
pub(super) struct InstallBody {
    reinstall: Option<bool>,
}

pub(super) async fn install(
    State(api): State<DaemonApi>,
    Path(agent): Path<String>,
    body: Result<Json<InstallBody>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(body) = body?;
    let again = body.reinstall.unwrap_or(false);
    api.host.agents.install(&agent, again).await?;
    Ok(no_content())
}
