//! A small world in memory, as `drive` sees it, and how its messages are delivered.

use super::*;
use crate::effect::{AgentEffect, ChatEffect, SandboxEffect};
use crate::ids::{AskId, SandboxKey, SandboxName, TurnId};
use crate::outside;
use crate::runtime_mode::RuntimeMode;
use crate::sandbox::{SandboxRecord, SnapshotSeen};
use crate::session::{NameWrite, StoppedAll};
use crate::signals::signals;

/// So long after it began to hold a run.
pub(super) const OTHERS_AFTER_MS: u64 = 2_000;

/// What exists outside, and what a test wants to go wrong.
#[derive(Default)]
pub(super) struct State {
    pub(super) now_ms: Ms,
    pub(super) record: Option<Session>,
    /// Records of other threads than [`thread`], and of sandboxes that no thread here was the first of.
    pub(super) others: BTreeMap<ThreadKey, Session>,
    pub(super) apart: BTreeMap<SandboxKey, SandboxRecord>,
    /// Who has which name.
    pub(super) names_of: BTreeMap<SandboxName, SandboxKey>,
    /// What threads were told past their own group.
    pub(super) told_threads: Vec<(ThreadKey, String)>,
    /// Who was told what beside the thread.
    pub(super) told_beside: Vec<(Vec<String>, String)>,
    /// Workspaces that were made, by thread.
    pub(super) workspaces: Vec<ThreadKey>,
    /// What becomes of a snapshot that is looked at.
    pub(super) snapshots: Vec<SnapshotSeen>,
    pub(super) deleted_snapshots: Vec<String>,
    pub(super) flags: ControlFlags,
    pub(super) sandboxes: BTreeMap<u32, SandboxState>,
    /// Prompts that the agent has, by (generation, message id).
    pub(super) prompted: Vec<(u32, String)>,
    pub(super) finished: BTreeSet<String>,
    pub(super) asks: Vec<AskId>,
    pub(super) aborted: bool,
    /// Posts by key: what stands in the thread.
    pub(super) posts: BTreeMap<String, Post>,
    pub(super) posted: Vec<String>,
    /// Whom a post called when it was new.
    pub(super) called: BTreeMap<String, Vec<String>>,
    pub(super) stopped_while_running: bool,
    /// Failures that the next effects of this name meet.
    pub(super) fail: BTreeMap<&'static str, Vec<Failure>>,
    pub(super) calls: u32,
    pub(super) crash_at: Option<(u32, bool)>,
    pub(super) crashed: bool,
    pub(super) silent_agent: bool,
    /// Who holds a run sees that work waits for which nobody has room.
    pub(super) others_wait: bool,
    /// Somebody presses Stop while the run is followed.
    pub(super) stop_in_follow: bool,
    /// Somebody presses Stop all while the run is followed.
    pub(super) stop_all_in_follow: Option<StoppedAll>,
    /// Somebody presses it while a sandbox is waited for.
    pub(super) stop_all_in_wait: Option<StoppedAll>,
    /// The abort of that Stop ends the run before the flag is looked at.
    pub(super) abort_wins: bool,
    /// The message in hand has become visible to others.
    pub(super) lapsed: bool,
    pub(super) ledger: BTreeMap<TurnId, Entry>,
    pub(super) wakes: Vec<Ms>,
    /// The generations with which the second sandbox was to end.
    pub(super) tools_ended: Vec<u32>,
    /// So many looks and calls do not find a sandbox that is there.
    pub(super) lies: u32,
    pub(super) tenant_sandboxes: u32,
    /// Those of them that were made before the thread's own.
    pub(super) older_sandboxes: u32,
    /// The first prompt that is sent into a run meets this.
    pub(super) fail_steer: Option<Failure>,
    /// Once a prompt was sent into the run: the server goes away, the sandbox is lost, somebody presses Stop.
    pub(super) down_after_steer: bool,
    /// The same whenever somebody looks.
    pub(super) stays_down_after_steer: bool,
    pub(super) lost_after_steer: bool,
    pub(super) stop_after_steer: bool,
    /// Names of the effects, in the order in which they were asked for.
    pub(super) names: Vec<&'static str>,
    /// How each prompt was sent.
    pub(super) sendings: Vec<Sending>,
    /// The next sending is refused by somebody before the agent.
    pub(super) not_sent: Option<Failure>,
    /// The next sending arrives, and nobody hears of it.
    pub(super) unheard: Option<Failure>,
    /// Prompts that were sent once more.
    pub(super) sent_again: Vec<String>,
    /// So many posts of a card that takes the place of another are refused.
    pub(super) fail_roll: u32,
    /// So many posts find the thread closed, those of cards that look alive aside.
    pub(super) closed: u32,
    /// What edits of a card to an end meet.
    pub(super) fail_ends: Vec<Failure>,
    /// Since when the conversations are whose sessions were wanted, in order.
    pub(super) conversations: Vec<Ms>,
    /// What the agents were told, in order.
    pub(super) told: Vec<String>,
    /// What the operator was told by the writes of the record, in order.
    pub(super) signalled: Vec<&'static str>,
    /// Neither the first read nor a write sees the control flags.
    pub(super) late_flags: bool,
    /// What those who manage the place have set.
    pub(super) settings: Settings,
    /// Repositories by generation.
    pub(super) clones: BTreeMap<u32, String>,
    /// The next clone comes to this.
    pub(super) not_cloned: Option<NotCloned>,
    /// What clones do not bring along.
    pub(super) left_out: LeftOut,
    /// The next conversation that is wanted of the agent is refused in these words.
    pub(super) no_session: Option<String>,
    /// So many new sandboxes do not get their secrets put in.
    pub(super) without_secrets: u32,
    /// What the agent says that it offers.
    pub(super) offer: AgentOptions,
    /// What turns were said to use.
    pub(super) used: Vec<Selection>,
    /// What runs agents in sandboxes that begin now.
    pub(super) runtime: RuntimeMode,
    /// Model and agent of each prompt that the agent was given.
    pub(super) ran_with: Vec<(String, Option<String>)>,
    /// What lies in the folder of files to be shown, and what the turns change.
    pub(super) display: Vec<Artifact>,
    pub(super) changes: Changes,
    /// The images that went along with each prompt.
    pub(super) seen_images: Vec<Vec<Image>>,
    /// Why the files cannot be shown, where that is so.
    pub(super) unshowable: Option<String>,
    /// Whoever follows a run dies.
    pub(super) kills_followers: bool,
    /// Runs go on while nobody reaches their server.
    pub(super) went_on: bool,
    /// Runs that were ended because no turn follows them.
    pub(super) ended_runs: Vec<StrayRun>,
    /// What a run answers, if it is not "the answer".
    pub(super) answers: Option<String>,
    /// How the agent says that its runs ended.
    pub(super) run_end: Option<RunEnd>,
    /// What does not answer, and until when.
    pub(super) out: Option<(Out, Ms)>,
    /// What was left for the next delivery.
    pub(super) parked: Option<Parked>,
    /// Sweeps of the sweeper's that are done.
    pub(super) swept: Vec<TurnId>,
    /// A person speaks right after a delivery has left its word.
    pub(super) speaks_at_park: Option<ControlFlags>,
    /// What each delivery that followed or looked knew before, and what seems to be wrong with the run.
    pub(super) saw: Vec<Seen>,
    pub(super) doubt: Option<Doubt>,
    /// How often something was written.
    pub(super) writes: u32,
    /// The bounds under which messages are delivered.
    pub(super) limits: Limits,
    /// The same from this call on.
    pub(super) out_at: Option<(u32, Out, Ms)>,
}

