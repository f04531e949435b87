//! A bot request: it takes an armed fault, is answered, and is logged.

use crate::fault::{ChatFault, ChatFaults};
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::{Hub, lock};
use crate::ids::now_ms;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

/// A platform's answer for a fault.
pub type FaultAnswer = fn(&ChatFault) -> ApiResponse;

/// Answers with `answer`, unless a fault is armed for this request; a logging error fails no request.
pub async fn serve(
    hub: &Hub,
    platform: &str,
    faults: &Mutex<ChatFaults>,
    fault_reply: FaultAnswer,
    call: ApiRequest,
    answer: impl FnOnce(&Hub, &ApiRequest) -> ApiResponse,
) -> Response {
    let route = format!("{} /{}", call.method, call.path.join("/"));
    let fault = lock(faults).take(&route);
    if let Some(fault) = fault.as_ref().filter(|fault| fault.delay_ms > 0) {
        tokio::time::sleep(Duration::from_millis(fault.delay_ms)).await;
    }
    let reply = match fault.as_ref().filter(|fault| fault.status > 0) {
        Some(fault) if !fault.after => fault_reply(fault),
        Some(fault) => {
            answer(hub, &call);
            fault_reply(fault)
        }
        None => answer(hub, &call),
    };
    let entry = json!({"at_ms": now_ms(), "method": call.method, "route": format!("/{}", call.path.join("/")), "query": call.query,
        "body": call.body, "files": call.files.iter().map(|file| json!({"field": file.field, "filename": file.filename,
        "content_type": file.content_type, "size": file.bytes.len()})).collect::<Vec<_>>(),
        "status": reply.status, "error": reply.body["code"].as_u64().map_or_else(|| reply.body["error"].clone(), Value::from),
        "fault": fault.is_some()});
    if let Err(error) = hub.store().log_request(platform, &entry) {
        tracing::error!(%error, "a request of the bot could not be logged");
    }
    reply.into_response()
}
