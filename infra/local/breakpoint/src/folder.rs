//! Lock of a state folder: one program at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// Exclusive use of a folder, until dropped.
#[derive(Debug)]
pub struct FolderLock(File);

/// Why a folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another stack uses it.
    #[error("another stack is running on it; stop that one, or choose another folder")]
    Taken,
    /// It cannot be created or written.
    #[error("{0}; choose a folder that can be written")]
    Unusable(#[from] io::Error),
}

impl FolderLock {
    /// Name of the lock file in the folder.
    pub const FILE: &'static str = "lock";

    /// Creates the folder if needed, and locks it.
    ///
    /// # Errors
    ///
    /// [`FolderError`]: it is in use, or unusable.
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
    /// Closing the file is not enough: a child that another thread is just starting holds a copy of the descriptor
    /// until it executes its program, and the lock lasts as long as any copy. Unlocking releases it for all copies.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a state folder was not unlocked; it is when this program ends");
        }
    }
}
