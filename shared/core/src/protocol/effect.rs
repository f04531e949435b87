//! What `decide` wants done, alone or beside the post of a card. Each carries the name that makes its repeat harmless.

use crate::base::ids::{
    AgentSessionId, AskId, Ms, PostKind, PostRef, PromptIds, SandboxKey, SandboxName, ThreadKey,
    TurnId,
};
use crate::base::person::Person;
use crate::records::artifacts::Artifact;
use crate::records::ask::{About, Ask};
use crate::records::card::{CardState, Post};
use crate::records::flags::ControlFlags;
use crate::records::images::Image;
use crate::records::message::Attachment;
use crate::records::parked::Seen;
use crate::records::session::StrayRun;
use crate::tenant::selection::Selection;

/// One step in the world, by who performs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The provider, behind its breaker.
    Sandbox(SandboxEffect),
    /// The agent in the sandbox, or what reads and writes beside it there.
    Agent(AgentEffect),
    /// What the thread's chat shows.
    Chat(ChatEffect),
    /// Ask the agent what it offers, and note in the tenant's catalogue that and what is used. Answers `OptionsListed`,
    /// whatever became of it.
    ListOptions {
        /// What the turn runs with.
        used: Selection,
    },
    /// Read what the ledger holds of these turns. Answers `Recalled`.
    Recall {
        /// The ended turns that a new agent session is told about.
        turns: Vec<TurnId>,
    },
    /// Look up whose name that is in the tenant. Answers `NameFound`.
    FindName {
        /// The name.
        name: SandboxName,
    },
    /// Ask in its own group that the second sandbox, which the agent of this one works in by tools, ends. Answers `ToolsEnded`.
    EndTools,
    /// Look whether the sandbox of an agent still wants the second one, which is about to be made, or works in it, before it is
    /// stopped. Answers `AgentFound`.
    FindAgent {
        /// The agent's sandbox.
        of: SandboxKey,
    },
    /// Wake the sandbox with a sweep at this time; replaces the wake-up that it has. Answers `Woken`, whatever became of
    /// it: the sweeper is the net.
    Wake {
        /// When the thread is to be looked at.
        at_ms: Ms,
    },
}

/// What the sandbox provider is asked for: none of it can be done while that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxEffect {
    /// Count the sandboxes of the thread's tenant. Answers `Counted`.
    Count {
        /// Only those that were made before this thread's one of this generation; none: all.
        older_than: Option<u32>,
    },
    /// Create the sandbox of this generation; a taken name is adopted. Answers `Observed`.
    Create {
        /// The snapshot that it begins with; none: the stack's image.
        snapshot: Option<String>,
    },
    /// Make the workspace of the thread's own ready. Answers `WorkspaceReady` or `NoWorkspace`.
    MakeWorkspace {
        /// How long it may take.
        within_ms: u64,
    },
    /// See to it that there is a snapshot of what the sandbox's disk holds, and look how far it is. Answers `SnapshotSeen`.
    Snapshot {
        /// When it was asked for: part of its name.
        at_ms: Ms,
        /// Milliseconds to wait before the look.
        after_ms: u64,
    },
    /// Delete a snapshot; gone is success. Answers `SnapshotDeleted`.
    DeleteSnapshot {
        /// Its name at the provider.
        name: String,
    },
    /// Look at the sandbox after a pause. Answers `Observed`, or `CancelSeen`.
    Observe {
        /// Milliseconds to wait first.
        after_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
    /// Look again for what was not found, after a pause, and in the provider's list where it is still not found. Answers
    /// `Observed`, which is `Gone` only where neither shows it; `Failed(Wait)` where they contradict each other.
    Confirm {
        /// Milliseconds to wait first.
        after_ms: u64,
    },
    /// Look, start if it is stopped, look again. Answers `Observed`.
    Start,
    /// Look, stop if it runs, look again. Answers `Observed`. Refused (`Wait`) unless enough visibility is left.
    Stop,
    /// Delete; gone is success. Answers `Observed`.
    Delete,
    /// Clone a repository to where the agent works, unless it is there. Answers `Cloned`, `NotCloned` or `CancelSeen`.
    Clone {
        /// The repository, as it was chosen.
        repo: String,
        /// How long it may take.
        within_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
    /// Write the configuration, start the server unless it is healthy, wait. Answers `Healthy`, `SecretsNotPutIn`, `CancelSeen`
    /// or `Failed`.
    EnsureServer {
        /// It was just made: whether secrets are put into its requests is looked at, where they are kept outside.
        is_new: bool,
        /// End a server that runs but does not answer first.
        restart: bool,
        /// How long it may take.
        within_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
}

/// A turn whose Stop ends a wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Watched {
    /// Its id.
    pub turn: TurnId,
    /// When it was accepted: a Stop all is for what was accepted before it.
    pub accepted_at_ms: Ms,
}

impl Watched {
    /// Who has cancelled it.
    #[must_use]
    pub fn cancelled_by<'a>(&self, flags: &'a ControlFlags) -> Option<&'a Person> {
        flags.cancelled_by(&self.turn, self.accepted_at_ms)
    }
}

