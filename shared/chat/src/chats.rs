//! The available chats, and the chat of a thread.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Tenant, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::Post;
use bobbin_core::records::message::{Open, Overview, Reply};
use bobbin_core::tenant::settings::Settings;
use bobbin_http::HttpAnswer;

use crate::chat::{Chat, ChatSettings, FileSource, OverviewScope, Say};
use crate::discord::{Discord, DiscordEndpoints};
use crate::endpoints::{EndpointSettings, Endpoints};
use crate::inbound::{KnownValues, Lookup};
use crate::slack::{Slack, SlackEndpoints};

/// The available chats: another one is a folder, and a line in each of these functions.
#[derive(Debug)]
pub struct Chats {
    discord: Option<Discord>,
    slack: Option<Slack>,
}

impl Chats {
    /// The configured chats. Discord needs no token to answer an interaction: so its users hear that the token is
    /// missing.
    ///
    /// # Errors
    /// A sentence that names the unusable address.
    pub fn new(settings: &ChatSettings<'_>) -> Result<Self, String> {
        Ok(Self { discord: Discord::configured(settings)?, slack: Slack::configured(settings)? })
    }

    /// The endpoints of all platforms.
    ///
    /// # Errors
    /// A sentence that names the unusable setting.
    pub fn endpoints(settings: &EndpointSettings<'_>) -> Result<Vec<Box<dyn Endpoints>>, String> {
        Ok(vec![
            Box::new(DiscordEndpoints::configured(settings)?),
            Box::new(SlackEndpoints::configured(settings)),
        ])
    }

    /// Where the platforms keep the files of messages.
    #[must_use]
    pub fn files(settings: &ChatSettings<'_>) -> Vec<FileSource> {
        vec![crate::discord::files(settings), crate::slack::files(settings)]
    }

    /// The tenant of a task that has no thread yet: on other platforms every message has one.
    #[must_use]
    pub fn tenant_of(open: &Open) -> Tenant {
        Tenant::discord(&open.guild)
    }

    /// What a person's overview is about: only one platform has such pages.
    ///
    /// # Errors
    /// Its ids are not the platform's.
    pub fn scope_of(overview: &Overview) -> Result<OverviewScope, Failure> {
        crate::slack::scope(overview)
    }

    /// The chat of a thread.
    ///
    /// # Errors
    /// A [`Failure`] with what to configure.
    pub fn of(&self, thread: &ThreadKey) -> Result<&dyn Chat, Failure> {
        match thread {
            ThreadKey::Discord { .. } => self.discord(),
            ThreadKey::Slack { .. } | ThreadKey::SlackDirect { .. } => self.slack(),
            ThreadKey::Sandbox(_) => Err(Failure::NonRecoverable {
                advice: "A sandbox's own group has no chat, so nothing is shown there.".to_owned(),
            }),
        }
    }

    /// The chat for an answer; `None` if nobody waits for one.
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

    /// Answers one person's request, if anybody waits for an answer.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn answer<'a>(
        &self,
        reply: &Reply,
        say: impl Into<Say<'a>> + Send,
    ) -> Result<(), Failure> {
        match self.of_reply(reply)? {
            Some(chat) => chat.answer(reply, say.into()).await,
            None => Ok(()),
        }
    }

    /// Tells another thread what happened to the sandbox that it shares, and archives the thread if requested and
    /// supported. Idempotent. A thread that is gone or closed counts as told.
    ///
    /// # Errors
    /// A transient failure, or one that somebody has to act on.
    pub async fn notify_thread(
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

    /// Suggested values for a person who is typing, in the platform's format.
    #[must_use]
    pub fn suggestions(lookup: &Lookup, settings: &Settings, known: &KnownValues) -> HttpAnswer {
        if lookup.tenant.as_str().starts_with("slack:") {
            crate::slack::suggested(lookup, settings, &known.catalogue)
        } else {
            crate::discord::completed(lookup, settings, known)
        }
    }

    /// The function that splits an answer for this thread's platform.
    #[must_use]
    pub fn split(thread: &ThreadKey) -> fn(&str) -> Vec<String> {
        match thread {
            ThreadKey::Discord { .. } => crate::discord::split,
            ThreadKey::Slack { .. } | ThreadKey::SlackDirect { .. } => crate::slack::split,
            // Nothing is ever posted there.
            ThreadKey::Sandbox(_) => |text| vec![text.to_owned()],
        }
    }

    /// Whether a message could also have been put into another thread: direct messages are one thread of the person's,
    /// or each begins one.
    #[must_use]
    pub fn is_direct(thread: &ThreadKey) -> bool {
        crate::slack::is_direct_thread(thread)
    }

    /// The message with which a thread of direct messages began; `None` for any other thread.
    #[must_use]
    pub fn begun_by(thread: &ThreadKey) -> Option<TurnId> {
        crate::slack::begun_by(thread)
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
