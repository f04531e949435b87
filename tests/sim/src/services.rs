//! What an effect does, over whatever holds provider, agent and chat: the only place in which effects are read.
//!
//! A state says what there is and what a call changes ([`Services`]); how the answer of each effect follows from that
//! is said here once ([`perform`]), for histories, for the models, and for the tests of single decisions.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{
    AgentSessionId, AskId, Ms, PostRef, SandboxKey, SandboxName, ThreadKey, TurnId,
};
use bobbin_core::base::names::{PostKind, PromptIds};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::protocol::effect::{
    AgentEffect, ChatEffect, Effect, Follow, ForgeEffect, RecipeAt, SandboxEffect, Sending, Watched,
};
use bobbin_core::protocol::event::{Event, NotCloned};
use bobbin_core::protocol::target::{Addressed, EffectTarget};
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::card::Post;
use bobbin_core::records::carried::{
    Carried, CarriedTo, ForgeRepository, FoundRepository, LeftOut,
};
use bobbin_core::records::changes::Changes;
use bobbin_core::records::checks::Check;
use bobbin_core::records::drafted_review::{NewPullReview, ReviewEnd, ReviewRead};
use bobbin_core::records::given_pull::FoundPull;
use bobbin_core::records::given_secrets::GivenSecrets;
use bobbin_core::records::images::Image;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Attachment, Message};
use bobbin_core::records::outside::AgentSeen;
use bobbin_core::records::prebuild::Prebuild;
use bobbin_core::records::publication::{
    ActEnd, Opened, Outgoing, Presser, PullRequestAct, PullRequestSeen, PushEnd,
};
use bobbin_core::records::pull_request::{
    Mergeability, PolledPullRequest, PolledTotals, ReviewDecision, WatchedPullRequest,
};
use bobbin_core::records::recipe::FoundRecipe;
use bobbin_core::records::responses::PullRequestResponse;
use bobbin_core::records::run::PromptState;
use bobbin_core::records::sandbox::{SandboxState, SnapshotSeen};
use bobbin_core::records::session::StrayRun;
use bobbin_core::records::set_up::{FailedStep, SetUpSeen, StepEnd};
use bobbin_core::tenant::budgets::MicroUsd;
use bobbin_core::tenant::capped_keys::KeyLimit;
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tenant::selection::Selection;

use crate::project;

/// A prompt as the agent is given it.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    pub generation: u32,
    pub ids: &'a PromptIds,
    pub text: &'a str,
    pub images: &'a [Image],
    pub model: &'a str,
    pub agent: Option<&'a str>,
    pub sending: Sending,
}

impl Sent<'_> {
    /// Nothing of it has been sent before.
    pub const fn is_first(&self) -> bool {
        matches!(self.sending, Sending::First { .. })
    }
}

/// What who sends a prompt meets in place of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    /// It did not arrive, for certain.
    NotSent(Failure),
    /// Nobody knows.
    Failed(Failure),
}

impl From<Missed> for Event {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::NotSent(failure) => Self::NotSent(failure),
            Missed::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// A branch that is to move.
#[derive(Debug, Clone, Copy)]
pub struct Moving<'a> {
    /// The forge's id of its repository.
    pub repository: u64,
    pub branch: &'a str,
    /// Where it has to be; none: it must not exist.
    pub old: Option<&'a str>,
    pub new: &'a str,
    /// A commit that the new one has to follow.
    pub follows: Option<&'a str>,
}

/// What happens to the wish to have a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    Healthy,
    /// Its secrets are not put into its requests.
    WithoutSecrets,
    Down,
}

/// The files of a prompt, as they came to the agent: what it is told of them, what is missing, what it sees.
pub type Attached = (String, Vec<String>, Vec<Image>);

/// A server that does not answer.
pub fn silent() -> Failure {
    Failure::SandboxDown { seen: "no answer".to_owned() }
}

/// What provider, agent and chat are to one delivery. What a state does not care about has an answer here.
pub trait Services {
    /// How the sandbox of this generation stands, as its provider answers the call that makes it.
    fn stands(&mut self, generation: u32) -> SandboxState;

