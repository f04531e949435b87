//! Confinement by bubblewrap, where it works.
//!
//! Promised inside: writes reach only the sandbox's own folder and a private `/tmp`, the system is read-only, the
//! environment starts empty, and the process space is its own, so that ending its first process ends them all.
//! Where the machine allows it the network is its own too ([`crate::network`]). Deliberately absent: limits on memory and
//! CPU, and any defence against a kernel hole. It keeps a model's commands from doing harm by accident, not an attacker.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::limits::BOOT_MS_MAX;
use crate::network::INSIDE;

/// How commands in sandboxes are kept apart from the rest of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Each sandbox runs in bubblewrap, with a network of its own.
    Bubblewrap,
    /// Each sandbox runs in bubblewrap, and reaches what listens on this machine's loopback.
    SharedNetwork {
        /// Why, in words for the person at the terminal, with what to do about it.
        why: String,
    },
    /// Commands run as the user who started the provider, with all that user may do.
    None {
        /// Why, in words for the person at the terminal, with what to do about it.
        why: String,
    },
}

/// Folders of the system that a sandbox sees, read-only, where they exist.
const SYSTEM: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix",
];

/// Folders of the system that are on PATH inside a sandbox: a program found in one needs no copy.
pub const SYSTEM_PATH: [&str; 7] = [
    "/opt/homebrew/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// What of `/etc` programs need to resolve names, check certificates and know their user.
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

/// Looks for `bwrap` and tries it with the very options that sandboxes get.
pub(crate) async fn detect(wanted: bool) -> (Confinement, Option<PathBuf>) {
    let none = |why: String| (Confinement::None { why }, None);
    if !wanted {
        return none("it is switched off by a setting".to_owned());
    }
    let Some(bwrap) = find_on_path("bwrap") else {
        return none(if cfg!(target_os = "linux") {
            "bubblewrap is not installed; install the package `bubblewrap` and start again"
                .to_owned()
        } else {
            "bubblewrap exists for Linux only".to_owned()
        });
    };
    if let Err(why) = works(&bwrap, &[]).await {
        return none(why);
    }
    match works(&bwrap, &[OWN_NETWORK]).await {
        Ok(()) => (Confinement::Bubblewrap, Some(bwrap)),
        Err(why) => (Confinement::SharedNetwork { why }, Some(bwrap)),
    }
}

/// Gives a sandbox a network with nothing but a loopback of its own.
const OWN_NETWORK: &str = "--unshare-net";

/// Whether bubblewrap starts something with the options that sandboxes get, and these.
async fn works(bwrap: &Path, more: &[&str]) -> Result<(), String> {
    let mut trial = Command::new(bwrap);
    trial.args(base_arguments()).args(more).args([
        "--remount-ro",
        "/",
        "--",
        "/bin/sh",
        "-c",
        "true",
    ]);
    trial
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    match tokio::time::timeout(Duration::from_millis(BOOT_MS_MAX), trial.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => Err(format!(
            "bubblewrap is there but does not work here ({}); allow unprivileged user namespaces for it",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Ok(Err(error)) => Err(format!("bubblewrap cannot be run: {error}")),
        Err(_) => Err("bubblewrap did not answer in time".to_owned()),
    }
}

/// The arguments for one sandbox, up to the program to run. `readable` and `writable` keep their paths inside; `network` is
/// the folder of its own one.
pub(crate) fn arguments(
    readable: &[PathBuf],
    writable: &Path,
    network: Option<&Path>,
) -> Vec<String> {
    let mut arguments = base_arguments();
    for path in readable {
        let path = path.to_string_lossy().into_owned();
        arguments.extend(["--ro-bind".to_owned(), path.clone(), path]);
    }
    let home = writable.to_string_lossy().into_owned();
    arguments.extend(["--bind".to_owned(), home.clone(), home.clone()]);
    if let Some(folder) = network {
        let folder = folder.to_string_lossy().into_owned();
        let bound = ["--bind".to_owned(), folder, INSIDE.to_owned()];
        arguments.extend([OWN_NETWORK.to_owned()].into_iter().chain(bound));
    }
    arguments.extend(["--chdir", &home, "--remount-ro", "/", "--"].map(str::to_owned));
    arguments
}

fn base_arguments() -> Vec<String> {
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
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/run",
    ]
    .map(str::to_owned)
    .to_vec();
    for folder in SYSTEM {
        bind_system(folder, &mut arguments);
    }
    for name in ETC {
        let path = format!("/etc/{name}");
        arguments.extend(["--ro-bind-try".to_owned(), path.clone(), path]);
    }
    arguments
}

/// `/bin` and its like are links into `/usr` on most systems, folders on the others.
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
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| {
            std::fs::metadata(file)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}
