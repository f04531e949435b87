//! What travels through the queues: accepted work for a thread, and control that never waits behind a run.

use serde::{Deserialize, Serialize};

use crate::base::ids::{AskId, Ms, SandboxKey, SandboxName, ThreadKey, TurnId, digest};
use crate::base::person::{Membership, Person};
pub use crate::base::reply::Reply;
use crate::records::ask::Choice;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::commands::Command;
use crate::tenant::own_keys::KeyWish;
use crate::tenant::selection::Selection;
use crate::tenant::settings::{Change, Settings};

/// A queue body. Written by ingress and sweeper, read by the worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Body {
    /// Work for a thread's session, in order.
    Message(Message),
    /// A task whose thread does not exist yet (Discord): make it, then pass the prompt on into its group.
    Open(Open),
    /// A word that must not wait behind a run.
    Control(Control),
    /// A prompt has been put into its thread's group: it is shown as waiting there, or refused where too many wait.
    Announce(Announce),
    /// What runs for somebody in a Slack workspace is to be shown to them.
    Overview(Overview),
    /// One of two copies of something that somebody said in their direct messages.
    Candidate(Candidate),
    /// Dead letters wait: whoever waits for what they were is to be told.
    DeadLetters(DeadLetters),
}

/// Dead letters wait in their queues. The sweeper says so at a tick that finds some; the worker takes them out and tells
/// whoever waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadLetters {
    /// Of the tick that found them; also the deduplication id.
    pub id: String,
}

/// One of two copies of something that somebody said in their direct messages, each in the group of a thread that it may
/// belong to: ingress could not read the settings that say which. The worker reads them, does what the one says that is
/// in the right thread, and nothing for the other. So both groups keep their order, and nothing is sent on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// When the thread's first message was sent, by the clock of the chat.
    pub sent_ms: Ms,
    /// The copy counts where all direct messages of a person were one thread then, or else where they were not.
    pub one_thread: bool,
    /// What was said: in the thread that it is in then.
    pub said: Box<Body>,
}

impl Candidate {
    /// What was said, if this is the copy that counts by these settings, read after it was sent.
    #[must_use]
    pub fn chosen(self, settings: &Settings) -> Option<Body> {
        (settings.is_one_thread(self.sent_ms) == self.one_thread).then_some(*self.said)
    }
}

impl Body {
    /// Who asks for something, and where; none where nobody of the platform does, or anybody may.
    #[must_use]
    pub fn asker(&self) -> Option<(&ThreadKey, &Person)> {
        match self {
            Self::Message(message) => match &message.work {
                Work::Prompt(prompt) if prompt.membership.operates => None,
                Work::Name { membership, .. } | Work::Connect { membership, .. }
                    if membership.operates =>
                {
                    None
                }
                Work::Prompt(prompt) => Some((&message.thread, &prompt.by)),
                Work::Reset { by, .. } | Work::Name { by, .. } | Work::Connect { by, .. } => {
                    Some((&message.thread, by))
                }
                _ => None,
            },
            Self::Announce(announce) => Some((&announce.thread, &announce.by)),
            Self::Control(control) => match control.want {
                Want::Say { .. } | Want::Help { .. } | Want::Halt { .. } => None,
                _ if control.membership.operates => None,
                _ => Some((&control.thread, &control.by)),
            },
            Self::Candidate(candidate) => candidate.said.asker(),
            Self::Open(_) | Self::Overview(_) | Self::DeadLetters(_) => None,
        }
    }

    /// As what they count there.
    pub fn membership_mut(&mut self) -> Option<&mut Membership> {
        match self {
            Self::Message(message) => match &mut message.work {
                Work::Prompt(prompt) => Some(&mut prompt.membership),
                Work::Reset { membership, .. }
                | Work::Name { membership, .. }
                | Work::Connect { membership, .. } => Some(membership),
                _ => None,
            },
            Self::Announce(announce) => {
                announce.prompt.as_mut().map(|prompt| &mut prompt.membership)
            }
            Self::Control(control) => Some(&mut control.membership),
            Self::Candidate(candidate) => candidate.said.membership_mut(),
            Self::Open(_) | Self::Overview(_) | Self::DeadLetters(_) => None,
        }
    }
}

