//! Queue messages: accepted work for a thread, and control messages that never wait behind a run.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, SandboxKey, SandboxName, ThreadKey, TurnId};
use crate::base::person::{Membership, Person};
pub use crate::base::reply::Reply;
use crate::records::control::{APART, Control, ControlAction, Operation, PublishStep};
use crate::records::forge_hint::ForgeHint;
use crate::records::prebuild::NewBuild;
use crate::schema::{self, Shape, UnknownFields, Unreadable};
use crate::tenant::budgets::BudgetKind;
use crate::tenant::selection::Selection;
use crate::tenant::settings::SettingsChange;

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
                ControlAction::Say { .. }
                | ControlAction::Help { .. }
                | ControlAction::Halt { .. } => None,
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
        matches!(
            control.want,
            ControlAction::Stop { .. } | ControlAction::StopAll | ControlAction::Withdraw { .. }
        )
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

impl Work {
    /// Whether no person asked for it. Such work is not retried for long, because it holds back later messages, and the
    /// sweeper sends it again.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        matches!(self, Self::Sweep | Self::Poll | Self::Reconcile)
    }

    /// Its name in lists and documents.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::Sweep => "sweep",
            Self::Poll => "poll",
            Self::Reconcile => "look",
            Self::Reset { .. } => "reset",
            Self::DeadLetter { .. } => "notice",
            Self::Operate { want, .. } => want.word(),
            Self::Create(_) => "create",
            Self::Build(build) => build.purpose.word(),
            Self::Name { .. } => "name",
            Self::Connect { .. } => "connect",
            Self::Publish { .. } => "pull request",
        }
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

/// Suffix of a thread's key: the group of its announcements.
const WAITING: &str = "#queued";

/// The thread that the group belongs to or is about; `None` if it is about no thread.
#[must_use]
pub fn thread_of_group(group: &str) -> Option<ThreadKey> {
    let key = group.split_once(APART).map_or(group, |(key, _)| key);
    key.parse().ok()
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
                ControlAction::Stop { turn: Some(turn) }
                | ControlAction::Diff { turn: Some(turn) }
                | ControlAction::SetUpLog { turn }
                | ControlAction::Halt { turn }
                | ControlAction::Now { turn }
                | ControlAction::Withdraw { turn }
                | ControlAction::Again { turn } => turn,
                ControlAction::Stop { turn: None }
                | ControlAction::Diff { turn: None }
                | ControlAction::StopAll
                | ControlAction::Configure { .. }
                | ControlAction::OwnKey { .. }
                | ControlAction::Forge { .. }
                | ControlAction::Command { .. }
                | ControlAction::Sandboxes { .. }
                | ControlAction::Connect { .. }
                | ControlAction::AskDestroy { .. }
                | ControlAction::Operate { .. }
                | ControlAction::Publish { .. }
                | ControlAction::Help { .. }
                | ControlAction::Say { .. }
                | ControlAction::Settle { .. } => &control.id,
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
    use crate::records::ask::Choice;
    use crate::records::control::APART_DIGITS;
    use crate::tenant::commands::Command;

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

    fn control(id: &str, want: ControlAction) -> Body {
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
        control(id, ControlAction::Settle { ask, choice })
    }

    /// Two of each control message that must get through while other work of its thread does not.
    fn brakes() -> Vec<Body> {
        let turn = || TurnId::from("m1");
        let mut all = Vec::new();
        for nth in 0..2 {
            let id = |word: &str| format!("{word}-{nth}");
            all.extend([
                control(&id("stop"), ControlAction::Stop { turn: None }),
                control(&id("exact"), ControlAction::Stop { turn: Some(turn()) }),
                control(&id("all"), ControlAction::StopAll),
                control(&id("halt"), ControlAction::Halt { turn: turn() }),
                control(&id("withdraw"), ControlAction::Withdraw { turn: turn() }),
                control(&id("now"), ControlAction::Now { turn: turn() }),
                settle(&id("settle"), &id("ask")),
            ]);
        }
        all
    }

    #[test]
    fn stop_never_waits_for_other_controls() {
        let show = || ControlAction::Configure { change: SettingsChange::Show };
        let announce = Body::Announce(Announce {
            turn: "m1".into(),
            thread: ThreadKey::discord("1", "2").expect("valid"),
            by: Person::default(),
            accepted_at_ms: 1,
            prompt: None,
        });
        let others = [
            control("status", ControlAction::Command { command: Command::Status }),
            control("show", show()),
            control("connect", ControlAction::Connect { to: None }),
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
        let show = || ControlAction::Configure { change: SettingsChange::Show };
        let (first, second) = (control("a", show()), control("b", show()));
        assert_eq!(first.group(), second.group());
        let (first, second) = (settle("a", "per-1"), settle("b", "per-1"));
        assert_eq!(first.group(), second.group());
        let again = |id: &str, turn: &str| control(id, ControlAction::Again { turn: turn.into() });
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
