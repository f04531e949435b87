//! Effects: what `decide` wants done, alone or beside the post of a card. Each carries the name that makes its repeat
//! harmless.

use std::collections::BTreeMap;

use crate::base::ids::{
    AgentSessionId, AskId, Ms, PostRef, SandboxKey, SandboxName, ThreadKey, TurnId,
};
use crate::base::names::{PostKind, PromptIds};
use crate::base::person::Person;
use crate::records::artifacts::Artifact;
use crate::records::ask::{About, Ask};
use crate::records::card::{CardState, Post};
use crate::records::carried::{Carried, CarriedTo, ForgeRepository};
use crate::records::checks::Check;
use crate::records::drafted_review::NewPullReview;
use crate::records::flags::ControlFlags;
use crate::records::given_pull::GivenPull;
use crate::records::images::Image;
use crate::records::message::{Attachment, Message};
use crate::records::parked::Seen;
use crate::records::publication::{Proposal, PullRequestAct};
use crate::records::recipe::{ProjectService, RecipeStep};
use crate::records::responses::PullRequestResponse;
use crate::records::session::StrayRun;
use crate::tenant::budgets::MicroUsd;
use crate::tenant::capped_keys::KeyLimit;
use crate::tenant::selection::Selection;

/// One step in the world, grouped by the port that performs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// At the sandbox provider, behind its breaker.
    Sandbox(SandboxEffect),
    /// At the agent in the sandbox, or its files.
    Agent(AgentEffect),
    /// In the thread's chat.
    Chat(ChatEffect),
    /// At the forge, with the sandbox's files.
    Forge(ForgeEffect),
    /// Ask the agent what it offers; note the offer, and what is used, in the tenant's catalogue. Always answers
    /// `OptionsListed`.
    ListOptions {
        /// Selection of the turn.
        used: Selection,
    },
    /// Read the ledger's entries for these turns. Answers `Recalled`.
    Recall {
        /// The ended turns that a new agent session is told about.
        turns: Vec<TurnId>,
    },
    /// Look up which of the tenant's sandboxes has this name. Answers `NameFound`.
    FindName {
        /// The name.
        name: SandboxName,
    },
    /// Send a message to the tool sandbox's own group: delete it. Answers `ToolsEnded`.
    EndTools,
    /// Check whether the agent's sandbox still wants its tool sandbox, which is about to be created, or works in it,
    /// before it is stopped. Answers `AgentFound`.
    FindAgent {
        /// The agent's sandbox.
        of: SandboxKey,
    },
    /// Look up the newest prebuild of this builder that was made with the target's credentials and from its image.
    /// Answers `PrebuildFound`.
    FindPrebuild {
        /// The builder.
        builder: SandboxKey,
    },
    /// Put these messages into the groups of their threads, in this order; each has its own deduplication id. Answers
    /// `Queued`.
    Queue {
        /// The messages.
        messages: Vec<Message>,
    },
    /// Wake the sandbox with a sweep at this time; replaces its present wake-up. Always answers `Woken`: the sweeper is
    /// the safety net.
    Wake {
        /// When the thread is due.
        at_ms: Ms,
    },
}

