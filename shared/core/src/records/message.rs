//! Queue messages: accepted work for a thread, and control messages that never wait behind a run.

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, Ms, SandboxKey, SandboxName, ThreadKey, TurnId, digest};
use crate::base::person::{Membership, Person};
pub use crate::base::reply::Reply;
use crate::records::ask::Choice;
use crate::records::forge_hint::ForgeHint;
use crate::records::prebuild::NewBuild;
use crate::records::publication::PullRequestAct;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::budgets::BudgetKind;
use crate::tenant::commands::Command;
use crate::tenant::own_keys::KeyWish;
use crate::tenant::selection::Selection;
use crate::tenant::settings::SettingsChange;
use crate::tenant::sign_in::ForgeWish;

/// A queue body. Written by ingress and sweeper, read by the worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Body {
    /// Work for a thread's session, in order.
    Message(Message),
    /// A task whose thread does not exist yet (Discord): create the thread, then pass the prompt on into its group.
    Open(Open),
    /// A control message; it does not wait behind a run.
    Control(Control),
    /// A prompt has been put into its thread's group: show it as waiting there, or refuse it if too many wait.
    Announce(Announce),
    /// Show a person in a Slack workspace what runs for them.
    Overview(Overview),
    /// There are dead letters: tell the people who wait for them.
    DeadLetters(DeadLetters),
    /// The forge may have changed: look.
    Forge(ForgeHint),
}

/// There are dead letters in their queues. The sweeper sends this at a tick that finds some; the worker takes them out
/// and tells the people who wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadLetters {
    /// Id of the tick that found them; also the deduplication id.
    pub id: String,
}

impl Body {
    /// The requester and their thread; `None` if nobody on the platform asked, or if anybody may ask.
    #[must_use]
    pub fn asker(&self) -> Option<(&ThreadKey, &Person)> {
        match self {
            Self::Message(message) => match &message.work {
                Work::Prompt(prompt) if prompt.membership.operates => None,
                Work::Name { membership, .. }
                | Work::Connect { membership, .. }
                | Work::Publish { membership, .. }
                    if membership.operates =>
                {
                    None
                }
                Work::Prompt(prompt) => Some((&message.thread, &prompt.by)),
                Work::Reset { by, .. }
                | Work::Name { by, .. }
                | Work::Connect { by, .. }
                | Work::Publish { by, .. } => Some((&message.thread, by)),
                _ => None,
            },
            Self::Announce(announce) => Some((&announce.thread, &announce.by)),
            Self::Control(control) => match control.want {
                Want::Say { .. } | Want::Help { .. } | Want::Halt { .. } => None,
                _ if control.membership.operates => None,
                _ => Some((&control.thread, &control.by)),
            },
            Self::Open(_) | Self::Overview(_) | Self::DeadLetters(_) | Self::Forge(_) => None,
        }
    }

    /// Whether it takes work back: nothing is to hold it up.
    #[must_use]
    pub const fn is_stop(&self) -> bool {
        let Self::Control(control) = self else { return false };
        matches!(control.want, Want::Stop { .. } | Want::StopAll | Want::Withdraw { .. })
    }

    /// The requester's channel, roles and permissions.
    pub fn membership_mut(&mut self) -> Option<&mut Membership> {
        match self {
            Self::Message(message) => match &mut message.work {
                Work::Prompt(prompt) => Some(&mut prompt.membership),
                Work::Reset { membership, .. }
                | Work::Name { membership, .. }
                | Work::Connect { membership, .. }
                | Work::Publish { membership, .. } => Some(membership),
                _ => None,
            },
            Self::Announce(announce) => {
                announce.prompt.as_mut().map(|prompt| &mut prompt.membership)
            }
            Self::Control(control) => Some(&mut control.membership),
            Self::Open(_) | Self::Overview(_) | Self::DeadLetters(_) | Self::Forge(_) => None,
        }
    }
}

