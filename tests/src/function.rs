//! One function without Lambda and without AWS: the real program, the laptop stack's Runtime API, and behind it
//! services that answer as if they were empty and record what they were asked.
//!
//! Promised: a function sees what Lambda would show it (its environment and nothing else, one event at a time, a
//! deadline), and its end is reported: as an error of its start, or by its answers. Deliberately absent: any state
//! behind the calls; tests that need it run the whole stack.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use bobbin_local_aws::RuntimeApi;
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::binaries;
use crate::limits::{ANSWER_MS_MAX, FUNCTION_ANSWER_MS_MAX, FUNCTION_START_MS_MAX};
use crate::namespace::Namespace;

/// A call that a function made.
#[derive(Debug, Clone)]
pub struct Called {
    /// The target of an AWS call, or method and path.
    pub what: String,
    /// Body of the request, as JSON.
    pub body: Value,
}

/// How a function came up.
pub enum Started {
    /// It asks for work.
    Ready(Box<Function>),
    /// The process ended before it asked for an invocation.
    Refused(Refused),
}

/// How a function that did not start ended.
#[derive(Debug)]
pub struct Refused {
    /// Its report to Lambda.
    pub report: Option<Value>,
    /// How its process ended.
    pub status: ExitStatus,
    /// All its output, standard error included.
    pub said: String,
}

/// A function's process, with its own Runtime API.
pub struct Function {
    program: Child,
    api: RuntimeApi,
    services: Arc<Services>,
    answer_ms_max: u64,
    output: NamedTempFile,
}

/// The services behind a function.
#[derive(Default)]
struct Services {
    calls: Mutex<Vec<Called>>,
    /// Answers that differ from those of an empty service, by [`Called::what`].
    otherwise: Mutex<BTreeMap<String, (StatusCode, Value)>>,
    secret: Value,
}

