//! AWS's JSON services, spoken to without their SDK: three calls are all that a request in a hurry needs.
//!
//! Promised for each call: signed (see [`crate::signing`]); over TLS on ring with compiled-in roots, except to an endpoint
//! that the environment names, which may be `http`, and which on loopback may show a certificate of its own; repeated as the SDK's standard mode does, at most [`ATTEMPTS_MAX`] times; over
//! within the caller's bound; an answer of at most [`ANSWER_BYTES_MAX`]; connections are used again. Deliberately absent:
//! proxies, HTTP/2, redirects, credentials from anywhere but a function's environment (Lambda sets them for the life of
//! the process, so nothing needs a refresh).
//!
//! Every call that is made through here may be repeated: the queue knows a message by its deduplication id, and the others
//! read or set what stays the same.

mod connection;

use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::Value;

use self::connection::{Broken, Connection, Tls};
use crate::secrets::Secret;
use crate::signing::{self, Keys, Scope};

/// Requests of one call.
pub const ATTEMPTS_MAX: u32 = 3;
/// Before the second request of a call; twice that before the third. What is waited is a random part of it.
const PAUSE_MS_MAX: u64 = 200;
/// Time to connect, the handshake of TLS included.
const CONNECT_MS_MAX: u64 = 3_100;
/// Largest answer: an item of 400 KB, every character of it escaped.
pub const ANSWER_BYTES_MAX: usize = 2_500_000;
/// Connections that are kept for the next call.
const IDLE_MAX: usize = 4;
/// What to do when a call is throttled: the codes that AWS's SDKs repeat.
const THROTTLED: [&str; 12] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "RequestThrottled",
    "SlowDown",
    "PriorRequestNotComplete",
];
const TIMED_OUT: [&str; 2] = ["RequestTimeout", "RequestTimeoutException"];

/// A call that did not succeed. Holds nothing of the answer but AWS's own code and sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The service answered that it does not.
    #[error("{code}: {message}")]
    Refused {
        /// Such as `AccessDeniedException`.
        code: String,
        /// The service's sentence.
        message: String,
    },
    /// No connection, or it broke before the answer was there.
    #[error("the connection failed")]
    Connection,
    /// Whether the call had its effect is unknown.
    #[error("no answer within {0} ms")]
    Late(u64),
    /// The answer is not what the service's protocol says.
    #[error("the answer could not be read")]
    Unreadable,
}

impl CallError {
    /// The service's code, if it answered with one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}

/// A service that speaks JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// SQS.
    Queues,
    /// `DynamoDB`.
    Tables,
    /// Secrets Manager.
    Secrets,
}

impl Service {
    /// Short name, which is the start of the host's and part of the signature; prefix of its actions; media type.
    const fn facts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Queues => ("sqs", "AmazonSQS", "application/x-amz-json-1.0"),
            Self::Tables => (
                "dynamodb",
                "DynamoDB_20120810",
                "application/x-amz-json-1.0",
            ),
            Self::Secrets => (
                "secretsmanager",
                "secretsmanager",
                "application/x-amz-json-1.1",
            ),
        }
    }
}

/// One failed request, and whether another may do better.
struct Failed {
    error: CallError,
    again: Again,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// A connection that had been kept was dead, which a frozen function cannot have noticed.
    AtOnce,
    AfterAPause,
    Never,
}

/// How AWS is reached. Clones share connections.
#[derive(Debug, Clone)]
pub struct Direct(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    region: String,
    keys: Keys,
    endpoint: Option<Uri>,
    bundle: Option<PathBuf>,
    tls: OnceLock<Tls>,
    idle: Mutex<Vec<Connection>>,
}

impl Direct {
    /// From the environment of a Lambda function: `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_CA_BUNDLE`.
    ///
    /// # Errors
    /// A sentence that names the variable that is missing or wrong.
    pub fn from_environment() -> Result<Self, String> {
        let var = |name: &str| {
            env::var(name)
                .map_err(|_| format!("{name} is not set: this program runs as a Lambda function"))
        };
        let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let keys = Keys {
            access_key_id: var("AWS_ACCESS_KEY_ID")?,
            secret_access_key: Secret::from(var("AWS_SECRET_ACCESS_KEY")?),
            session_token: set("AWS_SESSION_TOKEN").map(Secret::from),
        };
        let (endpoint, bundle) = (set("AWS_ENDPOINT_URL"), set("AWS_CA_BUNDLE"));
        Self::new(
            &var("AWS_REGION")?,
            keys,
            endpoint.as_deref(),
            bundle.map(PathBuf::from),
        )
    }

    /// With these keys, at the services' own addresses or at one that stands for all of them. On loopback, and nowhere
    /// else, the certificates in the file `bundle` (PEM) are trusted too.
    ///
    /// # Errors
    /// A sentence, if the endpoint is not an address.
    pub fn new(
        region: &str,
        keys: Keys,
        endpoint: Option<&str>,
        bundle: Option<PathBuf>,
    ) -> Result<Self, String> {
        let read = |text: &str| match text.parse::<Uri>() {
            Ok(uri) if uri.authority().is_some() && uri.scheme().is_some() => Ok(uri),
            _ => Err(format!(
                "AWS_ENDPOINT_URL is {text:?}; it must be an address such as https://sqs.eu-central-1.amazonaws.com"
            )),
        };
        Ok(Self(Arc::new(Inner {
            region: region.to_owned(),
            keys,
            endpoint: endpoint.map(read).transpose()?,
            bundle,
            tls: OnceLock::new(),
            idle: Mutex::default(),
        })))
    }