/// Show a person in a Slack workspace what runs for them, and the workspace's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overview {
    /// From the platform; also the deduplication id.
    pub id: String,
    /// Team or enterprise id.
    pub team: String,
    /// The person whose overview it is.
    pub by: Person,
    /// Where it is shown.
    pub place: Surface,
    /// Why they may not use Bobbin; shown instead of the overview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// A settings change that they requested there; made first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<SettingsChange>,
}

/// Where an overview is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum Surface {
    /// On the app's Home.
    Home,
    /// As the answer to a request, showing only what runs in this channel.
    Answer {
        /// The way to answer the request.
        reply: Reply,
        /// The channel whose threads are shown.
        channel: String,
    },
}

/// The same JSON in the characters that SQS accepts. SQS rejects two of the characters that JSON leaves unescaped, and
/// the whole message with them; people paste them from PDFs and mail.
fn within_the_queues_alphabet(json: String) -> String {
    const REFUSED: [char; 2] = ['\u{fffe}', '\u{ffff}'];
    if !json.contains(REFUSED) {
        return json;
    }
    // Outside of strings, JSON is ASCII only.
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

/// Announces, past the head of the group, that a prompt waits behind it. Sent after the prompt. Its outcome does not
/// change whether the prompt is worked on, except that it bounds the thread's queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Announce {
    /// Message id of the prompt.
    pub turn: TurnId,
    /// The thread that it belongs to.
    pub thread: ThreadKey,
    /// The requester.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// The prompt, unless it is too large or comes with something that only its message has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
}

/// Bytes (as JSON) of a prompt that an announcement carries; `RecordLimits::steer_bytes` bounds what is kept of it.
const ANNOUNCED_BYTES_MAX: usize = 64 * 1024;

impl Announce {
    /// The announcement of a body; `None` unless it is a prompt.
    #[must_use]
    pub fn of(body: &Body) -> Option<Self> {
        match body {
            Body::Message(Message { id, thread, accepted_at_ms, work: Work::Prompt(prompt) }) => {
                Some(Self {
                    turn: id.clone(),
                    thread: thread.clone(),
                    by: prompt.by.clone(),
                    accepted_at_ms: *accepted_at_ms,
                    prompt: (prompt.is_plain() && prompt.bytes() <= ANNOUNCED_BYTES_MAX)
                        .then(|| prompt.clone()),
                })
            }
            _ => None,
        }
    }
}

/// One accepted piece of work for a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// From the platform; also the deduplication id. The id of a prompt is that of its turn.
    pub id: TurnId,
    /// The thread; also the message group.
    pub thread: ThreadKey,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// The work to do.
    pub work: Work,
}

/// Prefix of the ids of the sweeper's sweeps; the sweep of a wake-up does not have it.
const SWEEP: &str = "sweep-";

impl Message {
    /// A sweep of a thread, or of a sandbox's group, sent by the sweeper now.
    #[must_use]
    pub fn sweep(thread: ThreadKey, now_ms: Ms) -> Self {
        Self {
            id: format!("{SWEEP}{}-{now_ms}", thread.short_hash()).into(),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Sweep,
        }
    }

    /// A poll of a thread's pull request, as a webhook hints: the same message for all hints within the quiet time.
    #[must_use]
    pub fn poll(thread: ThreadKey, now_ms: Ms, quiet_ms: u64) -> Self {
        let nth = now_ms / quiet_ms.max(1);
        Self {
            id: format!("poll-{}-{nth}", thread.short_hash()).into(),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Poll,
        }
    }

    /// Whether the sweeper has marked the record for which it sent this; it sends no other until that mark is gone.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        matches!(self.work, Work::Sweep) && self.id.starts_with(SWEEP)
    }

    /// The turn that it is about.
    #[must_use]
    pub const fn about(&self) -> &TurnId {
        match &self.work {
            Work::DeadLetter { turn, .. } => turn,
            Work::Prompt(_)
            | Work::Sweep
            | Work::Poll
            | Work::Reconcile
            | Work::Reset { .. }
            | Work::Name { .. }
            | Work::Connect { .. }
            | Work::Create(_)
            | Work::Build(_)
            | Work::Publish { .. }
            | Work::Operate { .. } => &self.id,
        }
    }

    /// The prompt of the turn with this id, if this message holds it.
    #[must_use]
    pub fn prompt_of(&self, turn: &TurnId) -> Option<&Prompt> {
        match &self.work {
            Work::Prompt(prompt) if self.id == *turn => Some(prompt),
            Work::DeadLetter { turn: told, prompt } if told == turn => {
                prompt.as_deref().map(|dead| &dead.prompt)
            }
            _ => None,
        }
    }
}

