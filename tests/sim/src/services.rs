//! The effects, performed on any state of provider, agent and chat: the only place that reads effects.
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
use bobbin_core::records::tool_sandbox::AgentSeen;
use bobbin_core::tenant::budgets::MicroUsd;
use bobbin_core::tenant::capped_keys::KeyLimit;
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tenant::selection::Selection;

use crate::project;

/// A prompt as the agent receives it.
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
    /// None of it was sent before.
    pub const fn is_first(&self) -> bool {
        matches!(self.sending, Sending::First { .. })
    }
}

/// What the sender of a prompt meets instead of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    /// It certainly did not arrive.
    NotSent(Failure),
    /// Whether it arrived is unknown.
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

/// A push of a branch.
#[derive(Debug, Clone, Copy)]
pub struct Moving<'a> {
    /// The forge's id of its repository.
    pub repository: u64,
    pub branch: &'a str,
    /// Where the branch must be; `None`: it must not exist.
    pub old: Option<&'a str>,
    pub new: &'a str,
    /// A commit that the new one must follow.
    pub follows: Option<&'a str>,
}

/// The result of a request for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    Healthy,
    /// The provider does not put its secrets into its requests.
    WithoutSecrets,
    Down,
}

/// A prompt's files at the agent: the note about them, the missing ones, and the images.
pub type Attached = (String, Vec<String>, Vec<Image>);

/// A server that does not answer.
pub fn silent() -> Failure {
    Failure::SandboxDown { seen: "no answer".to_owned() }
}

/// Provider, agent and chat, as one delivery sees them. Anything a state does not care about has a default here.
pub trait Services {
    /// The state of this generation's sandbox, as the provider answers a create.
    fn stands(&mut self, generation: u32) -> SandboxState;

    /// The same, as other calls answer.
    fn seen(&mut self, generation: u32) -> SandboxState {
        self.stands(generation)
    }

    /// The same, as one observation finds it.
    fn look(&mut self, generation: u32) -> SandboxState {
        self.seen(generation)
    }

    /// The same, as an observation and the list find it.
    fn confirmed(&mut self, generation: u32) -> SandboxState {
        self.seen(generation)
    }

    /// Waits this long first.
    fn pass(&mut self, _ms: u64) {}

    /// Who cancelled a turn whose Stop ends a wait.
    fn cancelled_by(&mut self, watched: &Watched) -> Option<Person>;

    /// The number of the tenant's sandboxes, or of those created before this one.
    fn count(&mut self, _older_than: Option<u32>) -> u32 {
        0
    }

    fn create(&mut self, generation: u32);

    /// Creates it, from a prebuild if one is named.
    fn create_from(&mut self, generation: u32, _prebuild: Option<&str>) -> Result<(), Failure> {
        self.create(generation);
        Ok(())
    }

    fn start(&mut self, generation: u32);

    /// There is enough time for a stop to arrive before anybody else acts.
    fn may_stop(&mut self, _generation: u32) -> bool {
        true
    }

    fn stop(&mut self, generation: u32);

    fn delete(&mut self, generation: u32);

    /// Clones the repository into a running sandbox.
    fn clone_into(&mut self, generation: u32, repo: &str) -> Result<LeftOut, NotCloned>;

    /// The recipe of the project in a sandbox.
    fn read_recipe(&mut self, _generation: u32, _at: &RecipeAt) -> FoundRecipe {
        project::nothing()
    }

    /// Polls its set-up.
    fn set_up(&mut self, _generation: u32, steps: usize) -> SetUpSeen {
        SetUpSeen { ended: vec![StepEnd::Done; steps], is_over: true, ..SetUpSeen::default() }
    }

    /// Starts its services and start steps.
    fn start_project(&mut self, _generation: u32) -> Vec<FailedStep> {
        Vec::new()
    }

    /// What the forge says about the repository with this name.
    fn find_repository(&mut self, _name: &str) -> FoundRepository {
        FoundRepository::NotInstalled
    }

    /// Fetches the repository from the forge into a running sandbox.
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

    /// What the checkout has beyond the fetched commit.
    fn outgoing(&mut self, _generation: u32, _carried: &Carried) -> Outgoing {
        Outgoing::Unchanged
    }

    /// Moves a branch to the commit in a running sandbox.
    fn push(&mut self, _generation: u32, _moving: &Moving<'_>) -> PushEnd {
        PushEnd::Refused { why: "nothing is pushed here".to_owned() }
    }

