//! Why a template is refused.

/// Why a template could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file is not there or not readable.
    #[error("template {0} could not be read: {1}")]
    Read(String, std::io::Error),
    /// Not YAML, or not a template.
    #[error("template {0} could not be understood: {1}")]
    Syntax(String, String),
    /// A parameter is missing, unknown or has a value that is not allowed.
    #[error("parameter {0}: {1}")]
    Parameter(String, String),
    /// A resource or an output says something that cannot be followed.
    #[error("{0} in the template: {1}")]
    Invalid(String, String),
}
