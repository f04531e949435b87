//! Outgoing HTTP for all clients, behind one guard.
//!
//! Promised for each request: rustls on ring with compiled-in roots; no redirect is followed; https only, except to
//! loopback when the client's own configured base is loopback; only hosts that the client names; no user name or
//! password in a URL; no private, link-local or otherwise special address, neither literal nor resolved from a name; a
//! bound on time and on the bytes of an answer; no error text with a URL's query or a header. Deliberately absent:
//! retries (the caller knows what a repeat means) and proxies from the environment (they would bypass the guard).
//!
//! In a container of `sam local invoke` that works against the laptop stack, loopback is the container's own. The
//! stack's loopback addresses are then reached on the host of `AWS_ENDPOINT_URL`, by the same rules.

mod answer;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub use self::answer::{HttpAnswer, sentence};
pub use reqwest::Method;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HOST, HeaderMap};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;

/// `sam local` sets it to `true` in its containers (AWS SAM developer guide, "sam local invoke").
const SAM_LOCAL: &str = "AWS_SAM_LOCAL";

/// Whether this is a container of `sam local`, by these variables.
pub fn in_sam_local(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable(SAM_LOCAL).as_deref() == Some("true")
}

/// Bound of connecting, for every client.
pub const CONNECT_MS_MAX: u64 = 10_000;
/// How long an idle connection is kept. Each sandbox is a separate host, and a caller that polls many in turn would
/// otherwise hold a few connections to each of them: a function has 1,024 descriptors (AWS Lambda quotas), and limited
/// memory.
const IDLE_MS: u64 = 15_000;
/// Default bound of a whole request.
pub const REQUEST_MS: u64 = 15_000;
/// Default bound on the bytes of an answer.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest accepted `Retry-After`.
const RETRY_AFTER_MS_MAX: u64 = 15 * 60_000;

/// An error before a complete answer. Contains no token, query or body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The guard refused the request: the configuration or a service named an address that is not allowed.
    #[error("the address {host} is not allowed: {why}")]
    Refused {
        /// Scheme and host, nothing else of the URL.
        host: String,
        /// The guard's rule that it breaks.
        why: &'static str,
    },
    /// No answer in time; whether the request had its effect is unknown.
    #[error("{host} did not answer in time")]
    Timeout {
        /// The host that was called.
        host: String,
    },
    /// The connection failed or broke; whether the request had its effect is unknown unless `unsent`.
    #[error("{host} could not be reached: {what}")]
    Transport {
        /// The host that was called.
        host: String,
        /// The innermost cause of the error.
        what: String,
        /// No connection was made, so nothing was sent.
        unsent: bool,
    },
    /// The answer exceeds the client's bound.
    #[error("{host} answered with more than {bytes_max} bytes")]
    TooLarge {
        /// The host that was called.
        host: String,
        /// The bound in bytes.
        bytes_max: usize,
    },
}

impl HttpError {
    /// Whether the request certainly did not arrive.
    #[must_use]
    pub const fn is_unsent(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Transport { unsent: true, .. })
    }
}

/// Hosts that a client may call, besides loopback if its base is loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedHosts {
    /// Exactly these names; one that starts with a dot stands for every name below it (`.slack.com`).
    Named(Vec<String>),
    /// Any public host: for addresses that an authenticated service names (Daytona's toolbox and preview hosts differ
    /// by region and cannot be listed).
    Public,
}

/// Host by which a container of `sam local invoke` reaches the loopback of its machine.
static CONTAINER_HOST: LazyLock<Option<String>> =
    LazyLock::new(|| container_host(|name| std::env::var(name).ok()));

/// Only SAM's own containers have `AWS_SAM_LOCAL`, and only for a laptop stack is the AWS endpoint plain http.
fn container_host(var: impl Fn(&str) -> Option<String>) -> Option<String> {
    if !in_sam_local(&var) {
        return None;
    }
    let endpoint = Url::parse(&var("AWS_ENDPOINT_URL")?).ok()?;
    let host = endpoint.host_str()?;
    (endpoint.scheme() == "http" && !is_loopback_host(host)).then(|| host.to_owned())
}

/// The rules for one client's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    hosts: AllowedHosts,
    loopback: bool,
    container_host: Option<String>,
}

impl Guard {
    /// `loopback`: the client's own configured base is loopback, so plain http to loopback is allowed.
    #[must_use]
    pub fn new(hosts: AllowedHosts, loopback: bool) -> Self {
        Self { hosts, loopback, container_host: CONTAINER_HOST.clone().filter(|_| loopback) }
    }

    /// The actual address for a checked one, and the host that it names, if that differs.
    fn reached(&self, mut url: Url) -> (Url, Option<String>) {
        let named = url.host_str().filter(|host| is_loopback_host(host));
        let (Some(host), Some(_)) = (&self.container_host, named) else {
            return (url, None);
        };
        let authority = url.authority().to_owned();
        match url.set_host(Some(host)) {
            Ok(()) => (url, Some(authority)),
            Err(_) => (url, None),
        }
    }

