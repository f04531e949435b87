//! Which chats there are, and which one a thread is on.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{PostKind, ThreadKey, TurnId};
use bobbin_core::records::card::Post;
use bobbin_core::records::message::Reply;
use bobbin_core::tenant::settings::Settings;
use bobbin_http::HttpAnswer;

use crate::chat::{Chat, ChatSettings, Say};
use crate::discord::Discord;
use crate::inbound::{Known, Lookup};
use crate::slack::Slack;

/// The chats that there are: a further one is a folder, and a line in each of these functions.
#[derive(Debug)]
pub struct Chats {
    discord: Option<Discord>,
    slack: Option<Slack>,
}

impl Chats {
    /// Those that the settings name. Discord needs no token to answer an interaction: so whoever asks there hears that the
    /// token is missing.
    ///
    /// # Errors
    /// A sentence that names the address that cannot be used.
    pub fn new(settings: &ChatSettings<'_>) -> Result<Self, String> {
        Ok(Self { discord: Discord::configured(settings)?, slack: Slack::configured(settings)? })
    }

    /// The one that a thread is on.
    ///
    /// # Errors
    /// A [`Failure`] with what to configure.
    pub fn of(&self, thread: &ThreadKey) -> Result<&dyn Chat, Failure> {
        match thread {
            ThreadKey::Discord { .. } => self.discord(),
            ThreadKey::Slack { .. } | ThreadKey::SlackDirect { .. } => self.slack(),
            ThreadKey::Sandbox(_) => Err(Failure::NonRecoverable {
                advice: "Nobody talks in the group of a sandbox, so nothing is shown there."
                    .to_owned(),
            }),
        }
    }

    /// The one that an answer goes to; none where nobody waits for one.
    ///
    /// # Errors
    /// A [`Failure`] with what to configure.
    pub fn of_reply(&self, reply: &Reply) -> Result<Option<&dyn Chat>, Failure> {
        match reply {
            Reply::Discord { .. } => self.discord().map(Some),
            Reply::Slack { .. } => self.slack().map(Some),
            Reply::Nobody => Ok(None),
        }
    }

    /// Answers a request of one person, if anybody waits for an answer.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn tell<'a>(
        &self,
        reply: &Reply,
        say: impl Into<Say<'a>> + Send,
    ) -> Result<(), Failure> {
        match self.of_reply(reply)? {
            Some(chat) => chat.tell(reply, say.into()).await,
            None => Ok(()),
        }
    }

    /// Tells another thread what became of the sandbox that it shares, once however often it is asked for, and archives the
    /// thread where that is wanted and the platform can. A thread that is gone or closed counts as told.
    ///
    /// # Errors
    /// What the failure means, of one that passes or that somebody has to do something about.
    pub async fn tell_thread(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        word: &str,
        archive: bool,
    ) -> Result<(), Failure> {
        if !thread.is_conversation() {
            return Ok(());
        }
        let word = word.to_owned();
        let post = if archive { Post::Closing(word) } else { Post::Notice(word) };
        let told = self.of(thread)?.post(thread, turn, &PostKind::Notice, None, &post).await;
        match told {
            Ok(_) | Err(Failure::ThreadClosed { .. } | Failure::ThreadGone { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// The values that are suggested to somebody who types, as the platform takes them.
    #[must_use]
    pub fn suggestions(lookup: &Lookup, settings: &Settings, known: &Known) -> HttpAnswer {
        if lookup.tenant.as_str().starts_with("slack:") {
            crate::slack::suggested(lookup, settings, &known.catalogue)
        } else {
            crate::discord::completed(lookup, settings, known)
        }
    }

    /// How an answer is cut for the platform of this thread.
    #[must_use]
    pub fn split(thread: &ThreadKey) -> fn(&str) -> Vec<String> {
        match thread {
            ThreadKey::Discord { .. } => crate::discord::split,
            ThreadKey::Slack { .. } | ThreadKey::SlackDirect { .. } => crate::slack::split,
            // Nothing is ever said there.
            ThreadKey::Sandbox(_) => |text| vec![text.to_owned()],
        }
    }

    fn discord(&self) -> Result<&dyn Chat, Failure> {
        let discord = self.discord.as_ref().map(|chat| chat as &dyn Chat);
        discord.ok_or_else(crate::discord::off)
    }

    fn slack(&self) -> Result<&dyn Chat, Failure> {
        let slack = self.slack.as_ref().map(|chat| chat as &dyn Chat);
        slack.ok_or_else(crate::slack::off)
    }
}
