//! The seam: what Bobbin wants of wherever people talk.

use std::fmt;

use async_trait::async_trait;
use bobbin_core::card::{CardState, Post};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind, PostRef, ThreadKey};
use bobbin_core::message::{Control, Open, Reply};
use bobbin_core::overview::Picture;
use bobbin_core::person::Outside;

use crate::discord::Discord;
use crate::slack::Slack;

/// A person of a server or workspace, as far as it counts here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Member {
    /// An administrator or owner of the workspace: may change its settings.
    pub manages: bool,
    /// Not a full member of this workspace: a guest, a person of another organisation, a bot, or somebody who has left.
    pub outsider: bool,
}

/// What somebody's own page shows.
#[derive(Debug)]
pub enum Home<'a> {
    /// Why it shows nothing.
    Closed(&'a str),
    /// What runs for them, and what has ended.
    Open(&'a Picture),
}

/// A chat platform. What a platform does not have is an answer, and no error, unless that is said.
#[async_trait]
pub trait Chat: fmt::Debug + Send + Sync {
    /// Posts into a thread, or edits what stands at `at`. Made once, however often it is asked for.
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure>;

    /// Shows beside the thread how the turn stands that it works on, where the platform has a place for that. For the
    /// worker that holds the thread's group alone: who speaks of a turn that waits would speak over the one that runs.
    async fn set_status(&self, _thread: &ThreadKey, _turn: &str, _state: &CardState) {}

    /// Tells one person something that only they see, where the platform allows it.
    async fn tell(&self, reply: &Reply, text: &str) -> Result<(), Failure>;

    /// Answers a question that a person asked in a thread: to them alone, or in the thread where the question stands in it.
    async fn answer(&self, control: &Control, text: &str) -> Result<(), Failure>;

    /// Shows what a turn changed, to the person who asks or in the thread, once however often somebody asks.
    async fn show_diff(
        &self,
        thread: &ThreadKey,
        turn: &str,
        reply: &Reply,
        patch: &str,
    ) -> Result<(), Failure>;

    /// Whether somebody is not known as a full member of where they ask. That it could not be found out is no admission.
    async fn outside(&self, _user: &str) -> Result<Option<Outside>, Failure> {
        Ok(None)
    }

    /// Whether who asks may manage the server or workspace.
    async fn manages(&self, control: &Control) -> Result<bool, Failure> {
        Ok(control.standing.manages)
    }

    /// Who somebody is there, asked anew. Where requests say it themselves this fails.
    async fn member(&self, _user: &str) -> Result<Member, Failure> {
        Err(without("list of its people"))
    }

    /// Makes the thread of a task that was asked for where none is yet. Where every message has its thread this fails.
    async fn open(&self, _open: &Open, _now_ms: Ms) -> Result<ThreadKey, Failure> {
        Err(without("threads that are made for a task"))
    }

    /// Tells who asked for a task that no thread was made for it, for as long as anybody can be told.
    async fn tell_unopened(&self, open: &Open, text: &str) -> Result<(), Failure> {
        self.tell(&open.reply, text).await
    }

    /// Shows somebody their own page. Where people have none this fails.
    async fn show_home(&self, _user: &str, _home: Home<'_>) -> Result<(), Failure> {
        Err(without("pages of people's own"))
    }

    /// The same in words. Where people have no such page this fails.
    fn home_words(&self, _picture: &Picture) -> Result<String, Failure> {
        Err(without("pages of people's own"))
    }
}

fn without(what: &str) -> Failure {
    Failure::NonRecoverable {
        advice: format!("This chat has no {what}, so nothing was done."),
    }
}

/// What the platforms are reached with. A platform without application or token is off.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Base of Discord's API, with its version.
    pub discord_api: &'a str,
    /// The application's id; empty without Discord.
    pub discord_application: &'a str,
    /// The bot's token. It may be empty: an interaction is answered without one.
    pub discord_bot_token: &'a str,
    /// Base of Slack's Web API.
    pub slack_api: &'a str,
    /// The bot's token; empty without Slack.
    pub slack_bot_token: &'a str,
    /// Short answers are shown on Slack while they are written.
    pub slack_stream_answers: bool,
}

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
    pub fn new(settings: &Settings<'_>) -> Result<Self, String> {
        Ok(Self {
            discord: Discord::configured(settings)?,
            slack: Slack::configured(settings)?,
        })
    }

    /// The one that a thread is on.
    ///
    /// # Errors
    /// A [`Failure`] with what to configure.
    pub fn of(&self, thread: &ThreadKey) -> Result<&dyn Chat, Failure> {
        match thread {
            ThreadKey::Discord { .. } => self.discord(),
            ThreadKey::Slack { .. } => self.slack(),
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
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure> {
        let chat = self.of(thread)?;
        chat.post(thread, turn, kind, at, post).await
    }

    /// Shows beside the thread how the turn stands that it works on ([`Chat::set_status`]).
    pub async fn set_status(&self, thread: &ThreadKey, turn: &str, state: &CardState) {
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

    /// How an answer is cut for the platform of this thread.
    #[must_use]
    pub fn split(thread: &ThreadKey) -> fn(&str) -> Vec<String> {
        match thread {
            ThreadKey::Discord { .. } => crate::discord::split,
            ThreadKey::Slack { .. } => crate::slack::split,
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