/// Calls to the sandbox provider; none of them works during its outage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxEffect {
    /// Count the sandboxes of the thread's tenant. Answers `Counted`.
    Count {
        /// Count only those created before this generation of the thread's sandbox; `None`: count all.
        older_than: Option<u32>,
    },
    /// Create the sandbox of this generation; if the name is taken, adopt that sandbox. Answers `Observed`.
    Create {
        /// The snapshot to create it from; `None`: the stack's image.
        snapshot: Option<String>,
        /// The prebuild to create it from, if no snapshot is named.
        prebuild: Option<String>,
    },
    /// Prepare the thread's own workspace. Answers `WorkspaceReady` or `NoWorkspace`.
    MakeWorkspace {
        /// Time limit in milliseconds.
        within_ms: u64,
    },
    /// Make sure that there is a snapshot of the sandbox's disk, and observe its state. Answers `SnapshotSeen`.
    Snapshot {
        /// When it was requested; part of its name.
        at_ms: Ms,
        /// Milliseconds to wait before observing.
        after_ms: u64,
        /// The project's services, which stop for it.
        services: Vec<ProjectService>,
        /// It is a prebuild, and the tenant's share of those.
        share: Option<PrebuildShare>,
    },
    /// Delete a snapshot; already gone is success. Answers `SnapshotDeleted`.
    DeleteSnapshot {
        /// Its name at the provider.
        name: String,
    },
    /// Observe the sandbox after a pause. Answers `Observed`, or `CancelSeen`.
    Observe {
        /// Milliseconds to wait before observing.
        after_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
    /// After a pause, look once more for a sandbox that was not found, then in the provider's list. Answers `Observed`,
    /// with `Gone` only if neither shows it; `Failed(Wait)` if they contradict each other.
    Confirm {
        /// Milliseconds to wait before observing.
        after_ms: u64,
    },
    /// Observe, start if stopped, observe again. Answers `Observed`.
    Start,
    /// Observe, stop if running, observe again. Answers `Observed`. Refused (`Wait`) unless enough visibility is left.
    Stop,
    /// Delete; already gone is success. Answers `Observed`.
    Delete,
    /// Clone a repository to where the agent works, unless it is there. Answers `Cloned`, `NotCloned` or `CancelSeen`.
    Clone {
        /// The repository, as chosen.
        repo: String,
        /// Time limit in milliseconds.
        within_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
    /// Read how the project is made ready, from the repository's default branch. Answers `RecipeRead`.
    ReadRecipe {
        /// Where that is in the sandbox.
        at: RecipeAt,
        /// What managers have said instead.
        said: Option<String>,
    },
    /// After a pause, begin the set-up unless it was begun, look at it, and end every process of one that is over.
    /// Answers `SetUpSeen` or `CancelSeen`.
    SetUp {
        /// The services, which end with the set-up, and the steps.
        work: ProjectWork,
        /// Processes that began later than this belong to the set-up; in ticks since the sandbox's machine started.
        since_ticks: u64,
        /// Milliseconds to wait before looking.
        after_ms: u64,
        /// Bounds of one step, and of all together.
        bounds: SetUpBounds,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
    /// Start the project's services, then its start steps, unless they were since the sandbox's last start. Answers
    /// `ProjectStarted`.
    StartProject {
        /// The services and the steps.
        work: ProjectWork,
        /// What takes longer than this, in milliseconds, goes on in the background.
        within_ms: u64,
    },
    /// Write the configuration, start the server unless it is healthy, and wait. Answers `Healthy`, `Capped`,
    /// `Started`, `SecretsNotPutIn`, `CancelSeen` or `Failed`.
    EnsureServer {
        /// The sandbox is new: check that secrets are put into its requests, if they are kept outside.
        is_new: bool,
        /// First end a server that runs but does not answer.
        restart: bool,
        /// A server that is started gets a capped model key with this limit, where such keys are made; `None`: no
        /// budget is set.
        cap: Option<MicroUsd>,
        /// Time limit in milliseconds.
        within_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
}

/// A tenant's prebuilds, when another one is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PrebuildShare {
    /// So many it may have: the oldest of other builders give way.
    pub most: u32,
    /// This builder's snapshots that are on record; its other ones are left over from failed builds.
    pub keeps: Vec<String>,
}

/// Where the newest commit of a repository's default branch is in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecipeAt {
    /// At the origin of the clone, which anybody can read.
    Origin,
    /// This commit of the checkout.
    Base(String),
    /// This branch, in the copy beside the checkout.
    Brought(String),
    /// It is not there, and what another branch says does not count.
    Nowhere,
}

/// What is run for a project.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProjectWork {
    /// The services that are started first.
    pub services: Vec<ProjectService>,
    /// The steps, one after another.
    pub steps: Vec<RecipeStep>,
    /// Their variables.
    pub variables: BTreeMap<String, String>,
}

/// Bounds of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetUpBounds {
    /// Milliseconds of one step.
    pub step_ms: u64,
    /// Milliseconds of all steps together.
    pub all_ms: u64,
    /// That time is over.
    pub is_late: bool,
    /// Bytes that are wanted of the end of a failed step's output.
    pub said_bytes: usize,
    /// A step that fails does not keep those behind it from running.
    pub goes_on: bool,
}