/// What is done with the agent in a running sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentEffect {
    /// Ask the server that should already run. Answers `Healthy` or `Failed(SandboxDown)`.
    CheckServer {
        /// How long it may take.
        within_ms: u64,
    },
    /// The thread's session with the agent: the known id, else by title, else a new one. Answers `AgentSession`.
    FindAgentSession {
        /// The id on record.
        known: Option<AgentSessionId>,
        /// When the thread's conversation was begun anew; 0: never. One from before that is another one's.
        since_ms: Ms,
        /// What was chosen as the agent of the turn: not every one goes on in every session.
        agent: Option<String>,
    },
    /// Bring attachments into the sandbox. Answers `Attached`.
    Attach {
        /// Turn id: names the folder.
        turn: TurnId,
        /// The files, with the addresses to fetch them from.
        files: Vec<Attachment>,
    },
    /// Ask the agent what has become of a prompt that may have been sent. Answers `PromptFound`.
    FindPrompt {
        /// The agent's session that the prompt was given to.
        agent_session: AgentSessionId,
        /// The prompt's message id at the agent.
        message: String,
    },
    /// Send the prompt. Answers `Prompted`; of a first sending that the agent certainly did not get, `NotSent`.
    SendPrompt {
        /// The prompt's own turn: stored beside the words, so that what is in the sandbox is found by the id of the logs.
        turn: TurnId,
        /// The turn whose run it begins, or is sent into: whose message waits for the end.
        run_of: TurnId,
        /// The agent's session that the prompt was given to.
        agent_session: AgentSessionId,
        /// Our ids: the same ids are deduplicated.
        ids: PromptIds,
        /// The words that the agent is given.
        text: String,
        /// The model, as `provider/model`.
        model: String,
        /// OpenCode's agent; none: the one that it takes by itself.
        agent: Option<String>,
        /// Images that go to the model beside the words, from the sandbox, where [`AgentEffect::Attach`] has put them.
        images: Vec<Image>,
        /// What is known of earlier sendings.
        sending: Sending,
    },
    /// Follow the run, keep the card alive. Answers `Finished`, `StillRunning`, `CancelSeen`, `SteerSeen`,
    /// `CardMoved`, `Asked`, `AskClosed` or `Failed`.
    Follow(Follow),
    /// Look once how the run stands, and show on the card what has changed. Answers as [`AgentEffect::Follow`] does.
    Look(Follow),
    /// End the run, unless the agent has been given a prompt of another turn since. Answers `Aborted`.
    Abort {
        /// The agent's session that the prompt was given to.
        agent_session: AgentSessionId,
        /// Message id of the newest prompt of the run: accepted is not yet stored, and before that nothing can be ended.
        message: String,
        /// Message ids of all prompts of the turn: what the agent does for another one is not hit.
        messages: Vec<String>,
    },
    /// End a run that no turn follows any more, unless it has ended. Answers `RunEnded`.
    EndRun(StrayRun),
    /// Answer a permission or question with no. Answers `Declined`.
    Decline {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// What it was about.
        about: About,
    },
    /// Read what the turn changed in the files. Answers `Changed`; a failure costs only the numbers.
    ReadChanges {
        /// The agent's session that the prompt was given to.
        agent_session: AgentSessionId,
        /// Message id of the prompt.
        message: String,
    },
    /// List the files that the agent left to be shown. Answers `Listed`; a failure leaves them to the next turn.
    ListArtifacts,
}