    /// Checks an address before anything is sent to it. A name's addresses are checked again when it is resolved.
    ///
    /// # Errors
    /// [`HttpError::Refused`] with the rule.
    pub fn check(&self, address: &str) -> Result<Url, HttpError> {
        let url = Url::parse(address).map_err(|_| HttpError::Refused {
            host: "(unreadable)".to_owned(),
            why: "it is not an absolute URL",
        })?;
        match self.rule(&url) {
            None => Ok(url),
            Some(why) => Err(HttpError::Refused {
                host: format!("{}://{}", url.scheme(), url.host_str().unwrap_or("")),
                why,
            }),
        }
    }

    fn rule(&self, url: &Url) -> Option<&'static str> {
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Some("it names no host");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Some("it carries a user name or password");
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Some("only https is allowed");
        }
        if is_loopback_host(host) || self.container_host.as_deref() == Some(host) {
            return (!self.loopback)
                .then_some("loopback is only for a client whose own base is loopback");
        }
        if url.scheme() != "https" {
            return Some("only https is allowed outside loopback");
        }
        if let Some(ip) = literal(host)
            && !is_public(ip)
        {
            return Some("it is a private or special address");
        }
        match &self.hosts {
            AllowedHosts::Public => None,
            AllowedHosts::Named(names) if names.iter().any(|name| covers(name, host)) => None,
            AllowedHosts::Named(_) => Some("it is not one of the hosts that this client may reach"),
        }
    }
}

/// Whether one of the names in [`AllowedHosts::Named`] stands for this host.
#[must_use]
pub fn covers(name: &str, host: &str) -> bool {
    match name.strip_prefix('.') {
        Some(_) => {
            host.len() > name.len()
                && host.to_ascii_lowercase().ends_with(&name.to_ascii_lowercase())
        }
        None => host.eq_ignore_ascii_case(name),
    }
}

fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Whether a host, without its port, is this machine.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || literal(host).is_some_and(|ip| ip.is_loopback())
}

/// Whether the address is loopback, as the laptop stack's are.
#[must_use]
pub fn is_loopback(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| url.host_str().is_some_and(is_loopback_host))
}

/// The host of an address, for [`AllowedHosts::Named`].
#[must_use]
pub fn host_of(address: &str) -> Option<String> {
    Url::parse(address).ok()?.host_str().map(str::to_owned)
}

/// Whether an address belongs to the public internet (IANA special-purpose registries).
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(a == 0
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation()
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [first, second, ..] = ip.segments();
    // Only 2000::/3 is allocated; within it, Teredo, the documentation blocks and 6to4 wrap or name other addresses.
    // IPv4-mapped addresses are outside 2000::/3 and excluded with the rest.
    (0x2000..0x4000).contains(&first)
        && first != 0x2002
        && !(first == 0x2001 && (second < 0x0200 || second == 0x0db8))
        && !(first == 0x3fff && second < 0x1000)
}

/// Resolves names and drops every address that the guard would refuse.
struct GuardedResolver {
    loopback: bool,
    container_host: Option<String>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let loopback = self.loopback && name.as_str().eq_ignore_ascii_case("localhost");
        let is_container_host = self.container_host.as_deref() == Some(name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found
                .filter(|at| {
                    if is_container_host {
                        true
                    } else if loopback {
                        at.ip().is_loopback()
                    } else {
                        is_public(at.ip())
                    }
                })
                .collect();
            if allowed.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// HTTP client of one service.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    guard: Guard,
    body_bytes_max: usize,
}

impl Http {
    /// A client whose configured base is `base`: its own host is always allowed, and loopback only if it is loopback.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base itself is not allowed.
    pub fn new(base: &str, hosts: AllowedHosts) -> Result<Self, HttpError> {
        let loopback = is_loopback(base);
        let hosts = match hosts {
            AllowedHosts::Named(mut names) => {
                names.extend(host_of(base));
                AllowedHosts::Named(names)
            }
            AllowedHosts::Public => AllowedHosts::Public,
        };
        let http = Self::guarded(Guard::new(hosts, loopback));
        http.guard.check(base)?;
        Ok(http)
    }

    /// A client without a base, under these rules.
    ///
    /// # Panics
    /// Never: the TLS parameters are constants that ring supports.
    #[must_use]
    pub fn guarded(guard: Guard) -> Self {
        Self::keeping(guard, Duration::from_millis(IDLE_MS))
    }

