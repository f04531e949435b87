//! The network of a sandbox that has one of its own: nothing of this machine is in it.
//!
//! Two sockets in a folder that the sandbox sees lead across. Through one the sandbox's first process takes connections of
//! previews to its ports; through the other come those that programs inside make: to the ports of this machine that were
//! named when the provider was started (a model's), and, by an HTTP proxy that its environment names, to the rest of the
//! world but for this machine itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

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

/// What may leave a sandbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    /// Ports of this machine's loopback that are led across under the same number.
    pub(crate) ports: Vec<u16>,
    /// An address of this machine besides loopback at which the stack listens, and which is not to be reached.
    pub(crate) own: Option<IpAddr>,
}

/// The provider's end. What goes through it ends when it is dropped.
pub(crate) struct Network {
    /// The folder outside.
    pub(crate) folder: PathBuf,
    /// The ports that are led across.
    pub(crate) ports: Vec<u16>,
    /// The folder again: a socket's path has 108 bytes at most, a folder's may have more.
    held: OwnedFd,
    _end: DropGuard,
}

impl Network {
    /// Makes the folder anew and listens for what leaves.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(folder: PathBuf, ways: &Ways, tasks: &TaskTracker) -> io::Result<Self> {
        // What the last run left there; that there is nothing is fine.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        let held = rustix::fs::open(
            &folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let listener = UnixListener::bind(below(&held, OUTWARD))?;
        let end = CancellationToken::new();
        let (ended, ways_out) = (end.clone(), ways.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = accept(listener, ways_out) => {}
                () = ended.cancelled() => {}
            }
        });
        Ok(Self {
            folder,
            ports: ways.ports.clone(),
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
async fn accept(listener: UnixListener, ways: Ways) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(leave(stream, ways.clone()));
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

async fn leave(mut stream: UnixStream, ways: Ways) {
    match stream.read_u16().await {
        Ok(PROXY_PORT) => proxy(stream, ways).await,
        Ok(port) if ways.ports.contains(&port) => {
            if let Ok(mut outer) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
                // Small events must not wait for more.
                let _ = outer.set_nodelay(true);
                // Either side may hang up.
                let _ = copy_bidirectional(&mut stream, &mut outer).await;
            }
        }
        _ => {}
    }
}

async fn proxy(stream: UnixStream, ways: Ways) {
    let service = service_fn(move |request| {
        let own = ways.own;
        async move { Ok::<_, std::convert::Infallible>(pass(request, own).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A client that goes away is no matter of the provider's.
    let _ = connection.await;
}

/// One request to the proxy (RFC 9110, 7.6 and 9.3.6): a tunnel, or a plain request to pass on.
async fn pass(mut request: Request<Incoming>, own: Option<IpAddr>) -> Response<Body> {
    let Some(authority) = request.uri().authority().cloned() else {
        return told(StatusCode::BAD_REQUEST, "This is a proxy: name the host.");
    };
    let usual = if *request.method() == Method::CONNECT {
        443
    } else {
        80
    };
    let mut outer = match reach(&authority, usual, own).await {
        Ok(outer) => outer,
        Err(refused) => return refused,
    };
    if *request.method() == Method::CONNECT {
        tokio::spawn(async move {
            if let Ok(inner) = hyper::upgrade::on(&mut request).await {
                // Either side may hang up.
                let _ = copy_bidirectional(&mut TokioIo::new(inner), &mut outer).await;
            }
        });
        return Response::default();
    }
    let unreachable = || told(StatusCode::BAD_GATEWAY, "The host did not answer.");
    let Ok((mut sender, connection)) =
        hyper::client::conn::http1::handshake(TokioIo::new(outer)).await
    else {
        return unreachable();
    };
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |at| at.as_str());
    let Ok(path) = path.parse::<Uri>() else {
        return unreachable();
    };
    *request.uri_mut() = path;
    if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
        request.headers_mut().insert(header::HOST, host);
    }
    for own in [
        HeaderName::from_static("proxy-connection"),
        header::PROXY_AUTHORIZATION,
        header::CONNECTION,
    ] {
        request.headers_mut().remove(own);
    }
    match sender.send_request(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(_) => unreachable(),
    }
}

/// Connects to a host of the world, which is never this machine: not by a name that leads here either.
async fn reach(
    authority: &Authority,
    usual: u16,
    own: Option<IpAddr>,
) -> Result<TcpStream, Response<Body>> {
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(usual);
    let connecting = async {
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

fn told(status: StatusCode, words: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(words));
    *answer.status_mut() = status;
    answer
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
