//! The floor: what a function cannot be faster than that verifies a Discord command, sends it to a queue over TLS and
//! answers. One thread, blocking sockets, no runtime, no framework.
//!
//! For measurements only. Deliberately absent is all that makes it a product: timeouts, retries, a second service, other
//! requests, logs, and answers in case of trouble: it panics.

mod wire;

use std::env;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_adapters::secrets::Secret;
use bobbin_adapters::signing::{self, Keys, Scope, Signed};
use ed25519_dalek::{Signature, VerifyingKey};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// How far a signature's time may be from the clock, in seconds, as in the product.
const WINDOW_S: u64 = 300;
const DEFERRED: &str = r#"{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{\"type\":5}","isBase64Encoded":false}"#;

#[derive(Deserialize)]
struct Event {
    headers: Headers,
    body: String,
}

#[derive(Deserialize)]
struct Headers {
    #[serde(rename = "x-signature-ed25519")]
    signature: String,
    #[serde(rename = "x-signature-timestamp")]
    timestamp: String,
}

#[derive(Deserialize)]
struct Interaction {
    id: String,
    guild_id: String,
    channel_id: String,
    token: String,
    member: Member,
    data: Data,
}

#[derive(Deserialize)]
struct Member {
    user: User,
}

#[derive(Deserialize)]
struct User {
    id: String,
    username: String,
}

#[derive(Deserialize)]
struct Data {
    options: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    value: String,
}

/// What goes onto the queue.
#[derive(Serialize)]
struct Task<'a> {
    id: &'a str,
    guild: &'a str,
    channel: &'a str,
    token: &'a str,
    user: &'a str,
    name: &'a str,
    prompt: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessage<'a> {
    queue_url: &'a str,
    message_body: &'a str,
    message_group_id: &'a str,
    message_deduplication_id: &'a str,
}

fn main() {
    let var = |name: &str| env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let key = hex::decode(var("DISCORD_PUBLIC_KEY")).expect("hex digits");
    let key = VerifyingKey::try_from(key.as_slice()).expect("a public key");
    let mut queue = Queue {
        endpoint: var("AWS_ENDPOINT_URL"),
        url: var("MESSAGES_QUEUE_URL"),
        region: var("AWS_REGION"),
        keys: Keys {
            access_key_id: var("AWS_ACCESS_KEY_ID"),
            secret_access_key: Secret::from(var("AWS_SECRET_ACCESS_KEY")),
            session_token: Some(Secret::from(var("AWS_SESSION_TOKEN"))),
        },
        open: None,
    };
    let api = var("AWS_LAMBDA_RUNTIME_API");
    let stream = TcpStream::connect(&api).expect("the Runtime API");
    stream.set_nodelay(true).expect("a socket");
    let mut runtime = Wire::new(stream);
    let next = format!("GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nhost: {api}\r\n\r\n");
    loop {
        let event = runtime.exchange(next.as_bytes());
        let request_id = event.header("lambda-runtime-aws-request-id").to_owned();
        take(&event.body, &key, &mut queue);
        let answer = format!(
            "POST /2018-06-01/runtime/invocation/{request_id}/response HTTP/1.1\r\nhost: {api}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{DEFERRED}",
            DEFERRED.len()
        );
        assert_eq!(runtime.exchange(answer.as_bytes()).status, 202);
    }
}

fn take(event: &[u8], key: &VerifyingKey, queue: &mut Queue) {
    let event: Event = serde_json::from_slice(event).expect("an event");
    let Headers {
        signature,
        timestamp,
    } = &event.headers;
    let at: u64 = timestamp.parse().expect("a time");
    assert!(at.abs_diff(now_s()) <= WINDOW_S, "too old");
    let signature = hex::decode(signature).expect("hex digits");
    let signature = Signature::from_slice(&signature).expect("a signature");
    let signed = [timestamp.as_bytes(), event.body.as_bytes()].concat();
    key.verify_strict(&signed, &signature).expect("signed");
    let asked: Interaction = serde_json::from_str(&event.body).expect("an interaction");
    let task = Task {
        id: &asked.id,
        guild: &asked.guild_id,
        channel: &asked.channel_id,
        token: &asked.token,
        user: &asked.member.user.id,
        name: &asked.member.user.username,
        prompt: &asked.data.options[0].value,
    };
    let task = serde_json::to_string(&task).expect("plain texts");
    queue.send(&task, &format!("open:{}", asked.id), &asked.id);
}

struct Queue {
    endpoint: String,
    url: String,
    region: String,
    keys: Keys,
    open: Option<Wire<StreamOwned<ClientConnection, TcpStream>>>,
}

impl Queue {
    fn send(&mut self, message: &str, group: &str, id: &str) {
        let body = serde_json::to_string(&SendMessage {
            queue_url: &self.url,
            message_body: message,
            message_group_id: group,
            message_deduplication_id: id,
        })
        .expect("plain texts");
        let host = self.endpoint.trim_start_matches("https://");
        let date = signing::date(now_s());
        let token = self.keys.session_token.as_ref();
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("host", host),
            ("x-amz-date", date.as_str()),
            ("x-amz-security-token", token.map_or("", Secret::expose)),
            ("x-amz-target", "AmazonSQS.SendMessage"),
        ];
        let scope = Scope {
            region: &self.region,
            service: "sqs",
        };
        let request = Signed {
            method: "POST",
            path: "/",
            headers: &headers,
            body: body.as_bytes(),
        };
        let signed = signing::authorization(&self.keys, scope, &date, &request);
        let mut request = format!("POST / HTTP/1.1\r\nauthorization: {signed}\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        let open = self.open.get_or_insert_with(|| connect(host));
        assert_eq!(open.exchange(request.as_bytes()).status, 200);
    }
}

fn connect(host: &str) -> Wire<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let bundle = env::var_os("AWS_CA_BUNDLE").expect("AWS_CA_BUNDLE");
    let bundle = CertificateDer::pem_file_iter(bundle).expect("a file");
    roots.add_parsable_certificates(bundle.flatten());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = host.split(':').next().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name).expect("a host");
    let tls = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    let stream = TcpStream::connect(host).expect("the queue");
    stream.set_nodelay(true).expect("a socket");
    Wire::new(StreamOwned::new(tls, stream))
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}