/// What is shown in the thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are posts")]
pub enum ChatEffect {
    /// Show a file that the agent left to be shown. Answers `Posted` or `Unshown`.
    PostArtifact {
        /// The turn that it belongs to.
        turn: TurnId,
        /// Its place among those of the turn: with thread and turn it is the nonce.
        index: u32,
        /// The file, as the sandbox lists it.
        file: Artifact,
    },
    /// Tell a thread what became of its sandbox. Answers `Told`.
    Tell {
        /// The thread, another one than the message's.
        thread: ThreadKey,
        /// The message that it comes of: with the thread it is the nonce.
        turn: TurnId,
        /// The words.
        word: String,
        /// Nothing is left to be done there: the thread is put away where the chat can.
        archive: bool,
    },
    /// Tell who asked, beside the thread, which cannot be written in, once. Answers `Told`.
    TellBeside {
        /// The turn whose end could not be said: with the thread it is the nonce.
        turn: TurnId,
        /// The platform's ids of who is told.
        people: Vec<String>,
        /// The words.
        word: String,
    },
    /// Post, or edit what stands. Answers `Posted`.
    Post {
        /// The turn (or message) that the post belongs to.
        turn: TurnId,
        /// What the post is for: with thread and turn it is the nonce.
        kind: PostKind,
        /// The post to be edited; none makes a new one.
        at: Option<PostRef>,
        /// What the post shows.
        post: Post,
    },
}

/// What is known of a prompt's earlier sendings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sending {
    /// There is none: its ids have just been minted.
    First {
        /// How long the server may take to accept it, where it was not asked before whether it is healthy.
        within_ms: Option<u64>,
    },
    /// There may be one, and a look ([`AgentEffect::FindPrompt`]) has shown that the agent does not have it, or that nothing works
    /// on it any more: the same ids make the run go on.
    Again,
}

/// What following a run needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Follow {
    /// The agent's session that the prompt was given to.
    pub agent_session: AgentSessionId,
    /// Message id of the prompt.
    pub message: String,
    /// Message ids of the prompts that were sent into the run after it: the run is theirs too.
    pub further: Vec<String>,
    /// The turn whose run is followed.
    pub turn: TurnId,
    /// The card to keep alive.
    pub card: KeptCard,
    /// When the turn was accepted.
    pub since_ms: Ms,
    /// Asks that are already in the thread: only others are news.
    pub asks: Vec<Ask>,
    /// A cancel flag is already known: do not report it again.
    pub cancel_known: bool,
    /// A waiting prompt may be sent into the run. None: not now. Else those whose wish is known already.
    pub steers: Option<Vec<TurnId>>,
    /// Give back control at this time at the latest.
    pub until_ms: Ms,
    /// When the turn's own bound ends it: what would come later is not waited for.
    pub ends_ms: Ms,
    /// Give it back before that where other work waits for which nobody has room.
    pub gives_way: bool,
    /// What was seen of it before.
    pub seen: Seen,
    /// When that was, where it was by another delivery.
    pub seen_at_ms: Option<Ms>,
    /// More assistant messages than this mean a loop.
    pub messages_max: u32,
}

/// The card that is kept alive while a run is followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeptCard {
    /// Where it stands.
    pub at: Option<PostRef>,
    /// What it is called.
    pub kind: PostKind,
    /// What it says while nothing else is known.
    pub state: CardState,
    /// Model that the turn runs with.
    pub model: String,
}

