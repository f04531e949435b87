//! Calls to AWS: what comes over the wire, what is repeated and what is not, and how each failure is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::HeaderMap;
use bobbin_cloud::aws::{ANSWER_BYTES_MAX, ATTEMPTS_MAX, Aws};
use bobbin_cloud::queue::{QueueError, SEND_MS_MAX};
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::message::{Body, Message, Work};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use self::certified::certified;
use crate::support::{answering, aws, credentials, queues, silent};

#[path = "../../../../tests/tls/certified.rs"]
mod certified;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"MessageId\":\"m\"}";

fn sweep() -> Body {
    Body::Message(Message {
        id: "sweep-1".into(),
        thread: ThreadKey::discord("1", "2").unwrap(),
        accepted_at_ms: 1,
        work: Work::Sweep,
    })
}

async fn send(aws: &Aws) -> Result<(), QueueError> {
    queues(aws).send(&sweep()).await
}

async fn told(endpoint: &str) -> String {
    let told = send(&aws(endpoint)).await.unwrap_err().to_string();
    assert!(!told.contains("canary"), "{told}");
    told
}

/// Reads one request with its body.
async fn request(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        text.extend(&bytes[..count]);
        let said = String::from_utf8_lossy(&text).into_owned();
        if count == 0 || said.ends_with('}') {
            return said;
        }
    }
}

async fn here() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    (listener, endpoint)
}

#[tokio::test]
async fn calls_are_signed_and_name_action() {
    let (listener, endpoint) = here().await;
    let seen = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let said = request(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        said
    });
    send(&aws(&endpoint)).await.unwrap();
    let said = seen.await.unwrap();
    assert!(said.starts_with("POST / HTTP/1.1\r\n"), "{said}");
    for header in [
        "x-amz-target: AmazonSQS.SendMessage\r\n",
        "content-type: application/x-amz-json-1.0\r\n",
        "x-amz-security-token: canary-token\r\n",
        "/us-east-1/sqs/aws4_request, SignedHeaders=",
    ] {
        assert!(said.contains(header), "{header} in {said}");
    }
    assert!(!said.contains("canary\r") && !said.contains("canary\""), "{said}");
}

#[tokio::test]
async fn transient_errors_have_bounded_retries() {
    for (status, body, words) in [
        (503, "busy", "status 503"),
        (
            500,
            r#"{"__type":"InternalFailure","message":"x"}"#,
            "answered InternalFailure: x (status 500",
        ),
        (
            400,
            r#"{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}"#,
            "answered RequestThrottled: slow down",
        ),
    ] {
        let (endpoint, count) = answering(status, body).await;
        let told = told(&endpoint).await;
        assert!(told.contains(words), "{told}");
        let tried = u32::try_from(count.load(Ordering::SeqCst)).unwrap();
        assert_eq!(tried, ATTEMPTS_MAX, "{status} {body}");
    }
}

