//! KMS errors, by AWS's names (API reference of `Encrypt`, `Decrypt` and `DescribeKey`, "Errors").

/// A refusal; never carries a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum KmsError {
    #[error("Key '{0}' does not exist")]
    Missing(String),
    /// AWS sends no message.
    #[error("")]
    InvalidCiphertext,
    #[error("The key ID in the request does not identify a CMK that can perform this operation.")]
    IncorrectKey,
    #[error("{0}")]
    Validation(String),
    #[error("This engine does not implement {0}.")]
    UnknownOperation(String),
    #[error("The request could not be read.")]
    Serialization,
    #[error("the key's file could not be used; check free space and rights of the state folder")]
    Internal,
}

impl KmsError {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Missing(_) => "NotFoundException",
            Self::InvalidCiphertext => "InvalidCiphertextException",
            Self::IncorrectKey => "IncorrectKeyException",
            Self::Validation(_) => "ValidationException",
            Self::UnknownOperation(_) => "UnknownOperationException",
            Self::Serialization => "SerializationException",
            Self::Internal => "KMSInternalException",
        }
    }
}

impl From<rusqlite::Error> for KmsError {
    fn from(_: rusqlite::Error) -> Self {
        Self::Internal
    }
}
