//! The network of a sandbox that has one of its own: nothing of this machine is in it.
//!
//! One socket connects the two sides. The provider listens on it, in a folder that the sandbox sees and cannot write, and
//! connects to nothing that is named inside: what is there may be a link to anywhere. Through it come the connections that
//! programs inside make ([`crate::outbound`]), and those to ports inside, which the sandbox's first process makes when it is
//! asked to ([`Arrivals`]).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use tokio::net::UnixListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::arrivals::{Arrival, Arrivals};
use crate::gateway::Treatments;
use crate::outbound::{Egress, OutboundPolicy, PROXY_PORT, accept};

/// Where the sandbox sees the folder.
pub(crate) const INSIDE: &str = "/run/bobbin";
/// The socket on which the provider listens.
pub(crate) const OUTWARD: &str = "out";
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
    arrivals: Arc<Arrivals>,
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
        // A socket's path has 108 bytes at most, a folder's may have more.
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

    /// Expects a connection to a port inside, which its first process is asked for next.
    pub(crate) fn expect(&self) -> Arrival {
        self.arrivals.expect()
    }
}

/// A path by the folder's handle, which is short whatever the folder's own path is.
fn below(folder: &OwnedFd, name: &str) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// The sandbox may be another user's. The folders around are closed to everybody else.
fn open_up(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}