#[tokio::test]
async fn refusal_names_code_and_remedy() {
    let refusal = |code: &'static str| async move {
        let (listener, endpoint) = here().await;
        let body =
            format!(r#"{{"__type":"com.amazonaws.sqs#{code}","message":"Canonical: canary"}}"#);
        let answer = move || {
            let mut headers = HeaderMap::new();
            headers.insert("x-amzn-requestid", "f-1".parse().unwrap());
            std::future::ready((axum::http::StatusCode::BAD_REQUEST, headers, body.clone()))
        };
        let app = Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        endpoint
    };
    for (code, remedy) in [
        ("InvalidSignatureException", "this machine's clock"),
        ("UnrecognizedClientException", "this machine's clock"),
        ("ExpiredTokenException", "The credentials have expired"),
    ] {
        let told = told(&refusal(code).await).await;
        let expected = format!(
            "answered {code}: the credentials or the signature were not accepted (status 400, request id f-1). "
        );
        assert!(told.contains(&expected) && told.contains(remedy), "{told}");
    }
    for (code, remedy) in [
        ("AccessDeniedException", "The role may not do that: deploy template.yaml again"),
        ("QueueDoesNotExist", "It does not exist: deploy template.yaml"),
    ] {
        let body = r#"{"__type":"x","message":"There is none."}"#.replace('x', code);
        let (endpoint, count) = answering(400, Box::leak(body.into_boxed_str())).await;
        let told = told(&endpoint).await;
        assert!(told.contains(&format!("answered {code}: There is none. (status 400")), "{told}");
        assert!(told.contains(remedy), "{told}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn unreadable_queue_answer_is_rejected() {
    for body in ["", "{}", "<html>canary</html>", r#"{"MessageId":"#] {
        let (endpoint, _) = answering(200, body).await;
        let told = told(&endpoint).await;
        let place = format!("the answer of SQS at {endpoint} could not be read: ");
        assert!(told.contains(&place), "{body}: {told}");
    }
}

#[tokio::test]
async fn truncated_answer_is_an_error() {
    let (listener, endpoint) = here().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            request(&mut stream).await;
            stream.write_all(&OK.as_bytes()[..OK.len() - 4]).await.unwrap();
        }
    });
    let told = told(&endpoint).await;
    assert!(told.contains("SQS at http://127.0.0.1"), "{told}");
}

#[tokio::test]
async fn connection_error_names_the_address() {
    let (listener, endpoint) = here().await;
    drop(listener);
    let told = told(&endpoint).await;
    let place = format!("SQS at {endpoint} cannot be reached: ");
    assert!(told.contains(&place) && told.contains("refused"), "{told}");
}

#[tokio::test]
async fn unanswered_call_times_out() {
    let (endpoint, _listener) = silent().await;
    let told = told(&endpoint).await;
    assert!(told.contains(&format!("has not answered within {SEND_MS_MAX} ms")), "{told}");
}

#[tokio::test]
async fn dead_connection_costs_one_attempt() {
    let (listener, endpoint) = here().await;
    let aws = aws(&endpoint);
    let serving = tokio::spawn(async move {
        let answer = async |stream: &mut TcpStream| {
            request(stream).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
        };
        let (mut first, _) = listener.accept().await.unwrap();
        answer(&mut first).await;
        answer(&mut first).await;
        // Takes the third request and says nothing more, as the other end of a connection does that was given up while
        // the function was frozen.
        request(&mut first).await;
        let (mut second, _) = listener.accept().await.unwrap();
        answer(&mut second).await;
        // The fourth comes on a connection that is known to be good.
        answer(&mut second).await;
        drop(first);
    });
    let queues = queues(&aws);
    for _ in 0..4 {
        queues.send(&sweep()).await.unwrap();
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn endless_answer_is_cut_off() {
    let (listener, endpoint) = here().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            request(&mut stream).await;
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
            while stream.write_all(chunk.as_bytes()).await.is_ok() {
                count.fetch_add(0x8000, Ordering::SeqCst);
            }
        }
    });
    let told = told(&endpoint).await;
    assert!(told.contains("SQS at http://127.0.0.1"), "{told}");
    assert!(sent.load(Ordering::SeqCst) < 4 * ANSWER_BYTES_MAX);
}

#[tokio::test]
async fn loopback_tls_needs_named_bundle() {
    let (config, authority) = certified(&["localhost"]).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (listener, _) = here().await;
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // One that trusts nobody here hangs up.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            request(&mut stream).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("authority.pem");
    std::fs::write(&bundle, authority).unwrap();
    let endpoint = format!("https://localhost:{port}");
    let over = |bundle| Aws::trusting("us-east-1", credentials(), Some(&endpoint), bundle).unwrap();
    send(&over(Some(&bundle))).await.unwrap();
    let told = send(&over(None)).await.unwrap_err().to_string();
    assert!(told.contains("invalid peer certificate") && told.contains("AWS_CA_BUNDLE"), "{told}");
}