/// What Bobbin stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// Nothing can be read or written.
    Table,
    /// What is read can be read, and nothing be written.
    Writes,
    Chat,
    Provider,
}

impl Out {
    /// The effects that it takes part in.
    fn takes(self, effect: &str) -> bool {
        match self {
            Self::Table | Self::Writes => false,
            Self::Chat => effect == "post",
            Self::Provider => {
                !matches!(effect, "post" | "wake" | "recall" | "end_tools" | "find_agent")
            }
        }
    }
}

impl State {
    /// The record of a thread, with that of the sandbox that it works in.
    pub(super) fn stored(&self, of: &ThreadKey) -> Option<Session> {
        if let ThreadKey::Sandbox(key) = of {
            return self
                .sandbox_record(key)
                .map(|sandbox| Session { sandbox, ..Session::new(of.clone(), 0) });
        }
        let record = if *of == thread() { self.record.as_ref() } else { self.others.get(of) }?;
        Some(Session {
            sandbox: self.sandbox_record(&record.sandbox_key()).unwrap_or_default(),
            ..record.clone()
        })
    }

    fn holder(&mut self, of: &ThreadKey) -> Option<&mut Session> {
        if *of == thread() { self.record.as_mut() } else { self.others.get_mut(of) }
    }

    pub(super) fn sandbox_record(&self, key: &SandboxKey) -> Option<SandboxRecord> {
        let own = if *key.thread() == thread() {
            self.record.as_ref()
        } else {
            self.others.get(key.thread())
        };
        self.apart.get(key).cloned().or_else(|| Some(own?.sandbox.clone()))
    }

    fn names_are_free(&self, names: &[NameWrite]) -> bool {
        let free = |one: &NameWrite| match self.names_of.get(&one.name) {
            Some(key) => *key == one.sandbox,
            None => true,
        };
        names.iter().all(free)
    }