    /// The newest pull request of the branch.
    fn pull_request(&mut self, _branch: &str) -> Option<PullRequestSeen> {
        None
    }

    /// Fetches the newest commit of a branch beside the checkout. False: that is not possible.
    fn bring(&mut self, _generation: u32, _branch: &str) -> bool {
        false
    }

    /// Moves the checkout to the newest commit of its branch; `None`: it holds other work.
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

    /// Posts a review, unless it exists.
    fn review(&mut self, _number: u64, _review: &NewPullReview) -> ReviewEnd {
        ReviewEnd::Refused { why: "nothing is posted here".to_owned() }
    }

    /// The logs of failed checks.
    fn failures(&mut self, _checks: &[Check]) -> String {
        String::new()
    }

    /// Puts messages into the thread's group.
    fn queue(&mut self, _messages: &[Message]) {}

    /// The person who connected this account.
    fn person_of(&mut self, _account: u64) -> Result<Option<(Person, Membership)>, Failure> {
        Ok(None)
    }

    /// Does this below the pull request with this number.
    fn respond(&mut self, _number: u64, _what: &PullRequestResponse) -> Result<(), Failure> {
        Ok(())
    }

    /// Polls the pull request with this number.
    fn poll(&mut self, _number: u64) -> Result<WatchedPullRequest, Failure> {
        Err(silent())
    }

    /// Whether the account of the person who pressed may push.
    fn presser(&mut self, _person: &str) -> Presser {
        Presser::NotLinked
    }

    /// A person does something with a pull request whose head they saw.
    fn act(&mut self, _number: u64, _act: PullRequestAct, _head: &str, _person: &str) -> ActEnd {
        ActEnd::NotLinked { why: "Nobody has an account here.".to_owned() }
    }

    /// Opens the branch's pull request.
    fn open_pull_request(&mut self, _branch: &str, _is_draft: bool) -> Opened {
        Opened::Refused { why: "nothing is opened here".to_owned() }
    }

    /// Starts a server in a running sandbox.
    fn serve(&mut self, generation: u32, is_new: bool) -> Serving;

    /// The end of the server key's life, if keys are capped.
    fn cap(&mut self, _cap: Option<MicroUsd>) -> Option<Ms> {
        None
    }

    /// The project's secrets that a server was started with, if any.
    fn secrets(&mut self, _generation: u32, _restart: bool) -> Option<GivenSecrets> {
        None
    }

    /// Gives the capped key another limit.
    fn limit(&mut self, _limit: Option<KeyLimit>) {}

    /// The thread's workspace.
    fn workspace(&mut self, _generation: u32) -> Result<Event, Failure> {
        Err(silent())
    }

    /// The snapshot that was requested at this time: its name and state.
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

    /// The same for a mere check: a server that does not answer says nothing about its sandbox.
    fn check(&mut self, generation: u32) -> Result<(), Failure> {
        self.reached(generation).map_err(|_| silent())
    }

    fn agent_session(&mut self, generation: u32, since_ms: Ms) -> Result<AgentSessionId, Failure>;

    fn attach(&mut self, _files: &[Attachment]) -> Attached {
        (String::new(), Vec::new(), Vec::new())
    }

    /// What a sent prompt meets before the agent.
    fn intercepts(&mut self, _sent: &Sent<'_>) -> Option<Missed> {
        None
    }

    /// Whether the prompt certainly did not arrive: the proxy knows that a sandbox is gone or stopped.
    fn refuses(&mut self, _generation: u32) -> bool {
        true
    }

    /// The agent takes the prompt, or its sender meets something else.
    fn take(&mut self, sent: &Sent<'_>) -> Result<(), Missed>;

    fn prompt_state(&mut self, generation: u32, message: &str) -> Result<PromptState, Failure>;

    /// Follows a run, or polls it once.
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

    /// Posts a file in the thread, or says why not.
    fn show(
        &mut self,
        _generation: u32,
        _turn: &TurnId,
        _index: u32,
        _file: &Artifact,
    ) -> Result<PostRef, String> {
        Err("is not there".to_owned())
    }

    /// Posts in another thread.
    fn tell(&mut self, _thread: &ThreadKey, _word: &str) {}

    /// Notifies people outside the thread; answers with the thread's owner.
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