/// Calls to the forge. Its credentials stay in the worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForgeEffect {
    /// Look up a repository. Answers `RepositoryFound`.
    Find {
        /// `owner/name`.
        name: String,
    },
    /// Fetch the repository and put it where the agent works, unless it is there. Answers `Carried`, `NotCloned` or
    /// `CancelSeen`.
    Carry {
        /// The repository.
        repository: ForgeRepository,
        /// The branch, tag or commit that is wanted of it; `None`: its default branch.
        wanted: Option<String>,
        /// The pull request whose head is wanted instead.
        pull: Option<GivenPull>,
        /// Where it belongs.
        to: CarriedTo,
        /// The forge's estimate of its size in kilobytes.
        size_kb: u64,
        /// Time limit in milliseconds.
        within_ms: u64,
        /// A cancel flag of this turn ends the wait.
        watch: Option<Watched>,
    },
    /// Read what the workspace holds beyond the commit that was brought: a commit is made of what is uncommitted, and
    /// kept in the sandbox. Answers `OutgoingRead`.
    ReadOutgoing {
        /// The repository, with the commit that was brought.
        carried: Carried,
        /// Time of the request: the time of the commit that is made.
        at_ms: Ms,
        /// The commit pushed last: files that went back to their state before it count as changed.
        pushed: Option<String>,
    },
    /// Look up a pull request by its number. Answers `GivenPullFound`.
    FindGivenPull {
        /// The repository.
        repository: ForgeRepository,
        /// Its number.
        number: u64,
    },
    /// Read the review that the agent has written, and compare it with the pull request's diff. Answers `ReviewRead`; a
    /// failure costs only the review.
    ReadReview {
        /// The repository, with the head that was brought.
        carried: Carried,
        /// The pull request.
        pull: GivenPull,
    },
    /// Post a review as the app, unless it is there. Answers `ReviewPosted`.
    PostReview {
        /// The repository.
        repository: ForgeRepository,
        /// Number of the pull request.
        number: u64,
        /// The review.
        review: NewPullReview,
    },
    /// Find out whether a person's own account may push. Answers `PresserSeen`.
    AskPresser {
        /// The repository.
        repository: ForgeRepository,
        /// The chat's id of the person.
        person: String,
    },
    /// Move the branch from the one commit to the other, with the objects from the sandbox. Answers `Pushed`.
    Push {
        /// The repository, with the commit that was brought.
        carried: Carried,
        /// Short name of the branch.
        branch: String,
        /// Where it has to be; `None`: it must not exist.
        old: Option<String>,
        /// The commit that a person was shown.
        new: String,
        /// A commit that it has to follow.
        follows: Option<String>,
    },
    /// Look for the newest pull request of the branch. Answers `PullRequestSeen`.
    FindPullRequest {
        /// The repository.
        repository: ForgeRepository,
        /// Short name of the branch.
        branch: String,
    },
    /// Put the newest commit of a branch beside the checkout. Answers `Brought`.
    Bring {
        /// The repository, with the commit that was brought.
        carried: Carried,
        /// Short name of the branch.
        branch: String,
    },
    /// Move the checkout to the newest commit of the repository's branch, unless it holds more than was pushed. Answers
    /// `CheckoutMoved`; after a failure the turn goes on from where the checkout is.
    MoveCheckout {
        /// The repository, with the commit that was brought.
        carried: Carried,
        /// What was pushed last.
        pushed: Option<String>,
    },
    /// Read what failed checks say: annotations, and the logs of failed jobs. Answers `FailuresRead`.
    ReadFailures {
        /// The repository.
        repository: ForgeRepository,
        /// The checks.
        checks: Vec<Check>,
    },
    /// Find the person of the thread's place who has connected this account. Answers `PersonFound`.
    FindPerson {
        /// The forge's id of the account.
        account: u64,
        /// The channel to which they have to belong.
        channel: Option<String>,
    },
    /// Do this below an open pull request. Answers `Responded`.
    Respond {
        /// The repository.
        repository: ForgeRepository,
        /// Number of the pull request.
        number: u64,
        /// What; its own name or target makes a repeat harmless.
        what: PullRequestResponse,
    },
    /// Look at a pull request with all that happened to it. Answers `PullRequestPolled`.
    PollPullRequest {
        /// The repository.
        repository: ForgeRepository,
        /// Its number.
        number: u64,
    },
    /// Do something with an open pull request in a person's own name. Answers `PullRequestActed`.
    ActOnPullRequest {
        /// The repository.
        repository: ForgeRepository,
        /// Its number.
        number: u64,
        /// What.
        act: PullRequestAct,
        /// The head that the person saw.
        head: String,
        /// Platform id of the person.
        person: String,
    },
    /// Open the branch's pull request, unless it has one. Answers `Opened`.
    OpenPullRequest {
        /// The repository.
        repository: ForgeRepository,
        /// Short name of the branch.
        branch: String,
        /// Subject and text.
        proposal: Proposal,
        /// Open it as a draft.
        is_draft: bool,
        /// The chat's id of the person who pressed: their linked account is its author, otherwise the app is. `None`
        /// if it is known to be open.
        person: Option<String>,
    },
}

