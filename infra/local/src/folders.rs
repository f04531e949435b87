//! The checkout, and the state folder, locked for one stack at a time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bobbin_local_breakpoint::{FolderError, FolderLock};
use bobbin_local_sandbox::disk::private_folder;

/// The checkout: the nearest parent folder with the template, else the one in which this program was built.
///
/// # Errors
/// None is found, or the current folder cannot be read.
pub fn project_root() -> Result<PathBuf, String> {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let here =
        std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))?;
    let upwards = here.ancestors().map(Path::to_path_buf).chain([built_in]);
    upwards
        .into_iter()
        .find(|folder| {
            folder.join("template.yaml").is_file() && folder.join("infra/local").is_dir()
        })
        .and_then(|folder| folder.canonicalize().ok())
        .ok_or_else(|| {
            "template.yaml was not found: run this inside a checkout of Bobbin.".to_owned()
        })
}

/// Creates the state folder (emptied on request), makes it private, since it holds every secret, and locks it.
///
/// # Errors
/// Another stack has it, or it is unusable.
pub fn lock(state_dir: &Path, fresh: bool) -> Result<FolderLock, String> {
    let shown = state_dir.display();
    private_folder(state_dir)
        .map_err(|e| format!("the state folder {shown} cannot be used: {e}"))?;
    let lock = FolderLock::take(state_dir).map_err(|error| match error {
        FolderError::Taken => format!(
            "Another stack runs with the state folder {shown}. Stop it, or use --state-dir for a second one."
        ),
        FolderError::Unusable(_) => format!("the state folder {shown} cannot be used: {error}"),
    })?;
    if fresh {
        empty(state_dir).map_err(|e| format!("the state folder {shown} cannot be used: {e}"))?;
    }
    Ok(lock)
}

/// Removes everything but the lock file.
fn empty(state_dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(state_dir)?.flatten() {
        let path = entry.path();
        if path == state_dir.join(FolderLock::FILE) {
            continue;
        }
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_start_makes_state_folder_private() {
        let name = format!("bobbin-state-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let mode = || fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777;
        for _ in 0..2 {
            drop(lock(&folder, false).expect("a folder of its own"));
            assert_eq!(mode(), 0o700);
            // A folder from an earlier start, or somebody's own.
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
