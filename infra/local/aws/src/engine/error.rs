//! Why an engine did not start.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::template::TemplateError;

/// Why the engine did not start; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The template or its parameters are invalid.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The state folder cannot be used.
    #[error("state folder {folder}: {reason}")]
    StateFolder {
        /// Path of the state folder.
        folder: String,
        /// Reason and advice.
        reason: String,
    },
    /// A function's executable is missing or unusable.
    #[error("function {logical_id}: {reason}")]
    Executable {
        /// Logical id of the function.
        logical_id: String,
        /// Reason and advice.
        reason: String,
    },
    /// A port is unavailable.
    #[error("port {port} cannot be used ({error}); choose another, or 0 for a free one")]
    Port {
        /// The requested port.
        port: u16,
        /// The system's error.
        error: io::Error,
    },
    /// A service refused a resource of the template.
    #[error("{resource} of the template could not be set up: {reason}")]
    Resource {
        /// Name of the resource.
        resource: String,
        /// The service's reason.
        reason: String,
    },
}

impl EngineError {
    /// The state folder cannot be used.
    pub(super) fn state_folder(folder: &Path, reason: &impl Display) -> Self {
        Self::StateFolder { folder: folder.display().to_string(), reason: reason.to_string() }
    }

    /// A service refused a resource of the template.
    pub(super) fn resource(resource: impl Into<String>, reason: &impl Display) -> Self {
        Self::Resource { resource: resource.into(), reason: reason.to_string() }
    }
}