    fn put(&mut self, session: Session, expected: Versions) {
        let (thread_of, key) = (session.thread.clone(), session.sandbox_at_hand());
        let own_before = self.holder(&thread_of).map(|own| own.sandbox.clone()).unwrap_or_default();
        let sandbox = session.sandbox.clone();
        if expected.thread.is_some() {
            let own = if key == thread_of.sandbox() { sandbox.clone() } else { own_before };
            let session = Session { sandbox: own, ..session };
            if thread_of == thread() {
                self.record = Some(session);
            } else {
                self.others.insert(thread_of.clone(), session);
            }
        }
        if expected.sandbox.is_none() || key == thread_of.sandbox() && expected.thread.is_some() {
            return;
        }
        match self.holder(key.thread()) {
            Some(own) => own.sandbox = sandbox,
            None => {
                self.apart.insert(key, sandbox);
            }
        }
    }
}

pub(super) struct Fake(Mutex<State>);

impl Fake {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { now_ms: 1_000_000, ..State::default() }))
    }

    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Counts a call and crashes before it if that is wanted; says whether to crash after it.
    pub(super) fn call(&self) -> bool {
        let (before, after) = self.with(|s| {
            s.calls += 1;
            if let Some((call, out, until_ms)) = s.out_at
                && s.calls >= call
            {
                (s.out, s.out_at) = (Some((out, until_ms)), None);
            }
            let here = |after| s.crash_at == Some((s.calls, after));
            (here(false), here(true))
        });
        if before {
            self.crash();
        }
        after
    }

    fn is_out(&self, one_of: &[Out]) -> bool {
        self.with(|s| {
            s.out.is_some_and(|(out, until_ms)| one_of.contains(&out) && s.now_ms < until_ms)
        })
    }

    pub(super) fn crash(&self) {
        self.with(|s| s.crashed = true);
        panic!("crash point");
    }

    pub(super) fn effect(&self, thread: &ThreadKey, effect: &Effect) -> Event {
        self.with(|s| {
            s.names.push(effect.name());
            if let Some((out, until_ms)) = s.out
                && out.takes(effect.name())
                && s.now_ms < until_ms
            {
                return Event::Failed(outage(out));
            }
            if let Some(failures) = s.fail.get_mut(effect.name())
                && !failures.is_empty()
            {
                let failure = failures.remove(0);
                match failure {
                    Failure::SandboxGone if s.lies > 0 => s.lies -= 1,
                    Failure::SandboxGone => s.sandboxes.clear(),
                    _ => {}
                }
                return Event::Failed(failure);
            }
            let look = |s: &mut State, generation: &u32| {
                if s.lies > 0 {
                    s.lies -= 1;
                    return Event::Observed(SandboxState::Gone);
                }
                Event::Observed(s.sandboxes.get(generation).cloned().unwrap_or(SandboxState::Gone))
            };
            match effect {
                Effect::Sandbox(SandboxEffect::Count { older_than: None }) => Event::Counted(s.tenant_sandboxes),
                Effect::Sandbox(SandboxEffect::Count { .. }) => Event::Counted(s.older_sandboxes),
                Effect::FindName { name } => Event::NameFound(s.names_of.get(name).cloned()),
                Effect::Chat(ChatEffect::TellBeside { people, word, .. }) => {
                    s.told_beside.push((people.clone(), word.clone()));
                    Event::Told {
                        thread: thread.clone(),
                    }
                }
                Effect::Chat(ChatEffect::Tell { thread, word, .. }) => {
                    s.told_threads.push((thread.clone(), word.clone()));
                    Event::Told {
                        thread: thread.clone(),
                    }
                }
                Effect::Sandbox(SandboxEffect::MakeWorkspace { .. }) => {
                    s.workspaces.push(thread.clone());
                    Event::WorkspaceReady {
                        directory: format!("/work/{}", thread.short_hash()),
                        branch: Some(format!("bobbin/{}", thread.short_hash())),
                    }
                }
                Effect::Sandbox(SandboxEffect::Snapshot { at_ms, after_ms, .. }) => {
                    s.now_ms += after_ms;
                    Event::SnapshotSeen {
                        name: format!("snapshot-{at_ms}"),
                        seen: if s.snapshots.is_empty() {
                            SnapshotSeen::Ready
                        } else {
                            s.snapshots.remove(0)
                        },
                    }
                }
                Effect::Sandbox(SandboxEffect::DeleteSnapshot { name }) => {
                    s.deleted_snapshots.push(name.clone());
                    Event::SnapshotDeleted { name: name.clone() }
                }
                Effect::Recall { turns } => Event::Recalled(
                    turns
                        .iter()
                        .filter_map(|turn| s.ledger.get(turn).cloned())
                        .collect(),
                ),
                Effect::EndTools { generation } => {
                    s.tools_ended.push(*generation);
                    Event::ToolsEnded
                }
                Effect::FindAgent { of } => Event::AgentFound(outside::seen(s.sandbox_record(of).as_ref())),
                Effect::Wake { at_ms } => {
                    s.wakes.push(*at_ms);
                    Event::Woken
                }
                Effect::Sandbox(SandboxEffect::Create { generation, .. }) => {
                    let made = s.sandboxes.entry(*generation).or_insert(SandboxState::Running);
                    Event::Observed(made.clone())
                }
                Effect::Sandbox(SandboxEffect::Observe {
                    generation,
                    after_ms,
                    watch,
                }) => {
                    s.now_ms += after_ms;
                    if watch.is_some() && let Some(all) = s.stop_all_in_wait.take() {
                        s.flags.stopped_all.insert("all".into(), all);
                    }
                    if let Some(by) = watch.as_ref().and_then(|turn| turn.cancelled_by(&s.flags)) {
                        return Event::CancelSeen { by: by.clone() };
                    }
                    look(s, generation)
                }
                Effect::Sandbox(SandboxEffect::Confirm {
                    generation,
                    after_ms,
                }) => {
                    s.now_ms += after_ms;
                    look(s, generation)
                }
                Effect::Sandbox(SandboxEffect::Start { generation }) => {
                    if s.sandboxes.get(generation) == Some(&SandboxState::Stopped) {
                        s.sandboxes.insert(*generation, SandboxState::Running);
                    }
                    look(s, generation)
                }
                Effect::Sandbox(SandboxEffect::Stop { generation }) => {
                    s.stopped_while_running |=
                        s.prompted.iter().any(|(_, id)| !s.finished.contains(id));
                    if s.sandboxes.get(generation) == Some(&SandboxState::Running) {
                        s.sandboxes.insert(*generation, SandboxState::Stopped);
                    }
                    look(s, generation)
                }
                Effect::Sandbox(SandboxEffect::Delete { generation }) => {
                    s.sandboxes.remove(generation);
                    look(s, generation)
                }
                Effect::Sandbox(SandboxEffect::Clone {
                    generation, repo, ..
                }) => {
                    if let Some(why) = s.not_cloned.take() {
                        return Event::NotCloned { why };
                    }
                    s.clones.insert(*generation, repo.clone());
                    Event::Cloned {
                        left_out: s.left_out.clone(),
                    }
                }
                Effect::ListOptions { used, .. } => {
                    s.used.push(used.clone());
                    Event::OptionsListed(s.offer.clone())
                }
                Effect::Sandbox(SandboxEffect::EnsureServer { is_new: true, .. }) if s.without_secrets > 0 => {
                    s.without_secrets -= 1;
                    Event::SecretsNotPutIn
                }
                Effect::Agent(AgentEffect::CheckServer { generation, .. })
                | Effect::Sandbox(SandboxEffect::EnsureServer { generation, .. }) => match s.sandboxes.get(generation) {
                    Some(SandboxState::Running) => Event::Healthy,
                    _ => Event::Failed(Failure::SandboxDown {
                        seen: "no answer".to_owned(),
                    }),
                },
                Effect::Agent(AgentEffect::FindAgentSession { generation, since_ms, .. }) => match s.no_session.take() {
                    Some(reason) => Event::Failed(Failure::TurnFailed { reason }),
                    None => {
                        s.conversations.push(*since_ms);
                        let id = match since_ms {
                            0 => format!("ses_{generation}"),
                            since_ms => format!("ses_{generation}_{since_ms}"),
                        };
                        Event::AgentSession { id: id.into() }
                    }
                },
                Effect::Agent(AgentEffect::Attach { files, .. }) => Event::Attached {
                    note: "files".into(),
                    missed: files
                        .iter()
                        .map(|file| format!("{} is gone", file.name))
                        .collect(),
                    images: files
                        .iter()
                        .map(|file| Image {
                            path: format!("in/{}", file.name),
                            name: file.name.clone(),
                        })
                        .collect(),
                },
                Effect::Agent(AgentEffect::FindPrompt { generation, message, .. }) => {
                    let entry = (*generation, message.clone());
                    match s.sandboxes.get(generation) {
                        None => Event::Failed(Failure::SandboxGone),
                        Some(SandboxState::Running) if !s.prompted.contains(&entry) => Event::PromptFound(PromptState::Absent),
                        Some(SandboxState::Running) if s.went_on || s.finished.contains(message) => Event::PromptFound(PromptState::Taken),
                        Some(SandboxState::Running) => Event::PromptFound(PromptState::Idle),
                        Some(_) => Event::Failed(Failure::SandboxDown { seen: "not started".to_owned() }),
                    }
                }
                Effect::Agent(AgentEffect::EndRun(run)) => {
                    s.ended_runs.push(run.clone());
                    Event::RunEnded
                }
                Effect::Agent(AgentEffect::SendPrompt {
                    generation,
                    ids,
                    text,
                    model,
                    agent,
                    images,
                    sending,
                    ..
                }) => {
                    if text.starts_with("and ")
                        && let Some(failure) = s.fail_steer.take()
                    {
                        return Event::Failed(failure);
                    }
                    s.sendings.push(*sending);
                    if let Some(failure) = s.not_sent.take() {
                        if failure == Failure::SandboxGone {
                            s.sandboxes.clear();
                        }
                        return Event::NotSent(failure);
                    }
                    if s.sandboxes.get(generation) != Some(&SandboxState::Running) {
                        let failure = if s.sandboxes.contains_key(generation) { Failure::SandboxDown { seen: "not started".to_owned() } } else { Failure::SandboxGone };
                        return match sending {
                            Sending::First { .. } => Event::NotSent(failure),
                            Sending::Again => Event::Failed(failure),
                        };
                    }
                    if *sending == Sending::Again {
                        s.sent_again.push(ids.message.clone());
                    }
                    let entry = (*generation, ids.message.clone());
                    if !s.prompted.contains(&entry) {
                        s.prompted.push(entry);
                        s.told.push(text.clone());
                        s.ran_with.push((model.clone(), agent.clone()));
                        s.seen_images.push(images.clone());
                    }
                    if let Some(failure) = s.unheard.take() {
                        return Event::Failed(failure);
                    }
                    Event::Prompted
                }
                Effect::Agent(AgentEffect::Follow(follow) | AgentEffect::Look(follow)) => {
                    let turn = follow.turn.clone();
                    if !follow.further.is_empty() {
                        if std::mem::take(&mut s.down_after_steer) || s.stays_down_after_steer {
                            let seen = "connection refused".to_owned();
                            return Event::Failed(Failure::SandboxDown { seen });
                        }
                        if std::mem::take(&mut s.lost_after_steer) {
                            s.sandboxes.clear();
                            return Event::Failed(Failure::SandboxGone);
                        }
                        s.stop_in_follow |= std::mem::take(&mut s.stop_after_steer);
                    }
                    if let Some(all) = s.stop_all_in_follow.take() {
                        s.flags.stopped_all.insert("all".into(), all);
                    }
                    if std::mem::take(&mut s.stop_in_follow) {
                        s.flags.cancelled.insert(turn.clone(), person("bob"));
                        s.aborted |= s.abort_wins;
                    }
                    if let Some(by) = follow.cancelled_by(&s.flags).filter(|_| !s.abort_wins) {
                        return Event::CancelSeen { by: by.clone() };
                    }
                    let known = follow.steers.as_ref();
                    if let Some((id, by)) = s.flags.now.iter().find(|(id, _)| {
                        known.is_some_and(|known| !known.contains(id)) && **id != turn
                    }) && let Some(queued) = s.flags.queued.get(id)
                    {
                        return Event::SteerSeen {
                            turn: id.clone(),
                            queued: queued.clone(),
                            by: by.clone(),
                        };
                    }
                    assert!(
                        follow
                            .further
                            .iter()
                            .all(|id| s.prompted.iter().any(|(_, has)| has == id)),
                        "a run is not over before the agent has all its prompts"
                    );
                    if let Some(ask) = s
                        .asks
                        .iter()
                        .find(|ask| !follow.asks.iter().any(|known| known.id == **ask))
                    {
                        return Event::Asked {
                            id: ask.clone(),
                            about: About::Permission {
                                action: "bash".into(),
                                subject: "rm x".into(),
                                left_out: 0,
                                places: [].into(),
                                always: [].into(),
                            },
                        };
                    }
                    if let Some(known) = follow
                        .asks
                        .iter()
                        .find(|known| !known.settled && !s.asks.contains(&known.id))
                    {
                        return Event::AskClosed {
                            id: known.id.clone(),
                            settlement: s.flags.settled.get(&known.id).cloned(),
                        };
                    }
                    if !s.aborted && (s.silent_agent || !s.asks.is_empty()) {
                        let is_held = matches!(effect, Effect::Agent(AgentEffect::Follow(_)));
                        let gives_way = is_held && follow.gives_way && s.others_wait;
                        if gives_way {
                            s.now_ms += OTHERS_AFTER_MS;
                        } else if is_held {
                            s.now_ms = s.now_ms.max(follow.until_ms);
                        }
                        s.saw.push(follow.seen.clone());
                        let card = Some(format!("picture {}", s.saw.len()));
                        let seen = Seen { card, doubt: s.doubt };
                        return if gives_way {
                            Event::OthersWait(seen)
                        } else {
                            Event::StillRunning(seen)
                        };
                    }
                    s.finished.insert(follow.message.clone());
                    s.finished.extend(follow.further.iter().cloned());
                    let end = match &s.run_end {
                        Some(end) => end.clone(),
                        None if s.aborted => RunEnd::Aborted,
                        None => RunEnd::Completed,
                    };
                    Event::Finished(Answer {
                        end,
                        text: s.answers.clone().unwrap_or_else(|| "the answer".into()),
                        usage: Usage::default(),
                        steps: Vec::new(),
                        earlier: 0,
                        plan: Vec::new(),
                    })
                }
                Effect::Agent(AgentEffect::Abort { .. }) => {
                    s.aborted = true;
                    Event::Aborted
                }
                Effect::Agent(AgentEffect::Decline { ask, .. }) => {
                    s.asks.retain(|open| open != ask);
                    Event::Declined { id: ask.clone() }
                }
                Effect::Agent(AgentEffect::ReadChanges { .. }) => Event::Changed(s.changes.clone()),
                Effect::Agent(AgentEffect::ListArtifacts { .. }) => Event::Listed(s.display.clone()),
                Effect::Chat(ChatEffect::PostArtifact {
                    turn, index, file, ..
                }) => {
                    if let Some(why) = &s.unshowable {
                        return Event::Unshown { why: why.clone() };
                    }
                    let key = post_key(thread, turn, &PostKind::Artifact(*index));
                    let post = Post::File(ShownFile {
                        name: file.name(),
                        bytes: Vec::new(),
                    });
                    if !s.posts.contains_key(&key) {
                        s.posted.push(key.clone());
                        s.posts.insert(key.clone(), post);
                    }
                    Event::Posted(PostRef {
                        channel: "c".into(),
                        id: key,
                    })
                }
                Effect::Chat(ChatEffect::Post {
                    turn,
                    kind,
                    at,
                    post,
                }) => {
                    let wait = || Failure::Wait {
                        after_ms: 0,
                        seen: "429".to_owned(),
                    };
                    if matches!(kind, crate::ids::PostKind::Rolled(_)) && at.is_none() && s.fail_roll > 0 {
                        s.fail_roll -= 1;
                        return Event::Failed(wait());
                    }
                    let is_end = matches!(post, Post::Card(card) if matches!(card.state, CardState::Ended { .. }));
                    let is_alive = !is_end && matches!(post, Post::Card(_));
                    if !is_alive && s.closed > 0 {
                        s.closed -= 1;
                        return Event::Failed(closed());
                    }
                    if is_end && !s.fail_ends.is_empty() {
                        return Event::Failed(s.fail_ends.remove(0));
                    }
                    let key = at
                        .as_ref()
                        .map_or_else(|| post_key(thread, turn, kind), |at| at.id.clone());
                    // A key that stands already is answered with what stands, as the platforms do; only an edit changes it.
                    if !s.posts.contains_key(&key) {
                        s.posted.push(key.clone());
                        if at.is_none() && !post.calls().is_empty() {
                            s.called.insert(key.clone(), post.calls().to_vec());
                        }
                        s.posts.insert(key.clone(), post.clone());
                    } else if at.is_some() {
                        s.posts.insert(key.clone(), post.clone());
                    }
                    Event::Posted(PostRef {
                        channel: "c".into(),
                        id: key,
                    })
                }
            }
        })
    }
}

