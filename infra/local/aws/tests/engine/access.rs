//! Which calls are accepted: signatures, keys, hosts.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use axum::body::Body;
use axum::http::Request;
use bobbin_local_aws::{AccessKey, EngineKeys};
use serde_json::{Value, json};

use crate::support::{Stack, key, sdk_config, send, sign};

const LIST_TABLES: (&str, &str) = ("dynamodb", "DynamoDB_20120810.ListTables");
const LIST_QUEUES: (&str, &str) = ("sqs", "AmazonSQS.ListQueues");

/// A request of a JSON protocol, not signed yet.
fn request(stack: &Stack, target: &str) -> Request<Vec<u8>> {
    Request::post(format!("{}/", stack.engine.endpoint()))
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", target)
        .header("x-amzn-query-mode", "true")
        .body(b"{}".to_vec())
        .unwrap()
}

fn signed(stack: &Stack, call: (&str, &str), key: &AccessKey) -> Request<Body> {
    sign(request(stack, call.1), call.0, key, SystemTime::now())
}

/// Status, type of the error and message.
async fn told(request: Request<Body>) -> (u16, String, String) {
    let (status, _, body) = send(request).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let kind = text("__type").replace("com.amazon.coral.service#", "");
    (status, kind, text("message"))
}

#[tokio::test]
async fn only_stack_keys_are_accepted() {
    let keys = EngineKeys::generate();
    let stack = Stack::start_signed(&keys).await;
    for call in [LIST_QUEUES, LIST_TABLES] {
        for known in [&keys.person, &keys.functions] {
            assert_eq!(told(signed(&stack, call, known)).await.0, 200, "{call:?} {known:?}");
        }
        let mismatch = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.";
        let unknown = "The security token included in the request is invalid.";
        let without_token = AccessKey { session_token: None, ..keys.functions.clone() };
        for (wrong, kind, message) in [
            (key(&keys.person.id, "another secret"), "InvalidSignatureException", mismatch),
            (key("AKIANOBODY", &keys.person.secret), "UnrecognizedClientException", unknown),
            (key(&keys.functions.id, &keys.person.secret), "UnrecognizedClientException", unknown),
            (without_token, "UnrecognizedClientException", unknown),
        ] {
            let expected = (400, kind.to_owned(), message.to_owned());
            assert_eq!(told(signed(&stack, call, &wrong)).await, expected);
        }
        let bare = request(&stack, call.1).map(Body::from);
        let expected = (
            400,
            "MissingAuthenticationTokenException".to_owned(),
            "Request is missing Authentication Token".to_owned(),
        );
        assert_eq!(told(bare).await, expected);
    }
}

