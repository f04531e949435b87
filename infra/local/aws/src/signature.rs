//! Authentication: requests are signed (Signature Version 4), and refused with AWS's errors.
//!
//! Signatures use the system's time, like function processes: a clock that a test advanced leaves them valid.
//! Deliberately absent: authorisation (roles), and signatures in the query string.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{self, SignableBody, SignableRequest, SigningSettings};
use aws_sigv4::sign::v4;
use axum::http::request::Parts;
use chrono::{DateTime, NaiveDateTime, Utc};
use rand::Rng as _;
use rand::distr::Alphanumeric;
use sha2::{Digest, Sha256};

use crate::limits;

/// An AWS access key.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Key id; part of each request.
    pub id: String,
    /// The secret; never part of a request.
    pub secret: String,
    /// Session token of a temporary key, part of each request.
    pub session_token: Option<String>,
}

/// The engine's keys.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineKeys {
    /// Key in the environment of functions.
    pub functions: AccessKey,
    /// Key of the operator's tools.
    pub person: AccessKey,
    /// Key of the test calls, as `Authorization: Bearer KEY`.
    pub control: String,
}

impl fmt::Debug for EngineKeys {
    /// Omits secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { functions, person, .. } = self;
        formatter
            .debug_struct("Keys")
            .field("functions", functions)
            .field("person", person)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AccessKey {
    /// Omits secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl EngineKeys {
    /// New random keys: temporary for functions, lasting for a person and for the test calls.
    #[must_use]
    pub fn generate() -> Self {
        Self {
            functions: AccessKey {
                session_token: Some(random(TOKEN_CHARACTERS)),
                ..AccessKey::generate("ASIA")
            },
            person: AccessKey::generate("AKIA"),
            control: random(SECRET_CHARACTERS),
        }
    }
}

/// Length of a secret (AWS) and of a session token.
const SECRET_CHARACTERS: usize = 40;
const TOKEN_CHARACTERS: usize = 64;
/// Length of a key id after its prefix (AWS).
const ID_CHARACTERS: usize = 16;

impl AccessKey {
    fn generate(prefix: &str) -> Self {
        Self {
            id: format!("{prefix}{}", random(ID_CHARACTERS).to_ascii_uppercase()),
            secret: random(SECRET_CHARACTERS),
            session_token: None,
        }
    }
}

fn random(count: usize) -> String {
    let random = rand::rng().sample_iter(Alphanumeric);
    random.take(count).map(char::from).collect()
}

/// Why a request is refused, with AWS's message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    #[error("Request is missing Authentication Token")]
    Missing,
    #[error("{0}")]
    Incomplete(String),
    #[error("The security token included in the request is invalid.")]
    UnknownKey,
    #[error("{0}")]
    Mismatch(String),
}

impl Denied {
    fn signature() -> Self {
        Self::Mismatch(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.".to_owned(),
        )
    }

    /// Its name in the JSON protocols, and its code in the query protocol.
    pub(crate) fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Missing => ("MissingAuthenticationTokenException", "MissingAuthenticationToken"),
            Self::Incomplete(_) => ("IncompleteSignatureException", "IncompleteSignature"),
            Self::UnknownKey => ("UnrecognizedClientException", "InvalidClientTokenId"),
            Self::Mismatch(_) => ("InvalidSignatureException", "SignatureDoesNotMatch"),
        }
    }
}

/// The parts of an `Authorization` header.
struct AuthorizationHeader<'a> {
    key_id: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    signed: Vec<&'a str>,
    signature: &'a str,
}

impl<'a> AuthorizationHeader<'a> {
    fn read(text: &'a str) -> Result<Self, Denied> {
        let incomplete =
            |what: &str| Denied::Incomplete(format!("Authorization header requires {what}."));
        let fields = text
            .strip_prefix("AWS4-HMAC-SHA256 ")
            .ok_or_else(|| incomplete("the algorithm AWS4-HMAC-SHA256"))?;
        let field = |name: &str| {
            let mut found = fields.split(',').filter_map(|field| field.trim().split_once('='));
            found
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
                .ok_or_else(|| incomplete(&format!("'{name}' parameter")))
        };
        let scope: Vec<&str> = field("Credential")?.split('/').collect();
        let [key_id, date, region, service, "aws4_request"] = scope[..] else {
            return Err(incomplete("a credential of five parts"));
        };
        Ok(Self {
            key_id,
            date,
            region,
            service,
            signed: field("SignedHeaders")?.split(';').collect(),
            signature: field("Signature")?,
        })
    }
}

