//! Invocation payloads, as `lambda_runtime` delivers them, made safe to read.
//!
//! Promised: the error for an unreadable event says where it is wrong and not what it contains, because events hold
//! people's words. A request that a stranger made unreadable is answered with 400 and is not an error of the function.
//! Nothing in a request makes it panic. Deliberately absent: the types of events, which come from `aws_lambda_events`
//! and `lambda_http`.

use std::task::{Context, Poll};

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_http::HttpAnswer;
use futures::future::{Either, Ready, ready};
use lambda_http::http::header::CONTENT_TYPE;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Body, LambdaEvent, Request, Response};
use lambda_runtime::{Diagnostic, Service};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An event, not parsed yet. Parsing is left to the function, whose errors hold nothing of it.
#[derive(Debug)]
pub struct Raw(Box<RawValue>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

impl Raw {
    /// Parses the event.
    ///
    /// # Errors
    /// It is not an event of this kind.
    pub fn read<E: DeserializeOwned>(&self) -> Result<E, Diagnostic> {
        serde_json::from_str(self.0.get()).map_err(|why| Diagnostic {
            error_type: "Bobbin.Event".to_owned(),
            error_message: format!(
                "the event cannot be read: {:?} at line {} column {}",
                why.classify(),
                why.line(),
                why.column()
            ),
        })
    }
}

/// Path given to a request that cannot be read; real paths begin with a slash.
pub const UNREADABLE: &str = "";

/// Longest accepted path: none of ours has more than forty bytes.
const PATH_BYTES_MAX: usize = 2_048;

/// Longest accepted query: that of somebody who comes back from the forge has less than two hundred.
const QUERY_BYTES_MAX: usize = 2_048;

/// A function URL request, readable or not.
#[derive(Deserialize)]
struct OfUrl {
    #[serde(rename = "requestContext")]
    _context: OfHttp,
}

#[derive(Deserialize)]
struct OfHttp {
    #[serde(rename = "http")]
    _http: IgnoredAny,
}

/// Passes the requests of a function URL (payload format 2.0) to a service of `lambda_http`.
pub struct Requests<'a, S>(Adapter<'a, Response<Body>, S>);

impl<'a, S> Requests<'a, S>
where
    S: Service<Request, Response = Response<Body>, Error = Diagnostic>,
    S::Future: Send + 'a,
{
    /// Passes requests to this service.
    pub fn to(service: S) -> Self {
        Self(Adapter::from(service))
    }
}

impl<'a, S> Service<LambdaEvent<Raw>> for Requests<'a, S>
where
    S: Service<Request, Response = Response<Body>, Error = Diagnostic>,
    S::Future: Send + 'a,
{
    type Response =
        <Adapter<'a, Response<Body>, S> as Service<LambdaEvent<LambdaRequest>>>::Response;
    type Error = Diagnostic;
    type Future = Either<
        Ready<Result<Self::Response, Diagnostic>>,
        <Adapter<'a, Response<Body>, S> as Service<LambdaEvent<LambdaRequest>>>::Future,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Diagnostic>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, event: LambdaEvent<Raw>) -> Self::Future {
        let request = match event.payload.read::<ApiGatewayV2httpRequest>() {
            Ok(request) => harmless(request),
            // Lambda's URL accepts this request, but the types of HTTP do not.
            Err(_) if event.payload.read::<OfUrl>().is_ok() => unreadable(),
            Err(foreign) => return Either::Left(ready(Err(foreign))),
        };
        let payload = LambdaRequest::ApiGatewayV2(request);
        Either::Right(self.0.call(LambdaEvent::new(payload, event.context)))
    }
}

fn unreadable() -> ApiGatewayV2httpRequest {
    let mut request = ApiGatewayV2httpRequest::default();
    request.raw_path = Some(UNREADABLE.to_owned());
    request
}

/// Removes everything that `lambda_http` would panic at. It builds an address from host, scheme, path and query, all of
/// which a stranger controls, and demands that a body declared as base64 is base64. Only the path of the address is
/// ever used, and a query of plain characters.
fn harmless(mut request: ApiGatewayV2httpRequest) -> ApiGatewayV2httpRequest {
    let is_plain = |query: &String| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~%+=&".contains(&b);
        query.len() <= QUERY_BYTES_MAX && query.bytes().all(plain)
    };
    request.raw_query_string = Some(request.raw_query_string.filter(is_plain).unwrap_or_default());
    request.headers.remove("host");
    request.request_context.domain_name = None;
    request.request_context.stage = None;
    let path = request.raw_path.take().unwrap_or_default();
    if !path.starts_with('/') || path.len() > PATH_BYTES_MAX {
        return unreadable();
    }
    request.raw_path = Some(path);
    let is_base64 = |body: &String| STANDARD.decode(body).is_ok();
    if request.is_base64_encoded && !request.body.as_ref().is_some_and(is_base64) {
        // A body that is not base64 cannot have been signed by anybody.
        request.body = None;
    }
    request
}

