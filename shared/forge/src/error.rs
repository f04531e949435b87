//! What a failed call to a forge means.

use bobbin_core::base::failure::Failure;

/// Kinds of error that callers handle specially.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgeErrorKind {
    /// The app is not installed there, or its installation does not include the repository.
    NotInstalled,
    /// The owner has suspended the installation.
    Suspended,
    /// The installation does not grant these permissions, each as `name: level`.
    PermissionsMissing(Vec<String>),
    /// The owner's list of allowed addresses does not include this function's.
    NotAllowedAddress,
    /// There is no such repository, ref, object, pull request or person, or the app may not see it.
    NotFound,
    /// The repository is read-only.
    Archived,
    /// Too many requests.
    RateLimited,
    /// More bytes than the caller allows.
    TooLarge {
        /// The bound in bytes.
        bytes_max: u64,
    },
    /// The person's sign-in has expired or was taken back: they have to sign in again.
    SignInEnded,
    /// The forge refused the request.
    Refused {
        /// The reason, in the forge's own words, cleaned and bounded.
        why: String,
    },
    /// Any other error; `failure` says what to do.
    Other,
}

/// A failed call to a forge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen}")]
pub struct ForgeError {
    /// What a caller may handle itself.
    pub kind: ForgeErrorKind,
    /// What the delivery has to do about it.
    pub failure: Failure,
    /// The error message, for logs and people. It contains no credential.
    pub seen: String,
    /// The page on which a person can fix it.
    pub link: Option<String>,
}

/// Result of a call to a forge.
pub type ForgeResult<T> = Result<T, ForgeError>;

impl ForgeError {
    /// An error that a repeat does not fix.
    pub(crate) fn lasting(kind: ForgeErrorKind, seen: impl Into<String>) -> Self {
        let seen = seen.into();
        let failure = Failure::NonRecoverable { advice: seen.clone() };
        Self { kind, failure, seen, link: None }
    }

    /// The forge's own reason is all that there is to say.
    pub(crate) fn refused(why: String) -> Self {
        Self::lasting(ForgeErrorKind::Refused { why: why.clone() }, why)
    }

    /// An error that may be gone at the next attempt.
    pub(crate) fn passing(kind: ForgeErrorKind, after_ms: u64, seen: impl Into<String>) -> Self {
        let seen = seen.into();
        let failure = Failure::Wait { after_ms, seen: seen.clone() };
        Self { kind, failure, seen, link: None }
    }

    /// The forge does not answer.
    pub(crate) fn outage(seen: impl Into<String>) -> Self {
        let seen = seen.into();
        let failure = Failure::Outage { after_ms: 0, seen: seen.clone() };
        Self { kind: ForgeErrorKind::Other, failure, seen, link: None }
    }

    /// The same, with the page where it can be fixed.
    pub(crate) fn mended_at(self, link: impl Into<String>) -> Self {
        Self { link: Some(link.into()), ..self }
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        error.failure
    }
}

impl From<Failure> for ForgeError {
    fn from(failure: Failure) -> Self {
        Self { kind: ForgeErrorKind::Other, seen: failure.to_string(), failure, link: None }
    }
}