/// A turn whose Stop ends a wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Watched {
    /// Its id.
    pub turn: TurnId,
    /// When it was accepted: "Stop all" covers only turns accepted before it.
    pub accepted_at_ms: Ms,
}

impl Watched {
    /// Who has cancelled it, if anybody.
    #[must_use]
    pub fn cancelled_by<'a>(&self, flags: &'a ControlFlags) -> Option<&'a Person> {
        flags.cancelled_by(&self.turn, self.accepted_at_ms)
    }
}

/// Calls to the agent in a running sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentEffect {
    /// Check the server, which should already run. Answers `Healthy` or `Failed(SandboxDown)`.
    CheckServer {
        /// Time limit in milliseconds.
        within_ms: u64,
    },
    /// Find the thread's agent session: by the known id, else by title, else create one. Answers `AgentSession`.
    FindAgentSession {
        /// The id on record.
        known: Option<AgentSessionId>,
        /// When the thread's conversation was begun anew; 0 means never. An older session belongs to another
        /// conversation.
        since_ms: Ms,
        /// The agent chosen for the turn: not every agent can continue every session.
        agent: Option<String>,
    },
    /// Fetch attachments into the sandbox. Answers `Attached`.
    Attach {
        /// Turn id; names the folder.
        turn: TurnId,
        /// The files, with the addresses to fetch them from.
        files: Vec<Attachment>,
    },
    /// Ask the agent for the state of a prompt that may have been sent. Answers `PromptFound`.
    FindPrompt {
        /// The agent session that the prompt was given to.
        agent_session: AgentSessionId,
        /// The prompt's message id at the agent.
        message: String,
    },
    /// Send the prompt. Answers `Prompted`, or `NotSent` for a first sending that the agent certainly did not get.
    SendPrompt {
        /// The prompt's own turn, stored beside the text, so that it can be found in the sandbox by the id in the logs.
        turn: TurnId,
        /// The turn whose run the prompt begins or joins; the message of that turn waits for the end.
        run_of: TurnId,
        /// The agent session that the prompt was given to.
        agent_session: AgentSessionId,
        /// Ids minted by Bobbin; the agent deduplicates by them.
        ids: PromptIds,
        /// The text for the agent.
        text: String,
        /// The model, as `provider/model`.
        model: String,
        /// The OpenCode agent; `None`: its default.
        agent: Option<String>,
        /// Images for the model beside the text; [`AgentEffect::Attach`] has put them into the sandbox.
        images: Vec<Image>,
        /// Earlier sendings of the prompt.
        sending: Sending,
        /// What the server's capped key may spend from now on; `None`: it has none, or its limit stands.
        limit: Option<KeyLimit>,
    },
    /// Follow the run and keep the card alive. Answers `Finished`, `StillRunning`, `CancelSeen`, `SteerSeen`,
    /// `CardMoved`, `Asked`, `AskClosed` or `Failed`.
    Follow(Follow),
    /// Poll the run once, and show on the card what has changed. Answers like [`AgentEffect::Follow`].
    Look(Follow),
    /// End the run, unless the agent has since been given a prompt of another turn. Answers `Aborted`.
    Abort {
        /// The agent session that the prompt was given to.
        agent_session: AgentSessionId,
        /// Message id of the run's newest prompt: an accepted prompt may not be stored yet, and before that nothing can
        /// be ended.
        message: String,
        /// Message ids of all prompts of the turn, so that work for another turn is not hit.
        messages: Vec<String>,
    },
    /// End a run that no turn follows any more, unless it has ended. Answers `RunEnded`.
    EndRun(StrayRun),
    /// Answer a permission or question with no. Answers `Declined`.
    Decline {
        /// The ask's id at OpenCode.
        ask: AskId,
        /// The subject of the ask.
        about: About,
    },
    /// Read the turn's file changes. Answers `Changed`; a failure costs only the numbers.
    ReadChanges {
        /// The agent session that the prompt was given to.
        agent_session: AgentSessionId,
        /// Message id of the prompt.
        message: String,
    },
    /// List the files that the agent left to be shown. Answers `Listed`; after a failure the next turn shows them.
    ListArtifacts,
}

