//! AWS's services that speak JSON, spoken to without their SDK: a dozen calls are all that Bobbin makes.
//!
//! Promised for each call: signed (see [`crate::signing`]) with keys that are good for it; over TLS on ring with
//! compiled-in roots, except to an endpoint that the environment names, which may be `http`, and which on loopback may
//! show a certificate of its own; over within the caller's bound; an answer of a bounded length; connections are used
//! again. What may pass is repeated as the SDK's standard mode does: at most [`ATTEMPTS_MAX`] requests, after a lost
//! connection, a status that says so or a code of throttling, with a random pause that doubles; the SDK itself had no
//! bound in time but for connecting. Deliberately absent: proxies, HTTP/2, redirects, correction of the clock, the SDK's
//! quota of repeats, and its endpoints by account.
//!
//! A call whose answer is lost may have had its effect, and is repeated: every call that is made through here is written
//! for that. The queue knows a message by its deduplication id, a write of the table has a condition or a token, and the
//! others read or set what stays the same.

mod connection;

use std::borrow::Cow;
use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::connection::{Broken, Pool};
#[cfg(feature = "deployed")]
use crate::account::Renewed;
use crate::secrets::Secret;
use crate::signing::{self, Keys, Scope, Signed};
use crate::spans;

/// Requests of one call.
pub const ATTEMPTS_MAX: u32 = 3;
/// Before the second request of a call; twice that before the third. What is waited is a random part of it.
const PAUSE_MS_MAX: u64 = 200;
/// The same after a refusal of a service that has too much to do.
const THROTTLED_PAUSE_MS_MAX: u64 = 1_000;
/// Largest answer of most services: a secret has 64 KB, ten messages 1 MB, every other character of it escaped.
pub const ANSWER_BYTES_MAX: usize = 2_500_000;
/// Largest answer of the table: a batch of 16 MB, most characters of it escaped.
pub const ITEMS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Characters of a service's own words that an error keeps.
const WORDS_CHARS_MAX: usize = 400;
/// What to do when a call is throttled: the codes that AWS's SDKs repeat.
const THROTTLED: [&str; 13] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "TransactionInProgressException",
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
        /// Of a transaction of the table: a code for each of its writes, `None` for one that was not at fault.
        reasons: Vec<String>,
    },
    /// There are no keys to sign with, or the request cannot be written down: what to do.
    #[error("{0}")]
    Unsigned(String),
    /// No connection, or it broke before the answer was there.
    #[error("the connection failed")]
    Connection,
    /// Whether the call had its effect is unknown.
    #[error("no answer within {0} ms")]
    Late(u64),
    /// The answer is not what the service's protocol says.
    #[error("the answer could not be read")]
    Unreadable,
    /// A part of what was asked for did not come, however often it was asked for.
    #[error("it answers only a part: it is throttled")]
    Partial,
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
    /// `EventBridge` Scheduler, whose calls are paths.
    Schedules,
}

impl Service {
    /// Short name, which is the start of the host's and part of the signature.
    const fn name(self) -> &'static str {
        match self {
            Self::Queues => "sqs",
            Self::Tables => "dynamodb",
            Self::Secrets => "secretsmanager",
            Self::Schedules => "scheduler",
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Queues | Self::Tables => "application/x-amz-json-1.0",
            Self::Secrets => "application/x-amz-json-1.1",
            Self::Schedules => "application/json",
        }
    }

    /// What stands before its actions' names.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Queues => "AmazonSQS",
            Self::Tables => "DynamoDB_20120810",
            Self::Secrets | Self::Schedules => self.name(),
        }
    }

    const fn answer_bytes_max(self) -> usize {
        match self {
            Self::Tables => ITEMS_BYTES_MAX,
            _ => ANSWER_BYTES_MAX,
        }
    }
}

/// A request before it is signed.
struct Ask<'a> {
    service: Service,
    method: Method,
    path: &'a str,
    /// The value of `x-amz-target`, where the action is not said by method and path.
    target: Option<String>,
    body: Bytes,
}

/// One failed request.
struct Failed {
    error: CallError,
    /// Longest pause before another that may do better; none would.
    pause_ms_max: Option<u64>,
}

