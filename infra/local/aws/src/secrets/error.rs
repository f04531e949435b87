//! Errors of secrets.

/// Why a secret could not be created or found; never carries a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("Secrets Manager can't find the specified secret.")]
    Missing,
    #[error("Secrets Manager can't find the specified secret value for {0}.")]
    MissingVersion(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Parameter(String),
    #[error(
        "You can't use ClientRequestToken {0} because that value is already in use for a version of this secret."
    )]
    TokenUsed(String),
    #[error("This engine does not implement {0}.")]
    UnknownOperation(String),
    #[error("The request could not be read: {0}.")]
    Serialization(serde_json::Error),
    #[error(
        "the secret's file could not be used ({0}); check free space and rights of the state folder"
    )]
    Store(#[from] rusqlite::Error),
}