impl World for Fake {
    fn now_ms(&self) -> Ms {
        self.with(|s| s.now_ms)
    }

    fn visible_until_ms(&self) -> Ms {
        self.with(|s| if s.lapsed { s.now_ms } else { s.now_ms + s.limits.visibility_ms })
    }

    async fn load(&self, of: &ThreadKey, turn: &TurnId) -> Result<Loaded, Failure> {
        let after = self.call();
        if self.is_out(&[Out::Table]) {
            return Err(outage(Out::Table));
        }
        let found = self.with(|s| Loaded {
            session: s.stored(of).map(|record| {
                Session::decode(&record.encode(), Some(&record.sandbox.encode())).unwrap()
            }),
            flags: if s.late_flags { ControlFlags::default() } else { s.flags.clone() },
            in_ledger: s.ledger.contains_key(turn),
            settings: s.settings.clone(),
            parked: s.parked.clone(),
        });
        if after {
            self.crash();
        }
        Ok(found)
    }

    async fn save(
        &self,
        session: &Session,
        expected: Versions,
        entries: &[Entry],
    ) -> Result<Saved, Failure> {
        let after = self.call();
        if self.is_out(&[Out::Table, Out::Writes]) {
            return Err(outage(Out::Writes));
        }
        let saved = self.with(|s| {
            let stored = s.stored(&session.thread);
            let of_sandbox = s.sandbox_record(&session.sandbox_at_hand());
            let stored = stored.map(|stored| Session {
                sandbox: of_sandbox.clone().unwrap_or_default(),
                ..stored
            });
            if !expected.are_of(stored.as_ref()) || !s.names_are_free(&session.observed.names) {
                return Saved::Conflict;
            }
            let entries = entries.iter().cloned();
            s.ledger.extend(entries.map(|entry| (entry.turn.clone(), entry)));
            for one in &session.observed.names {
                if one.released {
                    s.names_of.remove(&one.name);
                } else {
                    s.names_of.insert(one.name.clone(), one.sandbox.clone());
                }
            }
            s.writes += 1;
            let signals = signals(stored.as_ref(), session, s.now_ms);
            s.signalled.extend(signals.iter().map(|signal| signal.kind.name()));
            let spent = s.flags.spent(session);
            s.flags = std::mem::take(&mut s.flags).without(&spent);
            s.put(expected.followed_by(session.clone()), expected);
            Saved::Written(if s.late_flags { ControlFlags::default() } else { s.flags.clone() })
        });
        if after {
            self.crash();
        }
        Ok(saved)
    }

