//! The state folder, and the stack's id in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::EngineError;
use crate::account::AwsAccount;

/// Creates the folder if needed; returns its path as in the process marker.
pub(super) fn prepare_folder(folder: &Path) -> Result<PathBuf, EngineError> {
    fs::create_dir_all(folder)
        .and_then(|()| folder.canonicalize())
        .map_err(|error| unwritable(folder, &error))
}

/// The stack's ARN. Its unique part is generated once and stored with the state, so it lives as long as the stack.
pub(super) fn stack_id(
    state_dir: &Path,
    name: &str,
    account: &AwsAccount,
) -> Result<String, EngineError> {
    let file = state_dir.join("stack-id");
    let present = fs::read_to_string(&file).ok().filter(|id| !id.is_empty());
    let id = match present {
        Some(id) => id,
        None => {
            let id = uuid::Uuid::new_v4().to_string();
            fs::write(&file, &id).map_err(|error| unwritable(state_dir, &error))?;
            id
        }
    };
    Ok(account.arn("cloudformation", &format!("stack/{name}/{id}")))
}

fn unwritable(folder: &Path, error: &io::Error) -> EngineError {
    let reason = format!("{error}; choose a folder that can be written");
    EngineError::state_folder(folder, &reason)
}
