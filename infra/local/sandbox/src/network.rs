//! The network of a sandbox that has one of its own: nothing of this machine is in it.
//!
//! Two sockets in a folder that the sandbox sees connect the two sides. Through one the sandbox's first process takes
//! connections of previews to its ports; through the other come those that programs inside make ([`crate::outbound`]).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::gateway::Treatments;
use crate::outbound::{Egress, OutboundPolicy, PROXY_PORT, accept};

/// Where the sandbox sees the folder.
pub(crate) const INSIDE: &str = "/run/bobbin";
/// The socket on which its first process takes connections to its ports.
pub(crate) const INWARD: &str = "in";
/// The socket on which the provider takes those that leave.
pub(crate) const OUTWARD: &str = "out";
/// What the first process answers to a port on which somebody listens.
pub(crate) const CONNECTED: u8 = 1;
/// The variable that names the ports of this machine that are forwarded, with commas.
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

/// The provider's end. What goes through it ends when it is dropped.
pub(crate) struct SandboxNetwork {
    /// The folder, as this machine sees it.
    pub(crate) folder: PathBuf,
    /// The ports that are forwarded.
    pub(crate) ports: Vec<u16>,
    /// Whether programs inside trust the end that reads their requests.
    trusts: bool,
    /// The folder again: a socket's path has 108 bytes at most, a folder's may have more.
    held: OwnedFd,
    _end: DropGuard,
}

impl SandboxNetwork {
    /// Makes the folder anew and listens for what leaves.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(
        folder: PathBuf,
        egress: &Egress,
        trusts: bool,
        treatments: Treatments,
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
        if let Some(interceptor) = egress.interceptor.as_ref().filter(|_| trusts) {
            std::fs::write(folder.join(TRUSTED), &interceptor.bundle)?;
        }
        let end = CancellationToken::new();
        let egress = egress.clone();
        let ports = egress.ports.all();
        let ended = end.clone();
        let policy = Arc::new(OutboundPolicy { egress, treatments });
        tasks.spawn(async move {
            tokio::select! {
                () = accept(listener, policy) => {}
                () = ended.cancelled() => {}
            }
        });
        Ok(Self {
            folder,
            ports,
            trusts,
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
        if self.trusts {
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

/// A path by the folder's handle, which is short whatever the folder's own path is.
fn below(folder: &OwnedFd, name: &str) -> PathBuf {
    Path::new("/proc/self/fd")
        .join(folder.as_raw_fd().to_string())
        .join(name)
}
