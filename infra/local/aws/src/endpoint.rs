//! The one address that answers for every service: by `X-Amz-Target`, by path, and the test calls under `/_bobbin/`.
//!
//! Any signature is taken, and none at all.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bobbin_local_gate::Gates;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::dynamodb::Dynamo;
use crate::lambda::{Functions, PATH_PREFIX, Traces};
use crate::limits;
use crate::scheduler::Scheduler;
use crate::secrets::Secrets;
use crate::sqs::Sqs;

/// Everything that the address answers for.
pub(crate) struct Services {
    pub(crate) clock: Clock,
    pub(crate) dynamo: Dynamo,
    pub(crate) sqs: Arc<Sqs>,
    pub(crate) secrets: Secrets,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) functions: Arc<Functions>,
    pub(crate) traces: Traces,
    pub(crate) gates: Gates,
}

/// The router of the address.
pub(crate) fn router(services: Arc<Services>) -> Router {
    Router::new().fallback(answer).with_state(services)
}

async fn answer(State(services): State<Arc<Services>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, limits::REQUEST_BYTES_MAX).await else {
        return refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            "The request is longer than 16 MiB or broke off.",
        );
    };
    let path = parts.uri.path();
    let query = parts.uri.query().unwrap_or_default();
    if let Some(path) = path.strip_prefix("/_bobbin/") {
        return services.control(&parts.method, path, &body).await;
    }
    if let Some(target) = target(&parts.headers) {
        return match target.split_once('.') {
            Some(("AmazonSQS", action)) => services.sqs.answer(action, &body).await,
            Some(("secretsmanager", action)) => services.secrets.answer(action, &body),
            Some((service, _)) if service.starts_with("DynamoDB") => {
                services.dynamo.answer(parts.headers.clone(), body).await
            }
            _ => refusal(
                StatusCode::BAD_REQUEST,
                "UnknownOperationException",
                &format!("{target} is not a call that this engine has."),
            ),
        };
    }
    if path.starts_with(PATH_PREFIX) {
        return services.functions.answer(path, &parts.headers, body).await;
    }
    if Scheduler::owns(path) {
        return services.scheduler.answer(&parts.method, path, query, &body);
    }
    refusal(
        StatusCode::BAD_REQUEST,
        "UnknownOperationException",
        "No X-Amz-Target, and no path of Lambda or Scheduler. This engine speaks the JSON protocols only; use a current SDK.",
    )
}

fn target(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-amz-target")?.to_str().ok()
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({ "__type": kind, "message": message });
    let headers = [
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amzn-errortype", kind),
    ];
    (status, headers, body.to_string()).into_response()
}

#[derive(Deserialize)]
struct Advance {
    advance_ms: u32,
}

#[derive(Deserialize)]
struct IndexLag {
    ms: i64,
}

impl Services {
    /// Test calls: move the clock, look into queues, see and kill processes, see traces, make the index lag, hold calls.
    async fn control(&self, method: &Method, path: &str, body: &Bytes) -> Response {
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["clock"]) => self.told_clock(),
            ("POST", ["clock"]) => match serde_json::from_slice::<Advance>(body) {
                Ok(advance) => {
                    self.clock.advance_ms(advance.advance_ms);
                    self.told_clock()
                }
                Err(error) => bad_request(&error),
            },
            ("GET", ["queues", name, "messages"]) => match self.sqs.peek(name) {
                Ok(messages) => told(&messages),
                Err(error) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
            },
            ("GET", ["functions"]) => {
                let mut by_function = serde_json::Map::new();
                for (function, process) in self.functions.processes() {
                    let processes = by_function.entry(function).or_insert_with(|| json!([]));
                    if let Value::Array(processes) = processes {
                        processes.push(json!(process));
                    }
                }
                told(&Value::Object(by_function))
            }
            ("POST", ["functions", id, "kill"]) => match self.functions.by_logical_id(id) {
                Some(function) => told(&json!({ "killed": function.kill() })),
                None => (StatusCode::NOT_FOUND, "no such function").into_response(),
            },
            ("GET", ["segments"]) => told(&Value::Array(self.traces.kept())),
            (_, ["gates"]) => self.gates.control(method, "", body),
            (_, ["gates", id]) => self.gates.control(method, id, body),
            ("POST", ["index-lag"]) => match serde_json::from_slice::<IndexLag>(body) {
                Ok(lag) => match self.dynamo.set_index_lag(lag.ms).await {
                    Ok(()) => told(&json!({ "ms": lag.ms })),
                    Err(error) => {
                        (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
                    }
                },
                Err(error) => bad_request(&error),
            },
            _ => (StatusCode::NOT_FOUND, "no such call").into_response(),
        }
    }

    fn told_clock(&self) -> Response {
        told(&json!({ "now_ms": self.clock.now_ms(), "offset_ms": self.clock.offset_ms() }))
    }
}

fn told(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

fn bad_request(error: &serde_json::Error) -> Response {
    (StatusCode::BAD_REQUEST, error.to_string()).into_response()
}
