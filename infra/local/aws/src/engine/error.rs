//! Why an engine did not start.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::template::TemplateError;

/// Why the engine did not start; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template or its parameters.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The state folder cannot be used.
    #[error("state folder {folder}: {reason}")]
    StateFolder {
        /// Path of the state folder.
        folder: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A function has no executable, or one that cannot be used.
    #[error("function {logical_id}: {reason}")]
    Executable {
        /// The function in the template.
        logical_id: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A port cannot be listened on.
    #[error("port {port} cannot be used ({error}); choose another, or 0 for a free one")]
    Port {
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        error: io::Error,
    },
    /// A resource of the template was refused by its service.
    #[error("{resource} of the template could not be set up: {reason}")]
    Resource {
        /// The resource by its name.
        resource: String,
        /// What the service said.
        reason: String,
    },
}

impl Error {
    /// The state folder cannot be used.
    pub(super) fn state_folder(folder: &Path, reason: &impl Display) -> Self {
        Self::StateFolder { folder: folder.display().to_string(), reason: reason.to_string() }
    }

    /// A resource of the template was refused by its service.
    pub(super) fn resource(resource: impl Into<String>, reason: &impl Display) -> Self {
        Self::Resource { resource: resource.into(), reason: reason.to_string() }
    }
}