    /// Performs an action and answers what the service answered, within `ms_max` milliseconds in all.
    ///
    /// # Errors
    /// [`CallError`]; whether a call that was not refused had its effect is unknown.
    pub async fn call(
        &self,
        service: Service,
        action: &str,
        request: &Value,
        ms_max: u64,
    ) -> Result<Value, CallError> {
        let body = Bytes::from(request.to_string());
        let calling = self.0.call(service, action, &body);
        match tokio::time::timeout(Duration::from_millis(ms_max), calling).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Late(ms_max)),
        }
    }
}

impl Inner {
    async fn call(&self, service: Service, action: &str, body: &Bytes) -> Result<Value, CallError> {
        let uri = self.address(service)?;
        let mut attempt = 1;
        loop {
            let failed = match self.request(&uri, service, action, body).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match failed.again {
                // As often as there are kept connections, of which each is used up by this.
                Again::AtOnce => {}
                Again::AfterAPause if attempt < ATTEMPTS_MAX => {
                    let pause_ms = chance() % (PAUSE_MS_MAX << (attempt - 1));
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    attempt += 1;
                }
                Again::AfterAPause | Again::Never => return Err(failed.error),
            }
        }
    }

    /// Where a service answers.
    fn address(&self, service: Service) -> Result<Uri, CallError> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(endpoint.clone());
        }
        let suffix = match self.region.starts_with("cn-") {
            true => "amazonaws.com.cn",
            false => "amazonaws.com",
        };
        let (name, _, _) = service.facts();
        let address = format!("https://{name}.{}.{suffix}/", self.region);
        // A region that is no part of a host name.
        address.parse().map_err(|_| CallError::Connection)
    }

    async fn request(
        &self,
        uri: &Uri,
        service: Service,
        action: &str,
        body: &Bytes,
    ) -> Result<Value, Failed> {
        let pause = |error| Failed {
            error,
            again: Again::AfterAPause,
        };
        let request = self
            .signed(uri, service, action, body)
            .ok_or_else(|| pause(CallError::Connection))?;
        let kept = self.kept(uri).await;
        let was_kept = kept.is_some();
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let tls = self.tls.get_or_init(|| Tls::new(self.bundle.as_deref()));
                let opening = Connection::open(uri, tls);
                match tokio::time::timeout(Duration::from_millis(CONNECT_MS_MAX), opening).await {
                    Ok(Ok(connection)) => connection,
                    Ok(Err(_)) | Err(_) => return Err(pause(CallError::Connection)),
                }
            }
        };
        match connection.exchange(request, ANSWER_BYTES_MAX).await {
            Ok((status, headers, body)) => {
                self.keep(connection);
                read(status, &headers, &body)
            }
            Err(Broken::TooLarge) => Err(Failed {
                error: CallError::Unreadable,
                again: Again::Never,
            }),
            Err(Broken::Lost) if was_kept => Err(Failed {
                error: CallError::Connection,
                again: Again::AtOnce,
            }),
            Err(Broken::Lost) => Err(pause(CallError::Connection)),
        }
    }

    /// The request, if all of it can be written into headers, which a region or token with a line break cannot.
    fn signed(
        &self,
        uri: &Uri,
        service: Service,
        action: &str,
        body: &Bytes,
    ) -> Option<http::Request<Full<Bytes>>> {
        let (name, prefix, media_type) = service.facts();
        let host = uri.authority()?.as_str();
        let target = format!("{prefix}.{action}");
        let at = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let date = signing::date(at.as_secs());
        let token = self.keys.session_token.as_ref().map(Secret::expose);
        let mut headers = vec![
            ("content-type", media_type),
            ("host", host),
            ("x-amz-date", date.as_str()),
        ];
        headers.extend(token.map(|token| ("x-amz-security-token", token)));
        headers.push(("x-amz-target", target.as_str()));
        // Errors are told by the codes that the queues have always had.
        if service == Service::Queues {
            headers.push(("x-amzn-query-mode", "true"));
        }
        let scope = Scope {
            region: &self.region,
            service: name,
        };
        let authorization = signing::authorization(&self.keys, scope, &date, &headers, body);
        let mut request = http::Request::post("/").header("authorization", authorization);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body.clone())).ok()
    }

    async fn kept(&self, uri: &Uri) -> Option<Connection> {
        loop {
            let mut connection = {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                let position = idle.iter().rposition(|kept| kept.leads_to(uri))?;
                idle.swap_remove(position)
            };
            if connection.is_ready().await {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }
}

/// What the service says.
fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Value, Failed> {
    let answer = serde_json::from_slice::<Value>(body);
    if status.is_success() {
        return answer.map_err(|_| Failed {
            error: CallError::Unreadable,
            again: Again::Never,
        });
    }
    let answer = answer.unwrap_or_default();
    let header = |name: &str| headers.get(name)?.to_str().ok();
    // The queues' own name of the error, else its shape.
    let code = header("x-amzn-query-error")
        .and_then(|error| error.split(';').next())
        .or_else(|| header("x-amzn-errortype"))
        .or_else(|| {
            answer["__type"]
                .as_str()
                .or_else(|| answer["code"].as_str())
        })
        .map(|code| code.rsplit('#').next().unwrap_or(code))
        .map(|code| code.split(':').next().unwrap_or(code));
    let may_pass = matches!(status.as_u16(), 500 | 502 | 503 | 504)
        || code.is_some_and(|code| THROTTLED.contains(&code) || TIMED_OUT.contains(&code));
    let message = answer["message"].as_str().or(answer["Message"].as_str());
    Err(Failed {
        error: CallError::Refused {
            code: code.unwrap_or("an error without a code").to_owned(),
            message: message.unwrap_or("no message").to_owned(),
        },
        again: match may_pass {
            true => Again::AfterAPause,
            false => Again::Never,
        },
    })
}

/// Differs from call to call; nothing depends on its being hard to guess.
fn chance() -> u64 {
    RandomState::new().hash_one(0)
}
