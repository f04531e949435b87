//! Confinement by bubblewrap, where it works.
//!
//! Promised inside: writes reach only the sandbox's own folder and a private `/tmp`, the system is read-only, the
//! environment starts empty, and the PID namespace is its own, so that ending its first process ends them all. If the
//! provider runs as root, no sandbox does: root owns the machine's settings (`/proc/sys`), whatever else is taken from
//! it, so the first process switches to [`USER`]. Where the machine allows it the network is its own too
//! ([`crate::network`]). Deliberately absent: limits on memory and CPU, and any defence against a kernel vulnerability.
//! It keeps a model's commands from doing harm by accident; it does not stop an attacker.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::limits::BOOT_MS_MAX;
use crate::network::INSIDE;

/// How sandboxes are isolated from the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Bubblewrap, with a network of its own for each sandbox.
    Bubblewrap,
    /// Bubblewrap, with this machine's loopback reachable.
    SharedNetwork {
        /// Reason and advice for the person at the terminal.
        why: String,
    },
    /// Commands run as the provider's user, with all of that user's rights.
    None {
        /// Reason and advice for the person at the terminal.
        why: String,
    },
}

/// User id of sandboxes if the provider runs as root: systems assign it to nobody by default, and it is below 65,536,
/// the limit in many containers.
pub(crate) const USER: u32 = 59_990;

/// bubblewrap, as used to start sandboxes.
#[derive(Clone, Debug)]
pub(crate) struct Bwrap {
    pub(crate) program: PathBuf,
    /// `setpriv`, if sandboxes run as [`USER`].
    setpriv: Option<PathBuf>,
}

impl Bwrap {
    /// Owner of a sandbox's files, if not the provider's user.
    pub(crate) fn user(&self) -> Option<u32> {
        self.setpriv.as_ref().map(|_| USER)
    }
}

/// System folders visible in a sandbox, read-only, if they exist.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix"];

/// System folders on PATH inside a sandbox: a program in one of them needs no copy.
pub const SYSTEM_PATH: [&str; 7] = [
    "/opt/homebrew/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The parts of `/etc` that programs need to resolve names, check certificates and look up their user.
const ETC: [&str; 18] = [
    "alternatives",
    "ca-certificates",
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "ssl",
];

/// Looks for `bwrap` and tests it with the options and readable paths of real sandboxes.
pub(crate) async fn detect(wanted: bool, readable: &[PathBuf]) -> (Confinement, Option<Bwrap>) {
    let none = |why: String| (Confinement::None { why }, None);
    if !wanted {
        return none("a setting switches it off".to_owned());
    }
    let Some(program) = find_on_path("bwrap") else {
        return none(if cfg!(target_os = "linux") {
            "bubblewrap is not installed; install the package `bubblewrap` and start again"
                .to_owned()
        } else {
            "bubblewrap exists for Linux only".to_owned()
        });
    };
    let is_root = rustix::process::geteuid().is_root();
    let setpriv = find_on_path("setpriv").filter(|_| is_root);
    if is_root && setpriv.is_none() {
        return none(
            "the stack runs as root, and `setpriv` is missing, which runs sandboxes as another user; install the package `util-linux`, or start as another user"
                .to_owned(),
        );
    }
    let bwrap = Bwrap { program, setpriv };
    if let Err(why) = works(&bwrap, readable, &[]).await {
        return none(why);
    }
    match works(&bwrap, readable, &[OWN_NETWORK]).await {
        Ok(()) => (Confinement::Bubblewrap, Some(bwrap)),
        Err(why) => (Confinement::SharedNetwork { why }, Some(bwrap)),
    }
}

/// A network with only its own loopback.
const OWN_NETWORK: &str = "--unshare-net";

/// Succeeds in a sandbox that can read what it must and cannot change a machine setting. It tries to open one for
/// writing, and writes nothing.
const TRIAL: &str = r#"
for one in "$@"; do
  if [ ! -r "$one" ] || [ ! -x "$one" ]; then echo "$one is closed to other users" >&2; exit 1; fi
done
if (: >>/proc/sys/kernel/core_pattern) 2>/dev/null; then echo "a sandbox could change the settings of this machine" >&2; exit 1; fi
"#;

/// Whether bubblewrap works and confines with the sandboxes' options and `more`.
async fn works(bwrap: &Bwrap, readable: &[PathBuf], more: &[&str]) -> Result<(), String> {
    let mut trial = Command::new(&bwrap.program);
    trial.args(base_arguments(bwrap));
    trial.args(same_paths(bwrap, readable)).args(more);
    trial.args(["--remount-ro", "/", "--"]).args(dropping(bwrap));
    trial.args(["/bin/sh", "-c", TRIAL, "trial"]).args(readable);
    trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    match tokio::time::timeout(Duration::from_millis(BOOT_MS_MAX), trial.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => Err(format!(
            "bubblewrap is installed but does not work here ({}); {}",
            String::from_utf8_lossy(&output.stderr).trim(),
            match bwrap.user() {
                None => "allow unprivileged user namespaces for it",
                Some(_) => "start as another user than root",
            }
        )),
        Ok(Err(error)) => Err(format!("bubblewrap cannot be run: {error}")),
        Err(_) => Err("bubblewrap did not answer in time".to_owned()),
    }
}

/// Parts of this machine's files, besides the system, that a sandbox sees.
pub(crate) struct SeenFiles<'a> {
    /// Folders and files at the same path.
    pub(crate) readable: &'a [PathBuf],
    /// Files, and their paths inside.
    pub(crate) placed: &'a [(PathBuf, &'static str)],
    /// Its home: the same path, writable.
    pub(crate) home: &'a Path,
    /// Folder of its own network.
    pub(crate) network: Option<&'a Path>,
}

