//! Discord's refusals and their meaning.

use bobbin_core::base::failure::Failure;
use bobbin_core::tenant::keys::Key;
use bobbin_http::HttpError;

/// Why a call to Discord failed. Holds no token and no text of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscordError {
    /// Discord answered with an error.
    #[error("Discord answered {status} (code {code}) to {route}: {message}")]
    Api {
        /// The route without its ids, as logged.
        route: &'static str,
        /// HTTP status of the answer.
        status: u16,
        /// Discord's code, 0 if it gave none.
        code: u64,
        /// Discord's message; for an invalid form also the path of the field.
        message: String,
    },
    /// Rate limited, for longer than is waited in place.
    #[error("Discord asks to wait {after_ms} ms")]
    RateLimited {
        /// Milliseconds after which Discord accepts requests again.
        after_ms: u64,
    },
    /// The bot token is invalid; this process makes no call with it for a while.
    #[error(
        "Discord refused the bot token: the operator has to store the current one from the developer portal with `bobbin secrets`"
    )]
    Revoked,
    /// There is no bot token: only interactions can be answered.
    #[error("{}", Key::DiscordBotToken.missing())]
    NoToken,
    /// An interaction can no longer be answered: its 15 minutes are over, or Discord dropped it.
    #[error("the interaction's token is no longer valid")]
    TokenGone,
    /// The interaction was answered with a refusal, because the queue's acceptance came too late: the person was told
    /// that nothing was started, and that must stay true.
    #[error("it could not be accepted in time. Please try again")]
    Unheard,
    /// The thread is archived, and locked so that only moderators can reopen it.
    #[error("the thread is archived and locked")]
    Locked,
    /// The call failed, or its outcome is not known.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The answer is not what Discord documents.
    #[error(
        "Discord's answer to {route} (status {status}) could not be read; its address may be wrong"
    )]
    Unreadable {
        /// The route without its ids, as logged.
        route: &'static str,
        /// HTTP status of the answer.
        status: u16,
    },
    /// A thread or reply of another platform.
    #[error("this does not belong to Discord: {0}")]
    NotDiscord(String),
}

impl DiscordError {
    /// Discord's code; 0 for an error without one.
    #[must_use]
    pub const fn code(&self) -> u64 {
        match self {
            Self::Api { code, .. } => *code,
            _ => 0,
        }
    }
}

/// How to handle the error.
impl From<DiscordError> for Failure {
    fn from(error: DiscordError) -> Self {
        let seen = error.to_string();
        let advice = |advice: &str| Self::NonRecoverable { advice: advice.to_owned() };
        match error {
            DiscordError::RateLimited { after_ms } => Self::Wait { after_ms, seen },
            // Until the operator has stored the new token: waiting messages are not lost.
            DiscordError::Revoked => Self::Outage { after_ms: 0, seen },
            DiscordError::NoToken | DiscordError::TokenGone | DiscordError::Unheard | DiscordError::NotDiscord(_) => Self::NonRecoverable { advice: seen },
            DiscordError::Locked => Self::ThreadClosed { seen },
            DiscordError::Http(HttpError::Refused { .. }) => Self::NonRecoverable { advice: seen },
            DiscordError::Http(_) | DiscordError::Unreadable { .. } => Self::Outage { after_ms: 0, seen },
            DiscordError::Api { code, status, .. } => match code {
                10_003 | 10_004 => Self::ThreadGone { seen: "the thread, its channel or the server was deleted".to_owned() },
                50_001 | 50_013 => Self::ThreadClosed {
                    seen: "the app may not see or write in this thread: it needs View Channels, Send Messages in Threads and Read Message History".to_owned(),
                },
                160_005 => Self::ThreadClosed { seen: "the thread is locked".to_owned() },
                160_006 | 160_007 => advice("This server has too many active threads. Archive some, then try again."),
                50_024 => advice("Threads cannot be created in this kind of channel. Use a text channel."),
                40_005 | 50_045 => advice("A file is too large for this server."),
                400_001 => advice("Uploads are limited in this server."),
                200_000 | 240_000 => advice("This server's message filter blocked the answer."),
                20_028 | 20_029 | 40_062 | 130_000 => Self::Wait { after_ms: 0, seen },
                _ if status == 429 => Self::Wait { after_ms: 0, seen },
                _ if status >= 500 || status == 408 => Self::Outage { after_ms: 0, seen },
                _ => Self::NonRecoverable { advice: format!("{seen}. This is a bug in Bobbin: tell its operator.") },
            },
        }
    }
}
