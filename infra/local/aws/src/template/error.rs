//! Errors of a template.

/// Why a template could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file is missing or unreadable.
    #[error("template {0} could not be read: {1}")]
    Read(String, std::io::Error),
    /// It is not YAML, or not a template.
    #[error("template {0} could not be understood: {1}")]
    Syntax(String, String),
    /// A parameter is missing, unknown or invalid.
    #[error("parameter {0}: {1}")]
    Parameter(String, String),
    /// A resource or an output is invalid.
    #[error("{0} in the template: {1}")]
    Invalid(String, String),
}
