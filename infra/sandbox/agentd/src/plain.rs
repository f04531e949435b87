//! Reads files at paths that an agent can write, without trusting their contents.
//!
//! Promised: only a regular file is read, never through a link, and never beyond the bound; opening never blocks.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file of at most `bytes_max`.
pub(crate) fn open(path: &Path, bytes_max: u64) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if found.len() > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(file)
}

/// Reads a regular file of at most `bytes_max`, even if it grows meanwhile.
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, bytes_max)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Copies a regular file of at most `bytes_max`, with its time.
pub(crate) fn copy(from: &Path, to: &Path, bytes_max: u64) -> io::Result<()> {
    let from = open(from, bytes_max)?;
    let modified = from.metadata()?.modified()?;
    let mut own = File::create(to)?;
    let copied = io::copy(&mut from.take(bytes_max.saturating_add(1)), &mut own)?;
    if copied > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    own.set_modified(modified)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("plain"), "four").unwrap();
        std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status();
        assert!(made.unwrap().success());
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&at("plain"), 4).unwrap(), b"four");
        copy(&at("plain"), &at("copied"), 4).unwrap();
        assert_eq!(std::fs::read(at("copied")).unwrap(), b"four");
        assert_eq!(read(&at("plain"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let bad = ["link", "zero", "fifo", "sparse", "gone"].map(at);
        for path in bad.iter().map(AsRef::as_ref).chain([
            Path::new("/dev/zero"),
            Path::new("/dev/tty"),
            folder.path(),
        ]) {
            assert!(read(path, 1 << 20).is_err(), "{}", path.display());
            assert!(copy(path, &at("copy"), 1 << 20).is_err(), "{}", path.display());
        }
    }
}