/// The environment that the template would give, every address of it on loopback.
#[must_use]
pub fn environment(endpoint: &str) -> Vec<(String, String)> {
    let queue = |name: &str| format!("{endpoint}/123456789012/local-{name}.fifo");
    let overrides = json!({
        "discord_api": format!("{endpoint}/discord"), "slack_api": format!("{endpoint}/slack"),
        "daytona_api": format!("{endpoint}/daytona"),
    })
    .to_string();
    [
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_SESSION_TOKEN", "local".to_owned()),
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
        ("STACK", "local".to_owned()),
        ("STACK_ID", "this-one".to_owned()),
        ("TABLE", "local-Table".to_owned()),
        ("MESSAGES_QUEUE_URL", queue("Messages")),
        ("CONTROL_QUEUE_URL", queue("Control")),
        ("MESSAGES_DEAD_QUEUE_URL", queue("MessagesDead")),
        ("CONTROL_DEAD_QUEUE_URL", queue("ControlDead")),
        ("WAKES_DEAD_QUEUE_URL", queue("WakesDead")),
        ("INGRESS_SECRET_ID", "everything".to_owned()),
        ("WORKER_SECRET_ID", "everything".to_owned()),
        ("PROVIDER_SECRET_ID", "everything".to_owned()),
        ("STACK_KEY_ID", "everything".to_owned()),
        ("DISCORD_APPLICATION_ID", "1240000000000000001".to_owned()),
        ("MODEL", "anthropic/claude-sonnet-4-5".to_owned()),
        ("ALLOWED_GUILDS", "1240000000000000100".to_owned()),
        ("ALLOWED_TEAMS", "T0BOBBIN01,E0BOBBIN01".to_owned()),
        ("OVERRIDES", overrides),
        ("RUST_BACKTRACE", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

impl Function {
    /// Starts a function's program. `change` gets the template's environment; `secret` is Secrets Manager's answer for
    /// every secret (null: it refuses).
    ///
    /// # Panics
    /// When it neither asks for work nor ends within its bound.
    pub async fn start(
        program: &str,
        secret: Value,
        change: impl FnOnce(&mut Vec<(String, String)>),
    ) -> Started {
        let services = Arc::new(Services { secret, ..Services::default() });
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let routes = Router::new().fallback(service).with_state(Arc::clone(&services));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let api = listen(Ipv4Addr::LOCALHOST).await;
        let mut variables = environment(&format!("http://{address}"));
        variables.push(("AWS_LAMBDA_RUNTIME_API".to_owned(), api.address()));
        for (name, value) in [
            ("AWS_LAMBDA_FUNCTION_NAME", program),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/local"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "local"),
        ] {
            variables.push((name.to_owned(), value.to_owned()));
        }
        change(&mut variables);
        let command = Command::new(binaries::folder().join(program));
        Self::launch(command, variables, api, services, FUNCTION_ANSWER_MS_MAX).await
    }

    /// Starts a function's program like a container of `sam local invoke`: in its own network, with these variables and
    /// Lambda's, and only with the services that they point to.
    ///
    /// # Panics
    /// As [`Function::start`].
    pub async fn start_in(
        namespace: &Namespace,
        program: &str,
        mut variables: Vec<(String, String)>,
    ) -> Started {
        let api = listen(namespace.outside).await;
        variables.push(("AWS_LAMBDA_RUNTIME_API".to_owned(), api.address()));
        let command = namespace.command(&binaries::folder().join(program));
        Self::launch(command, variables, api, Arc::default(), ANSWER_MS_MAX).await
    }

    async fn launch(
        mut command: Command,
        variables: Vec<(String, String)>,
        api: RuntimeApi,
        services: Arc<Services>,
        answer_ms_max: u64,
    ) -> Started {
        let output = NamedTempFile::new().expect("the system has a folder for temporary files");
        let out = || output.reopen().expect("the file is ours");
        let mut program = command
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(out())
            .stderr(out())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        // Both at once: the question is which of the two happens.
        let bound = Duration::from_millis(FUNCTION_START_MS_MAX);
        let came = timeout(bound, async {
            tokio::select! {
                _ = api.first_asked() => None,
                status = program.wait() => Some(status),
            }
        });
        match came.await {
            Ok(None) => {
                Started::Ready(Box::new(Self { program, api, services, answer_ms_max, output }))
            }
            Ok(Some(status)) => Started::Refused(Refused {
                report: api.init_error().and_then(|error| serde_json::from_slice(&error).ok()),
                status: status.expect("it was started here"),
                said: read(output.path()),
            }),
            Err(_) => panic!(
                "neither asked for work nor ended within {FUNCTION_START_MS_MAX} ms:\n{}",
                read(output.path())
            ),
        }
    }

    /// Gives it an event and waits for its answer.
    ///
    /// # Errors
    /// What it told as the error of the invocation.
    ///
    /// # Panics
    /// When there is no answer within its bound.
    pub async fn invoke(&mut self, event: &Value) -> Result<Value, Value> {
        let bound = Duration::from_millis(self.answer_ms_max);
        let invoked = timeout(bound, self.api.invoke(event.to_string(), bound)).await;
        let Ok(Some(invoked)) = invoked else {
            panic!("no answer within {bound:?}:\n{}", read(self.output.path()))
        };
        let json = |body: &Bytes| serde_json::from_slice(body).unwrap_or_default();
        invoked.result.map(|answer| json(&answer)).map_err(|error| json(&error))
    }

    /// Sets the answer to a call from now on.
    ///
    /// # Panics
    /// When that is no status of HTTP.
    pub fn answer(&self, what: &str, status: u16, body: Value) {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        let mut otherwise = self.services.otherwise.lock().unwrap_or_else(PoisonError::into_inner);
        otherwise.insert(what.to_owned(), (status, body));
    }

    /// The calls that it made since this was asked last.
    #[must_use]
    pub fn calls(&self) -> Vec<Called> {
        let mut calls = self.services.calls.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *calls)
    }

    /// The lines that it has written, each as JSON.
    ///
    /// # Panics
    /// When a line is not JSON: whatever reads the log could not parse it.
    #[must_use]
    pub fn log(&self) -> Vec<Value> {
        let text = read(self.output.path());
        let json = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is no JSON: {e}"))
        };
        text.lines().map(json).collect()
    }

    /// Kills the process and waits for its end.
    pub async fn end(mut self) {
        let _ = self.program.kill().await;
    }
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

async fn listen(address: Ipv4Addr) -> RuntimeApi {
    let started = RuntimeApi::start(address.into()).await;
    started.expect("the address is this machine's")
}

/// AWS, the provider and the platforms: empty, and friendly.
async fn service(
    State(services): State<Arc<Services>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = headers.get("x-amz-target").and_then(|name| name.to_str().ok());
    let is_aws = target.is_some();
    let what = target.map_or_else(|| format!("{method} {}", uri.path()), str::to_owned);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = match what.as_str() {
        "secretsmanager.GetSecretValue" => match &services.secret {
            Value::Null => Err(
                json!({"__type": "ResourceNotFoundException", "message": "Secrets Manager can't find the specified secret."}),
            ),
            secret => Ok(
                json!({"ARN": "arn:aws:secretsmanager:us-east-1:123456789012:secret:everything", "Name": "everything",
                "VersionId": "11111111-1111-4111-8111-111111111111", "SecretString": secret.to_string()}),
            ),
        },
        "AmazonSQS.SendMessage" => {
            Ok(json!({"MessageId": "059f36b4-0000-4000-8000-000000000002", "SequenceNumber": "1"}))
        }
        "AmazonSQS.SendMessageBatch" => {
            let entries = body["Entries"].as_array().into_iter().flatten();
            let taken: Vec<Value> = entries
                .map(|entry| json!({"Id": entry["Id"], "MessageId": format!("m-{}", entry["Id"]), "SequenceNumber": "1"}))
                .collect();
            Ok(json!({"Successful": taken, "Failed": []}))
        }
        "AmazonSQS.GetQueueAttributes" => {
            Ok(json!({"Attributes": {"ApproximateNumberOfMessages": "0"}}))
        }
        // The reference: "If the action is successful, the service sends back an HTTP 200 response with an empty HTTP
        // body."
        "AmazonSQS.ChangeMessageVisibility" | "AmazonSQS.DeleteMessage" => Ok(Value::Null),
        "DynamoDB_20120810.BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            let lists: Map<String, Value> =
                tables.map(|(table, _)| (table.clone(), json!([]))).collect();
            Ok(json!({"Responses": lists, "UnprocessedKeys": {}}))
        }
        "DynamoDB_20120810.UpdateItem" => match body["ReturnValues"].as_str() {
            Some("ALL_NEW") => Ok(json!({"Attributes": {}})),
            _ => Ok(json!({})),
        },
        "DynamoDB_20120810.Query" => Ok(json!({"Items": [], "Count": 0, "ScannedCount": 0})),
        "POST /daytona/secret" => Ok(json!({
            "id": "a-secret", "name": body["name"], "placeholder": "dtn_secret_0", "hosts": body["hosts"],
            "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z",
        })),
        name if name.contains("/daytona/") => Ok(json!({"items": [], "nextCursor": null})),
        name if name.contains("/slack/") => Ok(json!({
            "ok": true, "ts": "1790000000.000900", "message_ts": "1790000000.000900", "channel": "C0BUILD0001", "messages": [],
            "team_id": "T0BOBBIN01", "user_id": "U0BOBBINBOT", "bot_id": "B0BOBBINBOT",
            "user": {"id": "U0ANNA00001", "team_id": "T0BOBBIN01", "is_bot": false, "is_restricted": false},
        })),
        _ => Ok(json!({})),
    };
    let otherwise =
        services.otherwise.lock().unwrap_or_else(PoisonError::into_inner).get(&what).cloned();
    let mut calls = services.calls.lock().unwrap_or_else(PoisonError::into_inner);
    calls.push(Called { what, body });
    drop(calls);
    let kind = if is_aws { "application/x-amz-json-1.0" } else { "application/json" };
    let kind = [("content-type", kind)];
    if let Some((status, body)) = otherwise {
        return (status, kind, body.to_string()).into_response();
    }
    match answer {
        Ok(Value::Null) => StatusCode::OK.into_response(),
        Ok(answer) => (kind, answer.to_string()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, kind, error.to_string()).into_response(),
    }
}
