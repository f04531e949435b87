//! Errors of Vercel's API, and what they mean.

use bobbin_core::base::failure::Failure;
use bobbin_core::tenant::keys::Key;
use bobbin_http::{HttpError, ReceivedAnswer, sentence};
use serde_json::Value;

use crate::api::{ProviderRefusal, cut, instead_of, unanswered, words};
use crate::provider::{ErrorKind, InSandbox, ProviderError};

/// An error, classified by what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VercelError {
    /// There is no token: nothing was sent.
    #[error("{}", Key::VercelToken.missing())]
    NoKey,
    /// No team or project is configured: nothing was sent.
    #[error("the setting {setting} of the parameter Overrides is missing")]
    NoProject {
        /// The name of the setting.
        setting: &'static str,
    },
    /// 401: the token is bad or expired.
    #[error("Vercel refused the token")]
    BadKey,
    /// 402, 403: the token lacks the permission, or the team has to pay.
    #[error("Vercel does not allow this: {message}")]
    Forbidden {
        /// Vercel's message.
        message: String,
    },
    /// 404: Vercel does not know the sandbox (or file).
    #[error("Vercel does not know this object")]
    NotFound,
    /// 400 with a message about a taken name.
    #[error("the name is taken: {message}")]
    NameTaken {
        /// Vercel's message.
        message: String,
    },
    /// 410 `sandbox_stopped`: the session has ended.
    #[error("the sandbox's session has ended: {message}")]
    Stopped {
        /// Vercel's message.
        message: String,
    },
    /// 410 `snapshot_not_found`: the snapshot was deleted or has expired.
    #[error("the snapshot no longer exists: {message}")]
    SnapshotGone {
        /// Vercel's message.
        message: String,
    },
    /// 409, 422: the sandbox is stopping, or a snapshot of it is being made.
    #[error("not now: {message}")]
    InTransition {
        /// Vercel's message.
        message: String,
    },
    /// Too many requests (429).
    #[error("Vercel is limiting requests")]
    RateLimited {
        /// Requested delay in milliseconds, or 0.
        after_ms: u64,
    },
    /// 400 and similar: validation, quota.
    #[error("Vercel refused the request ({status}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Vercel's message.
        message: String,
    },
    /// A command exceeded its time and was killed.
    #[error("the command timed out")]
    CommandTimeout,
    /// The output of a command broke off.
    #[error("the command's output broke off: {message}")]
    BrokenOff {
        /// The message received instead.
        message: String,
    },
    /// 5xx, a redirect, or an answer that is not Vercel's.
    #[error("Vercel is not answering properly ({status}): {message}")]
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

impl VercelError {
    /// What the sandbox's delivery has to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let seen = self.to_string();
        match self {
            Self::NoKey => Failure::NonRecoverable { advice: seen },
            Self::NoProject { setting } => Failure::NonRecoverable {
                advice: format!(
                    "Vercel needs {setting}. The operator has to name it in the parameter Overrides."
                ),
            },
            Self::BadKey => Failure::NonRecoverable {
                advice: "Vercel refused the token. The operator stores a valid vercel_token with `bobbin secrets`."
                    .to_owned(),
            },
            Self::Forbidden { message } => Failure::NonRecoverable {
                advice: format!(
                    "Vercel does not allow this: {message} The operator has to check the token's team, vercel_team_id and vercel_project_id, and the team's plan."
                ),
            },
            // A snapshot that is gone is the disk of its sandbox.
            Self::NotFound | Self::SnapshotGone { .. } => Failure::SandboxGone,
            Self::NameTaken { .. } | Self::InTransition { .. } => Failure::Wait { after_ms: 0, seen },
            Self::RateLimited { after_ms } => Failure::Wait {
                after_ms: *after_ms,
                seen,
            },
            Self::Refused { message, .. } => Failure::NonRecoverable {
                advice: format!(
                    "Vercel refused the request: {message} The operator has to check the team's limits and the settings."
                ),
            },
            Self::Stopped { .. } | Self::CommandTimeout | Self::BrokenOff { .. } => {
                Failure::SandboxDown { seen }
            }
            Self::Unavailable { .. } => Failure::Outage { after_ms: 0, seen },
            Self::Http(error) => unanswered(error, "Vercel", "vercel_api"),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::CommandTimeout => ErrorKind::CommandTimeout,
            Self::BadKey | Self::Forbidden { .. } => ErrorKind::KeyRefused,
            _ => ErrorKind::Other,
        }
    }

    /// Classifies the error in an answer, or in a line in the middle of one.
    fn said(status: u16, code: &str, message: String, after_ms: u64) -> Self {
        match (status, code) {
            (_, "sandbox_stopped") => Self::Stopped { message },
            (_, "snapshot_not_found") => Self::SnapshotGone { message },
            (_, "sandbox_stopping" | "sandbox_snapshotting") | (409, _) => {
                Self::InTransition { message }
            }
            (401, _) => Self::BadKey,
            (402 | 403, _) => Self::Forbidden { message },
            (404, _) => Self::NotFound,
            (410, _) => Self::Stopped { message },
            (429, _) => Self::RateLimited { after_ms },
            (400, _) if message.contains("already exists") => Self::NameTaken { message },
            (400..=499, _) => Self::Refused { status, message },
            _ => Self::Unavailable { status, message },
        }
    }

    /// Classifies an error line in a command's output.
    pub(super) fn in_stream(data: &Value) -> Self {
        let code = data["code"].as_str().unwrap_or_default();
        let message = cut(&sentence(&data["message"]));
        match Self::said(0, code, message, 0) {
            Self::Unavailable { message, .. } => Self::BrokenOff { message },
            known => known,
        }
    }
}

impl InSandbox<VercelError> {
    /// What to do about a failed call into a session: timeouts, server errors and an unknown session are the sandbox's,
    /// so that it is observed next.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match &self.0 {
            VercelError::Unavailable { .. }
            | VercelError::NotFound
            | VercelError::InTransition { .. }
            | VercelError::Http(HttpError::Timeout { .. } | HttpError::Transport { .. }) => {
                Failure::SandboxDown { seen: self.0.to_string() }
            }
            other => other.failure(),
        }
    }
}

impl From<VercelError> for ProviderError {
    fn from(error: VercelError) -> Self {
        Self { kind: error.kind(), failure: error.failure(), seen: error.to_string() }
    }
}

impl From<InSandbox<VercelError>> for ProviderError {
    fn from(error: InSandbox<VercelError>) -> Self {
        Self { kind: error.0.kind(), failure: error.failure(), seen: error.0.to_string() }
    }
}

impl ProviderRefusal for VercelError {
    fn of(answer: &ReceivedAnswer) -> Option<Self> {
        if answer.ok() {
            return None;
        }
        let status = answer.status;
        let after_ms = answer.retry_after_ms().unwrap_or(0);
        // An HTML page comes from something in between, and says nothing about token or sandbox.
        let Some(body) = answer.json::<Value>() else {
            return Some(match status {
                429 => Self::RateLimited { after_ms },
                _ => Self::no_answer(status, instead_of(answer, "JSON")),
            });
        };
        let code = body["error"]["code"].as_str().unwrap_or_default();
        let message = words(&sentence(&body["error"]["message"]), answer);
        Some(Self::said(status, code, message, after_ms))
    }

    fn no_answer(status: u16, message: String) -> Self {
        Self::Unavailable { status, message }
    }
}