    async fn park(&self, _: &ThreadKey, parked: &Parked) -> Option<ControlFlags> {
        let after = self.call();
        if self.is_out(&[Out::Table, Out::Writes]) {
            return None;
        }
        let flags = self.with(|s| {
            s.parked = Some(parked.clone());
            if let Some(said) = s.speaks_at_park.take() {
                s.flags = said;
            }
            s.flags.clone()
        });
        if after {
            self.crash();
        }
        Some(flags)
    }

    async fn swept(&self, _: &ThreadKey, sweep: &TurnId) -> Result<(), Failure> {
        let after = self.call();
        if self.is_out(&[Out::Table, Out::Writes]) {
            return Err(outage(Out::Writes));
        }
        self.with(|s| s.swept.push(sweep.clone()));
        if after {
            self.crash();
        }
        Ok(())
    }

    async fn perform(&self, thread: &ThreadKey, effect: &Effect) -> Event {
        let after = self.call();
        let follows =
            matches!(effect, Effect::Agent(AgentEffect::Follow(_) | AgentEffect::Look(_)));
        let kills = follows && self.with(|s| s.kills_followers);
        let event = self.effect(thread, effect);
        if after || kills {
            self.crash();
        }
        event
    }
}

/// The fake world never waits, so one poll is the whole run.
pub(super) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the fake world never waits"),
    }
}

