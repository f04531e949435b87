//! Errors of calls to a daemon.

use bobbin_http::HttpError;
use serde_json::Value;

/// Why a call has no usable answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// No answer came.
    #[error("{0}")]
    Http(#[from] HttpError),
    /// The daemon refused.
    #[error("{detail}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The daemon's error type, such as `session_not_found`; empty if something else answered.
        kind: String,
        /// Advice for a person.
        detail: String,
    },
    /// The answer is not from bobbin-agentd.
    #[error("the server at this address is not bobbin-agentd; check the address")]
    NotADaemon,
    /// An embedded daemon did not start.
    #[error("{0}")]
    NotStarted(String),
    /// The stream of events broke.
    #[error("the event stream broke off; open a new one after the last event")]
    StreamEnded,
}

impl ClientError {
    pub(crate) fn refused(status: u16, body: Option<Value>) -> Self {
        let body = body.unwrap_or_default();
        let text = |name: &str| body[name].as_str().unwrap_or("").to_owned();
        let kind = text("type");
        let kind = kind.rsplit(':').next().unwrap_or("").to_owned();
        let detail = match text("detail") {
            detail if detail.is_empty() => format!("the daemon answered {status}"),
            detail => detail,
        };
        Self::Refused { status, kind, detail }
    }

    /// Whether the daemon refused with this error type.
    #[must_use]
    pub fn is_kind(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == wanted)
    }

    /// The HTTP status of a refusal.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}
