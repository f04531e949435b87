//! One signed call of a service that has no client here: an address, a signature, an answer, and what a refusal means.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use crate::account::Account;
use crate::http::{Answer, Hosts, Http};
use crate::secrets::Secret;
use crate::signing::{self, Scope, Signed};
use crate::world::now_ms;

/// Bytes of an answer: 200 outputs and 200 parameters of 4 KiB each, and their descriptions, fit; a secret has 64 KiB.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Characters of AWS's own words that an error keeps.
const MESSAGE_CHARS_MAX: usize = 400;

/// A service, as its address and its signature name it, and as people do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Service {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
}

/// A refusal in AWS's words.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &str, message: &str) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: bobbin_core::text::shorten(message.trim(), MESSAGE_CHARS_MAX),
        }
    }

    /// What it means and what to do; `action` is what the credentials would have to be allowed.
    pub(super) fn told(&self, service: Service, action: &str) -> String {
        let Self {
            status,
            code,
            message,
        } = self;
        let title = service.title;
        match code.as_str() {
            "AccessDenied" | "AccessDeniedException" | "UnauthorizedOperation" => {
                format!("{title} does not allow it: the credentials need {action}. ({message})")
            }
            "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => "The AWS credentials have expired: sign in again (aws sso login), or renew the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.".to_owned(),
            "InvalidClientTokenId" | "UnrecognizedClientException" | "SignatureDoesNotMatch"
            | "InvalidSignatureException" | "IncompleteSignature" => format!(
                "AWS does not know these credentials, or the clock of this machine is wrong: check AWS_PROFILE or the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. ({message})"
            ),
            "Throttling" | "ThrottlingException" => {
                format!("{title} takes no more calls just now: try again in a minute.")
            }
            code => format!("{title} answered {status} {code}: {message}"),
        }
    }
}

/// Where a service answers: one host a region, in China below another name; or one address for all of them.
pub(super) fn address(account: &Account, service: Service) -> String {
    if let Some(endpoint) = account.endpoint() {
        return format!("{}/", endpoint.trim_end_matches('/'));
    }
    let region = account.region();
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("https://{}.{region}.amazonaws.com{suffix}/", service.name)
}

/// Posts a body, signed.
pub(super) async fn post(
    account: &Account,
    service: Service,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Answer, String> {
    let address = address(account, service);
    let http = Http::new(&address, Hosts::Named(Vec::new())).map_err(|e| e.to_string())?;
    let http = http.with_body_bytes_max(ANSWER_BYTES_MAX);
    let mut request = http
        .request(Method::POST, &address)
        .map_err(|e| e.to_string())?;
    let signed = signature(account, service, &address, headers, &body).await?;
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    for (name, value) in signed {
        request = request.header(name, value);
    }
    let region = account.region();
    let sent = http.send(request.body(body)).await;
    sent.map_err(|e| {
        format!(
            "{} did not answer: {e}. Check the network and AWS_REGION ({region}).",
            service.title
        )
    })
}

/// A call of the JSON protocol: its answer, or the refusal in AWS's words.
pub(super) async fn json(
    account: &Account,
    service: Service,
    kind: &str,
    target: &str,
    body: &Value,
) -> Result<Result<Value, Refusal>, String> {
    let headers = [(CONTENT_TYPE.as_str(), kind), ("x-amz-target", target)];
    let answer = post(account, service, &headers, body.to_string()).await?;
    let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
    match (answer.ok(), said) {
        (true, Some(said)) => Ok(Ok(said)),
        (false, Some(said)) => {
            let kind = said["__type"].as_str().unwrap_or_default();
            let code = kind.rsplit('#').next().unwrap_or_default();
            let message = said["message"].as_str().or(said["Message"].as_str());
            let message = message.unwrap_or("no reason given");
            Ok(Err(Refusal::new(answer.status, code, message)))
        }
        (_, None) => Err(unreadable(account, service, answer.status)),
    }
}

pub(super) fn unreadable(account: &Account, service: Service, status: u16) -> String {
    format!(
        "What answered at {} (status {status}) is not {}: check AWS_ENDPOINT_URL and AWS_REGION.",
        address(account, service),
        service.title
    )
}

/// The headers that sign the call.
async fn signature(
    account: &Account,
    service: Service,
    address: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Vec<(&'static str, String)>, String> {
    let keys = account.keys().await?;
    let token = keys.session_token.as_ref().map(Secret::expose);
    let scope = Scope {
        region: account.region(),
        service: service.name,
    };
    let date = signing::date(now_ms() / 1_000);
    let host = authority(address);
    let mut signed = headers.to_vec();
    signed.extend([("host", host.as_str()), ("x-amz-date", &date)]);
    signed.extend(token.map(|token| ("x-amz-security-token", token)));
    signed.sort_unstable();
    let request = Signed {
        method: "POST",
        path: "/",
        headers: &signed,
        body: body.as_bytes(),
    };
    let authorization = signing::authorization(&keys, scope, &date, &request);
    let mut own = vec![
        ("authorization", authorization),
        ("x-amz-date", date.clone()),
    ];
    own.extend(token.map(|token| ("x-amz-security-token", token.to_owned())));
    Ok(own)
}

/// What the header `host` holds for an address.
fn authority(address: &str) -> String {
    let rest = address.split("://").nth(1).unwrap_or(address);
    rest.split('/').next().unwrap_or_default().to_owned()
}
