//! The network of a sandbox that has one of its own: nothing of this machine is in it.
//!
//! Two sockets in a folder that the sandbox sees lead across. Through one the sandbox's first process takes connections of
//! previews to its ports; through the other come those that programs inside make: to the ports of this machine that were
//! named when the provider was started (a model's), and, by an HTTP proxy that its environment names, to the rest of the
//! world but for this machine itself. What is asked of hosts that a secret is for goes through [`crate::gateway`].

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::gateway::{StandIn, Stream, Swaps, Trust, ask, serve, told};
use crate::limits::CONNECT_MS_MAX;

/// Where the sandbox sees the folder.
pub(crate) const INSIDE: &str = "/run/bobbin";
/// The socket on which its first process takes connections to its ports.
pub(crate) const INWARD: &str = "in";
/// The socket on which the provider takes those that leave.
pub(crate) const OUTWARD: &str = "out";
/// The port inside at which the proxy answers: below the range from which sandboxes get theirs.
pub(crate) const PROXY_PORT: u16 = 19_999;
/// What the first process answers to a port on which somebody listens.
pub(crate) const CONNECTED: u8 = 1;
/// The variable that names the ports of this machine that are led across, with commas.
pub(crate) const PORTS_VARIABLE: &str = "BOBBIN_PORTS";

/// The variables by which programs inside find the certificates that they trust: those of OpenSSL, curl, git, Python's
/// requests, and Node and Bun.
const TRUST_VARIABLES: [&str; 5] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];
/// Those certificates, in the folder.
const TRUSTED: &str = "trusted.pem";
/// The host of the ports that are led across.
const LOOPBACK: &str = "127.0.0.1";

/// What may leave a sandbox.
#[derive(Clone, Default)]
pub(crate) struct Ways {
    /// Ports of this machine's loopback that are led across under the same number.
    pub(crate) ports: Vec<u16>,
    /// An address of this machine besides loopback at which the stack listens, and which is not to be reached.
    pub(crate) own: Option<IpAddr>,
    /// Hosts that something on this machine stands in for.
    pub(crate) stand_ins: Vec<StandIn>,
    /// By what connections to hosts that a secret is for are opened; none where sandboxes share the network.
    pub(crate) trust: Option<Arc<Trust>>,
}

/// The ways out of one sandbox.
struct Outward {
    ways: Ways,
    swaps: Swaps,
}

/// The provider's end. What goes through it ends when it is dropped.
pub(crate) struct Network {
    /// The folder outside.
    pub(crate) folder: PathBuf,
    /// The ports that are led across.
    pub(crate) ports: Vec<u16>,
    /// Whether something stands for secrets in the sandbox.
    has_secrets: bool,
    /// The folder again: a socket's path has 108 bytes at most, a folder's may have more.
    held: OwnedFd,
    _end: DropGuard,
}