/// What runs for somebody in a Slack workspace is to be shown to them, and the workspace's defaults with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Overview {
    /// From the platform; also the deduplication id.
    pub id: String,
    /// Team or enterprise id.
    pub team: String,
    /// Whose overview it is.
    pub by: Person,
    /// Where it is shown.
    pub place: Surface,
    /// Why they may not use Bobbin: shown in its stead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// A change of the settings that they asked for there: made first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// Where an overview is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum Surface {
    /// On the app's Home.
    Home,
    /// As the answer to a request; only what runs in this channel.
    Answer {
        /// The way to answer the request.
        reply: Reply,
        /// The channel whose threads are shown.
        channel: String,
    },
}

/// The same JSON in the characters that SQS takes. Of those that JSON does not escape by itself it refuses two, and the whole
/// message with them; people paste them from PDFs and from mail.
fn within_the_queues_alphabet(json: String) -> String {
    const REFUSED: [char; 2] = ['\u{fffe}', '\u{ffff}'];
    if !json.contains(REFUSED) {
        return json;
    }
    // Outside of its strings JSON has ASCII alone.
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

/// Says past the group's head that a prompt waits behind it. Sent after the prompt; what becomes of it changes nothing
/// about whether the prompt is worked on, except that the queue of a thread is bounded by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Announce {
    /// The prompt's message id.
    pub turn: TurnId,
    /// The thread that it belongs to.
    pub thread: ThreadKey,
    /// Who asked for it.
    pub by: Person,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// What it asks for, unless that is too large or comes with something that lies in its message alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
}

/// Bytes (as JSON) of a prompt that an announcement carries; what of it is kept is for `RecordLimits::steer_bytes` to say.
const ANNOUNCED_BYTES_MAX: usize = 64 * 1024;

impl Announce {
    /// What is announced of a body: prompts only.
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
    /// From the platform; also the deduplication id. A prompt's is its turn's.
    pub id: TurnId,
    /// Whose session it is for; also the message group.
    pub thread: ThreadKey,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// What is to be done.
    pub work: Work,
}

/// What the id of a sweep of the sweeper's begins with; one of a wake-up has none like it.
const SWEEP: &str = "sweep-";

impl Message {
    /// The sweep of a thread, or of a sandbox's group, that the sweeper means now.
    #[must_use]
    pub fn sweep(thread: ThreadKey, now_ms: Ms) -> Self {
        Self {
            id: format!("{SWEEP}{}-{now_ms}", thread.short_hash()).into(),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Sweep,
        }
    }

    /// Whether the sweeper has marked the record for which it sent this, and says no other until that mark is gone.
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
            | Work::Reconcile
            | Work::Reset { .. }
            | Work::Name { .. }
            | Work::Connect { .. }
            | Work::Create(_)
            | Work::Operate { .. } => &self.id,
        }
    }

    /// The prompt of the turn with this id, where this message holds it.
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

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "most of them are prompts, and there are few at a time"
)]
pub enum Work {
    /// A person's words for the agent.
    Prompt(Prompt),
    /// The sweeper or a wake-up found the session due: look and decide.
    Sweep,
    /// The provider lists no sandbox where the record has one: look whether it is still there.
    Reconcile,
    /// A person wants a fresh sandbox, or a new conversation in the one that is there.
    Reset {
        /// Who asked for it.
        by: Person,
        /// Where they asked, and as what they count there.
        #[serde(default)]
        membership: Membership,
        /// The sandbox stays, with everything in it; only what was said is forgotten.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_files: bool,
    },
    /// A message of this thread ended among the dead letters: the thread is told, unless it ended before.
    DeadLetter {
        /// The id of that message.
        turn: TurnId,
        /// What it asked for, if it was a prompt: it can be run again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<Box<DeadPrompt>>,
    },
    /// The sandbox is wanted in another state: by who runs the stack, or by somebody in the chat who was let.
    Operate {
        /// What is wanted of the sandbox.
        want: Operation,
        /// Who wants it in the chat; none: who runs the stack.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Person>,
    },
    /// A person gives the thread's sandbox a name, so that others can share it.
    Name {
        /// The name.
        name: SandboxName,
        /// Who wants it.
        by: Person,
        /// Where they said so, and as what they count there.
        #[serde(default)]
        membership: Membership,
    },
    /// A person wants the thread to work in another sandbox.
    Connect {
        /// Which one; none: one of the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<SandboxKey>,
        /// Who wants it.
        by: Person,
        /// Where they said so, and as what they count there.
        #[serde(default)]
        membership: Membership,
    },
    /// A sandbox is wanted that no thread was the first of. Travels in that sandbox's group.
    Create(NewSandbox),
}