/// Converts the answer for `lambda_http`.
#[must_use]
pub fn answered(answer: HttpAnswer) -> Response<Body> {
    let HttpAnswer { status, content_type, body, headers } = answer;
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, content_type);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body)).unwrap_or_else(|_| Response::new(Body::Empty))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use lambda_http::{RequestExt as _, service_fn};
    use lambda_runtime::Context as Invocation;
    use serde_json::{Value, json};

    use super::*;

    /// The request that was passed on for one event, as method, path, header and body; and the answer to Lambda.
    async fn handed(event: &str) -> (Option<[String; 4]>, Result<Value, Diagnostic>) {
        let (seen, _, told) = handed_with_query(event).await;
        (seen, told)
    }

    /// The same, and the query's `state`.
    async fn handed_with_query(
        event: &str,
    ) -> (Option<[String; 4]>, Option<String>, Result<Value, Diagnostic>) {
        let seen = Arc::new(Mutex::new(None));
        let note = Arc::clone(&seen);
        let service = service_fn(move |request: Request| {
            let header = request.headers().get("x-slack-signature");
            let header = header.map(|value| value.to_str().expect("text").to_owned());
            let query = request.query_string_parameters();
            let seen = [
                request.method().to_string(),
                request.raw_http_path().to_owned(),
                header.unwrap_or_default(),
                String::from_utf8_lossy(request.body()).into_owned(),
            ];
            let state = query.first("state").map(str::to_owned);
            *note.lock().expect("whole") = Some((seen, state));
            ready(Ok::<_, Diagnostic>(answered(HttpAnswer::text(401, "no \"entry\""))))
        });
        let payload: Raw = serde_json::from_str(event).expect("JSON");
        let event = LambdaEvent::new(payload, Invocation::default());
        let told = Requests::to(service).call(event).await;
        let told = told.map(|answer| serde_json::to_value(answer).expect("JSON"));
        let (seen, state) = seen.lock().expect("whole").take().unzip();
        (seen, state.flatten(), told)
    }

    fn of_url(changes: Value) -> String {
        let mut event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/slack/commands", "rawQueryString": "a=b",
            "headers": {"x-slack-signature": "v0=1", "host": "x.lambda-url.eu-central-1.on.aws", "x-forwarded-proto": "https"},
            "requestContext": {"accountId": "anonymous", "stage": "$default", "domainName": "x.lambda-url.eu-central-1.on.aws",
                "http": {"method": "POST", "path": "/slack/commands", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
                "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1},
            "body": "a=1&b=%22", "isBase64Encoded": false,
        });
        for (name, value) in changes.as_object().expect("an object") {
            event[name] = value.clone();
        }
        event.to_string()
    }

    fn request(path: &str, body: &str) -> Option<[String; 4]> {
        Some(["POST", path, "v0=1", body].map(str::to_owned))
    }

    #[tokio::test]
    async fn function_url_events_are_translated() {
        let (seen, told) = handed(&of_url(json!({}))).await;
        assert_eq!(seen, request("/slack/commands", "a=1&b=%22"));
        let told = told.expect("an answer");
        assert_eq!(told["statusCode"], 401);
        assert_eq!(told["headers"]["content-type"], "text/plain; charset=utf-8");
        assert_eq!(
            (&told["body"], &told["isBase64Encoded"]),
            (&json!("no \"entry\""), &json!(false))
        );
        let base64 = json!({"body": "YT0x", "isBase64Encoded": true});
        assert_eq!(handed(&of_url(base64)).await.0, request("/slack/commands", "a=1"));
        let none = json!({"body": null});
        assert_eq!(handed(&of_url(none)).await.0, request("/slack/commands", ""));
    }

    #[tokio::test]
    async fn plain_query_is_passed_on() {
        for (query, state) in [
            ("code=c0de&state=ab%2B1", Some("ab+1")),
            ("code=c0de", None),
            ("state=a#b", None),
            ("state=\u{e9}", None),
            (&*format!("state={}", "x".repeat(3_000)), None),
        ] {
            let event = of_url(
                json!({"rawQueryString": query, "queryStringParameters": {"state": "other"}}),
            );
            let (seen, found, told) = handed_with_query(&event).await;
            assert!(seen.is_some() && told.is_ok(), "{query}");
            assert_eq!(found.as_deref(), state, "{query}");
        }
    }

    #[tokio::test]
    async fn bad_requests_never_fail_function() {
        for (changes, path) in [
            (json!({"rawQueryString": "q=<script>\"{}|^\u{1}"}), "/slack/commands"),
            (json!({"body": "no base64!", "isBase64Encoded": true}), "/slack/commands"),
            (json!({"rawPath": "/..//[x]:99999/%zz?#"}), "/..//[x]:99999/%zz?#"),
            (json!({"rawPath": ":99999999"}), UNREADABLE),
            (json!({"rawPath": ""}), UNREADABLE),
            (json!({"rawPath": format!("/{}", "x".repeat(70_000))}), UNREADABLE),
            (
                json!({"headers": {"host": "[", "x-forwarded-proto": "::", "x-slack-signature": "v0=1"}}),
                "/slack/commands",
            ),
            (json!({"headers": {"x-odd": "a\u{1}b"}}), UNREADABLE),
            (json!({"headers": {"no header": "b"}}), UNREADABLE),
            (json!({"requestContext": {"http": {"method": "NO METHOD"}}}), UNREADABLE),
        ] {
            let (seen, told) = handed(&of_url(changes.clone())).await;
            let seen = seen.unwrap_or_else(|| panic!("{changes} is not handed over"));
            assert_eq!(seen[1], path, "{changes}");
            assert!(told.is_ok(), "{changes}: {told:?}");
        }
    }

    #[tokio::test]
    async fn event_error_quotes_no_content() {
        let (seen, told) = handed(r#"{"Records": [{"body": "canary"}]}"#).await;
        assert_eq!(seen, None);
        let Diagnostic { error_type, error_message } = told.expect_err("refused");
        assert_eq!(error_type, "Bobbin.Event");
        assert!(
            error_message.starts_with("the event cannot be read: Data at line 1 column"),
            "{error_message}"
        );
        let raw: Raw = serde_json::from_str(r#"{"Records": "canary"}"#).expect("JSON");
        let batch = raw.read::<aws_lambda_events::sqs::SqsEvent>();
        let told = batch.expect_err("none").error_message;
        assert!(!told.contains("canary"), "{told}");
    }
}
