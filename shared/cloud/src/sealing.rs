//! KMS: seals and opens the keys that tenants store, and the tokens of people's own accounts.
//!
//! Promised: a value is sealed for one stack, one tenant and one kind ([`bobbin_core::tenant::own_keys::sealed_for`],
//! KMS's encryption context), so that an item copied elsewhere does not open there. The KMS key is named in both
//! directions, so that nothing opens that was sealed with a foreign key. Ingress may seal and not open; the worker may
//! open, and seal only what renews ([`bobbin_core::tenant::linked`]): their roles say so (`template.yaml`), and a test
//! checks it. No value is in an error.

use std::collections::BTreeMap;

use aws_sdk_kms::Client;
use aws_sdk_kms::primitives::Blob;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::secret::Secret;

use crate::aws::{Aws, CallError, FailureCause, Late};

/// Bound of a call: ingress has three seconds for a whole Discord request.
const CALL_MS_MAX: u64 = 1_500;
/// KMS's codes for a ciphertext that was not sealed with this key and this context, or was changed since (API
/// reference, `Decrypt`, "Errors").
const BROKEN: [&str; 2] = ["InvalidCiphertextException", "IncorrectKeyException"];

/// Why nothing was sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Sealed for something else, or damaged: no retry helps, and the value is lost.
    #[error("the stored value cannot be decrypted: it is damaged, or was stored for somebody else")]
    Broken,
    /// Throttled, or no answer: try again later.
    #[error("{0}")]
    Later(String),
    /// The key is gone or disabled, or the role lacks the permission: an operator has to act.
    #[error("{0}")]
    Refused(String),
}

impl From<CallError> for SealError {
    fn from(error: CallError) -> Self {
        match (error.code(), error.cause()) {
            (Some(code), _) if BROKEN.contains(&code) => Self::Broken,
            // KMS's own codes that its documentation calls transient.
            (Some("KMSInternalException" | "DependencyTimeoutException"), _)
            | (_, FailureCause::Passing) => Self::Later(error.to_string()),
            (Some("NotFoundException" | "DisabledException" | "KMSInvalidStateException"), _) => {
                Self::Refused(format!(
                    "{error}. The stack's KMS key is gone, disabled or waiting for deletion: check CredentialsKey of the stack."
                ))
            }
            _ => Self::Refused(error.with_remedy()),
        }
    }
}

impl SealError {
    /// What to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Later(seen) => Failure::Wait { after_ms: 0, seen: seen.clone() },
            Self::Broken | Self::Refused(_) => Failure::NonRecoverable { advice: self.to_string() },
        }
    }
}

/// The stack's key in KMS.
#[derive(Debug, Clone)]
pub struct Seal {
    aws: Late<Client>,
    key: String,
}

impl Seal {
    /// The key with this ARN. Makes no call.
    #[must_use]
    pub fn new(aws: &Aws, key: &str) -> Self {
        Self { aws: Late::new(aws.clone(), Aws::kms, CALL_MS_MAX), key: key.to_owned() }
    }

    /// Seals a value for this context; returns the ciphertext in base64.
    ///
    /// # Errors
    /// [`SealError`].
    pub async fn close(
        &self,
        value: &Secret,
        context: &BTreeMap<String, String>,
    ) -> Result<String, SealError> {
        let aws = self.aws.get();
        let call = aws.client.encrypt().key_id(&self.key);
        let call = call
            .plaintext(Blob::new(value.expose().as_bytes()))
            .set_encryption_context(Some(context.clone().into_iter().collect()));
        let sealed = call.send().await.map_err(|e| aws.failed(e))?;
        let sealed = sealed.ciphertext_blob;
        let sealed = sealed.ok_or_else(|| aws.unreadable("CiphertextBlob"))?;
        Ok(STANDARD.encode(sealed))
    }

    /// Opens a value that was sealed for this context.
    ///
    /// # Errors
    /// [`SealError`]; [`SealError::Broken`] if it was sealed for another one.
    pub async fn open(
        &self,
        sealed: &str,
        context: &BTreeMap<String, String>,
    ) -> Result<Secret, SealError> {
        let sealed = STANDARD.decode(sealed).map_err(|_| SealError::Broken)?;
        let aws = self.aws.get();
        let call = aws.client.decrypt().key_id(&self.key);
        let call = call
            .ciphertext_blob(Blob::new(sealed))
            .set_encryption_context(Some(context.clone().into_iter().collect()));
        let opened = call.send().await.map_err(|e| aws.failed(e))?;
        let opened = opened.plaintext;
        let opened = opened.ok_or_else(|| aws.unreadable("Plaintext"))?;
        let text = String::from_utf8(opened.into_inner()).map_err(|_| SealError::Broken)?;
        Ok(Secret::from(text))
    }
}