    /// The same, as other calls answer.
    fn seen(&mut self, generation: u32) -> SandboxState {
        self.stands(generation)
    }

    /// The same, as one look finds it.
    fn look(&mut self, generation: u32) -> SandboxState {
        self.seen(generation)
    }

    /// The same, as a look and the list find it.
    fn confirmed(&mut self, generation: u32) -> SandboxState {
        self.seen(generation)
    }

    /// So long is waited first.
    fn pass(&mut self, _ms: u64) {}

    /// Who has cancelled a turn whose Stop ends a wait.
    fn cancelled_by(&mut self, watched: &Watched) -> Option<Person>;

    /// The tenant's sandboxes, or those of them that were made before this one.
    fn count(&mut self, _older_than: Option<u32>) -> u32 {
        0
    }

    fn create(&mut self, generation: u32);

    /// Creates it from a prebuild, if one is named.
    fn create_from(&mut self, generation: u32, _prebuild: Option<&str>) -> Result<(), Failure> {
        self.create(generation);
        Ok(())
    }

    fn start(&mut self, generation: u32);

    /// Enough time is left for a stop to arrive before somebody else acts.
    fn may_stop(&mut self, _generation: u32) -> bool {
        true
    }

    fn stop(&mut self, generation: u32);

    fn delete(&mut self, generation: u32);

    /// The repository comes into a sandbox that runs.
    fn clone_into(&mut self, generation: u32, repo: &str) -> Result<LeftOut, NotCloned>;

    /// How the project in a sandbox is made ready.
    fn read_recipe(&mut self, _generation: u32, _at: &RecipeAt) -> FoundRecipe {
        project::nothing()
    }

    /// A look at its set-up.
    fn set_up(&mut self, _generation: u32, steps: usize) -> SetUpSeen {
        SetUpSeen { ended: vec![StepEnd::Done; steps], is_over: true, ..SetUpSeen::default() }
    }

    /// Its services and start steps start.
    fn start_project(&mut self, _generation: u32) -> Vec<FailedStep> {
        Vec::new()
    }

    /// What the forge says about the repository with this name.
    fn find_repository(&mut self, _name: &str) -> FoundRepository {
        FoundRepository::NotInstalled
    }

    /// The repository comes from the forge into a sandbox that runs.
    fn carry(
        &mut self,
        _generation: u32,
        repository: &ForgeRepository,
        _wanted: Option<&str>,
        _to: &CarriedTo,
    ) -> Result<(Carried, LeftOut), NotCloned> {
        let repository = repository.clone();
        let carried = Carried { repository, default: None, folder: None, base: None };
        Ok((carried, LeftOut::default()))
    }

    /// What the checkout holds beyond the commit that was brought.
    fn outgoing(&mut self, _generation: u32, _carried: &Carried) -> Outgoing {
        Outgoing::Unchanged
    }

    /// A branch is to move to what is in a sandbox that runs.
    fn push(&mut self, _generation: u32, _moving: &Moving<'_>) -> PushEnd {
        PushEnd::Refused { why: "nothing is pushed here".to_owned() }
    }

    /// The newest pull request of the branch.
    fn pull_request(&mut self, _branch: &str) -> Option<PullRequestSeen> {
        None
    }

    /// The newest commit of a branch is put beside the checkout. False: it cannot be.
    fn bring(&mut self, _generation: u32, _branch: &str) -> bool {
        false
    }

    /// The checkout is moved to the newest commit of its branch; `None`: it holds other work.
    fn move_checkout(&mut self, _pushed: Option<&str>) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// The pull request with this number.
    fn given_pull(&mut self, _number: u64) -> FoundPull {
        FoundPull::Missing
    }

    /// The review that the agent has written.
    fn written_review(&mut self) -> Result<ReviewRead, Failure> {
        Ok(ReviewRead::Absent)
    }