/// The work that a message asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "most of them are prompts, and there are few at a time"
)]
pub enum Work {
    /// A person's words for the agent.
    Prompt(Prompt),
    /// The sweeper or a wake-up found the session due: observe and decide.
    Sweep,
    /// A webhook hints at the thread's pull request: look at it.
    Poll,
    /// The record has a sandbox that the provider does not list: check whether it still exists.
    Reconcile,
    /// A person wants a fresh sandbox, or a new conversation in the existing one.
    Reset {
        /// The requester.
        by: Person,
        /// The requester's channel, roles and permissions.
        #[serde(default)]
        membership: Membership,
        /// Keep the sandbox with everything in it; only the conversation is forgotten.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_files: bool,
    },
    /// A message of this thread became a dead letter: tell the thread, unless the message ended before.
    DeadLetter {
        /// The id of that message.
        turn: TurnId,
        /// The prompt, if it was one: it can be run again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<Box<DeadPrompt>>,
    },
    /// An operation on the sandbox: requested by the operator, or by a person in the chat who has permission.
    Operate {
        /// The operation.
        want: Operation,
        /// The person in the chat; `None` means the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Person>,
    },
    /// A person gives the thread's sandbox a name, so that others can share it.
    Name {
        /// The name.
        name: SandboxName,
        /// The requester.
        by: Person,
        /// The requester's channel, roles and permissions.
        #[serde(default)]
        membership: Membership,
    },
    /// A person connects the thread to another sandbox.
    Connect {
        /// The sandbox; `None` means the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<SandboxKey>,
        /// The requester.
        by: Person,
        /// The requester's channel, roles and permissions.
        #[serde(default)]
        membership: Membership,
    },
    /// Create a sandbox that no thread was the first of. Travels in that sandbox's group.
    Create(NewSandbox),
    /// Make, try or forget a prebuild. Travels in its builder's group.
    Build(NewBuild),
    /// A person wants the thread's work in a pull request.
    Publish {
        /// How far.
        step: PublishStep,
        /// The requester.
        by: Person,
        /// The requester's channel, roles and permissions.
        #[serde(default)]
        membership: Membership,
    },
}

/// A step to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum PublishStep {
    /// Show in the thread what would be published, for a person to press.
    Show {
        /// Subject for the pull request; `None`: made of the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// Text for it; `None`: made of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// Of which repository; `None`: of the thread's, and of those beside it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<ShowOf>,
    },
    /// Push all that was shown of the repositories, in order, and open a pull request of each.
    PushAll {
        /// The name of what was shown.
        name: String,
    },
    /// Push what was shown, and open its pull request.
    Push {
        /// The commit that was shown.
        commit: String,
    },
    /// Begin the fix of this name, which the card offered.
    Fix {
        /// Its name.
        name: String,
    },
    /// The turn of that fix is before this message: push what it did.
    Fixed {
        /// The name of that turn.
        name: String,
        /// Names of what the fix is for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        items: Vec<String>,
        /// The forge's id of its repository, if that stands beside the thread's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beside: Option<u64>,
    },
    /// Post the agent's review that was shown.
    Review {
        /// Its name.
        name: String,
    },
    /// Do this with the open pull request, in the person's own name.
    Act {
        /// What.
        act: PullRequestAct,
        /// The head that was shown.
        head: String,
    },
}

/// The repository for which to show what would be published.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowOf {
    /// The one for which this commit was shown before.
    Commit(String),
    /// The one beside the thread's with this id.
    Beside(u64),
}