impl Network {
    /// Makes the folder anew and listens for what leaves.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(
        folder: PathBuf,
        ways: &Ways,
        has_secrets: bool,
        swaps: Swaps,
        tasks: &TaskTracker,
    ) -> io::Result<Self> {
        // What the last run left there; that there is nothing is fine.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        let held = rustix::fs::open(
            &folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let listener = UnixListener::bind(below(&held, OUTWARD))?;
        if let Some(trust) = ways.trust.as_ref().filter(|_| has_secrets) {
            std::fs::write(folder.join(TRUSTED), &trust.bundle)?;
        }
        let end = CancellationToken::new();
        let ways = ways.clone();
        let ports = ways.ports.clone();
        let (ended, ways_out) = (end.clone(), Arc::new(Outward { ways, swaps }));
        tasks.spawn(async move {
            tokio::select! {
                () = accept(listener, ways_out) => {}
                () = ended.cancelled() => {}
            }
        });
        Ok(Self {
            folder,
            ports,
            has_secrets,
            held,
            _end: end.drop_guard(),
        })
    }

    /// The variables by which programs inside find their way out: those that curl, git, npm, pip and Bun read.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let own = "127.0.0.1,localhost,::1".to_owned();
        let mut pairs = Vec::new();
        for (name, value) in [
            ("http_proxy", &proxy),
            ("https_proxy", &proxy),
            ("all_proxy", &proxy),
            ("no_proxy", &own),
        ] {
            pairs.push((name.to_owned(), value.clone()));
            pairs.push((name.to_ascii_uppercase(), value.clone()));
        }
        // Node's own fetch reads them only when it is told to.
        pairs.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
        if self.has_secrets {
            let file = format!("{INSIDE}/{TRUSTED}");
            pairs.extend(TRUST_VARIABLES.map(|name| (name.to_owned(), file.clone())));
        }
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        pairs.push((PORTS_VARIABLE.to_owned(), ports.join(",")));
        pairs
    }

    /// Connects to a port inside.
    ///
    /// # Errors
    /// That nobody listens there, or that the sandbox has ended.
    pub(crate) async fn dial(&self, port: u16) -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(below(&self.held, INWARD)).await?;
        stream.write_u16(port).await?;
        match stream.read_u8().await? {
            CONNECTED => Ok(stream),
            _ => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

fn below(folder: &OwnedFd, name: &str) -> PathBuf {
    Path::new("/proc/self/fd")
        .join(folder.as_raw_fd().to_string())
        .join(name)
}

/// Every connection that leaves begins with the port that it was made to.
async fn accept(listener: UnixListener, ways: Arc<Outward>) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(leave(stream, Arc::clone(&ways)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection out of a sandbox was not taken");
                    return;
                }
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn leave(mut stream: UnixStream, ways: Arc<Outward>) {
    match stream.read_u16().await {
        Ok(PROXY_PORT) => serve(stream, move |request| pass(request, Arc::clone(&ways))).await,
        Ok(port) if ways.ways.ports.contains(&port) => across(stream, port, ways).await,
        _ => {}
    }
}

/// To a port of this machine: as it comes, unless a secret is for it.
async fn across(mut stream: UnixStream, port: u16, ways: Arc<Outward>) {
    let here = async move || {
        let outer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
        // Small events must not wait for more.
        let _ = outer.set_nodelay(true);
        Some(outer)
    };
    if (ways.swaps)(LOOPBACK).is_empty() {
        if let Some(mut outer) = here().await {
            // Either side may hang up.
            let _ = copy_bidirectional(&mut stream, &mut outer).await;
        }
        return;
    }
    let Ok(host) = format!("{LOOPBACK}:{port}").parse::<Authority>() else {
        return;
    };
    serve(stream, move |request| {
        let (ways, host, here) = (Arc::clone(&ways), host.clone(), here.clone());
        async move {
            match here().await {
                Some(outer) => ask(outer, &host, request, &(ways.swaps)(LOOPBACK)).await,
                None => told(StatusCode::BAD_GATEWAY, "Nobody listens there."),
            }
        }
    })
    .await;
}

/// One request to the proxy (RFC 9110, 7.6 and 9.3.6): a tunnel, or a plain request to pass on.
async fn pass(mut request: Request<Incoming>, ways: Arc<Outward>) -> Response<Body> {
    let Some(host) = request.uri().authority().cloned() else {
        return told(StatusCode::BAD_REQUEST, "This is a proxy: name the host.");
    };
    if *request.method() != Method::CONNECT {
        return match reach(&host, 80, &ways.ways).await {
            Ok(outer) => ask(outer, &host, request, &(ways.swaps)(host.host())).await,
            Err(refused) => refused,
        };
    }
    let trust = ways.ways.trust.clone();
    if let Some(trust) = trust.filter(|_| !(ways.swaps)(host.host()).is_empty()) {
        tokio::spawn(async move {
            if let Ok(inner) = hyper::upgrade::on(&mut request).await {
                opened(TokioIo::new(inner), host, trust, ways).await;
            }
        });
        return Response::default();
    }
    let mut outer = match reach(&host, 443, &ways.ways).await {
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

/// A tunnel to a host that a secret is for: its requests are read, and each goes on to the host.
async fn opened<S: Stream>(inner: S, host: Authority, trust: Arc<Trust>, ways: Arc<Outward>) {
    let Some(inner) = trust.open(host.host(), inner).await else {
        return;
    };
    serve(inner, move |request| {
        let (host, trust, ways) = (host.clone(), Arc::clone(&trust), Arc::clone(&ways));
        async move {
            let outer = match reach(&host, 443, &ways.ways).await {
                Ok(outer) => outer,
                Err(refused) => return refused,
            };
            match trust.close(host.host(), outer).await {
                Some(outer) => ask(outer, &host, request, &(ways.swaps)(host.host())).await,
                None => told(
                    StatusCode::BAD_GATEWAY,
                    "The host cannot be trusted, or did not answer.",
                ),
            }
        }
    })
    .await;
}

/// Connects to a host of the world, which is never this machine: not by a name that leads here either.
async fn reach(
    authority: &Authority,
    usual: u16,
    ways: &Ways,
) -> Result<TcpStream, Response<Body>> {
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(usual);
    let own = ways.own;
    let connecting = async {
        if let Some(stand_in) = ways.stand_ins.iter().find(|one| one.host == host) {
            return TcpStream::connect(stand_in.address).await;
        }
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
        let allowed: Vec<SocketAddr> = found
            .iter()
            .copied()
            .filter(|at| !is_of_this_machine(at.ip(), own))
            .collect();
        if allowed.is_empty() && !found.is_empty() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        TcpStream::connect(allowed.as_slice()).await
    };
    match tokio::time::timeout(Duration::from_millis(CONNECT_MS_MAX), connecting).await {
        Ok(Ok(stream)) => {
            // Small events must not wait for more.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(told(
            StatusCode::FORBIDDEN,
            "A sandbox does not reach the machine that it runs on.",
        )),
        _ => Err(told(StatusCode::BAD_GATEWAY, "The host cannot be reached.")),
    }
}

/// Loopback, what names no host, what a machine's cloud answers to (link-local), and where the stack listens besides.
fn is_of_this_machine(address: IpAddr, own: Option<IpAddr>) -> bool {
    let address = address.to_canonical();
    let local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.octets()[0] == 0 || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    local || address.is_loopback() || address.is_unspecified() || own == Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_this_machine_is_let_through() {
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
}