    /// A review is posted, unless it is there.
    fn review(&mut self, _number: u64, _review: &NewPullReview) -> ReviewEnd {
        ReviewEnd::Refused { why: "nothing is posted here".to_owned() }
    }

    /// What failed checks say.
    fn failures(&mut self, _checks: &[Check]) -> String {
        String::new()
    }

    /// Messages are put into the thread's group.
    fn queue(&mut self, _messages: &[Message]) {}

    /// Who has connected this account.
    fn person_of(&mut self, _account: u64) -> Result<Option<(Person, Membership)>, Failure> {
        Ok(None)
    }

    /// This is done below the pull request with this number.
    fn respond(&mut self, _number: u64, _what: &PullRequestResponse) -> Result<(), Failure> {
        Ok(())
    }

    /// A look at the pull request with this number.
    fn poll(&mut self, _number: u64) -> Result<WatchedPullRequest, Failure> {
        Err(silent())
    }

    /// Whether the account of the person who pressed may push.
    fn presser(&mut self, _person: &str) -> Presser {
        Presser::NotLinked
    }

    /// A person does something with a pull request, whose head they saw.
    fn act(&mut self, _number: u64, _act: PullRequestAct, _head: &str, _person: &str) -> ActEnd {
        ActEnd::NotLinked { why: "Nobody has an account here.".to_owned() }
    }

    /// The branch's pull request is wanted.
    fn open_pull_request(&mut self, _branch: &str, _is_draft: bool) -> Opened {
        Opened::Refused { why: "nothing is opened here".to_owned() }
    }

    /// A server is wanted in a sandbox that runs.
    fn serve(&mut self, generation: u32, is_new: bool) -> Serving;

    /// Until when the capped key of the server lives, where such keys are made.
    fn cap(&mut self, _cap: Option<MicroUsd>) -> Option<Ms> {
        None
    }

    /// The project's secrets with which a server was started, where it has some.
    fn secrets(&mut self, _generation: u32, _restart: bool) -> Option<GivenSecrets> {
        None
    }

    /// Gives the capped key another limit.
    fn limit(&mut self, _limit: Option<KeyLimit>) {}

    /// A workspace of the thread's own.
    fn workspace(&mut self, _generation: u32) -> Result<Event, Failure> {
        Err(silent())
    }

    /// The snapshot that was asked for at this time: its name, and how it stands.
    fn snapshot(
        &mut self,
        _generation: u32,
        _at_ms: Ms,
    ) -> Result<(String, SnapshotSeen), Failure> {
        Err(silent())
    }

    fn delete_snapshot(&mut self, _name: &str) -> Result<(), Failure> {
        Err(silent())
    }

    /// Whether the agent's server answers.
    fn reached(&mut self, generation: u32) -> Result<(), Failure>;

    /// Whether it does to who only asks that: one that does not tells nothing of its sandbox.
    fn check(&mut self, generation: u32) -> Result<(), Failure> {
        self.reached(generation).map_err(|_| silent())
    }

    fn agent_session(&mut self, generation: u32, since_ms: Ms) -> Result<AgentSessionId, Failure>;

    fn attach(&mut self, _files: &[Attachment]) -> Attached {
        (String::new(), Vec::new(), Vec::new())
    }

    /// What a sending meets before the agent.
    fn intercepts(&mut self, _sent: &Sent<'_>) -> Option<Missed> {
        None
    }

    /// Whether somebody says for certain that a prompt did not arrive: a proxy knows of a sandbox that is gone or
    /// stopped.
    fn refuses(&mut self, _generation: u32) -> bool {
        true
    }

    /// The agent has the prompt, or what its sender meets.
    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed>;

    fn prompt_state(&mut self, generation: u32, message: &str) -> Result<PromptState, Failure>;

    /// A run is held, or looked at once.
    fn follow(&mut self, generation: u32, follow: &Follow, is_held: bool) -> Event;

    fn abort(&mut self, generation: u32, messages: &[String]);

    /// Ends a run that no turn follows.
    fn end_run(&mut self, run: &StrayRun) {
        self.abort(run.generation, &run.messages);
    }