impl Follow {
    /// Who has cancelled its turn, where that is news.
    #[must_use]
    pub fn cancelled_by<'a>(&self, flags: &'a ControlFlags) -> Option<&'a Person> {
        let by = flags.cancelled_by(&self.turn, self.since_ms);
        by.filter(|_| !self.cancel_known)
    }
}

impl SandboxEffect {
    /// Whether it makes something in the account behind the present key, or takes what that does not show for gone: only
    /// where the account is the one on record.
    #[must_use]
    pub const fn rests_on_account(&self) -> bool {
        matches!(
            self,
            Self::Create { .. } | Self::Delete | Self::Confirm { .. } | Self::DeleteSnapshot { .. }
        )
    }
}

impl Effect {
    /// What the post is for, where it is one.
    #[must_use]
    pub fn posts(&self) -> Option<PostKind> {
        match self {
            Self::Chat(ChatEffect::Post { kind, .. }) => Some(kind.clone()),
            Self::Chat(ChatEffect::PostArtifact { index, .. }) => Some(PostKind::Artifact(*index)),
            _ => None,
        }
    }

    /// Whether it may be performed at the same time as the post of a card: neither needs what the other brings, and
    /// nothing that is stopped, deleted or shown beside is among these.
    #[must_use]
    pub const fn goes_beside_a_card(&self) -> bool {
        match self {
            Self::Sandbox(effect) => !matches!(
                effect,
                SandboxEffect::Stop
                    | SandboxEffect::Delete
                    | SandboxEffect::Snapshot { .. }
                    | SandboxEffect::DeleteSnapshot { .. }
            ),
            Self::Agent(effect) => matches!(
                effect,
                AgentEffect::CheckServer { .. }
                    | AgentEffect::FindAgentSession { .. }
                    | AgentEffect::Attach { .. }
                    | AgentEffect::FindPrompt { .. }
                    | AgentEffect::SendPrompt { .. }
            ),
            Self::Recall { .. } | Self::ListOptions { .. } => true,
            Self::FindName { .. }
            | Self::EndTools
            | Self::FindAgent { .. }
            | Self::Chat(_)
            | Self::Wake { .. } => false,
        }
    }

    /// A short name for logs, crash points and histories.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sandbox(effect) => effect.name(),
            Self::Agent(effect) => effect.name(),
            Self::Chat(ChatEffect::Post { .. }) => "post",
            Self::Chat(ChatEffect::PostArtifact { .. }) => "post_artifact",
            Self::Chat(ChatEffect::Tell { .. }) => "tell",
            Self::Chat(ChatEffect::TellBeside { .. }) => "tell_beside",
            Self::FindName { .. } => "find_name",
            Self::EndTools => "end_tools",
            Self::FindAgent { .. } => "find_agent",
            Self::Recall { .. } => "recall",
            Self::ListOptions { .. } => "survey",
            Self::Wake { .. } => "wake",
        }
    }
}

impl SandboxEffect {
    const fn name(&self) -> &'static str {
        match self {
            Self::Count { .. } => "count",
            Self::Create { .. } => "create",
            Self::Observe { .. } => "observe",
            Self::Confirm { .. } => "confirm",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Delete => "delete",
            Self::Clone { .. } => "clone",
            Self::MakeWorkspace { .. } => "make_workspace",
            Self::Snapshot { .. } => "snapshot",
            Self::DeleteSnapshot { .. } => "delete_snapshot",
            Self::EnsureServer { .. } => "ensure_server",
        }
    }
}

impl AgentEffect {
    const fn name(&self) -> &'static str {
        match self {
            Self::CheckServer { .. } => "check_server",
            Self::FindAgentSession { .. } => "find_agent_session",
            Self::Attach { .. } => "attach",
            Self::FindPrompt { .. } => "find_prompt",
            Self::SendPrompt { .. } => "send_prompt",
            Self::Follow(_) => "follow",
            Self::Look(_) => "look",
            Self::Abort { .. } => "abort",
            Self::EndRun(_) => "end_run",
            Self::Decline { .. } => "decline",
            Self::ReadChanges { .. } => "read_changes",
            Self::ListArtifacts => "list_artifacts",
        }
    }
}
