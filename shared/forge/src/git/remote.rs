//! A repository on a server, over HTTP.

use std::ops::Deref;
use std::time::Duration;

use bobbin_core::base::secret::Secret;
use bobbin_http::{Http, HttpError, Method, broken, media_type};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, RequestBuilder, Response};
use tokio::time::timeout;

use super::error::{GitError, clean};
use super::pktline::{Packet, Packets};

/// How Bobbin names itself to a remote.
pub(super) const AGENT: &str = concat!("agent=bobbin/", env!("CARGO_PKG_VERSION"));
/// Bound of one exchange: no delivery of a function lives longer (AWS Lambda quotas).
const EXCHANGE_MS_MAX: u64 = 15 * 60_000;
/// Longest silence. A server that counts objects says something every five seconds (`uploadpack.keepAlive`), but not
/// before it has begun, and one that checks a push says nothing.
const SILENCE_MS_MAX: u64 = 120_000;
/// Most bytes of an error's page that are read.
const PAGE_BYTES_MAX: usize = 4_096;
/// Longest accepted `Retry-After`.
const RETRY_AFTER_MS_MAX: u64 = 15 * 60_000;

/// Git's two services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// `git-upload-pack`: fetching.
    Upload,
    /// `git-receive-pack`: pushing.
    Receive,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Upload => "git-upload-pack",
            Self::Receive => "git-receive-pack",
        }
    }
}

/// A repository's address, and who asks.
#[derive(Debug, Clone)]
pub struct Remote<'a> {
    /// Client that may speak to the address's host.
    pub http: &'a Http,
    /// Clone address over HTTP, without a slash at its end.
    pub address: String,
    /// User name beside the secret; many forges take any.
    pub user: &'a str,
    /// The token.
    pub secret: &'a Secret,
}

impl Remote<'_> {
    /// What the service has to offer.
    pub(super) async fn offer(
        &self,
        service: Service,
        bytes_max: u64,
    ) -> Result<Incoming, GitError> {
        let name = service.name();
        let address = format!("{}/info/refs?service={name}", self.address);
        let request = self.request(Method::GET, &address, service)?;
        Incoming::open(
            self.http,
            request,
            &format!("application/x-{name}-advertisement"),
            bytes_max,
        )
        .await
    }

    /// The service's answer to a request of this many bytes.
    pub(super) async fn ask(
        &self,
        service: Service,
        body: impl Into<Body>,
        bytes: usize,
        bytes_max: u64,
    ) -> Result<Incoming, GitError> {
        let name = service.name();
        let result = format!("application/x-{name}-result");
        let request = self
            .request(Method::POST, &format!("{}/{name}", self.address), service)?
            .header(CONTENT_TYPE, format!("application/x-{name}-request"))
            .header(CONTENT_LENGTH, bytes)
            .header(ACCEPT, &result)
            .body(body);
        Incoming::open(self.http, request, &result, bytes_max).await
    }

    fn request(
        &self,
        method: Method,
        address: &str,
        service: Service,
    ) -> Result<RequestBuilder, HttpError> {
        let request = self.http.request(method, address)?;
        let request = request
            .basic_auth(self.user, Some(self.secret.expose()))
            .timeout(Duration::from_millis(EXCHANGE_MS_MAX));
        Ok(match service {
            Service::Upload => request.header("git-protocol", "version=2"),
            Service::Receive => request,
        })
    }
}

/// An answer that is read packet by packet.
pub(super) struct Incoming {
    response: Response,
    packets: Packets,
    bytes: u64,
    bytes_max: u64,
}

impl Incoming {
    async fn open(
        http: &Http,
        request: RequestBuilder,
        kind: &str,
        bytes_max: u64,
    ) -> Result<Self, GitError> {
        let silence = Duration::from_millis(SILENCE_MS_MAX);
        let response =
            timeout(silence, http.open(request)).await.map_err(|_| GitError::Silent)??;
        if response.status().as_u16() != 200 {
            return Err(refused(response).await);
        }
        if media_type(response.headers()) != kind {
            return Err(GitError::Protocol { seen: "a page" });
        }
        Ok(Self { response, packets: Packets::default(), bytes: 0, bytes_max })
    }

    /// The next packet; `None` at the end. An `ERR` line is an error.
    pub(super) async fn next(&mut self) -> Result<Option<Packet<'_>>, GitError> {
        let found = loop {
            if let Some(found) = self.packets.find()? {
                break found;
            }
            match piece(&mut self.response).await? {
                Some(piece) => {
                    self.bytes += piece.len() as u64;
                    if self.bytes > self.bytes_max {
                        return Err(GitError::TooLarge { bytes_max: self.bytes_max });
                    }
                    self.packets.feed(&piece);
                }
                None if self.packets.is_empty() => return Ok(None),
                None => return Err(GitError::Protocol { seen: "a packet that is cut off" }),
            }
        };
        let packet = self.packets.packet(found);
        match packet {
            Packet::Data(data) if data.starts_with(b"ERR ") => Err(GitError::told(&data[4..])),
            packet => Ok(Some(packet)),
        }
    }
}

async fn piece(
    response: &mut Response,
) -> Result<Option<impl Deref<Target = [u8]> + use<>>, GitError> {
    let silence = Duration::from_millis(SILENCE_MS_MAX);
    let piece = timeout(silence, response.chunk()).await.map_err(|_| GitError::Silent)?;
    Ok(piece.map_err(broken)?)
}

/// The error of an answer with another status than 200.
async fn refused(mut response: Response) -> GitError {
    let status = response.status().as_u16();
    let after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    let after_s: u64 = after.and_then(|value| value.trim().parse().ok()).unwrap_or(0);
    let is_text = media_type(response.headers()) == "text/plain";
    let mut said = Vec::new();
    // The words decide nothing, so a connection that breaks among them is no other error.
    while is_text
        && said.len() < PAGE_BYTES_MAX
        && let Ok(Some(piece)) = piece(&mut response).await
    {
        said.extend_from_slice(&piece);
    }
    said.truncate(PAGE_BYTES_MAX);
    let after_ms = after_s.saturating_mul(1_000).min(RETRY_AFTER_MS_MAX);
    GitError::Status { status, said: clean(&said), after_ms }
}
