//! The seam: what Bobbin wants of wherever people talk.

use std::fmt;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, ThreadKey, TurnId};
use bobbin_core::base::person::{Membership, Outside};
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::message::{Open, Overview, Reply};
use bobbin_core::records::session::Session;
use bobbin_core::shown::overview::Picture;
use bobbin_core::shown::sandboxes::{Listed, Page};

/// A person of a server or workspace, as far as it counts here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Member {
    /// An administrator or owner of the workspace: may change its settings.
    pub manages: bool,
    /// Not a full member of this workspace: a guest, a person of another organisation, a bot, or somebody who has left.
    pub outsider: bool,
}

/// What a person is told in answer to a request. Only they see it, where the platform allows that and nothing else is said.
#[derive(Debug, Clone, Copy)]
pub enum Say<'a> {
    /// Words.
    Words(&'a str),
    /// The answer to a question that they asked in a thread. It stands in the thread where the question does.
    Answer {
        /// Where they asked.
        thread: &'a ThreadKey,
        /// Names the answer, so that it stands there once.
        id: &'a TurnId,
        /// The answer.
        words: &'a str,
    },
    /// That no thread was made for their task. Where the request cannot be answered any more, it is said in the channel.
    Unopened {
        /// The task.
        open: &'a Open,
        /// Why there is no thread.
        words: &'a str,
    },
    /// A page of the sandboxes that have a name, with what can be done about each.
    Sandboxes(&'a Page),
    /// The question whether a sandbox is to be deleted, with what would be lost.
    AskDestroy {
        /// Where they asked for it.
        thread: &'a ThreadKey,
        /// The sandbox.
        sandbox: &'a Listed,
        /// Now, for the ages of what would be lost.
        now_ms: Ms,
    },
    /// What a turn changed. Too much for one person's words may come as a file in the thread, once however often somebody asks.
    Diff {
        /// The turn's thread.
        thread: &'a ThreadKey,
        /// The turn.
        turn: &'a TurnId,
        /// Summary and patch.
        patch: &'a str,
    },
}

impl<'a> From<&'a str> for Say<'a> {
    fn from(words: &'a str) -> Self {
        Self::Words(words)
    }
}

impl<'a> From<&'a String> for Say<'a> {
    fn from(words: &'a String) -> Self {
        Self::Words(words)
    }
}

/// What an overview shows.
#[derive(Debug, Clone, Copy)]
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
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure>;

    /// A record was read: other processes may have posted since this one last did, and the record may say where its thread's
    /// posts stand. To be called before the first post of a delivery.
    fn learn(&self, _session: &Session) {}

    /// Shows beside the thread the state of the turn that it works on, where the platform has a place for that. Only the
    /// worker that holds the thread's group calls this: a turn that waits would hide the one that runs.
    async fn set_status(&self, _thread: &ThreadKey, _turn: &TurnId, _state: &CardState) {}

    /// Answers a request of one person.
    async fn tell(&self, reply: &Reply, say: Say<'_>) -> Result<(), Failure>;

    /// Tells people something beside a thread that cannot be written in, once however often it is asked for.
    async fn tell_beside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        words: &str,
    ) -> Result<(), Failure>;

    /// Makes the thread of a task that was asked for where none is yet. Where every message has its thread this fails.
    async fn open(&self, _open: &Open, _now_ms: Ms) -> Result<ThreadKey, Failure> {
        Err(without("threads that are made for a task"))
    }

    /// Shows somebody what runs for them: on their own page, or as an answer. Where people have no such page this fails.
    async fn show_overview(&self, _overview: &Overview, _home: Home<'_>) -> Result<(), Failure> {
        Err(without("pages of people's own"))
    }

    /// Whether somebody is not known as a full member of where they ask; a full member is believed for a while. Nobody is
    /// admitted by an error.
    async fn outside(&self, _user: &str) -> Result<Option<Outside>, Failure> {
        Ok(None)
    }

    /// Who somebody is there now. `said` is what their request says of them; a platform whose requests do not say it is asked.
    async fn member(&self, _user: &str, said: &Membership) -> Result<Member, Failure> {
        Ok(Member { manages: said.manages, outsider: said.outside.is_some() })
    }

    /// The display name of the thread's server or workspace; `None` if it cannot be found out.
    async fn place(&self, thread: &ThreadKey) -> Option<String>;
}

fn without(what: &str) -> Failure {
    Failure::NonRecoverable { advice: format!("This chat has no {what}, so nothing was done.") }
}

/// What the platforms are reached with. A platform without application or token is off.
#[derive(Clone, Copy)]
pub struct ChatSettings<'a> {
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
