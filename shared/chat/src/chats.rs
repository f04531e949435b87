//! Which chats there are, and which one a thread is on.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, ThreadKey, TurnId};
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::message::Reply;
use bobbin_core::records::session::Session;
use bobbin_core::shown::sandboxes::{Listed, Page};
use bobbin_core::tenant::settings::Settings;
use bobbin_http::HttpAnswer;

use crate::chat::{Chat, ChatSettings};
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

    /// Posts into a thread, or edits what stands at `at`.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let chat = self.of(thread)?;
        chat.post(thread, turn, kind, at, post).await
    }

    /// A record was read ([`Chat::learn`]).
    pub fn learn(&self, session: &Session) {
        if let Ok(chat) = self.of(&session.thread) {
            chat.learn(session);
        }
    }

    /// Shows beside the thread how the turn stands that it works on ([`Chat::set_status`]).
    pub async fn set_status(&self, thread: &ThreadKey, turn: &TurnId, state: &CardState) {
        if let Ok(chat) = self.of(thread) {
            chat.set_status(thread, turn, state).await;
        }
    }

    /// Tells one person something that only they see, if anybody waits for it.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn tell(&self, reply: &Reply, text: &str) -> Result<(), Failure> {
        match self.of_reply(reply)? {
            Some(chat) => chat.tell(reply, text).await,
            None => Ok(()),
        }
    }

    /// Tells who asked, beside a thread that cannot be written in, once however often it is asked for.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn tell_beside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        word: &str,
    ) -> Result<(), Failure> {
        let chat = self.of(thread)?;
        chat.tell_beside(thread, turn, people, word).await
    }

    /// Tells another thread what became of the sandbox that it shares, once however often it is asked for, and puts the
    /// thread away where that is wanted and the platform can. A thread that is gone or closed counts as told.
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
        let chat = self.of(thread)?;
        let notice = Post::Notice(word.to_owned());
        let posted = chat.post(thread, turn, &PostKind::Notice, None, &notice);
        let told = match posted.await {
            Ok(_) if archive => chat.archive(thread).await,
            Ok(_) => Ok(()),
            Err(failure) => Err(failure),
        };
        match told {
            Err(Failure::ThreadClosed { .. } | Failure::ThreadGone { .. }) => Ok(()),
            told => told,
        }
    }

    /// Shows one person the sandboxes that have a name, if anybody waits for it.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn show_sandboxes(&self, reply: &Reply, page: &Page) -> Result<(), Failure> {
        match self.of_reply(reply)? {
            Some(chat) => chat.show_sandboxes(reply, page).await,
            None => Ok(()),
        }
    }

    /// Asks one person whether a sandbox is to be deleted, if anybody waits for it.
    ///
    /// # Errors
    /// What the failure means.
    pub async fn ask_destroy(
        &self,
        thread: &ThreadKey,
        reply: &Reply,
        sandbox: &Listed,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        match self.of_reply(reply)? {
            Some(chat) => chat.ask_destroy(thread, reply, sandbox, now_ms).await,
            None => Ok(()),
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