    fn decline(&mut self, _generation: u32, _ask: &AskId) {}

    /// What a run changed in the files.
    fn changes(&mut self, generation: u32) -> Result<Changes, Failure> {
        self.reached(generation).map(|()| Changes::default())
    }

    /// The files to be shown.
    fn artifacts(&mut self, generation: u32) -> Result<Vec<Artifact>, Failure> {
        self.reached(generation).map(|()| Vec::new())
    }

    fn post(
        &mut self,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Result<PostRef, Failure>;

    /// A file in the thread, or why it is not there.
    fn show(
        &mut self,
        _generation: u32,
        _turn: &TurnId,
        _index: u32,
        _file: &Artifact,
    ) -> Result<PostRef, String> {
        Err("is not there".to_owned())
    }

    /// A word to another thread.
    fn tell(&mut self, _thread: &ThreadKey, _word: &str) {}

    /// A word to people beside the thread; whose thread it is.
    fn notify_outside(&mut self, _people: &[String], _word: &str) -> Result<ThreadKey, Failure> {
        Err(Failure::ThreadClosed { seen: "closed".to_owned() })
    }

    fn recalled(&mut self, _turns: &[TurnId]) -> Vec<LedgerEntry> {
        Vec::new()
    }

    fn named(&mut self, _name: &SandboxName) -> Option<SandboxKey> {
        None
    }

    fn end_tools(&mut self, _generation: u32) {}

    fn agent_seen(&mut self, _of: &SandboxKey) -> AgentSeen {
        AgentSeen::default()
    }

    fn prebuild(&mut self, _builder: &SandboxKey, _at: &EffectTarget) -> Option<Prebuild> {
        None
    }

    fn wake(&mut self, _at_ms: Ms) {}

    fn options(&mut self, _used: &Selection) -> AgentOptions {
        AgentOptions {
            models: vec![String::new()],
            agents: vec!["build".to_owned()],
            unpriced: Vec::new(),
        }
    }
}

/// A pull request without checks or reviews, as a poll sees it.
#[must_use]
pub fn polled(seen: &PullRequestSeen, branch: &str, head: &str) -> WatchedPullRequest {
    WatchedPullRequest {
        pull: PolledPullRequest {
            number: seen.at.number,
            state: seen.state,
            is_draft: seen.is_draft,
            is_queued: false,
            branch: branch.to_owned(),
            head: head.to_owned(),
            is_from_fork: false,
            base: "main".to_owned(),
            merge: Mergeability::Clean,
            decision: ReviewDecision::NotNeeded,
            checks: Vec::new(),
            reviews: Vec::new(),
            threads: Vec::new(),
            comments: Vec::new(),
            totals: PolledTotals::default(),
        },
        required: Vec::new(),
        writers: Vec::new(),
        not_asked: 0,
    }
}

/// Performs an effect, at once.
pub fn perform(on: &mut impl Services, Addressed { at, effect, .. }: &Addressed<'_>) -> Event {
    let generation = at.generation;
    match effect {
        Effect::Sandbox(effect) => of_sandbox(on, generation, effect),
        Effect::Agent(effect) => of_agent(on, generation, effect).unwrap_or_else(Event::Failed),
        Effect::Chat(effect) => of_chat(on, generation, effect).unwrap_or_else(Event::Failed),
        Effect::Forge(effect) => of_forge(on, generation, effect),
        Effect::Recall { turns } => Event::Recalled(on.recalled(turns)),
        Effect::FindName { name } => Event::NameFound(on.named(name)),
        Effect::Queue { messages } => {
            on.queue(messages);
            Event::Queued
        }
        Effect::EndTools => {
            on.end_tools(generation);
            Event::ToolsEnded
        }
        Effect::FindAgent { of } => Event::AgentFound(on.agent_seen(of)),
        Effect::FindPrebuild { builder } => Event::PrebuildFound(on.prebuild(builder, at)),
        Effect::Wake { at_ms } => {
            on.wake(*at_ms);
            Event::Woken
        }
        Effect::ListOptions { used, .. } => Event::OptionsListed(on.options(used)),
    }
}

fn of_forge(on: &mut impl Services, generation: u32, effect: &ForgeEffect) -> Event {
    match effect {
        ForgeEffect::Find { name } => Event::RepositoryFound(on.find_repository(name)),
        ForgeEffect::FindGivenPull { number, .. } => Event::GivenPullFound(on.given_pull(*number)),
        ForgeEffect::ReadReview { .. } => match on.stands(generation) {
            SandboxState::Gone => Event::Failed(Failure::SandboxGone),
            SandboxState::Running => {
                on.written_review().map_or_else(Event::Failed, Event::ReviewRead)
            }
            _ => Event::Failed(silent()),
        },
        ForgeEffect::PostReview { number, review, .. } => {
            Event::ReviewPosted(on.review(*number, review))
        }
        ForgeEffect::Carry { repository, wanted, pull, to, watch, .. } => {
            if let Some(by) = watch.as_ref().and_then(|watched| on.cancelled_by(watched)) {
                return Event::CancelSeen { by };
            }
            match on.stands(generation) {
                SandboxState::Gone => Event::Failed(Failure::SandboxGone),
                SandboxState::Running => {
                    match on.carry(generation, repository, wanted.as_deref(), to) {
                        Ok((mut carried, left_out)) => {
                            if let Some(pull) = pull
                                && let FoundPull::There { head, .. } = on.given_pull(pull.number)
                            {
                                carried.base = Some(head);
                                carried.repository.branch = pull.takes_work().to_owned();
                            }
                            Event::Carried { carried, left_out: Box::new(left_out) }
                        }
                        Err(why) => Event::NotCloned { why },
                    }
                }
                _ => Event::Failed(silent()),
            }
        }
        ForgeEffect::ReadOutgoing { carried, .. } => match on.stands(generation) {
            SandboxState::Gone => Event::Failed(Failure::SandboxGone),
            SandboxState::Running => Event::OutgoingRead(on.outgoing(generation, carried)),
            _ => Event::Failed(silent()),
        },
        ForgeEffect::Push { carried, branch, old, new, follows } => match on.stands(generation) {
            SandboxState::Gone => Event::Failed(Failure::SandboxGone),
            SandboxState::Running => {
                let (old, follows) = (old.as_deref(), follows.as_deref());
                let repository = carried.repository.id;
                let moving = Moving { repository, branch, old, new, follows };
                Event::Pushed(on.push(generation, &moving))
            }
            _ => Event::Failed(silent()),
        },
        ForgeEffect::FindPullRequest { branch, .. } => {
            Event::PullRequestSeen(on.pull_request(branch))
        }
        ForgeEffect::Bring { branch, .. } => match on.stands(generation) {
            SandboxState::Running => {
                Event::Brought { branch: branch.clone(), is_there: on.bring(generation, branch) }
            }
            _ => Event::Failed(Failure::SandboxDown { seen: "it does not run".to_owned() }),
        },
        ForgeEffect::MoveCheckout { pushed, .. } => match on.stands(generation) {
            SandboxState::Gone => Event::Failed(Failure::SandboxGone),
            SandboxState::Running => on
                .move_checkout(pushed.as_deref())
                .map_or_else(Event::Failed, |base| Event::CheckoutMoved { base }),
            _ => Event::Failed(silent()),
        },
        ForgeEffect::ReadFailures { checks, .. } => Event::FailuresRead(on.failures(checks)),
        ForgeEffect::FindPerson { account, .. } => on
            .person_of(*account)
            .map_or_else(Event::Failed, |found| Event::PersonFound { account: *account, found }),
        ForgeEffect::Respond { number, what, .. } => {
            on.respond(*number, what).map_or_else(Event::Failed, |()| Event::Responded)
        }
        ForgeEffect::PollPullRequest { number, .. } => {
            on.poll(*number).map_or_else(Event::Failed, Event::PullRequestPolled)
        }
        ForgeEffect::ActOnPullRequest { number, act, head, person, .. } => {
            Event::PullRequestActed(on.act(*number, *act, head, person))
        }
        ForgeEffect::AskPresser { person, .. } => Event::PresserSeen(on.presser(person)),
        ForgeEffect::OpenPullRequest { branch, is_draft, .. } => {
            Event::Opened(on.open_pull_request(branch, *is_draft))
        }
    }
}

fn of_sandbox(on: &mut impl Services, generation: u32, effect: &SandboxEffect) -> Event {
    let watched = match effect {
        SandboxEffect::Observe { watch, .. }
        | SandboxEffect::Clone { watch, .. }
        | SandboxEffect::SetUp { watch, .. }
        | SandboxEffect::EnsureServer { watch, .. } => watch.as_ref(),
        _ => None,
    };
    if let SandboxEffect::Observe { after_ms, .. }
    | SandboxEffect::Confirm { after_ms, .. }
    | SandboxEffect::SetUp { after_ms, .. }
    | SandboxEffect::Snapshot { after_ms, .. } = effect
    {
        on.pass(*after_ms);
    }
    if let Some(by) = watched.and_then(|watched| on.cancelled_by(watched)) {
        return Event::CancelSeen { by };
    }
    match effect {
        SandboxEffect::Count { older_than } => Event::Counted(on.count(*older_than)),
        SandboxEffect::Create { prebuild, .. } => {
            match on.create_from(generation, prebuild.as_deref()) {
                Ok(()) => Event::Observed(on.stands(generation)),
                Err(failure) => Event::Failed(failure),
            }
        }
        SandboxEffect::Observe { .. } => Event::Observed(on.look(generation)),
        SandboxEffect::Confirm { .. } => Event::Observed(on.confirmed(generation)),
        SandboxEffect::Start => {
            on.start(generation);
            Event::Observed(on.seen(generation))
        }
        SandboxEffect::Stop if !on.may_stop(generation) => {
            let seen = "too little time is left for a stop".to_owned();
            Event::Failed(Failure::Wait { after_ms: 0, seen })
        }
        SandboxEffect::Stop => {
            on.stop(generation);
            Event::Observed(on.seen(generation))
        }
        SandboxEffect::Delete => {
            on.delete(generation);
            Event::Observed(on.seen(generation))
        }
        SandboxEffect::Clone { repo, .. } => match on.stands(generation) {
            SandboxState::Gone => Event::Failed(Failure::SandboxGone),
            SandboxState::Running => match on.clone_into(generation, repo) {
                Ok(left_out) => Event::Cloned { left_out },
                Err(why) => Event::NotCloned { why },
            },
            _ => Event::Failed(silent()),
        },
        SandboxEffect::ReadRecipe { .. }
        | SandboxEffect::SetUp { .. }
        | SandboxEffect::StartProject { .. } => of_project(on, generation, effect),
        SandboxEffect::EnsureServer { is_new, restart, cap, .. } => match on.stands(generation) {
            SandboxState::Gone => Event::Failed(Failure::SandboxGone),
            SandboxState::Running => match on.serve(generation, *is_new) {
                Serving::Healthy => match (on.cap(*cap), on.secrets(generation, *restart)) {
                    (capped_until_ms, Some(secrets)) => Event::Started { capped_until_ms, secrets },
                    (Some(until_ms), None) => Event::Capped { until_ms },
                    (None, None) => Event::Healthy,
                },
                Serving::WithoutSecrets => Event::SecretsNotPutIn,
                Serving::Down => Event::Failed(silent()),
            },
            _ => Event::Failed(silent()),
        },
        SandboxEffect::MakeWorkspace { .. } => {
            on.workspace(generation).unwrap_or_else(Event::Failed)
        }
        SandboxEffect::Snapshot { at_ms, .. } => match on.snapshot(generation, *at_ms) {
            Ok((name, seen)) => Event::SnapshotSeen { name, seen },
            Err(failure) => Event::Failed(failure),
        },
        SandboxEffect::DeleteSnapshot { name } => match on.delete_snapshot(name) {
            Ok(()) => Event::SnapshotDeleted { name: name.clone() },
            Err(failure) => Event::Failed(failure),
        },
    }
}

fn of_project(on: &mut impl Services, generation: u32, effect: &SandboxEffect) -> Event {
    match on.stands(generation) {
        SandboxState::Gone => return Event::Failed(Failure::SandboxGone),
        SandboxState::Running => {}
        _ => return Event::Failed(silent()),
    }
    match effect {
        SandboxEffect::SetUp { work, .. } => {
            Event::SetUpSeen(on.set_up(generation, work.steps.len()))
        }
        SandboxEffect::StartProject { .. } => {
            Event::ProjectStarted { failed: on.start_project(generation) }
        }
        SandboxEffect::ReadRecipe { at, .. } => Event::RecipeRead(on.read_recipe(generation, at)),
        _ => Event::Failed(silent()),
    }
}

fn of_agent(
    on: &mut impl Services,
    generation: u32,
    effect: &AgentEffect,
) -> Result<Event, Failure> {
    Ok(match effect {
        AgentEffect::CheckServer { .. } => {
            on.check(generation)?;
            Event::Healthy
        }
        AgentEffect::FindAgentSession { since_ms, .. } => {
            on.reached(generation)?;
            Event::AgentSession { id: on.agent_session(generation, *since_ms)? }
        }
        AgentEffect::Attach { files, .. } => {
            let (note, missed, images) = on.attach(files);
            Event::Attached { note, missed, images }
        }
        AgentEffect::SendPrompt { ids, text, images, model, agent, sending, limit, .. } => {
            on.limit(*limit);
            let agent = agent.as_deref();
            let sent = Sent { generation, ids, text, images, model, agent, sending: *sending };
            send(on, &sent)
        }
        AgentEffect::FindPrompt { message, .. } => {
            on.reached(generation)?;
            Event::PromptFound(on.prompt_state(generation, message)?)
        }
        AgentEffect::Follow(follow) => on.follow(generation, follow, true),
        AgentEffect::Look(follow) => on.follow(generation, follow, false),
        AgentEffect::Abort { messages, .. } => {
            on.reached(generation)?;
            on.abort(generation, messages);
            Event::Aborted
        }
        AgentEffect::EndRun(run) => {
            on.reached(run.generation)?;
            on.end_run(run);
            Event::RunEnded
        }
        AgentEffect::Decline { ask, .. } => {
            on.reached(generation)?;
            on.decline(generation, ask);
            Event::Declined { id: ask.clone() }
        }
        AgentEffect::ReadChanges { .. } => Event::Changed(on.changes(generation)?),
        AgentEffect::ListArtifacts => Event::Listed(on.artifacts(generation)?),
    })
}

fn send(on: &mut impl Services, sent: &Sent<'_>) -> Event {
    if let Some(missed) = on.intercepts(sent) {
        return missed.into();
    }
    match on.reached(sent.generation) {
        Ok(()) => on.take(sent).map_or_else(Event::from, |()| Event::Prompted),
        Err(failure) if sent.is_first() && on.refuses(sent.generation) => Event::NotSent(failure),
        Err(failure) => Event::Failed(failure),
    }
}

fn of_chat(on: &mut impl Services, generation: u32, effect: &ChatEffect) -> Result<Event, Failure> {
    Ok(match effect {
        ChatEffect::Post { turn, kind, at, post } => {
            Event::Posted(on.post(turn, kind, at.as_ref(), post)?)
        }
        ChatEffect::PostArtifact { turn, index, file } => {
            match on.show(generation, turn, *index, file) {
                Ok(at) => Event::Posted(at),
                Err(why) => Event::Unshown { why },
            }
        }
        ChatEffect::Tell { thread, word, .. } => {
            on.tell(thread, word);
            Event::Told { thread: thread.clone() }
        }
        ChatEffect::TellBeside { people, word, .. } => {
            Event::Told { thread: on.notify_outside(people, word)? }
        }
    })
}