pub(super) fn thread() -> ThreadKey {
    ThreadKey::discord("1", "2").unwrap()
}

pub(super) fn person(name: &str) -> Person {
    Person { id: name.to_owned(), name: name.to_owned() }
}

pub(super) fn prompt(id: &str) -> Message {
    let work =
        Work::Prompt(Prompt { text: "do it".into(), by: person("ann"), ..Prompt::default() });
    Message { id: id.into(), thread: thread(), accepted_at_ms: 1_000_000, work }
}

/// This prompt waits, and somebody wants it sent into the run.
pub(super) fn wants_now(world: &Fake, id: &str) {
    let queued = Queued {
        by: person("cy"),
        accepted_at_ms: 1_000_000,
        card: Some(PostRef { channel: "c".into(), id: format!("card of {id}") }),
        refused: false,
        prompt: Some(Box::new(Prompt {
            text: format!("and {id}"),
            by: person("cy"),
            ..Prompt::default()
        })),
    };
    world.with(|s| {
        s.flags.queued.insert(id.into(), queued);
        s.flags.now.insert(id.into(), person("bob"));
    });
}

/// What the card of a prompt that waited says.
pub(super) fn waiting_card(world: &Fake, id: &str) -> CardState {
    world.with(|s| match s.posts.get(&format!("card of {id}")) {
        Some(Post::Card(card)) => card.state.clone(),
        other => panic!("no card: {other:?}"),
    })
}