impl Work {
    /// Whether nobody said it: it is not waited for, because it holds back what is said next, and the sweeper says it again.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        matches!(self, Self::Sweep | Self::Reconcile)
    }
}

/// A sandbox that is to be made with a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewSandbox {
    /// What people will call it.
    pub name: SandboxName,
    /// The provider that it is made at; none: the stack's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How agents are run in it, by the name of a [`crate::tenant::runtime_mode::RuntimeMode`]; none: as the tenant or the stack says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The repository that is cloned into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The snapshot that it begins with; none: the stack's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The sandbox of the agent that works in it by tools: without that one it is not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SandboxKey>,
}

/// What who runs the stack can want of a thread's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Stop it, keep its disk.
    Pause,
    /// Bring it back, with its server and agent session.
    Resume,
    /// Delete it; the thread goes on with a new one.
    Destroy,
    /// Take out of the record what people wrote and what they are called; only where there is no sandbox any more.
    Forget,
    /// Keep what its disk holds as a snapshot, from which others can begin.
    Snapshot,
    /// Make it: what came of a [`NewSandbox`] is remembered under this word.
    Create,
}

impl Operation {
    /// Every one of them.
    pub const ALL: [Self; 6] =
        [Self::Pause, Self::Resume, Self::Destroy, Self::Forget, Self::Snapshot, Self::Create];

    /// What it is called by who waits for its effect.
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

    /// The word that is stored, typed and shown.
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

/// A prompt whose message ended among the dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadPrompt {
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// What it asked for.
    pub prompt: Prompt,
}

/// A person's words for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Prompt {
    /// The words, as typed.
    pub text: String,
    /// The name of who typed them.
    pub by: Person,
    /// Files that came along.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// Messages that the words forward or answer to, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
    /// What was asked for beside the words.
    #[serde(default, skip_serializing_if = "Selection::is_empty")]
    pub wants: Selection,
    /// Where it was said, and as what its sender counts there.
    #[serde(default)]
    pub membership: Membership,
    /// It shall not wait: where a turn is running, it is sent into that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

impl Prompt {
    /// Whether it is words alone: no files, nothing forwarded, nothing chosen that a running turn could not follow.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.attachments.is_empty() && self.quotes.is_empty() && self.wants.is_empty()
    }

    /// Its size as it is stored.
    #[must_use]
    pub fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |stored| stored.len())
    }
}

/// A message that a prompt forwards or answers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Quote {
    /// Its author's name, as the platform shows it; empty where it does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The quoted words.
    pub text: String,
}

/// A file that came along with a prompt. Its address is short-lived and never stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attachment {
    /// File name as given.
    pub name: String,
    /// Where it can be fetched.
    pub url: String,
    /// Bytes, as the platform states them.
    pub size: u64,
    /// Media type, where the platform names one.
    pub media_type: Option<String>,
}

/// A Discord task that has no thread yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Open {
    /// The interaction's id: names the turn and the anchor's nonce.
    pub id: TurnId,
    /// Guild in which it was asked.
    pub guild: String,
    /// Channel in which it was asked.
    pub channel: String,
    /// When ingress accepted it.
    pub accepted_at_ms: Ms,
    /// What to do in the new thread.
    pub prompt: Prompt,
    /// How to edit the deferred answer, which becomes the anchor.
    pub reply: Reply,
}

/// A word that must not wait behind a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Control {
    /// From the platform; also the deduplication id.
    pub id: String,
    /// Whose session it is about.
    pub thread: ThreadKey,
    /// Who pressed the button or typed the command.
    pub by: Person,
    /// How to answer them.
    pub reply: Reply,
    /// Where they said it, and as what they count there.
    #[serde(default)]
    pub membership: Membership,
    /// What they want.
    pub want: Want,
}

