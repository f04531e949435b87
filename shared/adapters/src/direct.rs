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
mod sdk;

use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode, Uri};
use hyper::body::Bytes;
use serde_json::Value;

use self::connection::{Broken, Pool};
use crate::secrets::Secret;
use crate::signing::{self, Keys, Scope};
use crate::spans;

/// Requests of one call.
pub const ATTEMPTS_MAX: u32 = 3;
/// Before the second request of a call; twice that before the third. What is waited is a random part of it.
const PAUSE_MS_MAX: u64 = 200;
/// Largest answer: an item of 400 KB, every character of it escaped.
pub const ANSWER_BYTES_MAX: usize = 2_500_000;
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
    may_pass: bool,
}

/// How AWS is reached. Clones share connections.
#[derive(Debug, Clone)]
pub struct Direct(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    region: String,
    keys: Keys,
    endpoint: Option<Uri>,
    pool: Arc<Pool>,
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
        Self::trusting(
            &var("AWS_REGION")?,
            keys,
            endpoint.as_deref(),
            bundle.map(PathBuf::from),
        )
    }

    /// With these keys, at the services' own addresses or at one that stands for all of them.
    ///
    /// # Errors
    /// A sentence, if the endpoint is not an address.
    pub fn new(region: &str, keys: Keys, endpoint: Option<&str>) -> Result<Self, String> {
        Self::trusting(region, keys, endpoint, None)
    }

    /// The same; on loopback, and nowhere else, the certificates in the file `bundle` (PEM) are trusted too.
    ///
    /// # Errors
    /// A sentence, if the endpoint is not an address.
    pub fn trusting(
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
            pool: Arc::new(Pool::new(bundle)),
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
            if !failed.may_pass || attempt == ATTEMPTS_MAX {
                return Err(failed.error);
            }
            let pause_ms = chance() % (PAUSE_MS_MAX << (attempt - 1));
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            attempt += 1;
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
        let lost = || Failed {
            error: CallError::Connection,
            may_pass: true,
        };
        let trace = spans::header();
        let request = self
            .signed(uri, service, action, body, trace.as_deref())
            .ok_or_else(lost)?;
        let exchange = self.pool.exchange(uri, request, ANSWER_BYTES_MAX);
        match exchange.await {
            Ok((status, headers, body)) => read(status, &headers, &body),
            Err(Broken::Lost) => Err(lost()),
            Err(Broken::TooLarge) => Err(unreadable()),
        }
    }

    /// The request, if all of it can be written into headers, which a region or token with a line break cannot.
    fn signed(
        &self,
        uri: &Uri,
        service: Service,
        action: &str,
        body: &Bytes,
        trace: Option<&str>,
    ) -> Option<http::Request<Bytes>> {
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
        // With it the queue's message leads from the worker's trace back to this one. Not signed: others may change it.
        if let Some(trace) = trace {
            request = request.header("x-amzn-trace-id", trace);
        }
        request.body(body.clone()).ok()
    }
}

/// What the service says.
fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Value, Failed> {
    let answer = serde_json::from_slice::<Value>(body);
    if status.is_success() {
        return answer.map_err(|_| unreadable());
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
        may_pass,
    })
}

/// An answer that another request would get again.
fn unreadable() -> Failed {
    Failed {
        error: CallError::Unreadable,
        may_pass: false,
    }
}

/// Differs from call to call; nothing depends on its being hard to guess.
fn chance() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_goes_along_and_is_not_part_of_the_signature() {
        let keys = Keys {
            access_key_id: "an-id".to_owned(),
            secret_access_key: Secret::from("a-key".to_owned()),
            session_token: None,
        };
        let direct = Direct::new("eu-central-1", keys, None).expect("valid");
        let uri = direct.0.address(Service::Queues).expect("an address");
        let body = Bytes::from_static(b"{}");
        let signed = |trace| {
            let request = direct
                .0
                .signed(&uri, Service::Queues, "SendMessage", &body, trace);
            request.expect("headers that can be written")
        };
        let with = signed(Some("Root=1-5-6;Parent=7;Sampled=1"));
        assert_eq!(
            with.headers()["x-amzn-trace-id"],
            "Root=1-5-6;Parent=7;Sampled=1"
        );
        let authorization = with.headers()["authorization"].to_str().expect("text");
        assert!(
            authorization.contains("SignedHeaders=content-type;host;x-amz-date;x-amz-target;"),
            "{authorization}"
        );
        assert!(!authorization.contains("x-amzn-trace-id"));
        assert!(!signed(None).headers().contains_key("x-amzn-trace-id"));
    }
}