/// Whom each new post called, in the order in which they were posted.
pub(super) fn called(world: &Fake) -> Vec<Vec<String>> {
    world.with(|s| {
        let calls = s.posted.iter().filter_map(|key| s.called.get(key));
        calls.cloned().collect()
    })
}

pub(super) fn work(id: &str, work: Work) -> Message {
    Message { id: id.into(), thread: thread(), accepted_at_ms: 1_000_000, work }
}

/// What asks for a fresh sandbox.
pub(super) fn reset() -> Message {
    let (by, membership) = (person("ann"), Membership::default());
    work("r1", Work::Reset { by, membership, keeps_files: false })
}

/// A service that is asked too often.
pub(super) fn busy() -> Failure {
    Failure::Wait { after_ms: 0, seen: "429".to_owned() }
}

/// The first delivery dies at that call of its own: before it, or after it had its effect.
pub(super) fn dies(world: &Fake, message: &Message, call: u32, after: bool) {
    world.with(|s| s.crash_at = Some((s.calls + call, after)));
    let died = catch_unwind(AssertUnwindSafe(|| deliver(world, message, 1)));
    world.with(|s| s.crash_at = None);
    assert!(died.is_err());
}

pub(super) fn deliver(world: &Fake, message: &Message, receive: u32) -> Verdict {
    let limits = world.with(|s| s.limits.clone());
    let delivery = Delivery {
        message,
        id: format!("{}#{receive}", message.id),
        receive,
        follow_until_ms: world.now_ms() + HOLD_MS_MAX,
        model: "m",
        providers: &["anthropic".to_owned()],
        runtime: world.with(|s| s.runtime),
        limits: &limits,
        split: |text| vec![text.to_owned()],
    };
    now(drive(world, &delivery))
}

