//! Writes, copies and removes files, robust against crashes and against commands in a sandbox.

use std::io::Write;
use std::path::Path;

/// Creates a folder that only its owner can read, or makes an existing one private.
pub fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}

/// Files that this program creates from now on are private by default.
pub fn make_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// A crash leaves the old or the new text. The file contains environment and preview token: only its owner can read it.
pub fn write_atomically(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let new = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text)?;
    std::fs::rename(new, path)
}

/// Copies a folder exactly: links stay links, modes and times are kept. Sockets and pipes are skipped: they have no
/// process behind them in a copy. Returns the bytes of its files. Atomic: the copy is complete or absent.
pub fn copy_folder(from: &Path, to: &Path) -> std::io::Result<u64> {
    let half = to.with_extension("half");
    remove_folder(&half)?;
    let bytes = copy_into(from, &half)?;
    remove_folder(to)?;
    std::fs::rename(half, to)?;
    Ok(bytes)
}

fn copy_into(from: &Path, to: &Path) -> std::io::Result<u64> {
    std::fs::create_dir_all(to)?;
    let mut bytes = 0;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&old)?, &new)?;
        } else if kind.is_dir() {
            bytes += copy_into(&old, &new)?;
        } else if kind.is_file() {
            bytes += std::fs::copy(&old, &new)?;
            let meta = entry.metadata()?;
            let times = std::fs::FileTimes::new()
                .set_accessed(meta.accessed()?)
                .set_modified(meta.modified()?);
            // A file that even its owner cannot open keeps the time of the copy.
            if let Ok(copy) = std::fs::File::open(&new) {
                copy.set_times(times)?;
            }
        }
    }
    // Last, because an unwritable folder could not be filled.
    std::fs::set_permissions(to, std::fs::metadata(from)?.permissions())?;
    Ok(bytes)
}

/// Changes the owner and group of a folder with its contents; links themselves, not their targets. The folder comes
/// last: if it belongs to the user, so does everything in it.
pub fn give_to(path: &Path, user: u32) -> std::io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_to(&entry?.path(), user)?;
        }
    }
    std::os::unix::fs::lchown(path, Some(user), Some(user))
}

/// Removes a folder with its contents; folders that a command made unreadable are opened first.
pub fn remove_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fn open_up(path: &Path) {
        let Ok(meta) = std::fs::symlink_metadata(path) else {
            return;
        };
        if !meta.is_dir() {
            return;
        }
        // If this fails, the removal reports it.
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            open_up(&entry.path());
        }
    }
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            open_up(path);
            std::fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