/// Posts in the chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are posts")]
pub enum ChatEffect {
    /// Show a file that the agent left to be shown. Answers `Posted` or `Unshown`.
    PostArtifact {
        /// The turn that it belongs to.
        turn: TurnId,
        /// Its index among the turn's files; with thread and turn it is the nonce.
        index: u32,
        /// The file, as the sandbox lists it.
        file: Artifact,
    },
    /// Tell another thread what happened to its sandbox. Answers `Told`.
    Tell {
        /// The thread to tell; not the message's own.
        thread: ThreadKey,
        /// The message that caused it; with the thread it is the nonce.
        turn: TurnId,
        /// The text.
        word: String,
        /// Nothing is left to do there: archive the thread if the chat can.
        archive: bool,
    },
    /// Tell the requester once, outside of the thread, which cannot be written in. Answers `Told`.
    TellBeside {
        /// The turn whose end could not be posted; with the thread it is the nonce.
        turn: TurnId,
        /// Platform ids of the people to tell.
        people: Vec<String>,
        /// The text.
        word: String,
    },
    /// Create or edit a post. Answers `Posted`.
    Post {
        /// The turn (or message) that the post belongs to.
        turn: TurnId,
        /// The purpose of the post; with thread and turn it is the nonce.
        kind: PostKind,
        /// The post to edit; `None` creates one.
        at: Option<PostRef>,
        /// The content of the post.
        post: Post,
    },
}

/// Earlier sendings of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sending {
    /// None: its ids have just been minted.
    First {
        /// How long the server may take to accept it; set if its health was not checked before.
        within_ms: Option<u64>,
    },
    /// There may be one, but [`AgentEffect::FindPrompt`] has shown that the agent does not have the prompt, or that
    /// nothing works on it any more: the same ids make the run go on.
    Again,
}

/// Arguments for following a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Follow {
    /// The agent session that the prompt was given to.
    pub agent_session: AgentSessionId,
    /// Message id of the prompt.
    pub message: String,
    /// Message ids of prompts sent into the run after it: the run answers them too.
    pub further: Vec<String>,
    /// The turn whose run is followed.
    pub turn: TurnId,
    /// The card to keep alive.
    pub card: KeptCard,
    /// When the turn was accepted.
    pub since_ms: Ms,
    /// Asks that are already in the thread; only others are reported.
    pub asks: Vec<Ask>,
    /// A cancel flag is already known: do not report it again.
    pub cancel_known: bool,
    /// The turns whose "Send now" is known already; `None`: no waiting prompt may be sent into the run now.
    pub steers: Option<Vec<TurnId>>,
    /// Latest time to return.
    pub until_ms: Ms,
    /// When the turn's own bound ends it; nothing is waited for beyond that.
    pub ends_ms: Ms,
    /// Return earlier if other work waits and no worker is free for it.
    pub gives_way: bool,
    /// State of the run as last seen.
    pub seen: Seen,
    /// When it was last seen, if by another delivery.
    pub seen_at_ms: Option<Ms>,
    /// More assistant messages than this count as a loop.
    pub messages_max: u32,
}