/// Accepts a request with a current signature of one of the keys, for this service (if known) and region.
///
/// # Errors
///
/// [`Denied`], with AWS's message.
pub(crate) fn verify(
    keys: &EngineKeys,
    parts: &Parts,
    body: &[u8],
    region: &str,
    service: Option<&str>,
    now: SystemTime,
) -> Result<(), Denied> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let text = header("authorization").ok_or(Denied::Missing)?;
    let authorization = AuthorizationHeader::read(text)?;
    let sent = header("x-amz-date").ok_or_else(|| {
        Denied::Incomplete(
            "Authorization header requires existence of an 'X-Amz-Date' header.".to_owned(),
        )
    })?;
    let key = [&keys.functions, &keys.person]
        .into_iter()
        .find(|key| key.id == authorization.key_id)
        .ok_or(Denied::UnknownKey)?;
    if key.session_token.as_deref() != header("x-amz-security-token") {
        return Err(Denied::UnknownKey);
    }
    check_scope(&authorization, sent, region, service)?;
    let time = check_time(sent, now)?;
    let amazons = parts.headers.keys().map(|name| name.as_str());
    let amazons = amazons.filter(|name| name.starts_with("x-amz-"));
    for name in amazons.chain(["host"]) {
        if !authorization.signed.contains(&name) {
            return Err(Denied::Mismatch(format!(
                "'{name}' must be a 'SignedHeader' in the AWS Authorization."
            )));
        }
    }
    let expected =
        signature(key, &authorization, parts, body, time).map_err(|_| Denied::signature())?;
    // Compares digests, so that timing reveals nothing about the expected signature.
    if Sha256::digest(expected) == Sha256::digest(authorization.signature) {
        Ok(())
    } else {
        Err(Denied::signature())
    }
}

fn check_scope(
    authorization: &AuthorizationHeader<'_>,
    sent: &str,
    region: &str,
    service: Option<&str>,
) -> Result<(), Denied> {
    if authorization.region != region {
        return Err(Denied::Mismatch(format!(
            "Credential should be scoped to a valid region: {region}."
        )));
    }
    if let Some(service) = service
        && authorization.service != service
    {
        return Err(Denied::Mismatch(format!(
            "Credential should be scoped to correct service: '{service}'."
        )));
    }
    if !sent.starts_with(authorization.date) {
        return Err(Denied::Mismatch(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP.".to_owned(),
        ));
    }
    Ok(())
}

fn check_time(sent: &str, now: SystemTime) -> Result<SystemTime, Denied> {
    let time = NaiveDateTime::parse_from_str(sent, FORMAT).map_err(|_| {
        Denied::Incomplete(format!("Date must be in ISO-8601 'basic format'. Got '{sent}'."))
    })?;
    let time = SystemTime::from(time.and_utc());
    let skew = Duration::from_secs(limits::SIGNATURE_SKEW_SECONDS_MAX);
    let minutes = limits::SIGNATURE_SKEW_SECONDS_MAX / 60;
    let show = |time: SystemTime| DateTime::<Utc>::from(time).format(FORMAT).to_string();
    if time + skew < now {
        return Err(Denied::Mismatch(format!(
            "Signature expired: {sent} is now earlier than {} ({} - {minutes} min.)",
            show(now - skew),
            show(now)
        )));
    }
    if time > now + skew {
        return Err(Denied::Mismatch(format!(
            "Signature not yet current: {sent} is still later than {} ({} + {minutes} min.)",
            show(now + skew),
            show(now)
        )));
    }
    Ok(time)
}

const FORMAT: &str = "%Y%m%dT%H%M%SZ";

/// The key's signature of this request, computed with AWS's own signer.
fn signature(
    key: &AccessKey,
    authorization: &AuthorizationHeader<'_>,
    parts: &Parts,
    body: &[u8],
    time: SystemTime,
) -> Result<String, Box<dyn std::error::Error>> {
    // The token is signed as an ordinary header.
    let identity = Credentials::new(&key.id, &key.secret, None, None, "local").into();
    let mut settings = SigningSettings::default();
    // Exactly the headers that the client claims to have signed.
    settings.excluded_headers = None;
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(authorization.region)
        .name(authorization.service)
        .time(time)
        .settings(settings)
        .build()?
        .into();
    let headers = parts.headers.iter().filter_map(|(name, value)| {
        let is_signed = authorization.signed.contains(&name.as_str()) && name != "x-amz-date";
        Some((name.as_str(), value.to_str().ok().filter(|_| is_signed)?))
    });
    let host = parts.headers.get("host").and_then(|host| host.to_str().ok());
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("http://{}{path}", host.unwrap_or_default());
    let request =
        SignableRequest::new(parts.method.as_str(), uri, headers, SignableBody::Bytes(body))?;
    Ok(http_request::sign(request, &parameters)?.signature().to_owned())
}
