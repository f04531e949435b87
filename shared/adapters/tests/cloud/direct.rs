//! Calls to AWS: what comes over the wire, what is repeated and what is not, and how each failure is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bobbin_adapters::direct::{ATTEMPTS_MAX, CallError, Direct, Service};
use bobbin_adapters::secrets::Secret;
use bobbin_adapters::signing::Keys;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{answering, silent};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
const MS_MAX: u64 = 20_000;

fn direct(endpoint: &str) -> Direct {
    over(endpoint, None)
}

fn over(endpoint: &str, bundle: Option<&std::path::Path>) -> Direct {
    let keys = Keys {
        access_key_id: "key".to_owned(),
        secret_access_key: Secret::from("canary".to_owned()),
        session_token: Some(Secret::from("token".to_owned())),
    };
    let bundle = bundle.map(std::path::Path::to_owned);
    Direct::trusting("us-east-1", keys, Some(endpoint), bundle).unwrap()
}

async fn send(direct: &Direct) -> Result<Value, CallError> {
    let request = json!({"QueueUrl": "q", "MessageBody": "b"});
    direct
        .call(Service::Queues, "SendMessage", &request, MS_MAX)
        .await
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
async fn what_a_call_sends_is_signed_and_names_the_action() {
    let (listener, endpoint) = here().await;
    let seen = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let said = request(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        said
    });
    assert_eq!(send(&direct(&endpoint)).await, Ok(json!({})));
    let said = seen.await.unwrap();
    assert!(said.starts_with("POST / HTTP/1.1\r\n"), "{said}");
    for header in [
        "x-amz-target: AmazonSQS.SendMessage\r\n",
        "content-type: application/x-amz-json-1.0\r\n",
        "x-amz-security-token: token\r\n",
        "/us-east-1/sqs/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target;x-amzn-query-mode, Signature=",
    ] {
        assert!(said.contains(header), "{header} in {said}");
    }
    assert!(!said.contains("canary"));
    assert!(
        said.ends_with(r#"{"MessageBody":"b","QueueUrl":"q"}"#),
        "{said}"
    );
}

#[tokio::test]
async fn what_may_pass_is_tried_again_a_bounded_number_of_times() {
    for (status, body) in [
        (503, "busy"),
        (500, r#"{"__type":"InternalFailure","message":"x"}"#),
        (
            400,
            r#"{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}"#,
        ),
    ] {
        let (endpoint, count) = answering(status, body).await;
        send(&direct(&endpoint)).await.unwrap_err();
        let tried = u32::try_from(count.load(Ordering::SeqCst)).unwrap();
        assert_eq!(tried, ATTEMPTS_MAX, "{status} {body}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_its_code_and_not_tried_again() {
    let body = r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"There is none."}"#;
    let (endpoint, count) = answering(400, body).await;
    let refused = send(&direct(&endpoint)).await.unwrap_err();
    assert_eq!(refused.code(), Some("QueueDoesNotExist"));
    assert_eq!(refused.to_string(), "QueueDoesNotExist: There is none.");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_not_quoted() {
    let (endpoint, _) = answering(200, "canary").await;
    let unread = send(&direct(&endpoint)).await.unwrap_err();
    assert_eq!(unread, CallError::Unreadable);
    assert_eq!(unread.to_string(), "the answer could not be read");
}

#[tokio::test]
async fn a_call_without_an_answer_is_over_in_time() {
    let (endpoint, _listener) = silent().await;
    let request = json!({});
    let direct = direct(&endpoint);
    let call = direct.call(Service::Tables, "GetItem", &request, 50);
    let late = call.await.unwrap_err();
    assert_eq!(late.to_string(), "no answer within 50 ms");
}

#[tokio::test]
async fn a_connection_is_used_again_and_one_that_died_meanwhile_costs_no_attempt() {
    let (listener, endpoint) = here().await;
    let direct = direct(&endpoint);
    let serving = tokio::spawn(async move {
        let answer = async |stream: &mut TcpStream| {
            request(stream).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
        };
        let (mut first, _) = listener.accept().await.unwrap();
        answer(&mut first).await;
        answer(&mut first).await;
        // Takes the third request and hangs up, as a service does with a connection that it gave up while the function
        // was frozen.
        request(&mut first).await;
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        answer(&mut second).await;
    });
    for _ in 0..3 {
        assert_eq!(send(&direct).await, Ok(json!({})));
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn an_endless_answer_is_not_read() {
    let (listener, endpoint) = here().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
        while stream.write_all(chunk.as_bytes()).await.is_ok() {}
    });
    assert_eq!(send(&direct(&endpoint)).await, Err(CallError::Unreadable));
}

#[tokio::test]
async fn an_endpoint_of_loopback_may_show_a_certificate_of_the_named_file_and_of_no_other() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, key).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
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
    std::fs::write(&bundle, authority.pem()).unwrap();
    let endpoint = format!("https://localhost:{port}");
    let trusting = over(&endpoint, Some(&bundle));
    assert_eq!(send(&trusting).await, Ok(json!({})));
    let careful = over(&endpoint, None);
    assert_eq!(send(&careful).await, Err(CallError::Connection));
}