/// The card that is kept alive while a run is followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeptCard {
    /// The post, if there is one.
    pub at: Option<PostRef>,
    /// Its name.
    pub kind: PostKind,
    /// What it shows while nothing else is known.
    pub state: CardState,
    /// Model that the turn runs with.
    pub model: String,
    /// What the turn may spend; following ends once it has.
    pub budget: Option<MicroUsd>,
    /// The card says so.
    pub shows_budget: bool,
    /// How the project was made ready in this turn.
    pub set_up: Option<String>,
}

impl Follow {
    /// Who has cancelled the turn, if that is news.
    #[must_use]
    pub fn cancelled_by<'a>(&self, flags: &'a ControlFlags) -> Option<&'a Person> {
        let by = flags.cancelled_by(&self.turn, self.since_ms);
        by.filter(|_| !self.cancel_known)
    }
}

impl SandboxEffect {
    /// Whether it creates something in the account behind the present key, or concludes from that account that
    /// something is gone. Allowed only if the account is the one on record.
    #[must_use]
    pub const fn rests_on_account(&self) -> bool {
        matches!(
            self,
            Self::Create { .. } | Self::Delete | Self::Confirm { .. } | Self::DeleteSnapshot { .. }
        )
    }
}

impl Effect {
    /// The purpose of the post, if the effect is one.
    #[must_use]
    pub fn posts(&self) -> Option<PostKind> {
        match self {
            Self::Chat(ChatEffect::Post { kind, .. }) => Some(kind.clone()),
            Self::Chat(ChatEffect::PostArtifact { index, .. }) => Some(PostKind::Artifact(*index)),
            _ => None,
        }
    }

    /// Whether it may be performed at the same time as the post of a card. Neither needs the result of the other, and
    /// nothing that stops, deletes or posts is among these.
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
            Self::Forge(effect) => {
                matches!(
                    effect,
                    ForgeEffect::Find { .. }
                        | ForgeEffect::FindGivenPull { .. }
                        | ForgeEffect::Carry { .. }
                        | ForgeEffect::MoveCheckout { .. }
                )
            }
            Self::FindName { .. }
            | Self::EndTools
            | Self::FindAgent { .. }
            | Self::FindPrebuild { .. }
            | Self::Queue { .. }
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
            Self::Forge(effect) => effect.name(),
            Self::Chat(ChatEffect::Post { .. }) => "post",
            Self::Chat(ChatEffect::PostArtifact { .. }) => "post_artifact",
            Self::Chat(ChatEffect::Tell { .. }) => "tell",
            Self::Chat(ChatEffect::TellBeside { .. }) => "notify_outside",
            Self::FindName { .. } => "find_name",
            Self::EndTools => "end_tools",
            Self::FindAgent { .. } => "find_agent",
            Self::FindPrebuild { .. } => "find_prebuild",
            Self::Queue { .. } => "queue",
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
            Self::ReadRecipe { .. } => "read_recipe",
            Self::SetUp { .. } => "set_up",
            Self::StartProject { .. } => "start_project",
            Self::EnsureServer { .. } => "ensure_server",
        }
    }
}

impl ForgeEffect {
    const fn name(&self) -> &'static str {
        match self {
            Self::Find { .. } => "find_repository",
            Self::Carry { .. } => "carry",
            Self::ReadOutgoing { .. } => "read_outgoing",
            Self::FindGivenPull { .. } => "find_given_pull",
            Self::ReadReview { .. } => "read_review",
            Self::PostReview { .. } => "post_review",
            Self::AskPresser { .. } => "ask_presser",
            Self::Push { .. } => "push",
            Self::FindPullRequest { .. } => "find_pull_request",
            Self::Bring { .. } => "bring_branch",
            Self::MoveCheckout { .. } => "move_checkout",
            Self::ReadFailures { .. } => "read_failures",
            Self::FindPerson { .. } => "find_person",
            Self::Respond { .. } => "respond",
            Self::PollPullRequest { .. } => "poll_pull_request",
            Self::ActOnPullRequest { .. } => "act_on_pull_request",
            Self::OpenPullRequest { .. } => "open_pull_request",
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
