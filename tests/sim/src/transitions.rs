//! How events change the sandbox's phase: collected from every run of the product, compared with the document.

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::control::PublishStep;
use bobbin_core::records::message::Work;
use bobbin_core::records::publication::{Opened, Outgoing, PushEnd};
use bobbin_core::records::sandbox::{Phase, SandboxState, SnapshotSeen};
use bobbin_core::records::set_up::SetUpSeen;

/// One decision, reduced to the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transition {
    pub from: &'static str,
    /// The message that is worked on.
    pub work: &'static str,
    pub event: &'static str,
    pub to: &'static str,
}

/// A decision before it is made.
#[derive(Debug, Clone, Copy)]
pub struct Before(Transition);

impl Transition {
    pub fn before(phase: Phase, work: &Work, event: Option<&Event>) -> Before {
        let work = match work {
            Work::Build(_) => "build",
            Work::Publish { step: PublishStep::Show { .. }, .. } => "propose",
            Work::Publish { step: PublishStep::Push { .. }, .. } => "publish",
            Work::Publish { step: PublishStep::PushAll { .. }, .. } => "publish all",
            Work::Publish { step: PublishStep::Fix { .. }, .. } => "fix",
            Work::Publish { step: PublishStep::Fixed { .. }, .. } => "fixed",
            Work::Publish { step: PublishStep::Review { .. }, .. } => "review",
            Work::Publish { step: PublishStep::Act { .. }, .. } => "act",
            other => other.word(),
        };
        Before(Self { from: phase.word(), work, event: event.map_or("delivered", kind), to: "" })
    }
}

impl Before {
    /// The same, with the sandbox as others left it.
    pub fn again(self, phase: Phase) -> Self {
        let from = phase.word();
        Self(Transition { from, ..self.0 })
    }

    pub fn after(self, phase: Phase) -> Transition {
        Transition { to: phase.word(), ..self.0 }
    }
}

/// The kind of an event, in the document's words.
pub fn kind(event: &Event) -> &'static str {
    match event {
        Event::Observed(state) => match state {
            SandboxState::Provisioning => "observed provisioning",
            SandboxState::Running => "observed running",
            SandboxState::Stopped => "observed stopped",
            SandboxState::Busy => "observed busy",
            SandboxState::Broken { .. } => "observed broken",
            SandboxState::Gone => "observed gone",
        },
        Event::Counted(_) => "counted",
        Event::Recalled(_) => "recalled",
        Event::NameFound(_) => "name found",
        Event::ToolsEnded => "tools ended",
        Event::AgentFound(_) => "agent found",
        Event::PrebuildFound(_) => "prebuild found",
        Event::Told { .. } => "told",
        Event::WorkspaceReady { .. } => "workspace ready",
        Event::NoWorkspace { .. } => "no workspace",
        Event::SnapshotSeen { seen, .. } => match seen {
            SnapshotSeen::UnderWay => "snapshot under way",
            SnapshotSeen::Ready => "snapshot ready",
            SnapshotSeen::Failed { .. } => "snapshot failed",
        },
        Event::SnapshotDeleted { .. } => "snapshot deleted",
        Event::Woken => "woken",
        Event::Cloned { .. } => "cloned",
        Event::NotCloned { .. } => "not cloned",
        Event::RecipeRead(_) => "recipe read",
        Event::SetUpSeen(SetUpSeen { is_left: true, .. }) => "set-up left",
        Event::SetUpSeen(SetUpSeen { is_over: true, .. }) => "set-up over",
        Event::SetUpSeen(_) => "set-up runs",
        Event::ProjectStarted { .. } => "project started",
        Event::RepositoryFound(_) => "repository found",
        Event::Carried { .. } => "carried",
        Event::OutgoingRead(outgoing) => match outgoing {
            Outgoing::Ready { .. } => "work read",
            Outgoing::Unchanged => "no work",
            Outgoing::Refused { .. } => "work refused",
        },
        Event::Pushed(ended) => match ended {
            PushEnd::Done { .. } => "pushed",
            PushEnd::Changed => "not pushed: files changed",
            PushEnd::Theirs { .. } | PushEnd::Moved { .. } => "not pushed: branch moved",
            PushEnd::Refused { .. } => "not pushed: refused",
        },
        Event::PullRequestSeen(_) => "pull request seen",
        Event::Brought { .. } => "brought",
        Event::CheckoutMoved { base: Some(_) } => "checkout moved",
        Event::CheckoutMoved { base: None } => "checkout stays",
        Event::FailuresRead(_) => "failures read",
        Event::Queued => "queued",
        Event::PersonFound { .. } => "person found",
        Event::Responded => "responded",
        Event::PullRequestPolled(_) => "pull request polled",
        Event::PullRequestActed(_) => "acted",
        Event::GivenPullFound(_) => "given pull request found",
        Event::ReviewRead(_) => "review read",
        Event::ReviewPosted(_) => "review posted",
        Event::PresserSeen(_) => "presser seen",
        Event::Opened(ended) => match ended {
            Opened::There(_) => "pull request open",
            Opened::Refused { .. } => "pull request refused",
        },
        Event::Healthy => "healthy",
        Event::Capped { .. } => "healthy, capped",
        Event::Started { .. } => "healthy, with secrets",
        Event::SecretsNotPutIn => "secrets not put in",
        Event::OptionsListed(_) => "surveyed",
        Event::AgentSession { .. } => "agent session",
        Event::Attached { .. } => "attached",
        Event::PromptFound(_) => "prompt found",
        Event::Prompted => "prompted",
        Event::Finished(_) => "finished",
        Event::StillRunning(_) => "still running",
        Event::OthersWait(_) => "others wait",
        Event::CancelSeen { .. } => "cancel seen",
        Event::SteerSeen { .. } => "steer seen",
        Event::CardMoved(_) => "card moved",
        Event::Asked { .. } => "asked",
        Event::AskClosed { .. } => "ask closed",
        Event::Aborted => "aborted",
        Event::RunEnded => "run ended",
        Event::Declined { .. } => "declined",
        Event::Changed(_) => "changed",
        Event::Listed(_) => "listed",
        Event::Unshown { .. } => "unshown",
        Event::Posted(_) => "posted",
        Event::NotSent(_) => "not sent",
        Event::Failed(failure) => match failure {
            Failure::SessionMissing => "failed: session missing",
            Failure::SandboxDown { .. } => "failed: sandbox down",
            Failure::SandboxGone => "failed: sandbox gone",
            Failure::ResumeFailed { .. } => "failed: resume failed",
            Failure::NonRecoverable { .. } => "failed: non-recoverable",
            Failure::Outage { .. } => "failed: outage",
            Failure::Wait { .. } => "failed: wait",
            Failure::Newer { .. } => "failed: newer",
            Failure::ThreadClosed { .. } => "failed: thread closed",
            Failure::ThreadGone { .. } => "failed: thread gone",
            Failure::OverBudget { .. } => "failed: over budget",
            Failure::TurnFailed { .. } => "failed: turn failed",
        },
    }
}

/// The classes of failure, in the document's words.
pub const FAILURES: [&str; 11] = [
    "session missing",
    "sandbox down",
    "sandbox gone",
    "resume failed",
    "non-recoverable",
    "outage",
    "wait",
    "newer",
    "thread closed",
    "thread gone",
    "turn failed",
];
