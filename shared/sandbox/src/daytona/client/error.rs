//! Errors of Daytona, its proxy and its toolbox, and what they mean.

use bobbin_core::base::failure::Failure;
use bobbin_core::tenant::keys::Key;
use bobbin_http::{HttpError, ReceivedAnswer};

use crate::api::{ProviderRefusal, cut, unanswered, words};
use crate::daytona::types::ErrorBody;
use crate::provider::{ErrorKind, InSandbox, ProviderError};

/// An error, classified by what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DaytonaError {
    /// There is no key: nothing was sent.
    #[error("{}", Key::DaytonaApiKey.missing())]
    NoKey,
    /// 401: the key is bad or expired.
    #[error("Daytona refused the API key")]
    BadKey,
    /// 403: the key lacks the permission, or the organisation is suspended.
    #[error("Daytona does not allow this: {message}")]
    Forbidden {
        /// Daytona's message; may be empty.
        message: String,
    },
    /// 404: Daytona does not know the sandbox (or file).
    #[error("Daytona does not know this object")]
    NotFound,
    /// 409: the name is taken, or the sandbox is in transition.
    #[error("not now: {message}")]
    Conflict {
        /// Daytona's message; may be empty.
        message: String,
    },
    /// Too many requests (429).
    #[error("Daytona is limiting requests")]
    RateLimited {
        /// Requested delay in milliseconds, or 0.
        after_ms: u64,
    },
    /// 400 and similar: validation, quota, wrong state.
    #[error("Daytona refused the request ({status}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Daytona's message.
        message: String,
    },
    /// The toolbox or proxy cannot reach the sandbox: not started, or a stale cache.
    #[error("the sandbox cannot be reached: {message}")]
    Unreachable {
        /// Message of the proxy in front of the sandboxes.
        message: String,
    },
    /// 408: an exec ran over its timeout and was killed.
    #[error("the command timed out")]
    CommandTimeout,
    /// 5xx, a redirect, or an answer that is not Daytona's (such as a proxy's HTML).
    #[error("Daytona is not answering properly ({status}): {message}")]
    Unavailable {
        /// HTTP status.
        status: u16,
        /// Description of the actual answer.
        message: String,
    },
    /// No answer at all; whether the call had its effect is unknown.
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl DaytonaError {
    /// Whether Daytona says that the organisation's snapshot quota is used up. Only the message says so: the status was
    /// 403 in its last public source and is 400 since.
    #[must_use]
    pub fn says_snapshots_full(&self) -> bool {
        match self {
            Self::Forbidden { message } | Self::Refused { message, .. } => {
                let words = message.to_lowercase();
                words.contains("snapshot quota exceeded")
            }
            _ => false,
        }
    }

    /// What the sandbox's delivery has to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let seen = self.to_string();
        match self {
            full if full.says_snapshots_full() => Failure::NonRecoverable {
                advice: "This Daytona organisation already has as many snapshots as it may have. Delete a snapshot that nobody needs, then try again."
                    .to_owned(),
            },
            Self::NoKey => Failure::NonRecoverable { advice: seen },
            Self::BadKey => Failure::NonRecoverable {
                advice:
                    "Daytona refused the API key. The operator stores a valid daytona_api_key with `bobbin secrets`; if the server or workspace has its own key, somebody who manages it stores another one with Bobbin's setup command there."
                        .to_owned(),
            },
            Self::Forbidden { message } => Failure::NonRecoverable {
                advice: format!(
                    "Daytona does not allow this: {message} The operator has to check the key's permissions and the organisation."
                ),
            },
            Self::NotFound => Failure::SandboxGone,
            Self::Conflict { .. } => Failure::Wait { after_ms: 0, seen },
            Self::RateLimited { after_ms } => Failure::Wait {
                after_ms: *after_ms,
                seen,
            },
            Self::Refused { message, .. } => Failure::NonRecoverable {
                advice: format!(
                    "Daytona refused the request: {message} The operator has to check the quota and the settings."
                ),
            },
            Self::Unreachable { .. } | Self::CommandTimeout => Failure::SandboxDown { seen },
            Self::Unavailable { .. } => Failure::Outage { after_ms: 0, seen },
            Self::Http(error) => unanswered(error, "Daytona", "daytona_api"),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::CommandTimeout => ErrorKind::CommandTimeout,
            refused if refused.says_snapshots_full() => ErrorKind::SnapshotsFull,
            Self::BadKey | Self::Forbidden { .. } => ErrorKind::KeyRefused,
            _ => ErrorKind::Other,
        }
    }
}

impl InSandbox<DaytonaError> {
    /// What to do about a failed call of the toolbox: timeouts and server errors are the sandbox's, not Daytona's.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match &self.0 {
            // A 404 of the toolbox does not mean that the control API does not know the sandbox: observe.
            DaytonaError::NotFound
            | DaytonaError::Unavailable { .. }
            | DaytonaError::Http(HttpError::Timeout { .. } | HttpError::Transport { .. }) => {
                Failure::SandboxDown { seen: self.0.to_string() }
            }
            other => other.failure(),
        }
    }
}

impl From<DaytonaError> for ProviderError {
    fn from(error: DaytonaError) -> Self {
        Self { kind: error.kind(), failure: error.failure(), seen: error.to_string() }
    }
}

impl From<InSandbox<DaytonaError>> for ProviderError {
    fn from(error: InSandbox<DaytonaError>) -> Self {
        Self { kind: error.0.kind(), failure: error.failure(), seen: error.0.to_string() }
    }
}

impl ProviderRefusal for DaytonaError {
    fn of(answer: &ReceivedAnswer) -> Option<Self> {
        if answer.ok() {
            return None;
        }
        let body = ErrorBody::parse(&answer.body);
        let status = answer.status;
        let message = cut(&body.message());
        let spoken = || words(&message, answer);
        Some(match status {
            // An HTML page comes from something in between, and says nothing about key or sandbox.
            400..=499 if answer.media_type() == "text/html" => DaytonaError::Unavailable {
                status,
                message: "an HTML page instead of JSON".to_owned(),
            },
            401 => DaytonaError::BadKey,
            403 => DaytonaError::Forbidden { message: spoken() },
            400 if body.says_unreachable() => DaytonaError::Unreachable { message },
            404 => DaytonaError::NotFound,
            408 => DaytonaError::CommandTimeout,
            409 => DaytonaError::Conflict { message: spoken() },
            429 => DaytonaError::RateLimited { after_ms: answer.retry_after_ms().unwrap_or(0) },
            400..=499 => DaytonaError::Refused { status, message: spoken() },
            _ => DaytonaError::Unavailable { status, message: spoken() },
        })
    }

    fn no_answer(status: u16, message: String) -> Self {
        Self::Unavailable { status, message }
    }
}
