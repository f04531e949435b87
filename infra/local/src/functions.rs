//! The functions' binaries, and the daemon's for sandboxes: built beside this program, by `bobbin-launch`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bobbin_launch::{DAEMON, FUNCTIONS};

/// The folder of the state folder that it is put into.
const TOOLS: &str = "tools";

/// A folder with the built daemon alone, for sandboxes to read: the folder that it is built into holds much more.
///
/// # Errors
/// A sentence with what to do.
pub fn daemon(root: &Path, state_dir: &Path) -> Result<PathBuf, String> {
    let program = own_folder(root)?.join(DAEMON);
    if !program.is_file() {
        return Err(missing(&program, DAEMON));
    }
    let place = state_dir.join(TOOLS);
    let unusable = |e: std::io::Error| format!("{} cannot be used: {e}", place.display());
    std::fs::create_dir_all(&place).map_err(unusable)?;
    // Sandboxes may run as another user. The state folder around it is closed.
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).map_err(unusable)?;
    let own = place.join(DAEMON);
    // One of an earlier start may be older.
    let _ = std::fs::remove_file(&own);
    if std::fs::hard_link(&program, &own).is_err() {
        std::fs::copy(&program, &own).map_err(unusable)?;
    }
    Ok(place)
}

fn own_folder(root: &Path) -> Result<PathBuf, String> {
    let exe = std::env::current_exe()
        .map_err(|e| format!("this program's own path is not known: {e}"))?;
    Ok(exe.parent().unwrap_or(root).to_owned())
}

fn missing(path: &Path, package: &str) -> String {
    format!(
        "{} is missing. Run without --no-build, or build it with: cargo build -p {package}",
        path.display()
    )
}

/// Says where the functions are.
///
/// # Errors
/// A sentence with what to do.
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
