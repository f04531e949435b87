//! One function without Lambda and without AWS: the real program, a Runtime API on loopback, and behind it services that
//! answer as empty ones would and remember what they were asked.
//!
//! Promised: a function sees what Lambda would show it (its environment and nothing else, one event at a time, a
//! deadline), and how it ends is told: as an error of its start, or by its answers. Deliberately absent: any state behind
//! the calls; tests that need it run the whole stack.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as InPath, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::binaries;
use crate::limits::{ANSWER_MS_MAX, FUNCTION_ANSWER_MS_MAX, FUNCTION_START_MS_MAX};
use crate::namespace::Namespace;

/// A call that a function made.
#[derive(Debug, Clone)]
pub struct Called {
    /// What: the target of an AWS call, or method and path.
    pub what: String,
    /// With what.
    pub body: Value,
}

/// How a function came up.
pub enum Started {
    /// It asks for work.
    Ready(Box<Function>),
    /// It ended instead.
    Refused(Refused),
}

/// How a function ended that did not start.
#[derive(Debug)]
pub struct Refused {
    /// What it told Lambda.
    pub report: Option<Value>,
    /// How its process ended.
    pub status: ExitStatus,
    /// Everything that it printed, standard error included.
    pub said: String,
}

/// A running function.
pub struct Function {
    program: Child,
    serving: JoinHandle<()>,
    events: mpsc::Sender<Value>,
    answers: mpsc::Receiver<Result<Value, Value>>,
    shared: Arc<Shared>,
    output: NamedTempFile,
}

struct Shared {
    events: AsyncMutex<mpsc::Receiver<Value>>,
    answers: mpsc::Sender<Result<Value, Value>>,
    asked: mpsc::Sender<()>,
    report: Mutex<Option<Value>>,
    calls: Mutex<Vec<Called>>,
    /// What is answered otherwise than by an empty service, by [`Called::what`].
    otherwise: Mutex<BTreeMap<String, (StatusCode, Value)>>,
    secret: Value,
    answer_ms_max: u64,
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
    /// Starts a function's program. `change` gets the environment that the template would give; `secret` is what Secrets
    /// Manager answers, whichever secret is asked for (null: it refuses).
    ///
    /// # Panics
    /// When it neither asks for work nor ends within its bound.
    pub async fn start(
        program: &str,
        secret: Value,
        change: impl FnOnce(&mut Vec<(String, String)>),
    ) -> Started {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound").to_string();
        let mut variables = environment(&format!("http://{address}"));
        variables.push(("AWS_LAMBDA_RUNTIME_API".to_owned(), address));
        for (name, value) in [
            ("AWS_LAMBDA_FUNCTION_NAME", program),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/local"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "local"),
        ] {
            variables.push((name.to_owned(), value.to_owned()));
        }
        change(&mut variables);
        let command = Command::new(binaries::folder().join(program));
        Self::launch(command, variables, listener, secret, FUNCTION_ANSWER_MS_MAX).await
    }

    /// Starts a function's program as a container of `sam local invoke` does: in a network of its own, with these
    /// variables and Lambda's, and with nothing behind it but what they lead to.
    ///
    /// # Panics
    /// As [`Function::start`].
    pub async fn start_in(
        namespace: &Namespace,
        program: &str,
        mut variables: Vec<(String, String)>,
    ) -> Started {
        let listener = TcpListener::bind((namespace.outside, 0))
            .await
            .expect("the address is this machine's");
        let address = listener.local_addr().expect("it is bound").to_string();
        variables.push(("AWS_LAMBDA_RUNTIME_API".to_owned(), address));
        let command = namespace.command(&binaries::folder().join(program));
        Self::launch(command, variables, listener, Value::Null, ANSWER_MS_MAX).await
    }

    async fn launch(
        mut command: Command,
        variables: Vec<(String, String)>,
        listener: TcpListener,
        secret: Value,
        answer_ms_max: u64,
    ) -> Started {
        let (event_sender, event_receiver) = mpsc::channel(1);
        let (answer_sender, answers) = mpsc::channel(1);
        let (asked_sender, mut asked) = mpsc::channel(1);
        let shared = Arc::new(Shared {
            events: AsyncMutex::new(event_receiver),
            answers: answer_sender,
            asked: asked_sender,
            report: Mutex::default(),
            calls: Mutex::default(),
            otherwise: Mutex::default(),
            secret,
            answer_ms_max,
        });
        let routes = routes(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.unwrap_or_default();
        });
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
        // Both at once: which of the two happens is what is asked here.
        let bound = Duration::from_millis(FUNCTION_START_MS_MAX);
        let came = timeout(bound, async {
            tokio::select! {
                _ = asked.recv() => None,
                status = program.wait() => Some(status),
            }
        });
        match came.await {
            Ok(None) => Started::Ready(Box::new(Self {
                program,
                serving,
                events: event_sender,
                answers,
                shared,
                output,
            })),
            Ok(Some(status)) => {
                serving.abort();
                let report = shared.report.lock().unwrap_or_else(PoisonError::into_inner);
                Started::Refused(Refused {
                    report: report.clone(),
                    status: status.expect("it was started here"),
                    said: read(output.path()),
                })
            }
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
        let sent = self.events.send(event.clone()).await;
        assert!(sent.is_ok(), "nobody asks for work any more");
        let ms_max = self.shared.answer_ms_max;
        match timeout(Duration::from_millis(ms_max), self.answers.recv()).await {
            Ok(Some(answer)) => answer,
            _ => panic!(
                "no answer within {ms_max} ms:\n{}",
                read(self.output.path())
            ),
        }
    }