impl Work {
    /// Whether no person asked for it. Such work is not retried for long, because it holds back later messages, and the
    /// sweeper sends it again.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        matches!(self, Self::Sweep | Self::Poll | Self::Reconcile)
    }
}

/// A sandbox to create, with a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewSandbox {
    /// Its name.
    pub name: SandboxName,
    /// Its provider; `None` means the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its runtime mode, by the name of a [`crate::tenant::runtime_mode::RuntimeMode`]; `None` means the tenant's or
    /// the stack's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The repository to clone into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The snapshot to create it from; `None` means the stack's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// For a tool sandbox, the sandbox of its agent: without that one it is not created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SandboxKey>,
}

/// Operations on a thread's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Stop it and keep its disk.
    Pause,
    /// Start it again, with its server and agent session.
    Resume,
    /// Delete it; the thread continues with a new one.
    Destroy,
    /// Remove people's words and names from the record; only if there is no sandbox any more.
    Forget,
    /// Keep its disk as a snapshot from which other sandboxes can be created.
    Snapshot,
    /// Create it: the result of a [`NewSandbox`] is recorded under this name.
    Create,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 6] =
        [Self::Pause, Self::Resume, Self::Destroy, Self::Forget, Self::Snapshot, Self::Create];

    /// Its name for people who wait for its effect.
    #[must_use]
    pub const fn effect(self) -> &'static str {
        match self {
            Self::Pause => "Stop",
            Self::Resume => "Start",
            Self::Snapshot => "Snapshot",
            Self::Destroy => "Destroy",
            Self::Forget => "Forget",
            Self::Create => "Create",
        }
    }

    /// The name that is stored, typed and shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Destroy => "destroy",
            Self::Forget => "forget",
            Self::Snapshot => "snapshot",
            Self::Create => "create",
        }
    }
}

/// A prompt whose message became a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadPrompt {
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// The prompt.
    pub prompt: Prompt,
}

/// A person's words for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Prompt {
    /// The text, as typed.
    pub text: String,
    /// The author.
    pub by: Person,
    /// Attached files.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// Messages that the prompt forwards or replies to, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
    /// Choices made beside the text.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub wants: Selection,
    /// The author's channel, roles and permissions.
    #[serde(default)]
    pub membership: Membership,
    /// Do not wait: if a turn is running, send it into that run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    /// A person lets it pass this budget, which has ended the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<BudgetKind>,
    /// Beginning of the task that it goes on with, where the text is only what the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

impl Prompt {
    /// What a person asked for, as it is quoted.
    #[must_use]
    pub fn task(&self) -> &str {
        self.continues.as_deref().unwrap_or(&self.text)
    }

    /// Whether it is text alone: no files, nothing forwarded, no choice that a running turn could not follow.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.attachments.is_empty() && self.quotes.is_empty() && self.wants.is_empty()
    }

    /// Its size as stored.
    #[must_use]
    pub fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |stored| stored.len())
    }
}

/// A message that a prompt forwards or replies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Quote {
    /// Its author's name, as the platform shows it; empty if the platform does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The quoted text.
    pub text: String,
}

/// A file attached to a prompt. Its address is short-lived and never stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attachment {
    /// File name as given.
    pub name: String,
    /// The address to fetch it from.
    pub url: String,
    /// Size in bytes, as the platform states it.
    pub size: u64,
    /// Media type, if the platform names one.
    pub media_type: Option<String>,
}

/// A Discord task that has no thread yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Open {
    /// The interaction's id; names the turn and the anchor's nonce.
    pub id: TurnId,
    /// Guild of the request.
    pub guild: String,
    /// Channel of the request.
    pub channel: String,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// The prompt for the new thread.
    pub prompt: Prompt,
    /// How to edit the deferred answer, which becomes the anchor.
    pub reply: Reply,
}

/// A control message; it does not wait behind a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Control {
    /// From the platform; also the deduplication id.
    pub id: String,
    /// The thread that it is about.
    pub thread: ThreadKey,
    /// The person who pressed the button or typed the command.
    pub by: Person,
    /// How to answer them.
    pub reply: Reply,
    /// Their channel, roles and permissions.
    #[serde(default)]
    pub membership: Membership,
    /// The request.
    pub want: Want,
}

