#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};

use super::*;

const STACK: &str = r#"<?xml version="1.0"?>
<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
  <DescribeStacksResult>
<Stacks>
  <member>
    <StackName>bobbin</StackName>
    <StackStatus>UPDATE_COMPLETE</StackStatus>
    <Parameters>
      <member><ParameterKey>Model</ParameterKey><ParameterValue>a/b</ParameterValue></member>
      <member><ParameterKey>Empty</ParameterKey><ParameterValue/></member>
    </Parameters>
    <Outputs>
      <member>
        <Description>Not looked at</Description>
        <OutputKey>IngressAddress</OutputKey>
        <OutputValue>https://x.lambda-url.eu-central-1.on.aws/?a=1&amp;b=2</OutputValue>
      </member>
    </Outputs>
  </member>
</Stacks>
  </DescribeStacksResult>
</DescribeStacksResponse>"#;

struct Recorded {
    endpoint: String,
    call: Arc<Mutex<Option<(HeaderMap, String)>>>,
}

/// An endpoint that always gives the same answer, and a record of its requests.
async fn answering(status: u16, body: &str) -> Recorded {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let call: Arc<Mutex<Option<(HeaderMap, String)>>> = Arc::default();
    let (seen, body) = (Arc::clone(&call), body.to_owned());
    let answer = move |headers: HeaderMap, asked: String| {
        *seen.lock().unwrap() = Some((headers, asked));
        std::future::ready((StatusCode::from_u16(status).unwrap(), body.clone()))
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Recorded { endpoint, call }
}

async fn find(seen: &Recorded, name: &str) -> Result<Deployed, String> {
    let credentials = Credentials::new("an-id", "a-key", Some("a-token".to_owned()), None, "test");
    let aws = Aws::new("eu-central-1", credentials, Some(&seen.endpoint));
    Deployed::find_in(aws?, name).await
}

#[tokio::test]
async fn stack_is_found_by_signed_call() {
    let seen = answering(200, STACK).await;
    let found = find(&seen, "bobbin & co").await.unwrap();
    assert_eq!((found.name(), found.status()), ("bobbin", "UPDATE_COMPLETE"));
    assert_eq!(
        found.output("IngressAddress").unwrap(),
        "https://x.lambda-url.eu-central-1.on.aws/?a=1&b=2"
    );
    assert_eq!(found.parameter("Model"), Some("a/b"));
    assert_eq!(found.parameter("Empty"), Some(""));
    assert_eq!(found.parameter("Modell"), None);
    assert_eq!(
        found.output("WorkerSecretArn").unwrap_err(),
        "The stack bobbin (UPDATE_COMPLETE) has no output WorkerSecretArn: deploy the template.yaml of this version into it with sam deploy, and wait for it to be complete."
    );

    let (headers, asked) = seen.call.lock().unwrap().clone().unwrap();
    let asked: BTreeMap<_, _> = form_urlencoded::parse(asked.as_bytes()).collect();
    assert_eq!(asked["Action"], "DescribeStacks");
    assert_eq!(asked["StackName"], "bobbin & co");
    let signed = headers["authorization"].to_str().unwrap();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=an-id/"), "{signed}");
    assert!(signed.contains("/eu-central-1/cloudformation/aws4_request"), "{signed}");
    assert_eq!(headers["x-amz-security-token"], "a-token");
}

#[tokio::test]
async fn account_concurrency_is_read() {
    let account = async |status, body| {
        let stack = find(&answering(200, STACK).await, "bobbin").await.unwrap();
        let seen = answering(status, body).await;
        let credentials = Credentials::new("an-id", "a-key", None, None, "test");
        let aws = Aws::new("eu-central-1", credentials, Some(&seen.endpoint)).unwrap();
        Deployed { aws, ..stack }.concurrency().await
    };
    let settings = r#"{"AccountLimit":{"ConcurrentExecutions":10,"UnreservedConcurrentExecutions":10},"AccountUsage":{}}"#;
    assert_eq!(account(200, settings).await, Ok(10));
    let refused = r#"{"Message":"not authorized"}"#;
    let told = account(403, refused).await.unwrap_err();
    assert!(told.contains("not AWS") || told.contains("lambda:GetAccountSettings"), "{told}");
    let told = account(200, "{}").await.unwrap_err();
    assert!(told.contains("AccountLimit is missing"), "{told}");
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let error = |code: &str, message: &str| {
        format!(
            "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        )
    };
    let table = [
        (
            400,
            error("ValidationError", "Stack with id bobbin does not exist"),
            "There is no stack bobbin in eu-central-1. Deploy it first",
        ),
        (
            403,
            error("AccessDenied", "User: arn:x is not authorized"),
            "The credentials need cloudformation:DescribeStacks.",
        ),
        (
            403,
            error("ExpiredToken", "The security token is expired"),
            "have expired: sign in again",
        ),
        (403, error("InvalidClientTokenId", "The token is invalid"), "check AWS_PROFILE"),
        (
            403,
            error("SignatureDoesNotMatch", "Signature expired: is now earlier than"),
            "the clock of this machine is off by more than five minutes",
        ),
        (
            400,
            error("Throttling", "Rate exceeded"),
            "answered Throttling: Rate exceeded (status 400, request id none). Try again in a minute.",
        ),
        (500, error("InternalFailure", "Oops"), "answered InternalFailure: Oops (status 500"),
        (200, "<html>hello</html>".to_owned(), "is not AWS: check AWS_ENDPOINT_URL"),
        (200, "{}".to_owned(), "is not AWS: check AWS_ENDPOINT_URL"),
        (200, String::new(), "is not AWS: check AWS_ENDPOINT_URL"),
        (200, "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>".to_owned(), "is not AWS"),
        (502, "<html>Bad Gateway</html>".to_owned(), "status 502"),
    ];
    for (status, body, words) in table {
        let seen = answering(status, &body).await;
        let told = find(&seen, "bobbin").await.unwrap_err();
        assert!(told.contains(words), "{body}: {told}");
    }
}

#[tokio::test]
async fn connection_error_names_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let call = Arc::default();
    let told = find(&Recorded { endpoint, call }, "bobbin").await.unwrap_err();
    assert!(told.starts_with("CloudFormation at http://127.0.0.1:"), "{told}");
    assert!(told.contains("cannot be reached: ") && told.contains("refused"), "{told}");
    assert!(told.ends_with("HTTPS_PROXY and NO_PROXY."), "{told}");
}
