//! The one endpoint for every service: routed by `X-Amz-Target`, by path, or by the query protocol's form; and the test
//! calls under `/_bobbin/`.
//!
//! With keys, only requests signed with one of them are accepted, and test calls need their own key; without keys any
//! signature or none is accepted.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use bobbin_local_breakpoint::{Breakpoints, ControlKey};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::cloudformation::{self, CloudFormation};
use crate::dynamodb::Dynamo;
use crate::kms::Kms;
use crate::lambda::{Functions, PATH_PREFIX, Traces};
use crate::limits;
use crate::scheduler::Scheduler;
use crate::secrets::StackSecrets;
use crate::signature::{self, Denied, EngineKeys};
use crate::sqs::{self, Sqs};

/// All services of the endpoint.
pub(crate) struct Services {
    pub(crate) keys: Option<EngineKeys>,
    /// Key of the test calls; without one they are open.
    pub(crate) control: Option<ControlKey>,
    pub(crate) region: String,
    pub(crate) clock: Clock,
    pub(crate) dynamo: Arc<Dynamo>,
    pub(crate) sqs: Arc<Sqs>,
    pub(crate) secrets: StackSecrets,
    pub(crate) kms: Kms,
    pub(crate) cloudformation: CloudFormation,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) functions: Arc<Functions>,
    pub(crate) traces: Traces,
    pub(crate) breakpoints: Breakpoints,
}

/// Router of the endpoint.
pub(crate) fn router(services: Arc<Services>) -> Router {
    Router::new().fallback(answer).with_state(services)
}

/// Adds a request id to a service's answer unless it already has one.
async fn answer(State(services): State<Arc<Services>>, request: Request) -> Response {
    if let Some(path) = request.uri().path().strip_prefix("/_bobbin/") {
        let key = services.control.as_ref();
        if key.is_some_and(|key| !key.is_said(request.headers())) {
            return ControlKey::refusal();
        }
        let (path, method) = (path.to_owned(), request.method().clone());
        return match axum::body::to_bytes(request.into_body(), limits::REQUEST_BYTES_MAX).await {
            Ok(body) => services.control(&method, &path, &body).await,
            Err(_) => too_long(),
        };
    }
    let id = uuid::Uuid::new_v4().to_string();
    let mut response = services.answer(request, &id).await;
    let id = HeaderValue::from_str(&id).expect("an id is plain text");
    response.headers_mut().entry(REQUEST_ID).or_insert(id);
    response
}

impl Services {
    async fn answer(self: &Arc<Self>, request: Request, id: &str) -> Response {
        let services = self;
        let (parts, body) = request.into_parts();
        let Ok(body) = axum::body::to_bytes(body, limits::REQUEST_BYTES_MAX).await else {
            return too_long();
        };
        let path = parts.uri.path();
        let query = parts.uri.query().unwrap_or_default();
        if let Some(keys) = &self.keys {
            let service = signed_for(&parts);
            let now = SystemTime::now();
            if let Err(denied) = signature::verify(keys, &parts, &body, &self.region, service, now)
            {
                return refuse(&denied, service, &parts.headers, id);
            }
        }
        if let Some(target) = target(&parts.headers) {
            return match target.split_once('.') {
                Some(("AmazonSQS", action)) => {
                    services.sqs.answer(action, &parts.headers, &body).await
                }
                Some(("secretsmanager", action)) => services.secrets.answer(action, &body),
                Some(("TrentService", action)) => services.kms.answer(action, &body),
                Some((service, _)) if service.starts_with("DynamoDB") => {
                    services.dynamo.answer(parts.headers.clone(), body).await
                }
                _ => refusal(
                    StatusCode::BAD_REQUEST,
                    "UnknownOperationException",
                    &format!("This engine does not implement {target}."),
                ),
            };
        }
        if path.starts_with(PATH_PREFIX) {
            return services.functions.answer(&parts.method, path, &parts.headers, body).await;
        }
        if Scheduler::owns(path) {
            return services.scheduler.answer(&parts.method, path, query, &body);
        }
        if path == "/" && is_form(&parts.headers) {
            return services.cloudformation.answer(&body, id);
        }
        refusal(
            StatusCode::BAD_REQUEST,
            "UnknownOperationException",
            "The request has no X-Amz-Target, no Lambda or Scheduler path and no CloudFormation form. For other services this engine speaks only the JSON protocols; use a current SDK.",
        )
    }
}

/// The service name in a request's signature; `None` if no service here handles it.
fn signed_for(parts: &Parts) -> Option<&'static str> {
    let path = parts.uri.path();
    match target(&parts.headers).and_then(|target| target.split_once('.')) {
        Some(("AmazonSQS", _)) => Some("sqs"),
        Some(("secretsmanager", _)) => Some("secretsmanager"),
        Some(("TrentService", _)) => Some("kms"),
        Some((service, _)) => service.starts_with("DynamoDB").then_some("dynamodb"),
        None if path.starts_with(PATH_PREFIX) => Some("lambda"),
        None if Scheduler::owns(path) => Some("scheduler"),
        None => is_form(&parts.headers).then_some("cloudformation"),
    }
}

