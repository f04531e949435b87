//! AWS on loopback behind TLS: takes messages for a queue, hands out a secret, and has an empty table. Its authority is made when it starts.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use self::certified::certified;
use crate::wire::{Request, Served};

#[path = "../../../tls/certified.rs"]
mod certified;

/// Where it says that it is.
pub const REGION: &str = "eu-central-1";
/// What the programs sign with.
pub const ACCESS_KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
/// What the programs sign with.
pub const SECRET_ACCESS_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// The endpoint.
pub struct Cloud {
    port: u16,
    authority: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    sent: u64,
    queried: u64,
    last: Option<Request>,
}

impl Cloud {
    /// Starts it; the certificate of its authority is written into `folder`.
    ///
    /// # Errors
    /// Without a port, or without a place for the certificate.
    pub fn start(folder: &Path, secret: &Value) -> io::Result<Self> {
        let (config, path) = tls(folder)?;
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let serving = Arc::clone(&seen);
        let secret = json!({ "SecretString": secret.to_string() }).to_string();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, seen) = (Arc::clone(&config), Arc::clone(&serving));
                let secret = secret.clone();
                // A client that is killed in the middle is one that has been measured.
                thread::spawn(move || serve(stream, config, &seen, &secret).ok());
            }
        });
        Ok(Self {
            port,
            authority: path,
            seen,
        })
    }

    /// The value of `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The file with the certificate of its authority.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// Messages that have come since it was asked last.
    pub fn taken(&self) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut seen.sent)
    }

    /// Queries of the table that have come since it was asked last.
    pub fn queried(&self) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut seen.queried)
    }

    /// Whether the last message was signed as AWS wants it, with a group and a deduplication id.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_last(&self) -> Result<(), String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let request = seen.last.as_ref().ok_or("no message has come")?;
        let body: Value = serde_json::from_slice(&request.body).map_err(|e| e.to_string())?;
        for field in ["MessageBody", "MessageGroupId", "MessageDeduplicationId"] {
            if body[field].as_str().is_none_or(str::is_empty) {
                return Err(format!("the message has no {field}"));
            }
        }
        let told = request.header("authorization");
        let right = signature(request).ok_or("the message is not signed")?;
        if told.ends_with(&format!("Signature={right}")) {
            Ok(())
        } else {
            Err(format!("signed as {told}, which should be {right}"))
        }
    }
}

/// What a server on loopback shows of itself. The certificate of its authority, which is made here, is written into
/// `folder`.
///
/// # Errors
/// Without a place for the certificate.
pub fn tls(folder: &Path) -> io::Result<(ServerConfig, PathBuf)> {
    let (config, authority) = certified(&["localhost"]).map_err(io::Error::other)?;
    let path = folder.join("authority.pem");
    std::fs::write(&path, authority)?;
    Ok((config, path))
}

/// The signature (version 4) that the headers which a request names should have, by AWS's own signer.
fn signature(request: &Request) -> Option<String> {
    // The signer adds these by itself.
    const OWN: [&str; 3] = ["host", "x-amz-date", "x-amz-security-token"];
    let told = request.header("authorization");
    let (_, names) = told.split_once("SignedHeaders=")?;
    let (names, _) = names.split_once(',')?;
    let headers = names.split(';').filter(|name| !OWN.contains(name));
    let headers = headers.map(|name| (name, request.header(name)));

    let date = request.header("x-amz-date");
    let (day, time) = (date.get(..8)?, date.get(9..15)?);
    let date = format!(
        "{}-{}-{}T{}:{}:{}Z",
        &day[..4],
        &day[4..6],
        &day[6..],
        &time[..2],
        &time[2..4],
        &time[4..]
    );
    let time = DateTime::from_str(&date, Format::DateTime).ok()?;
    let token = request.header("x-amz-security-token");
    let token = (!token.is_empty()).then(|| token.to_owned());
    let identity = Credentials::new(ACCESS_KEY_ID, SECRET_ACCESS_KEY, token, None, "bench").into();
    let signing = v4::SigningParams::builder()
        .identity(&identity)
        .region(REGION)
        .name("sqs")
        .time(time.try_into().ok()?)
        .settings(SigningSettings::default())
        .build()
        .ok()?
        .into();
    let address = format!("https://{}/", request.header("host"));
    let body = SignableBody::Bytes(&request.body);
    let signable = SignableRequest::new("POST", &address, headers, body).ok()?;
    let (_, signature) = sign(signable, &signing).ok()?.into_parts();
    Some(signature)
}

fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    seen: &Mutex<Seen>,
    secret: &str,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut served = Served::new(StreamOwned::new(tls, stream));
    while let Some(request) = served.request()? {
        let headers = [("content-type", "application/x-amz-json-1.0")];
        let lock = || seen.lock().unwrap_or_else(PoisonError::into_inner);
        if request.header("x-amz-target") == "AmazonSQS.SendMessage" {
            lock().sent += 1;
            // The digest is what the peer's SDK checks.
            let sent: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let body = sent["MessageBody"].as_str().unwrap_or_default();
            let told = json!({
                "MessageId": "5fea7756-0ea4-451a-a703-a558b933e274",
                "MD5OfMessageBody": format!("{:x}", md5::compute(body)),
                "SequenceNumber": "18849496460467696128",
            });
            served.answer(200, &headers, told.to_string().as_bytes())?;
            lock().last = Some(request);
        } else if request.header("x-amz-target") == "secretsmanager.GetSecretValue" {
            served.answer(200, &headers, secret.as_bytes())?;
        } else if request.header("x-amz-target") == "DynamoDB_20120810.Query" {
            lock().queried += 1;
            let nothing = br#"{"Items":[],"Count":0,"ScannedCount":0}"#;
            served.answer(200, &headers, nothing)?;
        } else {
            served.answer(400, &headers, br#"{"__type":"UnknownOperationException"}"#)?;
        }
    }
    Ok(())
}
