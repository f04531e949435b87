//! The meaning of Slack's refusals, and how to handle them.

use bobbin_core::base::failure::Failure;
use serde_json::Value;

/// Wait after a 429 that names no duration.
pub(super) const RETRY_AFTER_MS_DEFAULT: u64 = 1_000;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlackError {
    /// Too many calls; wait.
    #[error("Slack limits {method} for {after_ms} ms")]
    RateLimited {
        /// The Web API method that was called.
        method: &'static str,
        /// Milliseconds after which Slack accepts calls again, from `Retry-After`.
        after_ms: u64,
    },
    /// No connection was made: nothing has happened.
    #[error("Slack could not be reached for {method}: {seen}")]
    NotSent {
        /// The Web API method that was called.
        method: &'static str,
        /// Description of what was received instead of an answer.
        seen: String,
    },
    /// Unknown whether the call had its effect: check before repeating.
    #[error("Slack gave no clear answer to {method}: {seen}")]
    Unclear {
        /// The Web API method that was called.
        method: &'static str,
        /// Description of what was received instead of an answer.
        seen: String,
    },
    /// The address is not allowed.
    #[error("the Slack address cannot be used: {seen}")]
    Address {
        /// Our own guard's objection to the request.
        seen: String,
    },
    /// The token is not valid (any more).
    #[error("Slack does not accept the bot token: {error}")]
    Token {
        /// Slack's code for it, such as `invalid_auth`.
        error: String,
    },
    /// The app lacks a permission.
    #[error("the Slack app lacks the scope {needed} for {method}")]
    Scope {
        /// The Web API method that was called.
        method: &'static str,
        /// The scopes that would suffice, as Slack names them.
        needed: String,
    },
    /// The app is not in the channel.
    #[error("the Slack app is not in the channel ({error}): /invite it")]
    NotInvited {
        /// Slack's code for it, such as `not_in_channel`.
        error: String,
    },
    /// Nothing can be posted there now.
    #[error("the Slack channel or thread is closed to Bobbin: {error}")]
    Closed {
        /// Slack's code for it, such as `is_archived`.
        error: String,
    },
    /// Nothing can be posted there any more.
    #[error("the Slack thread is gone: {error}")]
    Gone {
        /// Slack's code for it, such as `thread_not_found`.
        error: String,
    },
    /// The post to be edited does not exist, or is not editable.
    #[error("the Slack message cannot be edited: {error}")]
    PostLost {
        /// Slack's code for it, such as `msg_too_long`.
        error: String,
    },
    /// Our arguments are wrong.
    #[error("Slack does not accept the arguments of {method}: {error} {details}")]
    Invalid {
        /// The Web API method that was called.
        method: &'static str,
        /// Slack's code for it, such as `not_allowed_token_type`.
        error: String,
        /// `response_metadata.messages`: where, not what.
        details: String,
    },
    /// Slack refused for a reason not classified here.
    #[error("Slack refused {method}: {error}")]
    Refused {
        /// The Web API method that was called.
        method: &'static str,
        /// Slack's code for it.
        error: String,
    },
    /// A thread or reply of another platform.
    #[error("this thread is not in Slack")]
    NotSlack,
}

impl SlackError {
    /// An answer with `ok: false`.
    pub(super) fn of_answer(method: &'static str, body: &Value) -> Self {
        let error = word(body["error"].as_str().unwrap_or("no_error_named"));
        match error.as_str() {
            "ratelimited" | "rate_limited" => {
                Self::RateLimited { method, after_ms: RETRY_AFTER_MS_DEFAULT }
            }
            // The last one: while Slack moves a workspace to an organisation, calls fail now and then.
            "internal_error"
            | "fatal_error"
            | "service_unavailable"
            | "request_timeout"
            | "team_added_to_org" => Self::Unclear { method, seen: error },
            "invalid_auth"
            | "not_authed"
            | "token_revoked"
            | "token_expired"
            | "account_inactive"
            | "org_login_required"
            | "ekm_access_denied"
            | "not_allowed_token_type" => Self::Token { error },
            "missing_scope" => Self::Scope {
                method,
                needed: word(body["needed"].as_str().unwrap_or("(not named)")),
            },
            "not_in_channel" | "channel_not_found" | "user_not_in_channel" => {
                Self::NotInvited { error }
            }
            "is_archived" | "message_limit_exceeded" => Self::Closed { error },
            "thread_not_found" | "cannot_reply_to_message" => Self::Gone { error },
            restricted if restricted.starts_with("restricted_action") => Self::Closed { error },
            "message_not_found" | "cant_update_message" | "edit_window_closed" => {
                Self::PostLost { error }
            }
            "msg_too_long"
            | "msg_blocks_too_long"
            | "invalid_blocks"
            | "invalid_blocks_format"
            | "no_text"
            | "invalid_arguments"
            | "invalid_json"
            | "invalid_metadata_format" => Self::Invalid { method, error, details: details(body) },
            _ => Self::Refused { method, error },
        }
    }

    /// Whether a repeat later may help, possibly after a check.
    pub(super) const fn passes(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::NotSent { .. } | Self::Unclear { .. })
    }
}

/// How the turn has to handle it.
impl From<SlackError> for Failure {
    fn from(error: SlackError) -> Self {
        let seen = error.to_string();
        let advice = match error {
            SlackError::RateLimited { after_ms, .. } => {
                return Self::Wait { after_ms, seen };
            }
            SlackError::NotSent { .. } | SlackError::Unclear { .. } => {
                return Self::Outage { after_ms: 0, seen };
            }
            // Until the operator has stored a new token: waiting messages are not lost.
            SlackError::Token { .. } => {
                let seen = format!(
                    "{seen}: the operator has to install the app again and store its bot token with `bobbin secrets`"
                );
                return Self::Outage { after_ms: 0, seen };
            }
            SlackError::NotInvited { .. } | SlackError::Closed { .. } => {
                return Self::ThreadClosed { seen };
            }
            SlackError::Gone { .. } | SlackError::PostLost { .. } => {
                return Self::ThreadGone { seen };
            }
            SlackError::Address { .. } => {
                format!("{seen}. The operator has to check slack_api of the parameter Overrides.")
            }
            SlackError::Scope { .. } => {
                format!("{seen}. The operator has to add it to the app and install the app again.")
            }
            SlackError::Invalid { .. } => {
                format!("{seen}. This is a bug in Bobbin; the operator finds more in the log.")
            }
            SlackError::Refused { .. } | SlackError::NotSlack => format!("{seen}."),
        };
        Self::NonRecoverable { advice }
    }
}

/// Slack's error names are short; anything else is not copied into a log.
fn word(error: &str) -> String {
    error.chars().filter(|c| c.is_ascii_alphanumeric() || "_:,.-".contains(*c)).take(100).collect()
}

/// The location of the error by Slack's account. The messages name rules and JSON pointers.
fn details(body: &Value) -> String {
    let messages = body["response_metadata"]["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Vec<&str> = messages.iter().filter_map(Value::as_str).take(5).collect();
    all.join("; ").chars().take(500).collect()
}
