//! The checkout, and the state folder, which one stack has at a time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bobbin_local_aws::{FolderError, FolderLock};

/// The checkout: the folder upwards from here that holds the template, else the one that this program was built in.
///
/// # Errors
/// There is none, or the current folder cannot be read.
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

/// Makes the state folder (empty if that is wanted) and takes its lock.
///
/// # Errors
/// Another stack has it, or it cannot be used.
pub fn lock(state_dir: &Path, fresh: bool) -> Result<FolderLock, String> {
    let shown = state_dir.display();
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

/// Removes everything but the lock's own file.
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