#[tokio::test]
async fn signature_covers_request_for_five_minutes() {
    let keys = EngineKeys::generate();
    let stack = Stack::start_signed(&keys).await;
    let sign =
        |service: &str, time| sign(request(&stack, LIST_QUEUES.1), service, &keys.person, time);
    let now = SystemTime::now();
    let minutes = |count: u64| Duration::from_secs(60 * count);
    for fine in [now - minutes(4), now + minutes(4)] {
        assert_eq!(told(sign("sqs", fine)).await.0, 200);
    }
    // The clock of queues and schedules is another one.
    stack.advance(3600);
    assert_eq!(told(sign("sqs", SystemTime::now())).await.0, 200);

    let refused = async |request, message: &str| {
        let (status, kind, said) = told(request).await;
        assert_eq!((status, kind.as_str()), (400, "InvalidSignatureException"), "{said}");
        assert!(said.contains(message), "{said}");
    };
    refused(sign("sqs", now - minutes(6)), "Signature expired: ").await;
    refused(sign("sqs", now + minutes(6)), "Signature not yet current: ").await;
    refused(sign("dynamodb", now), "Credential should be scoped to correct service: 'sqs'.").await;

    let mut other_body = sign("sqs", now);
    *other_body.body_mut() = Body::from(r#"{"MaxResults":5}"#);
    refused(other_body, "does not match").await;
    let mut other_call = sign("sqs", now);
    let target = "AmazonSQS.CreateQueue".parse().unwrap();
    other_call.headers_mut().insert("x-amz-target", target);
    refused(other_call, "does not match").await;
    let mut unsigned = sign("sqs", now);
    unsigned.headers_mut().insert("x-amz-more", "1".parse().unwrap());
    refused(unsigned, "'x-amz-more' must be a 'SignedHeader'").await;
    let mut other_region = sign("sqs", now);
    let header = other_region.headers()["authorization"].to_str().unwrap();
    let header = header.replace("us-east-1", "eu-west-1").parse().unwrap();
    other_region.headers_mut().insert("authorization", header);
    refused(other_region, "Credential should be scoped to a valid region: us-east-1.").await;
    let mut cut = sign("sqs", now);
    cut.headers_mut().insert(
        "authorization",
        "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request".parse().unwrap(),
    );
    assert_eq!(
        told(cut).await,
        (
            400,
            "IncompleteSignatureException".to_owned(),
            "Authorization header requires 'SignedHeaders' parameter.".to_owned()
        )
    );
}

#[tokio::test]
async fn refusals_use_each_protocols_error_format() {
    let stack = Stack::start_signed(&EngineKeys::generate()).await;
    let endpoint = stack.engine.endpoint();
    let sqs = request(&stack, LIST_QUEUES.1).map(Body::from);
    let (_, headers, _) = send(sqs).await;
    assert_eq!(headers["x-amzn-query-error"], "MissingAuthenticationToken;Sender");
    assert!(headers.contains_key("x-amzn-requestid"));
    for path in ["/schedules/x", "/2015-03-31/functions/test-Echo/invocations"] {
        let bare = Request::post(format!("{endpoint}{path}")).body(Body::from("{}")).unwrap();
        let (status, headers, body) = send(bare).await;
        assert_eq!(status, 403);
        assert_eq!(headers["x-amzn-errortype"], "MissingAuthenticationTokenException");
        assert_eq!(body, br#"{"message":"Request is missing Authentication Token"}"#);
    }
    let form = Request::post(format!("{endpoint}/"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("x-amz-date", "20260101T000000Z")
        .header("authorization", "AWS4-HMAC-SHA256 Credential=AKIANOBODY/20260101/us-east-1/cloudformation/aws4_request, SignedHeaders=host;x-amz-date, Signature=0")
        .body(Body::from("Action=DescribeStacks&Version=2010-05-15"));
    let (status, _, body) = send(form.unwrap()).await;
    assert_eq!(status, 403);
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("<Code>InvalidClientTokenId</Code>"), "{body}");
}

#[tokio::test]
async fn functions_get_their_own_working_keys() {
    let keys = EngineKeys::generate();
    let stack = Stack::start_signed(&keys).await;
    let path = "/2015-03-31/functions/test-Echo/invocations";
    let ask = Request::post(format!("{}{path}", stack.engine.endpoint()));
    let ask = ask.body(json!({ "do": "environment" }).to_string().into_bytes());
    let asked = sign(ask.unwrap(), "lambda", &keys.person, SystemTime::now());
    let (status, _, body) = send(asked).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let environment: Value = serde_json::from_slice(&body).unwrap();
    let of = |name: &str| environment[name].as_str().map(str::to_owned);
    let (id, secret, token) =
        (of("AWS_ACCESS_KEY_ID"), of("AWS_SECRET_ACCESS_KEY"), of("AWS_SESSION_TOKEN"));
    assert_eq!(id.as_ref(), Some(&keys.functions.id));
    let credentials = Credentials::new(id.unwrap(), secret.unwrap(), token, None, "function");
    let sqs = aws_sdk_sqs::Client::from_conf(
        sdk_config!(aws_sdk_sqs, stack.engine.endpoint()).credentials_provider(credentials).build(),
    );
    let listed = sqs.list_queues().queue_name_prefix("test-Inbox").send().await.unwrap();
    assert_eq!(listed.queue_urls().len(), 2);
    let shown = format!("{keys:?}");
    for secret in [&keys.functions.secret, &keys.person.secret] {
        assert!(!shown.contains(secret.as_str()));
    }
}

#[tokio::test]
async fn test_calls_need_the_control_key() {
    let keys = EngineKeys::generate();
    let stack = Stack::start_signed(&keys).await;
    let clock = |authorization: String| {
        let request = Request::get(format!("{}/_bobbin/clock", stack.engine.endpoint()));
        request.header("authorization", authorization)
    };
    for (said, status) in [
        (format!("Bearer {}", keys.control), 200),
        (format!("Bearer {}", keys.person.secret), 401),
        (String::new(), 401),
    ] {
        let (answered, _, body) = send(clock(said).body(Body::empty()).unwrap()).await;
        assert_eq!(answered, status);
        if status == 401 {
            let told = String::from_utf8(body.to_vec()).unwrap();
            assert!(told.contains("control_key of the ready file"), "{told}");
        }
    }
    for (name, value) in [("host", "rebound.example:80"), ("origin", "http://rebound.example")] {
        let request = clock(format!("Bearer {}", keys.control)).header(name, value);
        let (status, _, _) = send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(status, 403, "{name}");
    }
}
