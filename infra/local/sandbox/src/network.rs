//! A sandbox's own network: nothing of this machine is in it.
//!
//! One socket connects the two sides. The provider listens on it, in a folder that the sandbox sees and cannot write,
//! and connects to nothing named inside: it could be a link to anywhere. The socket carries the connections that
//! programs inside make ([`crate::outbound`]), and those to ports inside, which the sandbox's first process makes on
//! request ([`Arrivals`]).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use tokio::net::UnixListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::arrivals::{Arrivals, ArrivingConnection};
use crate::gateway::Treatments;
use crate::outbound::{Egress, OutboundPolicy, PROXY_PORT, accept};

/// Path of the folder inside.
pub(crate) const INSIDE: &str = "/run/bobbin";
/// Socket of the provider.
pub(crate) const OUTWARD: &str = "out";
/// Variable with the forwarded ports of this machine, separated by commas.
pub(crate) const PORTS_VARIABLE: &str = "BOBBIN_PORTS";

/// Variables with the trusted certificates for programs inside: OpenSSL, curl, git, Python's requests, and Node and
/// Bun.
const TRUST_VARIABLES: [&str; 5] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];
/// File of those certificates in the folder.
const TRUSTED: &str = "trusted.pem";

/// The provider's end. Dropping it ends its connections.
pub(crate) struct SandboxNetwork {
    /// Path of the folder on this machine.
    pub(crate) folder: PathBuf,
    /// Forwarded ports.
    pub(crate) ports: Vec<u16>,
    /// Whether programs inside trust the interceptor's authority.
    trusts: bool,
    arrivals: Arc<Arrivals>,
    _end: DropGuard,
}

impl SandboxNetwork {
    /// Recreates the folder and listens for outgoing connections.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn open(
        folder: PathBuf,
        egress: &Egress,
        trusts: bool,
        treatments: Treatments,
        tasks: &TaskTracker,
    ) -> io::Result<Self> {
        // Leftovers of the last run; there may be none.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        // A socket's path has at most 108 bytes; a folder's may have more.
        let held = rustix::fs::open(
            &folder,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let listener = UnixListener::bind(below(&held, OUTWARD))?;
        if let Some(interceptor) = egress.interceptor.as_ref().filter(|_| trusts) {
            std::fs::write(folder.join(TRUSTED), &interceptor.bundle)?;
            open_up(&folder.join(TRUSTED), 0o644)?;
        }
        open_up(&folder, 0o755)?;
        open_up(&folder.join(OUTWARD), 0o666)?;
        let end = CancellationToken::new();
        let egress = egress.clone();
        let ports = egress.ports.all();
        let ended = end.clone();
        let arrivals = Arc::<Arrivals>::default();
        let policy =
            Arc::new(OutboundPolicy { egress, treatments, arrivals: Arc::clone(&arrivals) });
        tasks.spawn(async move {
            tokio::select! {
                () = accept(listener, policy) => {}
                () = ended.cancelled() => {}
            }
        });
        Ok(Self { folder, ports, trusts, arrivals, _end: end.drop_guard() })
    }

    /// Proxy variables for programs inside: those that curl, git, npm, pip and Bun read.
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
        // Node's own fetch reads them only if told to.
        pairs.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
        if self.trusts {
            let file = format!("{INSIDE}/{TRUSTED}");
            pairs.extend(TRUST_VARIABLES.map(|name| (name.to_owned(), file.clone())));
        }
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        pairs.push((PORTS_VARIABLE.to_owned(), ports.join(",")));
        pairs
    }

    /// Expects a connection to a port inside; the first process is asked for it next.
    pub(crate) fn expect(&self) -> ArrivingConnection {
        self.arrivals.expect()
    }
}

/// A path through the folder's handle, which is short however long the folder's own path is.
fn below(folder: &OwnedFd, name: &str) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// The sandbox may run as another user. The parent folders are closed to everybody else.
fn open_up(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}
