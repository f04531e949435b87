//! The seam: what Bobbin wants of wherever people talk.

use std::fmt;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, ThreadKey, TurnId};
use bobbin_core::base::person::Outside;
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::message::{Control, Open, Reply};
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
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure>;

    /// A record was read: what it says of where its thread's posts stand is remembered, where its key does not say it.
    fn learn(&self, _session: &Session) {}

    /// Shows beside the thread how the turn stands that it works on, where the platform has a place for that. For the
    /// worker that holds the thread's group alone: who speaks of a turn that waits would speak over the one that runs.
    async fn set_status(&self, _thread: &ThreadKey, _turn: &TurnId, _state: &CardState) {}

    /// Tells one person something that only they see, where the platform allows it.
    async fn tell(&self, reply: &Reply, text: &str) -> Result<(), Failure>;

    /// Tells people something beside a thread that cannot be written in, once however often it is asked for.
    async fn tell_beside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        word: &str,
    ) -> Result<(), Failure>;

    /// Answers a question that a person asked in a thread: to them alone, or in the thread where the question stands in it.
    async fn answer(&self, control: &Control, text: &str) -> Result<(), Failure>;

    /// Shows one person the sandboxes that have a name, with what can be done about each.
    async fn show_sandboxes(&self, reply: &Reply, page: &Page) -> Result<(), Failure>;

    /// Asks one person whether a sandbox is to be deleted, with what would be lost. `thread` is where they asked.
    async fn ask_destroy(
        &self,
        thread: &ThreadKey,
        reply: &Reply,
        sandbox: &Listed,
        now_ms: Ms,
    ) -> Result<(), Failure>;

    /// Puts a thread away that nobody needs any more, until somebody writes in it again.
    async fn archive(&self, _thread: &ThreadKey) -> Result<(), Failure> {
        Ok(())
    }

    /// Shows what a turn changed, to the person who asks or in the thread, once however often somebody asks.
    async fn show_diff(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        reply: &Reply,
        patch: &str,
    ) -> Result<(), Failure>;

    /// Whether somebody is not known as a full member of where they ask. That it could not be found out is no admission.
    async fn outside(&self, _user: &str) -> Result<Option<Outside>, Failure> {
        Ok(None)
    }

    /// The display name of the thread's server or workspace; `None` if it cannot be found out.
    async fn place(&self, _thread: &ThreadKey) -> Option<String> {
        None
    }

    /// Whether who asks may manage the server or workspace.
    async fn manages(&self, control: &Control) -> Result<bool, Failure> {
        Ok(control.membership.manages)
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

    /// What somebody's own page shows, in words. Where people have no such page this fails.
    fn home_words(&self, _picture: &Picture) -> Result<String, Failure> {
        Err(without("pages of people's own"))
    }
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