/// Requests of control messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum Want {
    /// End the present turn (or exactly this one).
    Stop {
        /// The turn whose button was pressed; `None` for a typed command.
        turn: Option<TurnId>,
    },
    /// End the present turn and every turn that waits behind it.
    StopAll,
    /// End exactly this turn, if it is the present one. Sent by the operator: no tenant's settings can forbid it.
    Halt {
        /// The turn to end.
        turn: TurnId,
    },
    /// Send a waiting prompt to the agent at once, into the current run.
    Now {
        /// The waiting turn.
        turn: TurnId,
    },
    /// Withdraw a prompt that still waits, because its message was deleted; no effect if it does not wait.
    Withdraw {
        /// The turn that may wait.
        turn: TurnId,
    },
    /// Show a turn's file changes.
    Diff {
        /// The turn; `None` means the last one that has ended.
        turn: Option<TurnId>,
    },
    /// Show what the set-up of the thread's project has said.
    SetUpLog {
        /// The turn in which it ran.
        turn: TurnId,
    },
    /// Show or change the tenant's settings.
    Configure {
        /// The change.
        change: SettingsChange,
    },
    /// Show, enter or remove the tenant's own keys.
    OwnKey {
        /// The request.
        key: KeyWish,
    },
    /// Bind an owner of the forge to the tenant, or connect a person's own account there.
    Forge {
        /// The request.
        forge: ForgeWish,
    },
    /// Run the prompt of this ended turn again, as a new turn of the requester.
    Again {
        /// The turn that was lost or has failed.
        turn: TurnId,
    },
    /// Post in the thread how Bobbin is used.
    Help {
        /// The text, as shown.
        text: String,
    },
    /// Show this text (a refusal) to this person only: ingress has no token to post it itself.
    Say {
        /// The text, as shown.
        text: String,
    },
    /// Show the named sandboxes, to the requester only.
    Sandboxes {
        /// The page, from 0.
        page: u32,
        /// It was requested in a thread, which can be connected to one of them.
        in_thread: bool,
    },
    /// Move the thread to another sandbox, after what runs in it.
    Connect {
        /// The sandbox; `None` means the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<WhichSandbox>,
    },
    /// Ask for confirmation before a sandbox is deleted, and say what would be lost.
    AskDestroy {
        /// The sandbox.
        sandbox: WhichSandbox,
    },
    /// Pause, resume, delete or snapshot a sandbox.
    Operate {
        /// The sandbox.
        sandbox: WhichSandbox,
        /// The operation.
        operation: Operation,
    },
    /// Settle a permission or question.
    Settle {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// The person's choice.
        choice: Choice,
    },
    /// Show what a pull request of the thread's work would publish, or publish what was shown.
    Publish {
        /// How far.
        step: PublishStep,
    },
    /// Answer a command that concerns only the place where it was typed.
    Command {
        /// The command.
        command: Command,
    },
}

/// The sandbox that a person means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichSandbox {
    /// The one that the thread works in.
    Here,
    /// The one with this name, looked up when needed.
    Named(SandboxName),
    /// Exactly this one: the one that a button was shown for.
    Exactly(SandboxKey),
}

