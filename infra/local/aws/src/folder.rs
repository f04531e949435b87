//! A state folder belongs to one stack at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// A folder that nobody else may use, until this is dropped.
#[derive(Debug)]
pub struct FolderLock(File);

/// Why a folder could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Somebody else has it.
    #[error("another stack is running on it; stop that one, or choose another folder")]
    Taken,
    /// It cannot be made or written.
    #[error("{0}; choose a folder that can be written")]
    Unusable(#[from] io::Error),
}

impl FolderLock {
    /// The file in the folder that the lock is on.
    pub const FILE: &'static str = "lock";

    /// Makes the folder if it is not there, and takes it.
    ///
    /// # Errors
    ///
    /// [`FolderError`]: somebody has it, or it cannot be used.
    pub fn take(folder: &Path) -> Result<Self, FolderError> {
        fs::create_dir_all(folder)?;
        let file = File::create(folder.join(Self::FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(FolderError::Taken),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

impl Drop for FolderLock {
    /// Closing the file is not enough: a process that another thread is just starting has a copy of the descriptor until
    /// it runs its own program, and the lock lasts as long as any copy. Unlocking ends it for all of them.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a state folder was not unlocked; it is when this program ends");
        }
    }
}