impl Failed {
    const fn for_good(error: CallError) -> Self {
        Self {
            error,
            pause_ms_max: None,
        }
    }
}

/// Whose keys sign.
#[derive(Debug, Clone)]
pub(crate) enum Signer {
    /// Those of a function, which Lambda sets for the life of the process.
    Fixed(Keys),
    /// Those of a person, which may end during a long command.
    #[cfg(feature = "deployed")]
    Renewed(Renewed),
}

impl Signer {
    /// Keys that are good now.
    pub(crate) async fn keys(&self) -> Result<Cow<'_, Keys>, String> {
        match self {
            Self::Fixed(keys) => Ok(Cow::Borrowed(keys)),
            #[cfg(feature = "deployed")]
            Self::Renewed(renewed) => renewed.keys().await.map(Cow::Owned),
        }
    }
}

/// How AWS is reached. Clones share connections.
#[derive(Debug, Clone)]
pub struct Direct(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    region: String,
    signer: Signer,
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
        Self::signed_by(Signer::Fixed(keys), region, endpoint, bundle)
    }

    /// The same with keys that may change.
    pub(crate) fn signed_by(
        signer: Signer,
        region: &str,
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
            signer,
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
        self.typed(service, action, request, ms_max).await
    }

    /// The same with types of the service's protocol.
    pub(crate) async fn typed<T: DeserializeOwned>(
        &self,
        service: Service,
        action: &str,
        request: &impl Serialize,
        ms_max: u64,
    ) -> Result<T, CallError> {
        let ask = Ask {
            service,
            method: Method::POST,
            path: "/",
            target: Some(format!("{}.{action}", service.prefix())),
            body: written(request)?,
        };
        let body = self.within(&ask, ms_max).await?;
        serde_json::from_slice(&body).map_err(|_| CallError::Unreadable)
    }

    /// Performs an action that method and path (percent-encoded, without a query) say, within `ms_max` milliseconds.
    ///
    /// # Errors
    /// [`CallError`]; whether a call that was not refused had its effect is unknown.
    pub(crate) async fn rest(
        &self,
        service: Service,
        method: Method,
        path: &str,
        request: &Value,
        ms_max: u64,
    ) -> Result<Value, CallError> {
        let ask = Ask {
            service,
            method,
            path,
            target: None,
            body: written(request)?,
        };
        let body = self.within(&ask, ms_max).await?;
        serde_json::from_slice(&body).map_err(|_| CallError::Unreadable)
    }

    async fn within(&self, ask: &Ask<'_>, ms_max: u64) -> Result<Bytes, CallError> {
        match tokio::time::timeout(Duration::from_millis(ms_max), self.0.call(ask)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Late(ms_max)),
        }
    }
}