impl Want {
    /// Its name for people who wait for its effect; `None` if it only shows text, or nobody waits for it.
    #[must_use]
    pub const fn effect(&self) -> Option<&'static str> {
        match self {
            Self::Stop { .. } => Some("Stop"),
            Self::StopAll => Some("Stop all"),
            Self::Now { .. } => Some("Send now"),
            Self::Again { .. } => Some("Run again"),
            Self::Settle { .. } => Some("The decision"),
            Self::Connect { .. } => Some("Connect"),
            Self::Publish { step: PublishStep::Show { .. } } => Some("Preparing the pull request"),
            Self::Publish { step: PublishStep::Push { .. } } => Some("Opening the pull request"),
            Self::Publish { step: PublishStep::PushAll { .. } } => {
                Some("Opening the pull requests")
            }
            Self::Publish { step: PublishStep::Fix { .. } | PublishStep::Fixed { .. } } => {
                Some("Fixing the pull request")
            }
            Self::Publish { step: PublishStep::Review { .. } } => Some("Posting the review"),
            Self::Publish { step: PublishStep::Act { act, .. } } => Some(act.label()),
            Self::Operate { operation, .. } => Some(operation.effect()),
            Self::Configure { change: SettingsChange::Show } => None,
            Self::Configure { .. } => Some("Changing the settings"),
            Self::OwnKey { key: KeyWish::Check { .. } } => Some("Checking the key"),
            Self::OwnKey { key: KeyWish::Remove { .. } } => Some("Removing the key"),
            Self::Forge { forge: ForgeWish::SignedIn { .. } } => Some("Checking the sign-in"),
            Self::Forge { forge: ForgeWish::Pressed { .. } } => {
                Some("What was pressed on the page")
            }
            Self::Forge { forge: ForgeWish::Unbind { .. } } => Some("Removing the owner"),
            Self::Forge { forge: ForgeWish::Disconnect } => Some("Disconnecting the account"),
            Self::OwnKey { .. } | Self::Forge { .. } => None,
            Self::Halt { .. }
            | Self::Withdraw { .. }
            | Self::Diff { .. }
            | Self::SetUpLog { .. }
            | Self::Command { .. }
            | Self::Sandboxes { .. }
            | Self::AskDestroy { .. }
            | Self::Help { .. }
            | Self::Say { .. } => None,
        }
    }
}

/// Separates a thread's key, which never contains it, from the suffix of a group of its own.
const APART: char = '#';
/// Suffix of a thread's key: the group of its announcements.
const WAITING: &str = "#queued";
/// Hex digits after a thread's key of 120 characters: a queue takes 128. A collision costs only an order that nobody
/// needs.
const APART_DIGITS: usize = 7;

/// The thread that the group belongs to or is about; `None` if it is about no thread.
#[must_use]
pub fn thread_of_group(group: &str) -> Option<ThreadKey> {
    let key = group.split_once(APART).map_or(group, |(key, _)| key);
    key.parse().ok()
}

impl Control {
    /// The FIFO message group. Of two changes to the settings or to the sandbox the later one counts, so they keep
    /// their order in the thread's group. Two decisions on one ask keep theirs too, since the first one counts. Any
    /// other control message waits for nothing.
    fn group(&self) -> String {
        let apart = match &self.want {
            Want::Configure { .. }
            | Want::OwnKey { .. }
            | Want::Forge { .. }
            | Want::Connect { .. }
            | Want::Publish { .. }
            | Want::Operate { .. } => return self.thread.to_string(),
            Want::Settle { ask, .. } => digest(&["ask", ask]),
            // Two clicks at once would each run it.
            Want::Again { turn } => digest(&["again", turn]),
            Want::Stop { .. }
            | Want::StopAll
            | Want::Halt { .. }
            | Want::Withdraw { .. }
            | Want::Now { .. }
            | Want::Diff { .. }
            | Want::SetUpLog { .. }
            | Want::Command { .. }
            | Want::Sandboxes { .. }
            | Want::AskDestroy { .. }
            | Want::Help { .. }
            | Want::Say { .. } => digest(&["alone", &self.id]),
        };
        format!("{}{APART}{}", self.thread, &apart[..APART_DIGITS])
    }
}

