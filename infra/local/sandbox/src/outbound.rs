//! Outgoing connections of a sandbox with its own network: to ports of this machine named at the provider's start (a
//! model's), and, through an HTTP proxy, to the rest of the world except this machine. Requests to hosts with rewritten
//! headers go through [`crate::gateway`], only by TLS to the usual port or on this machine's loopback: nothing inserted
//! into a request crosses a network in the clear.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::arrivals::{ARRIVAL, Arrivals};
use crate::gateway::{Treatment, Treatments, send, serve, text_response};
use crate::limits::CONNECT_MS_MAX;
use crate::stand_in::StandIn;
use crate::tls::{ByteStream, TlsInterceptor};

/// Port of the proxy inside: below the range of the sandboxes' ports.
pub const PROXY_PORT: u16 = 19_999;
/// Host of the forwarded ports.
const LOOPBACK: &str = "127.0.0.1";
/// Tunnel port whose requests are intercepted: others may carry any protocol.
const TLS_PORT: u16 = 443;

/// Loopback ports of this machine that sandboxes reach under the same number. Some are known only once more of a stack
/// is up: all clones share the list.
#[derive(Clone, Debug, Default)]
pub struct ReachablePorts(Arc<RwLock<Vec<u16>>>);

impl ReachablePorts {
    /// Adds a port, for sandboxes started from now on.
    pub fn add(&self, port: u16) {
        let mut ports = self.0.write().unwrap_or_else(PoisonError::into_inner);
        ports.push(port);
    }

    /// The current ports.
    #[must_use]
    pub fn all(&self) -> Vec<u16> {
        let ports = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ports.clone()
    }
}

impl FromIterator<u16> for ReachablePorts {
    fn from_iter<T: IntoIterator<Item = u16>>(ports: T) -> Self {
        Self(Arc::new(RwLock::new(ports.into_iter().collect())))
    }
}

/// Allowed outgoing traffic of a sandbox.
#[derive(Clone, Default)]
pub struct Egress {
    /// Forwarded ports.
    pub ports: ReachablePorts,
    /// A non-loopback address of this machine on which the stack listens; must not be reached.
    pub own: Option<IpAddr>,
    /// Hosts for which something on this machine stands in.
    pub stand_ins: Vec<StandIn>,
    /// Intercepts connections to hosts with rewritten headers; `None` if sandboxes share the network.
    pub(crate) interceptor: Option<Arc<TlsInterceptor>>,
}

/// Outgoing connections of one sandbox.
pub(crate) struct OutboundPolicy {
    pub(crate) egress: Egress,
    /// Treatment of its requests, by host.
    pub(crate) treatments: Treatments,
    /// Expected connections to its ports, which the sandbox makes too.
    pub(crate) arrivals: Arc<Arrivals>,
}