/// What a control word wants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum Want {
    /// End the present turn (or exactly this one).
    Stop {
        /// The turn whose button was pressed; none for a typed command.
        turn: Option<TurnId>,
    },
    /// End the present turn, and every one that waits behind it.
    StopAll,
    /// End exactly this turn, if it is the present one. Said by who runs the stack: no tenant's settings can forbid it.
    Halt {
        /// The turn to be ended.
        turn: TurnId,
    },
    /// Give a waiting prompt to the agent at once, within the run that is under way.
    Now {
        /// The turn that waits.
        turn: TurnId,
    },
    /// Take back a prompt that still waits, because its message was deleted; nothing if it does not wait.
    Withdraw {
        /// The turn that may wait.
        turn: TurnId,
    },
    /// Show what a turn changed in the files.
    Diff {
        /// The turn; none for the last one that has ended.
        turn: Option<TurnId>,
    },
    /// Show or change the settings of the tenant.
    Configure {
        /// What is to be changed.
        change: Change,
    },
    /// Show the tenant's own keys, enter or remove one.
    OwnKey {
        /// What is wanted of them.
        key: KeyWish,
    },
    /// Run the prompt of this ended turn again, as a new turn of who asks.
    Again {
        /// The turn that was lost or has failed.
        turn: TurnId,
    },
    /// Say in the thread how Bobbin is used.
    Help {
        /// The words, as they are shown.
        text: String,
    },
    /// Tell only this person these words (a refusal): ingress holds no token to say them itself.
    Say {
        /// The words, as they are shown.
        text: String,
    },
    /// Show the sandboxes that have a name, to who asks alone.
    Sandboxes {
        /// Which page of them, from 0.
        page: u32,
        /// It was asked in a thread, which can be connected to one of them.
        in_thread: bool,
    },
    /// Take the thread to another sandbox, behind what runs in it.
    Connect {
        /// Which one; none: one of the thread's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Which>,
    },
    /// Ask whether a sandbox is to be deleted, and say what would be lost.
    AskDestroy {
        /// Which one.
        sandbox: Which,
    },
    /// Bring a sandbox into another state, or keep what it holds.
    Operate {
        /// Which one.
        sandbox: Which,
        /// What is wanted of it.
        operation: Operation,
    },
    /// Settle a permission or question.
    Settle {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// What the person chose.
        choice: Choice,
    },
    /// Answer a command that is about nothing but where it was typed.
    Command {
        /// Which one.
        command: Command,
    },
}

/// The sandbox that somebody means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The one that the thread works in.
    Here,
    /// The one of this name, as it is when that is looked up.
    Named(SandboxName),
    /// Exactly this one: what a button was shown for.
    Exactly(SandboxKey),
}

impl Want {
    /// What it is called by who waits for its effect; none where only words were to be said, or nobody waits for them.
    #[must_use]
    pub const fn effect(&self) -> Option<&'static str> {
        match self {
            Self::Stop { .. } => Some("Stop"),
            Self::StopAll => Some("Stop all"),
            Self::Now { .. } => Some("Send now"),
            Self::Again { .. } => Some("Run again"),
            Self::Settle { .. } => Some("The decision"),
            Self::Connect { .. } => Some("Connect"),
            Self::Operate { operation, .. } => Some(operation.effect()),
            Self::Configure { change: Change::Show } => None,
            Self::Configure { .. } => Some("The change of the settings"),
            Self::OwnKey { key: KeyWish::Check { .. } } => Some("The check of the key"),
            Self::OwnKey { key: KeyWish::Remove { .. } } => Some("The removal of the key"),
            Self::OwnKey { .. } => None,
            Self::Halt { .. }
            | Self::Withdraw { .. }
            | Self::Diff { .. }
            | Self::Command { .. }
            | Self::Sandboxes { .. }
            | Self::AskDestroy { .. }
            | Self::Help { .. }
            | Self::Say { .. } => None,
        }
    }
}

/// Stands between a thread's key, which never has it, and what sets a group apart from the thread's own.
const APART: char = '#';
/// Behind a thread's key: the group of its announcements.
const WAITING: &str = "#queued";
/// Hex digits behind a thread's key of 120 characters: a queue takes 128. Two that are alike cost an order that nobody needs.
const APART_DIGITS: usize = 7;

