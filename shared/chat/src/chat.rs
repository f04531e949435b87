//! The trait for chat platforms.

use std::fmt;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Membership;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::card::{CardState, Post};
use bobbin_core::records::message::{Open, Overview, Reply};
use bobbin_core::records::session::Session;
use bobbin_core::shown::overview::Picture;
use bobbin_core::shown::sandboxes::{Listed, SandboxesPage};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::overrides::ChatOverrides;

/// A person of a server or workspace: the properties that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Member {
    /// An administrator or owner of the workspace: may change its settings.
    pub manages: bool,
    /// Not a full member of this workspace: a guest, a person of another organisation, a bot, or somebody who has left.
    pub outsider: bool,
}

/// A reply to one person's request. Only they see it, if the platform allows that and the variant does not say
/// otherwise.
#[derive(Debug, Clone, Copy)]
pub enum Say<'a> {
    /// Plain text.
    Words(&'a str),
    /// The answer to a question asked in a thread. It is posted in that thread.
    Answer {
        /// The thread of the question.
        thread: &'a ThreadKey,
        /// Id of the answer, so that it is posted once.
        id: &'a TurnId,
        /// Text of the answer.
        words: &'a str,
    },
    /// Notice that no thread was created for their task. If the request cannot be answered any more, it is posted in
    /// the channel.
    Unopened {
        /// The task.
        open: &'a Open,
        /// Why there is no thread.
        words: &'a str,
    },
    /// A page of the named sandboxes, with the possible actions for each.
    Sandboxes(&'a SandboxesPage),
    /// Asks whether to delete a sandbox, and says what would be lost.
    AskDestroy {
        /// The thread of the request.
        thread: &'a ThreadKey,
        /// The sandbox.
        sandbox: &'a Listed,
        /// Current time, for the ages of what would be lost.
        now_ms: Ms,
    },
    /// Changes of a turn. A long patch may come as a file in the thread, posted once however often it is requested.
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

/// Content of an overview.
#[derive(Debug, Clone, Copy)]
pub enum Home<'a> {
    /// Why it is empty.
    Closed(&'a str),
    /// Running and recently ended tasks.
    Open(&'a Picture),
}

/// A chat platform. A feature that a platform lacks returns normally and not as an error, unless the method says
/// otherwise.
#[async_trait]
pub trait Chat: fmt::Debug + Send + Sync {
    /// Posts into a thread, or edits the post at `at`. Idempotent.
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure>;

    /// A record was read: other processes may have posted since, and the record may say where its thread's posts are.
    /// Call before the first post of a delivery.
    fn learn(&self, _session: &Session) {}

    /// Shows the state of the thread's turn beside the thread, if the platform has a place for it. Only the worker that
    /// holds the thread's group calls this: a waiting turn would hide the running one.
    async fn set_status(&self, _thread: &ThreadKey, _turn: &TurnId, _state: &CardState) {}

    /// Answers one person's request.
    async fn answer(&self, reply: &Reply, say: Say<'_>) -> Result<(), Failure>;

    /// Tells people something outside a thread that cannot be written to. Idempotent.
    async fn notify_outside(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        people: &[String],
        words: &str,
    ) -> Result<(), Failure>;

    /// Creates the thread for a task that has none yet. Fails on platforms where every message has a thread.
    async fn open(&self, _open: &Open, _now_ms: Ms) -> Result<ThreadKey, Failure> {
        Err(without("threads for tasks"))
    }

    /// Shows a person their running tasks: on their own page, or as an answer. Fails on platforms without such a page.
    async fn show_overview(&self, _overview: &Overview, _home: Home<'_>) -> Result<(), Failure> {
        Err(without("personal pages"))
    }

    /// How somebody belongs to the thread's place: whether they count as a full member, who is trusted for a while on a
    /// platform whose requests do not say so; and in a channel, if one is named, with the roles and permissions that
    /// they have there. Who cannot see it is an outsider. An error admits nobody.
    async fn membership(
        &self,
        thread: &ThreadKey,
        user: &str,
        channel: Option<&str>,
    ) -> Result<Membership, Failure>;

    /// A person's current status. `said` is the membership in their request; platforms whose requests do not include it
    /// are asked.
    async fn member(&self, _user: &str, said: &Membership) -> Result<Member, Failure> {
        Ok(Member { manages: said.manages, outsider: said.outside.is_some() })
    }

    /// The display name of the thread's server or workspace; `None` if it cannot be found out.
    async fn place(&self, thread: &ThreadKey) -> Option<String>;
}

fn without(what: &str) -> Failure {
    Failure::NonRecoverable { advice: format!("This chat has no {what}, so nothing was done.") }
}

/// What every chat is set up with; each takes what it needs. A platform without application or token is off.
#[derive(Clone, Copy)]
pub struct ChatSettings<'a> {
    /// What the parameter `Overrides` says of chats.
    pub overrides: &'a ChatOverrides,
    /// Reads a variable of the function; empty if it has none of this name.
    pub variable: fn(&str) -> String,
    /// A key of the stack; empty if it is not stored.
    pub key: &'a dyn Fn(Key) -> &'a Secret,
}

/// Where a platform keeps the files of messages.
#[derive(Debug, Clone)]
pub struct FileSource {
    /// Its hosts; one that starts with a dot stands for every name below it.
    pub hosts: &'static [&'static str],
    /// Base address of its API: files may be on loopback only where this is.
    pub api: String,
    /// The token for its files, which nobody else may receive; `None` if they need none.
    pub bearer: Option<Secret>,
}

/// What a person's overview is about.
#[derive(Debug)]
pub struct OverviewScope {
    /// Their direct messages as a thread: nothing runs in it.
    pub own: ThreadKey,
    /// How they are answered there.
    pub reply: Reply,
    /// Prefix of the keys of the threads that it shows.
    pub prefix: String,
    /// A thread that it shows besides.
    pub further: Option<ThreadKey>,
    /// When a thread began, as text that sorts by time.
    pub begun: fn(&ThreadKey) -> &str,
}