/// Every outgoing connection begins with its target port.
pub(crate) async fn accept(listener: UnixListener, policy: Arc<OutboundPolicy>) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(handle(stream, Arc::clone(&policy)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection out of a sandbox was not accepted");
                    return;
                }
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn handle(mut stream: UnixStream, policy: Arc<OutboundPolicy>) {
    match stream.read_u16().await {
        Ok(ARRIVAL) => policy.arrivals.take_in(stream).await,
        Ok(PROXY_PORT) => serve(stream, move |request| proxy(request, Arc::clone(&policy))).await,
        Ok(port) if policy.egress.ports.all().contains(&port) => {
            forward_to_host(stream, port, policy).await
        }
        _ => {}
    }
}

/// To a port of this machine: unchanged, unless a secret is for it.
async fn forward_to_host(mut stream: UnixStream, port: u16, policy: Arc<OutboundPolicy>) {
    let connect = async move || {
        let outer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
        // Small events must not be delayed.
        let _ = outer.set_nodelay(true);
        Some(outer)
    };
    match (policy.treatments)(LOOPBACK) {
        Treatment::Rules(_) => {}
        Treatment::Refuse => return,
        Treatment::Pass => {
            if let Some(mut outer) = connect().await {
                // Either side may hang up.
                let _ = copy_bidirectional(&mut stream, &mut outer).await;
            }
            return;
        }
    }
    let Ok(host) = format!("{LOOPBACK}:{port}").parse::<Authority>() else {
        return;
    };
    serve(stream, move |request| {
        let (policy, host, connect) = (Arc::clone(&policy), host.clone(), connect);
        async move {
            let rules = match (policy.treatments)(LOOPBACK) {
                Treatment::Rules(rules) => rules,
                Treatment::Pass => Vec::new(),
                Treatment::Refuse => return refused(),
            };
            match connect().await {
                Some(outer) => send(outer, &host, request, &rules).await,
                None => text_response(StatusCode::BAD_GATEWAY, "Nothing listens there."),
            }
        }
    })
    .await;
}

/// One proxy request (RFC 9110, 7.6 and 9.3.6): a tunnel, or a plain request to forward.
async fn proxy(mut request: Request<Incoming>, policy: Arc<OutboundPolicy>) -> Response<Body> {
    let Some(host) = request.uri().authority().cloned() else {
        return text_response(StatusCode::BAD_REQUEST, "This is a proxy: name the host.");
    };
    let rules = match (policy.treatments)(host.host()) {
        Treatment::Rules(rules) => rules,
        Treatment::Pass => Vec::new(),
        Treatment::Refuse => return refused(),
    };
    if *request.method() != Method::CONNECT {
        if !rules.is_empty() {
            return text_response(
                StatusCode::FORBIDDEN,
                "Keys are sent to this host, so only https is allowed.",
            );
        }
        return match connect(&host, 80, &policy.egress).await {
            Ok(outer) => send(outer, &host, request, &rules).await,
            Err(refused) => refused,
        };
    }
    let interceptor = policy.egress.interceptor.clone();
    let is_read = !rules.is_empty() && host.port_u16().unwrap_or(TLS_PORT) == TLS_PORT;
    if let Some(interceptor) = interceptor.filter(|_| is_read) {
        tokio::spawn(async move {
            if let Ok(inner) = hyper::upgrade::on(&mut request).await {
                intercept(TokioIo::new(inner), host, interceptor, policy).await;
            }
        });
        return Response::default();
    }
    let mut outer = match connect(&host, TLS_PORT, &policy.egress).await {
        Ok(outer) => outer,
        Err(refused) => return refused,
    };
    tokio::spawn(async move {
        if let Ok(inner) = hyper::upgrade::on(&mut request).await {
            // Either side may hang up.
            let _ = copy_bidirectional(&mut TokioIo::new(inner), &mut outer).await;
        }
    });
    Response::default()
}

/// A tunnel to a host with a secret: each request is read and forwarded.
async fn intercept<S: ByteStream>(
    inner: S,
    host: Authority,
    interceptor: Arc<TlsInterceptor>,
    policy: Arc<OutboundPolicy>,
) {
    let Some(inner) = interceptor.accept(host.host(), inner).await else {
        return;
    };
    serve(inner, move |request| {
        let (host, interceptor, policy) =
            (host.clone(), Arc::clone(&interceptor), Arc::clone(&policy));
        async move {
            let outer = match connect(&host, TLS_PORT, &policy.egress).await {
                Ok(outer) => outer,
                Err(refused) => return refused,
            };
            let rules = match (policy.treatments)(host.host()) {
                Treatment::Rules(rules) => rules,
                Treatment::Pass => Vec::new(),
                Treatment::Refuse => return refused(),
            };
            match interceptor.connect(host.host(), outer).await {
                Some(outer) => send(outer, &host, request, &rules).await,
                None => text_response(
                    StatusCode::BAD_GATEWAY,
                    "The host cannot be trusted, or did not answer.",
                ),
            }
        }
    })
    .await;
}

fn refused() -> Response<Body> {
    text_response(StatusCode::FORBIDDEN, "The sandbox may not reach this host.")
}

/// Connects to a public host, never to this machine, not even through a name that resolves to it.
async fn connect(
    authority: &Authority,
    usual: u16,
    egress: &Egress,
) -> Result<TcpStream, Response<Body>> {
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(usual);
    let own = egress.own;
    let connecting = async {
        if let Some(stand_in) = egress.stand_ins.iter().find(|one| one.host == host) {
            return TcpStream::connect(stand_in.address).await;
        }
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
        let allowed: Vec<SocketAddr> =
            found.iter().copied().filter(|at| !is_of_this_machine(at.ip(), own)).collect();
        if allowed.is_empty() && !found.is_empty() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        TcpStream::connect(allowed.as_slice()).await
    };
    match tokio::time::timeout(Duration::from_millis(CONNECT_MS_MAX), connecting).await {
        Ok(Ok(stream)) => {
            // Small events must not be delayed.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(text_response(
            StatusCode::FORBIDDEN,
            "A sandbox cannot reach the machine that it runs on.",
        )),
        _ => Err(text_response(StatusCode::BAD_GATEWAY, "The host cannot be reached.")),
    }
}

/// Loopback, unspecified and link-local addresses (a cloud's metadata service), the stack's other address, and every
/// current address of this machine: a socket can be bound to no other one.
fn is_of_this_machine(address: IpAddr, own: Option<IpAddr>) -> bool {
    let address = address.to_canonical();
    let local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.octets()[0] == 0 || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    local
        || address.is_loopback()
        || address.is_unspecified()
        || own == Some(address)
        || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_machine_addresses_are_refused() {
        let own = Some("172.17.0.1".parse().expect("an address"));
        for (address, is_own) in [
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("0.0.0.0", true),
            ("0.1.2.3", true),
            ("169.254.169.254", true),
            ("172.17.0.1", true),
            ("::1", true),
            ("::", true),
            ("::ffff:127.0.0.1", true),
            ("fe80::1", true),
            ("93.184.215.14", false),
            ("10.0.0.7", false),
            ("2606:4700::1111", false),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(is_of_this_machine(parsed, own), is_own, "{address}");
        }
    }

    #[test]
    fn own_interface_addresses_are_refused() {
        // Finds the address it would send from; nothing is sent.
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        if socket.connect("192.0.2.1:9").is_err() {
            eprintln!("SKIPPED: this machine has no network");
            return;
        }
        let own = socket.local_addr().expect("an address").ip();
        assert!(is_of_this_machine(own, None), "{own}");
    }
}