    /// Keeps idle connections for about this long.
    fn keeping(guard: Guard, idle: Duration) -> Self {
        let resolver = Arc::new(GuardedResolver {
            loopback: guard.loopback,
            container_host: guard.container_host.clone(),
        });
        let client = Client::builder()
            .tls_backend_preconfigured(tls())
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .dns_resolver(resolver)
            .connect_timeout(Duration::from_millis(CONNECT_MS_MAX))
            .pool_idle_timeout(idle)
            .user_agent(concat!("bobbin/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("constant TLS parameters that ring supports");
        Self { client, guard, body_bytes_max: BODY_BYTES_MAX }
    }

    /// A copy with another bound on the bytes of an answer.
    #[must_use]
    pub fn with_body_bytes_max(&self, bytes: usize) -> Self {
        Self { body_bytes_max: bytes, ..self.clone() }
    }

    /// Builds a request, if the guard allows its address. Its timeout is [`REQUEST_MS`] unless set again.
    ///
    /// # Errors
    /// [`HttpError::Refused`].
    pub fn request(&self, method: Method, address: &str) -> Result<RequestBuilder, HttpError> {
        let (url, named) = self.guard.reached(self.guard.check(address)?);
        let request = self.client.request(method, url).timeout(Duration::from_millis(REQUEST_MS));
        Ok(match named {
            Some(host) => request.header(HOST, host),
            None => request,
        })
    }

    /// Sends a request built by [`Http::request`], and reads its answer up to the bound. Every status is an answer.
    ///
    /// # Errors
    /// [`HttpError`] when there is no complete answer.
    pub async fn send(&self, request: RequestBuilder) -> Result<ReceivedAnswer, HttpError> {
        let mut response = self.open(request).await?;
        let host = host_label(response.url());
        let too_large =
            || HttpError::TooLarge { host: host.clone(), bytes_max: self.body_bytes_max };
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).map_or(true, |bytes| bytes > self.body_bytes_max) {
            return Err(too_large());
        }
        // A growing buffer doubles, and needs one and a half times its size meanwhile.
        let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        while let Some(piece) = response.chunk().await.map_err(|e| classify(e, &host))? {
            if body.len() + piece.len() > self.body_bytes_max {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(ReceivedAnswer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body,
        })
    }

    /// Sends a request and returns the answer with its body unread, for streams: their bound is the caller's.
    ///
    /// # Errors
    /// [`HttpError`] when no head of an answer came.
    pub async fn open(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        let request = request.build().map_err(|e| classify(e, "the service"))?;
        // A builder of another client could have an address that was never checked.
        self.guard.check(request.url().as_str())?;
        let host = host_label(request.url());
        self.client.execute(request).await.map_err(|e| classify(e, &host))
    }
}

/// Classifies an error of an answer that is read in pieces.
#[must_use]
pub fn broken(error: reqwest::Error) -> HttpError {
    let host = error.url().map_or_else(|| "the service".to_owned(), host_label);
    classify(error, &host)
}

fn host_label(url: &Url) -> String {
    url.host_str().unwrap_or("the service").to_owned()
}

fn classify(error: reqwest::Error, host: &str) -> HttpError {
    let error = error.without_url();
    let host = host.to_owned();
    let unsent = error.is_connect() || error.is_builder();
    if error.is_timeout() && !unsent {
        return HttpError::Timeout { host };
    }
    let mut what = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        what = inner.to_string();
        source = inner.source();
    }
    HttpError::Transport { host, what, unsent }
}

/// TLS with the compiled-in roots.
fn tls() -> rustls::ClientConfig {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A complete answer, within the bound.
#[derive(Debug, Clone)]
pub struct ReceivedAnswer {
    /// HTTP status, of any kind: only a missing answer is an error.
    pub status: u16,
    /// The headers as received.
    pub headers: HeaderMap,
    /// The body, within the client's bound.
    pub body: Vec<u8>,
}

impl ReceivedAnswer {
    /// Status 200 to 299.
    #[must_use]
    pub const fn ok(&self) -> bool {
        self.status / 100 == 2
    }

    /// The media type without parameters, in lower case; empty when absent.
    #[must_use]
    pub fn media_type(&self) -> String {
        media_type(&self.headers)
    }

    /// The body as JSON, if it is labelled so and parses as `T`.
    #[must_use]
    pub fn json<T: DeserializeOwned>(&self) -> Option<T> {
        let kind = self.media_type();
        let labelled = kind == "application/json" || kind.ends_with("+json");
        if labelled { serde_json::from_slice(&self.body).ok() } else { None }
    }

    /// The delay in `Retry-After` (or one of Daytona's headers, named after the limiter), in milliseconds, bounded.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("retry-after"))
            .filter_map(|(_, value)| value.to_str().ok()?.trim().parse::<f64>().ok())
            .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
            // A float beyond the range of u64 saturates, and the bound cuts it.
            .map(|seconds| ((seconds * 1000.0).ceil() as u64).min(RETRY_AFTER_MS_MAX))
            .max()
    }
}

/// The media type without parameters, in lower case; empty when absent.
#[must_use]
pub fn media_type(headers: &HeaderMap) -> String {
    let label = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    label.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