    /// Has a call answered so from now on.
    ///
    /// # Panics
    /// When that is no status of HTTP.
    pub fn answer(&self, what: &str, status: u16, body: Value) {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        let mut otherwise = self
            .shared
            .otherwise
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        otherwise.insert(what.to_owned(), (status, body));
    }

    /// The calls that it made since this was asked last.
    #[must_use]
    pub fn calls(&self) -> Vec<Called> {
        let mut calls = self
            .shared
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *calls)
    }

    /// The lines that it has written, each as JSON.
    ///
    /// # Panics
    /// When one is none: whatever reads the log could not make it out.
    #[must_use]
    pub fn log(&self) -> Vec<Value> {
        let text = read(self.output.path());
        let json = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is no JSON: {e}"))
        };
        text.lines().map(json).collect()
    }

    /// Ends it.
    pub async fn end(mut self) {
        self.serving.abort();
        let _ = self.program.kill().await;
    }
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

fn routes(shared: Arc<Shared>) -> Router {
    let base = "/2018-06-01/runtime";
    Router::new()
        .route(&format!("{base}/invocation/next"), get(next))
        .route(
            &format!("{base}/invocation/{{id}}/response"),
            post(response),
        )
        .route(&format!("{base}/invocation/{{id}}/error"), post(error))
        .route(&format!("{base}/init/error"), post(init_error))
        .fallback(service)
        .with_state(shared)
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    let _ = shared.asked.try_send(());
    let event = shared.events.lock().await.recv().await;
    let Some(event) = event else {
        return StatusCode::GONE.into_response();
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let deadline_ms = now.unwrap_or_default().as_millis() + u128::from(shared.answer_ms_max);
    let headers = [
        ("lambda-runtime-aws-request-id", "1".to_owned()),
        ("lambda-runtime-deadline-ms", deadline_ms.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:123456789012:function:local".to_owned(),
        ),
        ("content-type", "application/json".to_owned()),
    ];
    (headers, event.to_string()).into_response()
}

async fn response(
    State(shared): State<Arc<Shared>>,
    InPath(_): InPath<String>,
    body: Bytes,
) -> StatusCode {
    let answer = serde_json::from_slice(&body).unwrap_or_default();
    let _ = shared.answers.send(Ok(answer)).await;
    StatusCode::ACCEPTED
}

async fn error(
    State(shared): State<Arc<Shared>>,
    InPath(_): InPath<String>,
    body: Bytes,
) -> StatusCode {
    let answer = serde_json::from_slice(&body).unwrap_or_default();
    let _ = shared.answers.send(Err(answer)).await;
    StatusCode::ACCEPTED
}

async fn init_error(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    let report = serde_json::from_slice(&body).ok();
    *shared.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    StatusCode::ACCEPTED
}

/// AWS, the provider and the platforms: empty, and friendly.
async fn service(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = headers
        .get("x-amz-target")
        .and_then(|name| name.to_str().ok());
    let is_aws = target.is_some();
    let what = target.map_or_else(|| format!("{method} {}", uri.path()), str::to_owned);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = match what.as_str() {
        "secretsmanager.GetSecretValue" => match &shared.secret {
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
        // The reference: "If the action is successful, the service sends back an HTTP 200 response with an empty HTTP body."
        "AmazonSQS.ChangeMessageVisibility" | "AmazonSQS.DeleteMessage" => Ok(Value::Null),
        "DynamoDB_20120810.BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            let lists: Map<String, Value> = tables
                .map(|(table, _)| (table.clone(), json!([])))
                .collect();
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
    let otherwise = shared
        .otherwise
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&what)
        .cloned();
    let mut calls = shared.calls.lock().unwrap_or_else(PoisonError::into_inner);
    calls.push(Called { what, body });
    drop(calls);
    let kind = if is_aws {
        "application/x-amz-json-1.0"
    } else {
        "application/json"
    };
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