pub(super) fn outage(of: Out) -> Failure {
    Failure::Outage { after_ms: 0, seen: format!("the {of:?} does not answer").to_lowercase() }
}

/// Delivers a prompt whose run kills whoever follows it, from this delivery on until one is done. How many died.
pub(super) fn deaths(world: &Fake, id: &str, from: u32) -> u32 {
    let mut died = 0;
    for receive in from..=20 {
        match catch_unwind(AssertUnwindSafe(|| deliver(world, &prompt(id), receive))) {
            Err(_) => died += 1,
            Ok(verdict) => {
                assert_eq!(verdict, Verdict::Done);
                break;
            }
        }
    }
    died
}

/// Delivers until the message is done, moving time by each delay, as often as the queue does.
pub(super) fn deliver_until_done(world: &Fake, message: &Message, from: u32) -> u32 {
    for receive in from..=DELIVERIES_MAX {
        match deliver(world, message, receive) {
            Verdict::Done => return receive,
            Verdict::Hold { delay_ms, .. } | Verdict::Newer { delay_ms, .. } => {
                world.with(|s| s.now_ms += delay_ms)
            }
        }
    }
    panic!("{} never ended: {:?}", message.id, world.with(|s| s.record.clone()));
}

/// Delivers a message until it is done, in a world of its own for each crash before and after each of its calls, and looks
/// at what has become of it. How many crashes there were.
pub(super) fn each_crash(
    begun: impl Fn() -> Fake,
    message: &Message,
    check: impl Fn(&Fake, &str),
) -> u32 {
    let world = begun();
    let before = world.with(|s| s.calls);
    deliver_until_done(&world, message, 1);
    let calls = world.with(|s| s.calls) - before;
    for (call, after) in (1..=calls).flat_map(|call| [(call, false), (call, true)]) {
        let world = begun();
        world.with(|s| s.crash_at = Some((s.calls + call, after)));
        let crash = format!("crash at call {call}, after it: {after}");
        let mut receive = 0;
        loop {
            receive += 1;
            match catch_unwind(AssertUnwindSafe(|| deliver(&world, message, receive))) {
                Err(_) => break,
                Ok(Verdict::Hold { delay_ms, .. }) => later(&world, delay_ms),
                Ok(over) => panic!("{crash}: not reached before {over:?}"),
            }
        }
        world.with(|s| s.crash_at = None);
        deliver_until_done(&world, message, receive + 1);
        check(&world, &crash);
    }
    2 * calls
}

pub(super) fn record(world: &Fake) -> Session {
    world.with(|s| s.record.clone().unwrap())
}

pub(super) fn outcomes(world: &Fake) -> Vec<Outcome> {
    record(world).ended.into_iter().map(|turn| turn.outcome).collect()
}

pub(super) fn chunks(world: &Fake) -> Vec<String> {
    world.with(|s| {
        s.posts
            .values()
            .filter_map(|post| match post.bare() {
                Post::Chunk { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect()
    })
}

/// An active thread that has answered once.
pub(super) fn active() -> Fake {
    let world = Fake::new();
    deliver_until_done(&world, &prompt("m1"), 1);
    world
}

/// What a thread that cannot be written in answers.
pub(super) fn closed() -> Failure {
    Failure::ThreadClosed { seen: "the thread is locked".to_owned() }
}

pub(super) fn later(world: &Fake, ms: u64) {
    world.with(|s| s.now_ms += ms);
}
