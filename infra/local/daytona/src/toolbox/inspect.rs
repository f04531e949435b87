//! Properties of a running sandbox: its work directory and its listening ports.

use axum::extract::Path;
use serde::Deserialize;
use serde_json::json;

use super::call::{ToolboxSandbox, json as answer};
use crate::api_error::ApiError;
use crate::http::ApiResult;
use crate::outbound::PROXY_PORT;
use crate::processes::listening;

/// The home is the work directory.
pub(super) async fn work_dir(ToolboxSandbox { engine, id, .. }: ToolboxSandbox) -> ApiResult {
    let (record, _) = engine.store.running(&id)?;
    answer(json!({ "dir": engine.store.sandbox_dir(&record.folder).join("home") }))
}

/// Ports on which the sandbox's own processes listen; the stand-in for 4096 is shown as 4096.
pub(super) async fn ports(ToolboxSandbox { engine, id, .. }: ToolboxSandbox) -> ApiResult {
    let (record, _) = engine.store.running(&id)?;
    let processes = engine.machine.processes(&id);
    let found = tokio::task::spawn_blocking(move || listening(&processes.pids()))
        .await
        .map_err(ApiError::internal)?;
    // Ports that lead out of the sandbox are not its servers.
    let leading_out = engine.machine.egress.ports.all();
    let leads_out = |port: &u16| *port == PROXY_PORT || leading_out.contains(port);
    let mut ports: Vec<u16> = found
        .into_iter()
        .filter(|port| !leads_out(port))
        .map(|port| if port == record.port { 4096 } else { port })
        .collect();
    ports.sort_unstable();
    answer(json!({ "ports": ports }))
}

#[derive(Deserialize)]
pub(super) struct PortPath {
    port: u16,
}

pub(super) async fn port_in_use(
    sandbox: ToolboxSandbox,
    Path(PortPath { port }): Path<PortPath>,
) -> ApiResult {
    let (record, process) = sandbox.engine.store.running(&sandbox.id)?;
    if !(3_000..=9_999).contains(&port) {
        return Err(ApiError::bad("bad request: port out of range: must be between 3000 and 9999"));
    }
    let connected = process.dial(record.host_port(port)).await;
    answer(json!({ "isInUse": connected.is_ok() }))
}