impl Inner {
    async fn call(&self, ask: &Ask<'_>) -> Result<Bytes, CallError> {
        let uri = self.address(ask.service)?;
        let mut attempt = 1;
        loop {
            let failed = match self.request(&uri, ask).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let Some(pause_ms_max) = failed.pause_ms_max.filter(|_| attempt < ATTEMPTS_MAX) else {
                return Err(failed.error);
            };
            pause(pause_ms_max, attempt).await;
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
        let address = format!("https://{}.{}.{suffix}/", service.name(), self.region);
        // A region that is no part of a host name.
        address.parse().map_err(|_| CallError::Connection)
    }

    async fn request(&self, uri: &Uri, ask: &Ask<'_>) -> Result<Bytes, Failed> {
        let keys = self.signer.keys().await;
        let keys = keys.map_err(|why| Failed::for_good(CallError::Unsigned(why)))?;
        let trace = spans::header();
        let request = self.signed(uri, ask, &keys, trace.as_deref());
        let request = request.ok_or_else(|| {
            let why = "the request cannot be written: look for a line break in the region, the keys or the token";
            Failed::for_good(CallError::Unsigned(why.to_owned()))
        })?;
        let exchange = self
            .pool
            .exchange(uri, request, ask.service.answer_bytes_max());
        match exchange.await {
            Ok((status, _, body)) if status.is_success() => Ok(body),
            Ok((status, headers, body)) => Err(refused(status, &headers, &body)),
            Err(Broken::Lost) => Err(Failed {
                error: CallError::Connection,
                pause_ms_max: Some(PAUSE_MS_MAX),
            }),
            // Another request would get it again.
            Err(Broken::TooLarge) => Err(Failed::for_good(CallError::Unreadable)),
        }
    }

    /// The request, if all of it can be written into headers, which a region or token with a line break cannot.
    fn signed(
        &self,
        uri: &Uri,
        ask: &Ask<'_>,
        keys: &Keys,
        trace: Option<&str>,
    ) -> Option<http::Request<Full<Bytes>>> {
        let host = uri.authority()?.as_str();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let date = signing::date(at.as_secs());
        let token = keys.session_token.as_ref().map(Secret::expose);
        let mut headers = vec![
            ("content-type", ask.service.media_type()),
            ("host", host),
            ("x-amz-date", date.as_str()),
        ];
        headers.extend(token.map(|token| ("x-amz-security-token", token)));
        headers.extend(ask.target.as_deref().map(|target| ("x-amz-target", target)));
        // Errors are told by the codes that the queues have always had.
        if ask.service == Service::Queues {
            headers.push(("x-amzn-query-mode", "true"));
        }
        let scope = Scope {
            region: &self.region,
            service: ask.service.name(),
        };
        let signed = Signed {
            method: ask.method.as_str(),
            path: ask.path,
            headers: &headers,
            body: &ask.body,
        };
        let authorization = signing::authorization(keys, scope, &date, &signed);
        let mut request = http::Request::builder()
            .method(&ask.method)
            .uri(ask.path)
            .header("authorization", authorization);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // With it the queue's message leads from the worker's trace back to this one. Not signed: others may change it.
        if let Some(trace) = trace {
            request = request.header("x-amzn-trace-id", trace);
        }
        request.body(Full::new(ask.body.clone())).ok()
    }
}

/// A request's body.
fn written(request: &impl Serialize) -> Result<Bytes, CallError> {
    let body = serde_json::to_vec(request);
    // What a service would not read is not sent.
    body.map(Bytes::from)
        .map_err(|e| CallError::Unsigned(format!("the request cannot be written: {e}")))
}

/// What the service says.
fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failed {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
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
    let is_one_of = |codes: &[&str]| code.is_some_and(|code| codes.contains(&code));
    let pause_ms_max = match status.as_u16() {
        _ if is_one_of(&THROTTLED) => Some(THROTTLED_PAUSE_MS_MAX),
        500 | 502 | 503 | 504 => Some(PAUSE_MS_MAX),
        _ if is_one_of(&TIMED_OUT) => Some(PAUSE_MS_MAX),
        _ => None,
    };
    let message = answer["message"].as_str().or(answer["Message"].as_str());
    let reasons = answer["CancellationReasons"].as_array();
    let reasons = reasons.iter().flat_map(|reasons| reasons.iter());
    let kept = |words: &str| bobbin_core::text::shorten(words, WORDS_CHARS_MAX);
    Failed {
        error: CallError::Refused {
            code: kept(code.unwrap_or("an error without a code")),
            message: kept(message.unwrap_or("no message")),
            reasons: reasons
                .map(|reason| kept(reason["Code"].as_str().unwrap_or_default()))
                .collect(),
        },
        pause_ms_max,
    }
}

/// Waits a random part of a time that doubles with each attempt, counted from 1.
pub(crate) async fn pause(ms_max: u64, attempt: u32) {
    let pause_ms = chance() % (ms_max << (attempt - 1));
    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
}

/// A name that no other call has. A service that is told it takes the repeats of a call for one call; a later call of the
/// same content is another one, which a name made of the content would hide.
pub(crate) fn token() -> String {
    format!("{:016x}{:016x}", chance(), chance())
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
        let direct = Direct::new("eu-central-1", keys.clone(), None).expect("valid");
        let uri = direct.0.address(Service::Queues).expect("an address");
        let ask = Ask {
            service: Service::Queues,
            method: Method::POST,
            path: "/",
            target: Some("AmazonSQS.SendMessage".to_owned()),
            body: Bytes::from_static(b"{}"),
        };
        let signed = |trace| {
            let request = direct.0.signed(&uri, &ask, &keys, trace);
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
