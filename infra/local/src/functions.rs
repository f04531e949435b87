//! The binaries of the functions and of the sandbox daemon, built next to this program by `bobbin-launch`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bobbin_launch::{DAEMON, FUNCTIONS};
use tokio::process::Command;

/// Its folder in the state folder.
const TOOLS: &str = "tools";

/// A folder with only the built daemon, for sandboxes to read: its build folder contains much more.
///
/// # Errors
/// A sentence with advice.
pub fn daemon(root: &Path, state_dir: &Path) -> Result<PathBuf, String> {
    let program = own_folder(root)?.join(DAEMON);
    if !program.is_file() {
        return Err(missing(&program, DAEMON));
    }
    let place = state_dir.join(TOOLS);
    let unusable = |e: std::io::Error| format!("{} cannot be used: {e}", place.display());
    std::fs::create_dir_all(&place).map_err(unusable)?;
    // Sandboxes may run as another user. The state folder around it is private.
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).map_err(unusable)?;
    let own = place.join(DAEMON);
    // A copy from an earlier start may be older.
    let _ = std::fs::remove_file(&own);
    if std::fs::hard_link(&program, &own).is_err() {
        std::fs::copy(&program, &own).map_err(unusable)?;
    }
    Ok(place)
}

/// Makes the daemon fetch these agents at its pinned versions and hashes; returns the folders for sandboxes.
///
/// # Errors
/// A sentence with advice.
pub async fn fetch_agents(
    daemon: &Path,
    agents: &[String],
    folder: &Path,
) -> Result<Vec<PathBuf>, String> {
    let mut install = Command::new(daemon.join(DAEMON));
    install.arg("install").args(agents).arg("--pinned");
    install.arg("--into").arg(folder);
    let fetched = install.stdin(Stdio::null()).output().await;
    let fetched = fetched.map_err(|e| format!("{DAEMON} could not be run: {e}"))?;
    if !fetched.status.success() {
        let said = String::from_utf8_lossy(&fetched.stderr);
        return Err(format!(
            "{} could not be fetched: {}. npm fetches them: check the network and npm, or start without --agents.",
            agents.join(", "),
            said.trim()
        ));
    }
    // The programs are links to files beside them.
    Ok(vec![folder.join("bin"), folder.to_owned()])
}

fn own_folder(root: &Path) -> Result<PathBuf, String> {
    let exe =
        std::env::current_exe().map_err(|e| format!("this program's own path is unknown: {e}"))?;
    Ok(exe.parent().unwrap_or(root).to_owned())
}

fn missing(path: &Path, package: &str) -> String {
    format!(
        "{} is missing. Run without --no-build, or build it with: cargo build -p {package}",
        path.display()
    )
}

/// Finds the functions' binaries.
///
/// # Errors
/// A sentence with advice.
pub fn binaries(root: &Path) -> Result<BTreeMap<String, PathBuf>, String> {
    let folder = own_folder(root)?;
    let mut found = BTreeMap::new();
    for (id, name) in FUNCTIONS {
        let path = folder.join(name);
        if !path.is_file() {
            return Err(missing(&path, &format!("bobbin-{name}")));
        }
        found.insert(id.to_owned(), path);
    }
    Ok(found)
}