/// The arguments for one sandbox, up to the program to run.
pub(crate) fn arguments(bwrap: &Bwrap, seen: &SeenFiles<'_>) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut arguments = base_arguments(bwrap);
    arguments.extend(same_paths(bwrap, seen.readable));
    for (file, inside) in seen.placed {
        arguments.extend(["--ro-bind".to_owned(), text(file), (*inside).to_owned()]);
    }
    let home = text(seen.home);
    arguments.extend(folders_to(bwrap, seen.home));
    arguments.extend(["--bind".to_owned(), home.clone(), home.clone()]);
    if let Some(folder) = seen.network {
        let bound = ["--ro-bind".to_owned(), text(folder), INSIDE.to_owned()];
        arguments.extend([OWN_NETWORK.to_owned()].into_iter().chain(bound));
    }
    arguments.extend(["--remount-ro", "/", "--"].map(str::to_owned));
    arguments.extend(dropping(bwrap));
    arguments
}

fn same_paths(bwrap: &Bwrap, readable: &[PathBuf]) -> Vec<String> {
    let mut arguments = Vec::new();
    for path in readable {
        arguments.extend(folders_to(bwrap, path));
        let path = path.to_string_lossy().into_owned();
        arguments.extend(["--ro-bind".to_owned(), path.clone(), path]);
    }
    arguments
}

/// Creates a path's parent folders, readable for others: those that bubblewrap creates by itself are not.
fn folders_to(bwrap: &Bwrap, path: &Path) -> Vec<String> {
    if bwrap.setpriv.is_none() {
        return Vec::new();
    }
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let made = above.into_iter().filter(|one| one.parent().is_some());
    made.flat_map(|one| ["--dir".to_owned(), one.to_string_lossy().into_owned()]).collect()
}

/// Options with which the first process becomes [`USER`], including the two capabilities needed.
fn dropping(bwrap: &Bwrap) -> Vec<String> {
    let Some(setpriv) = &bwrap.setpriv else {
        return Vec::new();
    };
    let user = USER.to_string();
    let mut arguments = vec![setpriv.to_string_lossy().into_owned()];
    arguments.extend(["--reuid", &user, "--regid", &user].map(str::to_owned));
    arguments.extend(["--clear-groups", "--inh-caps=-all", "--"].map(str::to_owned));
    arguments
}

fn base_arguments(bwrap: &Bwrap) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--new-session",
        "--cap-drop",
        "ALL",
        "--hostname",
        "sandbox",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    .map(str::to_owned)
    .to_vec();
    let is_dropped = bwrap.setpriv.is_some();
    if is_dropped {
        for one in ["CAP_SETUID", "CAP_SETGID"] {
            arguments.extend(["--cap-add", one].map(str::to_owned));
        }
    }
    for folder in ["/dev/shm", "/tmp", "/run"] {
        if is_dropped {
            // Created by another user than the one who writes there.
            arguments.extend(["--perms", "1777"].map(str::to_owned));
        } else if folder == "/dev/shm" {
            continue;
        }
        arguments.extend(["--tmpfs", folder].map(str::to_owned));
    }
    for folder in SYSTEM {
        bind_system(folder, &mut arguments);
    }
    if is_dropped {
        // Like parent folders of other paths ([`folders_to`]).
        arguments.extend(["--dir", "/etc"].map(str::to_owned));
    }
    for name in ETC {
        let path = format!("/etc/{name}");
        arguments.extend(["--ro-bind-try".to_owned(), path.clone(), path]);
    }
    arguments
}

/// `/bin` and the like are links into `/usr` on most systems, folders on others.
fn bind_system(folder: &str, arguments: &mut Vec<String>) {
    let path = Path::new(folder);
    if let Ok(target) = std::fs::read_link(path) {
        arguments.extend([
            "--symlink".to_owned(),
            target.to_string_lossy().into_owned(),
            folder.to_owned(),
        ]);
    } else if path.is_dir() {
        arguments.extend(["--ro-bind".to_owned(), folder.to_owned(), folder.to_owned()]);
    }
}

/// The first executable of this name on the caller's PATH.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| {
        std::fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}