/// The thread whose group this is, or which it is about; none where it is about no thread.
#[must_use]
pub fn thread_of_group(group: &str) -> Option<ThreadKey> {
    let key = group.split_once(APART).map_or(group, |(key, _)| key);
    key.parse().ok()
}

impl Control {
    /// The FIFO message group. Of two changes to the settings or to the sandbox the later one counts, so they keep their order in
    /// the thread's group. So do two decisions on one ask, of which the first counts. Anything else waits for nothing.
    fn group(&self) -> String {
        let apart = match &self.want {
            Want::Configure { .. }
            | Want::OwnKey { .. }
            | Want::Connect { .. }
            | Want::Operate { .. } => return self.thread.to_string(),
            Want::Settle { ask, .. } => digest(&["ask", ask]),
            // Two clicks at once would each say so.
            Want::Again { turn } => digest(&["again", turn]),
            Want::Stop { .. }
            | Want::StopAll
            | Want::Halt { .. }
            | Want::Withdraw { .. }
            | Want::Now { .. }
            | Want::Diff { .. }
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

    /// The thread that it is about; none where it is about no thread, or about one that is still to be made.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadKey> {
        match self {
            Self::Message(message) => Some(&message.thread),
            Self::Control(control) => Some(&control.thread),
            Self::Announce(announce) => Some(&announce.thread),
            Self::Candidate(candidate) => candidate.said.thread(),
            Self::Open(_) | Self::Overview(_) | Self::DeadLetters(_) => None,
        }
    }

    /// Whether it goes past what runs, into the control queue.
    #[must_use]
    pub fn is_control(&self) -> bool {
        match self {
            Self::Message(_) | Self::Open(_) => false,
            Self::Control(_) | Self::Announce(_) | Self::Overview(_) | Self::DeadLetters(_) => true,
            Self::Candidate(candidate) => candidate.said.is_control(),
        }
    }

    /// Reads the queued form. Unknown fields are left out: nobody writes a message back.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(text: &str) -> Result<Self, Unreadable> {
        schema::read(Shape::Body, text).map(|(body, _)| body)
    }

    /// The FIFO message group: the thread, so that its work stays in order. A control message whose order nobody needs has a
    /// group to itself, so that it waits for no other.
    #[must_use]
    pub fn group(&self) -> String {
        match self {
            Self::Message(m) => m.thread.to_string(),
            Self::Open(o) => format!("open:{}", o.id),
            Self::Control(c) => c.group(),
            Self::Announce(a) => format!("{}{WAITING}", a.thread),
            Self::Overview(o) => format!("home:{}:{}", o.team, o.by.id),
            Self::Candidate(candidate) => candidate.said.group(),
            // One of them at a time.
            Self::DeadLetters(_) => "dead-letters".to_owned(),
        }
    }

    /// The id by which everything about one prompt is found in the logs, from the request to the sandbox: that of its
    /// turn. What is about no turn goes by its own.
    #[must_use]
    pub fn correlation(&self) -> &str {
        match self {
            Self::Message(message) => message.about(),
            Self::Open(open) => &open.id,
            Self::Announce(announce) => &announce.turn,
            Self::Overview(overview) => &overview.id,
            Self::Candidate(candidate) => candidate.said.correlation(),
            Self::DeadLetters(found) => &found.id,
            Self::Control(control) => match &control.want {
                Want::Stop { turn: Some(turn) }
                | Want::Diff { turn: Some(turn) }
                | Want::Halt { turn }
                | Want::Now { turn }
                | Want::Withdraw { turn }
                | Want::Again { turn } => turn,
                Want::Stop { turn: None }
                | Want::Diff { turn: None }
                | Want::StopAll
                | Want::Configure { .. }
                | Want::OwnKey { .. }
                | Want::Command { .. }
                | Want::Sandboxes { .. }
                | Want::Connect { .. }
                | Want::AskDestroy { .. }
                | Want::Operate { .. }
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
            Self::Candidate(candidate) => candidate.said.id(),
            Self::DeadLetters(found) => &found.id,
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

    /// The characters that SQS documents for a message's body.
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

    /// Two of each word that must get through while something else of its thread does not.
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
        let show = || Want::Configure { change: Change::Show };
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
        let show = || Want::Configure { change: Change::Show };
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
