//! Errors of calls to an OpenCode server.

use bobbin_core::base::endpoint::NoEndpoint;
use bobbin_core::base::failure::Failure;
use bobbin_http::{HttpError, ReceivedAnswer, sentence};
use serde::Deserialize;
use serde_json::Value;

use crate::runtime::{AgentError, AgentErrorKind, Missed};

/// An error, classified by what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenCodeError {
    /// Neither the proxy nor the server gave an OpenCode answer.
    #[error("the server does not answer: {seen}")]
    Unreachable {
        /// What was received instead: a connection error, a status, a media type.
        seen: String,
    },
    /// A redirect, twice: the endpoint's token is not accepted.
    #[error("the preview refuses its token")]
    StaleEndpoint,
    /// 401: the server was started with another password.
    #[error("the server refuses its password")]
    WrongPassword,
    /// OpenCode does not know the session.
    #[error("OpenCode does not know the session")]
    SessionMissing,
    /// OpenCode does not know the message, or the ask is already settled.
    #[error("OpenCode does not know this: {message}")]
    NotFound {
        /// OpenCode's message; may be empty.
        message: String,
    },
    /// OpenCode refused, or failed internally. A 500 may be caused by the request itself, so it is not repeated
    /// blindly.
    #[error("OpenCode refused the request ({status}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// OpenCode's message; may be empty.
        message: String,
    },
    /// OpenCode's answer exceeds our bound.
    #[error("OpenCode's answer is too large: {seen}")]
    TooLarge {
        /// Its size, and the bound.
        seen: String,
    },
    /// The provider gave no endpoint.
    #[error(transparent)]
    NoEndpoint(#[from] NoEndpoint),
    /// The guard refused the request.
    #[error("{0}")]
    Guard(HttpError),
}

impl OpenCodeError {
    /// What the turn has to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let seen = self.to_string();
        match self {
            Self::Unreachable { .. } | Self::StaleEndpoint | Self::WrongPassword => {
                Failure::SandboxDown { seen }
            }
            Self::SessionMissing => Failure::SessionMissing,
            Self::NotFound { .. } | Self::Refused { .. } | Self::TooLarge { .. } => {
                Failure::TurnFailed { reason: seen }
            }
            Self::NoEndpoint(none) => none.failure.clone(),
            Self::Guard(_) => Failure::NonRecoverable {
                advice: format!(
                    "The sandbox's address cannot be used: {seen}. The operator has to check the provider's address in the parameter Overrides."
                ),
            },
        }
    }

    /// Whether a fresh endpoint may help.
    pub(super) const fn is_of_the_endpoint(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::StaleEndpoint)
    }
}

impl From<HttpError> for OpenCodeError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Refused { .. } => Self::Guard(error),
            HttpError::TooLarge { .. } => Self::TooLarge { seen: error.to_string() },
            _ => Self::Unreachable { seen: error.to_string() },
        }
    }
}

impl From<OpenCodeError> for AgentError {
    fn from(error: OpenCodeError) -> Self {
        Self {
            kind: match &error {
                OpenCodeError::Guard(_) => AgentErrorKind::Final,
                OpenCodeError::NoEndpoint(none) if none.is_gone => AgentErrorKind::Final,
                _ => AgentErrorKind::Other,
            },
            failure: error.failure(),
            seen: error.to_string(),
        }
    }
}

/// A failed request, and whether it certainly had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAccepted {
    /// The last error.
    pub error: OpenCodeError,
    /// OpenCode certainly did nothing: the request was never sent, or was refused by the proxy or by OpenCode itself.
    pub certain: bool,
}

impl From<NotAccepted> for Missed {
    fn from(missed: NotAccepted) -> Self {
        Self { error: missed.error.into(), certain: missed.certain }
    }
}

/// Kind of call, for errors that depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Session,
    Other,
}

/// Whether this status means that the request was not passed on or not accepted: a redirect of the proxy, or a fault of
/// the request itself. A proxy's 5xx, or its "took too long", may come after the request was passed on.
pub(super) const fn is_refusal(status: u16) -> bool {
    matches!(status, 300..=407 | 409..=499)
}

pub(super) fn not_an_answer(answer: &ReceivedAnswer) -> OpenCodeError {
    let kind = answer.media_type();
    let kind = if kind.is_empty() { "nothing" } else { &kind };
    OpenCodeError::Unreachable {
        seen: format!("{kind} with status {} instead of OpenCode's JSON", answer.status),
    }
}

/// OpenCode's errors have two shapes; any other shape is the proxy's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenCodeErrorBody {
    name: Option<String>,
    _tag: Option<String>,
    message: String,
    data: ErrorBodyData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorBodyData {
    message: String,
}

pub(super) fn classify(answer: &ReceivedAnswer, about: CallKind) -> Option<OpenCodeError> {
    let status = answer.status;
    if answer.ok() {
        return None;
    }
    if (300..400).contains(&status) {
        return Some(OpenCodeError::StaleEndpoint);
    }
    if status == 401 && answer.headers.contains_key("www-authenticate") {
        return Some(OpenCodeError::WrongPassword);
    }
    let body: OpenCodeErrorBody = answer.json().unwrap_or_default();
    let own = body.name.is_some() || body._tag.is_some();
    if !own {
        let body: Value = answer.json().unwrap_or_default();
        let said = sentence(&body["message"]);
        let seen = if said.is_empty() {
            format!("status {status}")
        } else {
            format!("status {status}: {said}")
        };
        return Some(OpenCodeError::Unreachable { seen: seen.chars().take(300).collect() });
    }
    let message = if body.data.message.is_empty() { body.message } else { body.data.message };
    Some(match status {
        404 if about == CallKind::Session && message.starts_with("Session not found") => {
            OpenCodeError::SessionMissing
        }
        404 => OpenCodeError::NotFound { message },
        _ => OpenCodeError::Refused {
            status,
            message: message.lines().next().unwrap_or("").chars().take(300).collect(),
        },
    })
}