impl Body {
    /// The queued form.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn encode(&self) -> String {
        let text = schema::write(Shape::Body, self, &UnknownFields::default())
            .expect("every field has a JSON form");
        within_the_queues_alphabet(text)
    }

    /// The thread chosen for something that a person said or pressed; `None` if nobody did, or if that opens a thread.
    #[must_use]
    pub const fn said_in(&self) -> Option<&ThreadKey> {
        match self {
            Self::Message(message) => match &message.work {
                Work::Prompt(_)
                | Work::Reset { .. }
                | Work::Name { .. }
                | Work::Connect { .. }
                | Work::Publish { .. } => Some(&message.thread),
                Work::Sweep
                | Work::Poll
                | Work::Reconcile
                | Work::DeadLetter { .. }
                | Work::Operate { .. }
                | Work::Create(_)
                | Work::Build(_) => None,
            },
            Self::Control(control) => Some(&control.thread),
            Self::Announce(announce) => Some(&announce.thread),
            Self::Open(_) | Self::Overview(_) | Self::DeadLetters(_) | Self::Forge(_) => None,
        }
    }

    /// Whether it goes to the control queue, past what runs.
    #[must_use]
    pub fn is_control(&self) -> bool {
        match self {
            Self::Message(_) | Self::Open(_) => false,
            Self::Control(_)
            | Self::Announce(_)
            | Self::Overview(_)
            | Self::DeadLetters(_)
            | Self::Forge(_) => true,
        }
    }

    /// Reads the queued form. Unknown fields are dropped: nobody writes a message back.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(text: &str) -> Result<Self, Unreadable> {
        schema::read(Shape::Body, text).map(|(body, _)| body)
    }

    /// The FIFO message group: the thread, so that its work stays in order. A control message that needs no order has a
    /// group to itself, so that it waits for no other.
    #[must_use]
    pub fn group(&self) -> String {
        match self {
            Self::Message(m) => m.thread.to_string(),
            Self::Open(o) => format!("open:{}", o.id),
            Self::Control(c) => c.group(),
            Self::Announce(a) => format!("{}{WAITING}", a.thread),
            Self::Overview(o) => format!("home:{}:{}", o.team, o.by.id),
            // One of them at a time.
            Self::DeadLetters(_) => "dead-letters".to_owned(),
            Self::Forge(hint) => hint.group(),
        }
    }

    /// The id under which the logs show everything about one prompt, from the request to the sandbox: that of its turn.
    /// A body that is about no turn uses its own id.
    #[must_use]
    pub fn correlation(&self) -> &str {
        match self {
            Self::Message(message) => message.about(),
            Self::Open(open) => &open.id,
            Self::Announce(announce) => &announce.turn,
            Self::Overview(overview) => &overview.id,
            Self::DeadLetters(found) => &found.id,
            Self::Forge(hint) => &hint.id,
            Self::Control(control) => match &control.want {
                Want::Stop { turn: Some(turn) }
                | Want::Diff { turn: Some(turn) }
                | Want::SetUpLog { turn }
                | Want::Halt { turn }
                | Want::Now { turn }
                | Want::Withdraw { turn }
                | Want::Again { turn } => turn,
                Want::Stop { turn: None }
                | Want::Diff { turn: None }
                | Want::StopAll
                | Want::Configure { .. }
                | Want::OwnKey { .. }
                | Want::Forge { .. }
                | Want::Command { .. }
                | Want::Sandboxes { .. }
                | Want::Connect { .. }
                | Want::AskDestroy { .. }
                | Want::Operate { .. }
                | Want::Publish { .. }
                | Want::Help { .. }
                | Want::Say { .. }
                | Want::Settle { .. } => &control.id,
            },
        }
    }

    /// The deduplication id at the queue.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Message(m) => &m.id,
            Self::Open(o) => &o.id,
            Self::Control(c) => &c.id,
            Self::Announce(a) => &a.turn,
            Self::Overview(o) => &o.id,
            Self::DeadLetters(found) => &found.id,
            Self::Forge(hint) => &hint.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::ids::ThreadKey;

    fn prompt(text: &str) -> Body {
        let thread = ThreadKey::slack("T1", "C1", "1790000000.000100").expect("valid");
        Body::Message(Message {
            id: "m1".into(),
            thread,
            accepted_at_ms: 1,
            work: Work::Prompt(Prompt {
                text: text.to_owned(),
                quotes: vec![Quote { by: text.to_owned(), text: text.to_owned() }],
                ..Prompt::default()
            }),
        })
    }

    /// The characters that SQS documents for a message body.
    fn is_taken(one: char) -> bool {
        matches!(one, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
            || one >= '\u{10000}'
    }

    fn comes_back(text: &str) {
        let body = prompt(text);
        let encoded = body.encode();
        assert!(encoded.chars().all(is_taken), "{encoded:?}");
        assert_eq!(Body::decode(&encoded).expect("it can be read"), body);
    }

    #[test]
    fn unsupported_characters_survive_the_queue() {
        for text in [
            "a\u{ffff}b",
            "\u{fffe}",
            "\\\u{ffff}",
            "\u{0}\u{8}\u{1f}",
            "\\uffff",
            "\u{fdd0}\u{1ffff}",
        ] {
            comes_back(text);
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_the_queue(
            text in "[\\PC\\x00-\\x1f\\\\\"\u{fffd}-\u{ffff}\u{10000}]{0,40}"
        ) {
            comes_back(&text);
        }
    }

    fn control(id: &str, want: Want) -> Body {
        Body::Control(Control {
            id: id.to_owned(),
            thread: ThreadKey::discord("1", "2").expect("valid"),
            by: Person::default(),
            reply: Reply::Nobody,
            membership: Membership::default(),
            want,
        })
    }

    fn settle(id: &str, ask: &str) -> Body {
        let choice = Choice::Once;
        let ask = ask.into();
        control(id, Want::Settle { ask, choice })
    }

    /// Two of each control message that must get through while other work of its thread does not.
    fn brakes() -> Vec<Body> {
        let turn = || TurnId::from("m1");
        let mut all = Vec::new();
        for nth in 0..2 {
            let id = |word: &str| format!("{word}-{nth}");
            all.extend([
                control(&id("stop"), Want::Stop { turn: None }),
                control(&id("exact"), Want::Stop { turn: Some(turn()) }),
                control(&id("all"), Want::StopAll),
                control(&id("halt"), Want::Halt { turn: turn() }),
                control(&id("withdraw"), Want::Withdraw { turn: turn() }),
                control(&id("now"), Want::Now { turn: turn() }),
                settle(&id("settle"), &id("ask")),
            ]);
        }
        all
    }

    #[test]
    fn stop_never_waits_for_other_controls() {
        let show = || Want::Configure { change: SettingsChange::Show };
        let announce = Body::Announce(Announce {
            turn: "m1".into(),
            thread: ThreadKey::discord("1", "2").expect("valid"),
            by: Person::default(),
            accepted_at_ms: 1,
            prompt: None,
        });
        let others = [
            control("status", Want::Command { command: Command::Status }),
            control("show", show()),
            control("connect", Want::Connect { to: None }),
            announce,
        ];
        let mut groups = std::collections::BTreeSet::new();
        for body in brakes() {
            assert!(groups.insert(body.group()), "{body:?} waits for another");
        }
        for body in &others {
            assert!(!groups.contains(&body.group()), "{body:?} is in the way");
        }
    }

    #[test]
    fn ordered_control_messages_share_a_group() {
        let show = || Want::Configure { change: SettingsChange::Show };
        let (first, second) = (control("a", show()), control("b", show()));
        assert_eq!(first.group(), second.group());
        let (first, second) = (settle("a", "per-1"), settle("b", "per-1"));
        assert_eq!(first.group(), second.group());
        let again = |id: &str, turn: &str| control(id, Want::Again { turn: turn.into() });
        assert_eq!(again("a", "m1").group(), again("b", "m1").group());
        assert_ne!(again("a", "m1").group(), again("b", "m2").group());
    }

    #[test]
    fn separate_group_still_names_its_thread() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        for body in brakes() {
            assert_eq!(thread_of_group(&body.group()).as_ref(), Some(&thread));
        }
        assert_eq!(thread_of_group(&thread.to_string()), Some(thread));
        assert_eq!(thread_of_group("dead-letters"), None);
        let longest = 120;
        assert!(longest + WAITING.len() <= 128 && longest + 1 + APART_DIGITS <= 128);
    }
}