/// A refusal before a service has seen the request, in that service's protocol.
fn refuse(denied: &Denied, service: Option<&str>, headers: &HeaderMap, id: &str) -> Response {
    let (name, code) = denied.names();
    let message = denied.to_string();
    match service {
        Some("cloudformation") => {
            cloudformation::refusal(StatusCode::FORBIDDEN, code, &message, id)
        }
        Some("scheduler" | "lambda") | None => {
            let headers = [("content-type", "application/json"), ("x-amzn-errortype", name)];
            let body = json!({ "message": message });
            (StatusCode::FORBIDDEN, headers, body.to_string()).into_response()
        }
        _ => {
            let kind = format!("com.amazon.coral.service#{name}");
            let body = json!({ "__type": kind, "message": message }).to_string();
            let content_type = match service {
                Some("secretsmanager" | "kms") => "application/x-amz-json-1.1",
                _ => "application/x-amz-json-1.0",
            };
            let query_code = (service == Some("sqs") && sqs::asks_for_query_codes(headers))
                .then(|| [("x-amzn-query-error", format!("{code};Sender"))]);
            let checksum = (service == Some("dynamodb"))
                .then(|| [("x-amz-crc32", crc32fast::hash(body.as_bytes()).to_string())]);
            (
                StatusCode::BAD_REQUEST,
                [("content-type", content_type)],
                AppendHeaders(query_code.into_iter().flatten()),
                AppendHeaders(checksum.into_iter().flatten()),
                body,
            )
                .into_response()
        }
    }
}

/// Header of AWS's request id.
const REQUEST_ID: &str = "x-amzn-requestid";

fn too_long() -> Response {
    refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        "The request is longer than 16 MiB or incomplete.",
    )
}

fn target(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-amz-target")?.to_str().ok()
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"))
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({ "__type": kind, "message": message });
    let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amzn-errortype", kind)];
    (status, headers, body.to_string()).into_response()
}

#[derive(Deserialize)]
struct ClockAdvance {
    advance_ms: u32,
}

#[derive(Deserialize)]
struct MappingSwitch {
    enabled: bool,
}

#[derive(Deserialize)]
struct LagRequest {
    ms: i64,
}

#[derive(Deserialize)]
struct LastRequest {
    ms: u64,
}

impl Services {
    /// Test calls: advance the clock, list queues, list and kill processes, list traces, set the index lag, lengthen
    /// transactions, hold calls.
    async fn control(&self, method: &Method, path: &str, body: &Bytes) -> Response {
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["clock"]) => self.clock_response(),
            ("POST", ["clock"]) => match serde_json::from_slice::<ClockAdvance>(body) {
                Ok(advance) => {
                    self.clock.advance_ms(advance.advance_ms);
                    self.clock_response()
                }
                Err(error) => bad_request(&error),
            },
            ("GET", ["queues", name, "messages"]) => match self.sqs.peek(name) {
                Ok(messages) => json_response(&messages),
                Err(error) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
            },
            ("POST", ["queues", name, "mapping"]) => {
                match serde_json::from_slice::<MappingSwitch>(body) {
                    Ok(mapping) => match self.sqs.set_mapping(name, mapping.enabled) {
                        Ok(()) => json_response(&json!({ "enabled": mapping.enabled })),
                        Err(error) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
                    },
                    Err(error) => bad_request(&error),
                }
            }
            ("GET", ["functions"]) => {
                let mut by_function = serde_json::Map::new();
                for (function, process) in self.functions.processes() {
                    let processes = by_function.entry(function).or_insert_with(|| json!([]));
                    if let Value::Array(processes) = processes {
                        processes.push(json!(process));
                    }
                }
                json_response(&Value::Object(by_function))
            }
            ("POST", ["functions", id, "kill"]) => match self.functions.by_logical_id(id) {
                Some(function) => json_response(&json!({ "killed": function.kill() })),
                None => (StatusCode::NOT_FOUND, "no such function").into_response(),
            },
            ("GET", ["segments"]) => json_response(&Value::Array(self.traces.segments())),
            (_, ["breakpoints"]) => self.breakpoints.control(method, "", body),
            (_, ["breakpoints", id]) => self.breakpoints.control(method, id, body),
            ("POST", ["index-lag"]) => match serde_json::from_slice::<LagRequest>(body) {
                Ok(lag) => match self.dynamo.set_index_lag(lag.ms).await {
                    Ok(()) => json_response(&json!({ "ms": lag.ms })),
                    Err(error) => {
                        (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
                    }
                },
                Err(error) => bad_request(&error),
            },
            ("POST", ["transactions"]) => match serde_json::from_slice::<LastRequest>(body) {
                Ok(last) => {
                    self.dynamo.set_transactions_last(last.ms);
                    json_response(&json!({ "ms": last.ms }))
                }
                Err(error) => bad_request(&error),
            },
            _ => (StatusCode::NOT_FOUND, "no such call").into_response(),
        }
    }

    fn clock_response(&self) -> Response {
        json_response(
            &json!({ "now_ms": self.clock.now_ms(), "offset_ms": self.clock.offset_ms() }),
        )
    }
}

fn json_response(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

fn bad_request(error: &serde_json::Error) -> Response {
    (StatusCode::BAD_REQUEST, error.to_string()).into_response()
}
