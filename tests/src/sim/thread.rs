//! One thread of the simulator, and all that belongs to it: queue, record, sandboxes with their agents, posts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bobbin_core::artifacts::Artifact;
use bobbin_core::ask::{About, Settlement};
use bobbin_core::card::{Card, CardState, Post};
use bobbin_core::changes::{Change, Changes, How};
use bobbin_core::effect::{Follow, Sending};
use bobbin_core::event::{Event, NotCloned};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind, PostRef, PromptIds, ThreadKey, post_key};
use bobbin_core::ledger::Entry as LedgerEntry;
use bobbin_core::message::{Message, Work};
use bobbin_core::sandbox::SandboxState;
use bobbin_core::session::{Marks, Phase, Queued, Session};
use bobbin_core::settings::Settings;

use super::agent::{Agent, Run, Sent};
use super::promises::{End, Ending, Fact, History};
use super::world::{DELIVERIES_MAX, Entry, Late};
use crate::fuzz::dice::Dice;

/// World calls that one accepted message may cost.
const CALLS_MAX: u64 = 5_000;

#[derive(Debug, Clone)]
pub struct Sandbox {
    pub created_ms: Ms,
    /// It runs from this time on.
    ready_ms: Ms,
    stopped: bool,
    broken: bool,
    /// The repository stands in it.
    cloned: bool,
    server: bool,
    /// The server takes what it is sent and never answers.
    hangs: bool,
    session: bool,
    agent: Agent,
}

pub struct SimThread {
    pub thread: ThreadKey,
    pub queue: VecDeque<Entry>,
    pub known_ids: BTreeMap<String, Ms>,
    /// Messages that the queue has given up, until their burial is on record.
    pub letters: Vec<Message>,
    pub record: Option<Session>,
    pub marks: Marks,
    pub ledger: BTreeMap<String, LedgerEntry>,
    /// What those who manage the thread's tenant have set.
    pub settings: Settings,
    /// Generations that were deleted.
    pub deleted: BTreeSet<u32>,
    /// The wake-up that was last asked for.
    pub wake_ms: Option<Ms>,
    /// What the index says, and from when.
    index: Vec<(Ms, Option<Ms>)>,
    pub sandboxes: BTreeMap<u32, Sandbox>,
    posts: BTreeMap<String, PostKind>,
    /// Cards that stand: whose they are, and whether they look alive.
    cards: BTreeMap<String, (usize, bool)>,
    /// How often each file of the agent was shown.
    showings: BTreeMap<String, u64>,
    /// Accepted turns by place.
    pub turns: Vec<String>,
    pub history: History,
    pub deliveries_most: u64,
    /// When an agent last took a prompt.
    pub prompted_ms: Ms,
    /// The next run asks a person; the next run ends only when it is told to.
    pub next_run_asks: bool,
    pub next_run_is_endless: bool,
    /// The next run kills whoever follows it; the next run takes so long.
    pub next_run_kills: bool,
    pub next_run_takes_ms: Option<u64>,
    /// Nobody reaches its servers before this time.
    cut_until_ms: Ms,
    calls: u64,
    ended: Vec<String>,
}

fn down() -> Event {
    Event::Failed(Failure::SandboxDown {
        seen: "no answer".to_owned(),
    })
}

impl SimThread {
    pub fn new(thread: ThreadKey) -> Self {
        Self {
            thread,
            queue: VecDeque::new(),
            known_ids: BTreeMap::new(),
            letters: Vec::new(),
            record: None,
            marks: Marks::default(),
            ledger: BTreeMap::new(),
            settings: Settings::default(),
            deleted: BTreeSet::new(),
            wake_ms: None,
            index: Vec::new(),
            sandboxes: BTreeMap::new(),
            posts: BTreeMap::new(),
            cards: BTreeMap::new(),
            showings: BTreeMap::new(),
            turns: Vec::new(),
            history: History {
                parts: 2,
                files: true,
                ..History::default()
            },
            deliveries_most: 0,
            prompted_ms: 0,
            next_run_asks: false,
            next_run_is_endless: false,
            next_run_kills: false,
            next_run_takes_ms: None,
            cut_until_ms: 0,
            calls: 0,
            ended: Vec::new(),
        }
    }

    pub fn session(&self) -> Option<Session> {
        self.record.clone()
    }

    /// Phase and generation.
    pub fn phase(&self) -> Option<(Phase, u32)> {
        self.record
            .as_ref()
            .map(|session| (session.phase, session.generation))
    }

    /// Whether the record went through these phases, one right after the other.
    pub fn went_through(&self, phases: &[Phase]) -> bool {
        let timeline: Vec<Phase> = self
            .record
            .iter()
            .flat_map(|session| &session.timeline)
            .map(|entry| entry.phase)
            .collect();
        timeline
            .windows(phases.len())
            .any(|window| window == phases)
    }

    /// Whether a question of this turn was put to the thread.
    pub fn asked(&self, turn: usize) -> bool {
        self.history.facts.iter().any(
            |fact| matches!(fact, Fact::Posted { turn: at, kind: PostKind::Ask(_) } if *at == turn),
        )
    }

    pub fn in_short(&self) -> String {
        let waits: Vec<_> = self
            .queue
            .iter()
            .map(|entry| entry.message.id.as_str())
            .collect();
        let session = self.session();
        format!(
            "{}: {:?}, queue {waits:?}",
            self.thread,
            session.map(|s| (
                s.version,
                s.phase,
                s.generation,
                s.due_at_ms,
                s.turn.map(|t| (t.id, t.stage))
            ))
        )
    }

    /// What is said of a dead letter is said of its message.
    fn turn(&self, id: &str) -> Option<usize> {
        let id = id.strip_prefix("bury-").unwrap_or(id);
        self.turns.iter().position(|turn| turn == id)
    }

    pub fn has_ended(&self, turn: &str) -> bool {
        self.ended.iter().any(|ended| ended == turn)
    }

    pub fn counted(&mut self) {
        self.calls += 1;
    }

    /// Keeps a record that was written, and what it says anew.
    pub fn keep(&mut self, session: &Session, entries: &[LedgerEntry], now_ms: Ms, lag_ms: u64) {
        let spent = self.marks.spent(session);
        self.marks = std::mem::take(&mut self.marks).without(&spent);
        for entry in entries {
            let before = self.ledger.insert(entry.turn.clone(), entry.clone());
            // What the ledger says stands: a second end of a turn is one too many.
            if before.is_some()
                && let Some(turn) = self.turn(&entry.turn)
            {
                let ending = Ending::from(&entry.outcome);
                self.history.facts.push(Fact::Ended { turn, ending });
            }
        }
        for steered in session.turn.iter().flat_map(|turn| &turn.steered) {
            if let Some(turn) = self.turn(&steered.turn)
                && !self.history.facts.contains(&Fact::Steered { turn })
            {
                self.history.facts.push(Fact::Steered { turn });
            }
        }
        for ended in &session.ended {
            if !self.ended.contains(&ended.id) {
                self.ended.push(ended.id.clone());
                if let Some(turn) = self.turn(&ended.id) {
                    self.history.facts.push(Fact::Ended {
                        turn,
                        ending: Ending::from(&ended.outcome),
                    });
                }
            }
        }
        for operated in &session.operated {
            if !self.ended.contains(&operated.id) {
                self.ended.push(operated.id.clone());
                if let Some(turn) = self.turn(&operated.id) {
                    let ending = match operated.trouble {
                        None => Ending::Answered,
                        Some(_) => Ending::Failed,
                    };
                    self.history.facts.push(Fact::Ended { turn, ending });
                }
            }
        }
        let twice = |id: &String| session.ended.iter().filter(|ended| ended.id == *id).count() > 1;
        if let Some(turn) = self
            .ended
            .iter()
            .find(|id| twice(id))
            .and_then(|id| self.turn(id))
        {
            self.history.facts.push(Fact::Ended {
                turn,
                ending: Ending::Lost,
            });
        }
        // As the table does: what was only seen is not kept.
        self.record = Some(Session::decode(&session.encode()).expect("a record can be read"));
        self.index.push((now_ms + lag_ms, session.due_at_ms));
        let live = self
            .sandboxes
            .keys()
            .filter(|generation| **generation == session.generation)
            .count();
        self.history.facts.push(Fact::Live(live));
    }

    /// What the ledger holds of these turns.
    pub fn recalled(&self, turns: &[String]) -> Vec<LedgerEntry> {
        let found = turns.iter().filter_map(|turn| self.ledger.get(turn));
        found.cloned().collect()
    }

    /// The index's word: the newest that has arrived.
    pub fn index_says(&mut self, now_ms: Ms) -> Option<Ms> {
        let arrived = self.index.iter().rposition(|(at, _)| *at <= now_ms)?;
        self.index.drain(..arrived);
        self.index[0].1
    }

    pub fn observed(&self, generation: u32, now_ms: Ms) -> Event {
        Event::Observed(match self.sandboxes.get(&generation) {
            None => SandboxState::Gone,
            Some(sandbox) if sandbox.broken => SandboxState::Broken {
                reason: "no capacity".to_owned(),
                recoverable: false,
            },
            Some(sandbox) if sandbox.ready_ms > now_ms => SandboxState::Provisioning,
            Some(sandbox) if sandbox.stopped => SandboxState::Stopped,
            Some(_) => SandboxState::Running,
        })
    }

    pub fn create(&mut self, generation: u32, now_ms: Ms, takes_ms: u64, broken: bool) {
        let ready_ms = now_ms + takes_ms;
        self.sandboxes.entry(generation).or_insert(Sandbox {
            created_ms: now_ms,
            ready_ms,
            stopped: false,
            broken,
            cloned: false,
            server: false,
            hangs: false,
            session: false,
            agent: Agent::default(),
        });
    }

    pub fn start(&mut self, generation: u32, now_ms: Ms, takes_ms: u64) {
        if let Some(sandbox) = self
            .sandboxes
            .get_mut(&generation)
            .filter(|sandbox| sandbox.stopped)
        {
            sandbox.stopped = false;
            sandbox.ready_ms = now_ms + takes_ms;
        }
    }

    /// A call reaches the provider. A stop or delete may hit what it must not.
    pub fn land(&mut self, call: Late, now_ms: Ms) {
        let session = self.record.as_ref();
        let hit = |generation: u32| {
            session.is_some_and(|session| {
                let under_way = session.turn.as_ref().filter(|turn| !turn.stage.is_ending());
                let wanted = matches!(
                    session.phase,
                    Phase::Creating | Phase::Active | Phase::Resuming
                );
                session.generation == generation && wanted && under_way.is_some()
            })
        };
        match call {
            Late::Create(generation) => self.create(generation, now_ms, 1_000, false),
            Late::Stop(generation) | Late::Delete(generation) if hit(generation) => {
                self.history.facts.push(Fact::Hit {
                    generation,
                    turn: 0,
                });
            }
            Late::Stop(generation) => self.park(generation, now_ms),
            Late::Delete(generation) => {
                self.deleted.insert(generation);
                self.sandboxes.remove(&generation);
            }
            Late::Abort(generation, messages) => {
                if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
                    sandbox.agent.abort(&messages, now_ms);
                }
            }
        }
    }

    fn park(&mut self, generation: u32, now_ms: Ms) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
            (sandbox.stopped, sandbox.server) = (true, false);
            sandbox.agent.dies(now_ms);
        }
    }

    pub fn lose(&mut self) {
        if let Some((generation, _)) = self.sandboxes.pop_last() {
            self.history.facts.push(Fact::Disturbed { generation });
        }
    }

    pub fn server_dies(&mut self, now_ms: Ms) {
        if let Some(mut sandbox) = self.sandboxes.last_entry() {
            let sandbox = sandbox.get_mut();
            sandbox.server = false;
            sandbox.agent.dies(now_ms);
        }
    }

    /// The way to its servers leads nowhere for a while, and what runs there goes on.
    pub fn cut(&mut self, until_ms: Ms) {
        self.cut_until_ms = until_ms;
    }

    /// A server is ended and started anew, also where nobody can hear from it.
    pub fn restart(&mut self, generation: u32, now_ms: Ms) {
        if let Some(sandbox) = self.sandboxes.get_mut(&generation) {
            sandbox.agent.dies(now_ms);
        }
    }

    /// For how long nobody reaches its servers any more.
    pub fn cut_ms(&self, now_ms: Ms) -> u64 {
        self.cut_until_ms.saturating_sub(now_ms)
    }

    pub fn hangs(&mut self) {
        if let Some(mut sandbox) = self.sandboxes.last_entry() {
            sandbox.get_mut().hangs = true;
        }
    }

    pub fn is_hanging(&self, generation: u32) -> bool {
        let sandbox = self.sandboxes.get(&generation);
        sandbox.is_some_and(|sandbox| sandbox.hangs && sandbox.server && !sandbox.stopped)
    }

    pub fn stops_by_itself(&mut self, now_ms: Ms) {
        if let Some(generation) = self
            .sandboxes
            .last_key_value()
            .map(|(generation, _)| *generation)
        {
            self.park(generation, now_ms);
            self.history.facts.push(Fact::Disturbed { generation });
        }
    }

    /// The sandbox's server, if it can be talked to.
    #[expect(
        clippy::result_large_err,
        reason = "the error is the event that is returned as it is"
    )]
    fn server(&mut self, generation: u32, now_ms: Ms) -> Result<&mut Sandbox, Event> {
        let is_cut = self.cut_ms(now_ms) > 0;
        match self.sandboxes.get_mut(&generation) {
            None => Err(Event::Failed(Failure::SandboxGone)),
            Some(sandbox)
                if sandbox.server
                    && !is_cut
                    && !sandbox.hangs
                    && !sandbox.stopped
                    && sandbox.ready_ms <= now_ms
                    && !sandbox.broken =>
            {
                Ok(sandbox)
            }
            Some(_) => Err(down()),
        }
    }

    pub fn check_server(&mut self, generation: u32, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Ok(_) => Event::Healthy,
            // A server that does not answer tells nothing of its sandbox.
            Err(_) => down(),
        }
    }

    /// The repository comes into the sandbox, or cannot be had.
    pub fn clone_into(&mut self, generation: u32, now_ms: Ms, missing: bool) -> Event {
        match self.sandboxes.get_mut(&generation) {
            None => Event::Failed(Failure::SandboxGone),
            Some(_) if missing => Event::NotCloned {
                why: NotCloned::NotFound,
            },
            Some(sandbox) if !sandbox.stopped && sandbox.ready_ms <= now_ms && !sandbox.broken => {
                sandbox.cloned = true;
                Event::Cloned
            }
            Some(_) => down(),
        }
    }

    pub fn ensure_server(&mut self, generation: u32, now_ms: Ms) -> Event {
        let bare = |sandbox: &Sandbox| !sandbox.cloned;
        if self.sandboxes.get(&generation).is_some_and(bare) {
            self.history.facts.push(Fact::Spent {
                what: "servers in a sandbox without its repository",
                times: 1,
                bound: 0,
            });
        }
        match self.sandboxes.get_mut(&generation) {
            None => Event::Failed(Failure::SandboxGone),
            Some(sandbox) if !sandbox.stopped && sandbox.ready_ms <= now_ms && !sandbox.broken => {
                // One that does not answer is ended and started anew.
                if std::mem::take(&mut sandbox.hangs) {
                    sandbox.agent.dies(now_ms);
                }
                sandbox.server = true;
                Event::Healthy
            }
            Some(_) => down(),
        }
    }

    pub fn find_session(&mut self, generation: u32, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Err(failed) => failed,
            Ok(sandbox) => {
                sandbox.session = true;
                Event::AgentSession {
                    id: format!("ses_{generation}"),
                }
            }
        }
    }

    pub fn send_prompt(
        &mut self,
        generation: u32,
        (ids, sending): (&PromptIds, Sending),
        turn: &str,
        now_ms: Ms,
        dice: &mut Dice,
        troubled: bool,
    ) -> Event {
        let turn = self.turn(turn);
        let first = matches!(sending, Sending::First { .. });
        // The proxy knows of a sandbox that is not there, or stopped; of a server that is silent nobody can know, unless
        // nothing listens.
        let refuses = match self.sandboxes.get(&generation) {
            None => true,
            Some(sandbox) if sandbox.stopped => true,
            Some(sandbox) => !sandbox.server && troubled && dice.falls(500),
        };
        let not_sent = |event: Event| match event {
            Event::Failed(failure) if first => Event::NotSent(failure),
            event => event,
        };
        let (endless, asks) = (self.next_run_is_endless, self.next_run_asks);
        let (kills, planned_ms) = (self.next_run_kills, self.next_run_takes_ms);
        let ended = self.ended_turns();
        let sandbox = match self.server(generation, now_ms) {
            Ok(sandbox) if !sandbox.session => {
                return not_sent(Event::Failed(Failure::SessionMissing));
            }
            Ok(sandbox) => sandbox,
            Err(failed) if refuses => return not_sent(failed),
            Err(failed) => return failed,
        };
        let Some(turn) = turn else {
            return Event::Failed(Failure::TurnFailed {
                reason: "whose prompt?".to_owned(),
            });
        };
        let run = || {
            let long = troubled && dice.falls(100);
            let takes_ms = 1_000 + dice.below(if long { 40 * 60_000 } else { 120_000 });
            let takes_ms = planned_ms.unwrap_or(takes_ms);
            let ends = !endless && !dice.falls(if troubled { 30 } else { 0 });
            let mut run = Run::new(turn, ends.then_some(now_ms + takes_ms));
            run.error = troubled && dice.falls(50);
            run.kills = kills || troubled && dice.falls(10);
            let asks = asks || troubled && dice.falls(150);
            run.ask = asks.then_some((now_ms + takes_ms / 2, true));
            run
        };
        let is_over = |turn: usize| ended.contains(&turn);
        // With it goes on what belongs to the same turn; what an ended one left broken off is only read again.
        let together = |run: &Run| !is_over(run.turn);
        match sandbox.agent.take(&ids.message, run, together, now_ms) {
            Sent::Known => return Event::Prompted,
            Sent::Begins | Sent::BeginsAgain => {}
        }
        let going = sandbox.agent.runs().filter(|run| run.goes_on(now_ms));
        let astray = going.filter(|run| is_over(run.turn));
        let astray: Vec<Fact> = astray.map(|run| Fact::Astray { turn: run.turn }).collect();
        (self.next_run_is_endless, self.next_run_asks) = (false, false);
        (self.next_run_kills, self.next_run_takes_ms) = (false, None);
        self.history.facts.extend(astray);
        self.history.facts.push(Fact::Prompted { turn, generation });
        self.prompted_ms = now_ms;
        Event::Prompted
    }

    /// Whether who follows the run of this prompt dies of it.
    pub fn kills(&self, generation: u32, message: &str) -> bool {
        let sandbox = self.sandboxes.get(&generation);
        let run = sandbox.and_then(|sandbox| sandbox.agent.run(message));
        run.is_some_and(|run| run.kills)
    }

    /// What the agent knows of a prompt.
    pub fn find_prompt(&mut self, generation: u32, message: &str, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Ok(sandbox) if !sandbox.session => Event::Failed(Failure::SessionMissing),
            Ok(sandbox) => Event::PromptFound(sandbox.agent.find(message, now_ms)),
            Err(failed) => failed,
        }
    }

    /// Turns whose end is on record.
    fn ended_turns(&self) -> BTreeSet<usize> {
        let ended = self.ended.iter().filter_map(|id| self.turn(id));
        ended.collect()
    }

    /// What a person's stop would end at the agent: the prompts of this turn, if it is the one that runs.
    pub fn to_abort(&self, turn: &str) -> Option<Late> {
        let running = self.record.as_ref()?.turn.as_ref()?;
        let generation = running.stage.prompted()?.generation;
        (running.id == turn).then(|| Late::Abort(generation, running.messages()))
    }

    /// Somebody wants what waits to be sent into the turn that runs. Whether that could be marked.
    pub fn now(&mut self, id: &str) -> bool {
        let waits = self.queue.iter().find(|entry| entry.message.id == id);
        let (Some(entry), Some(running)) = (
            waits,
            self.record
                .as_ref()
                .and_then(|session| session.turn.as_ref()),
        ) else {
            return false;
        };
        let Work::Prompt(prompt) = &entry.message.work else {
            return false;
        };
        if running.covers(id) || self.has_ended(id) {
            return false;
        }
        let queued = Queued {
            by: prompt.by.clone(),
            accepted_at_ms: entry.message.accepted_at_ms,
            card: None,
            refused: false,
            prompt: Some(Box::new(prompt.clone())),
        };
        let by = prompt.by.clone();
        self.marks.queued.insert(id.to_owned(), queued);
        self.marks.now.insert(id.to_owned(), by);
        true
    }

    /// The present turn, and all prompts that wait.
    pub fn all_turns(&self) -> Vec<String> {
        let running = self
            .record
            .as_ref()
            .and_then(|session| session.turn.as_ref());
        let waits = self.queue.iter().filter(|entry| {
            matches!(entry.message.work, Work::Prompt(_))
                && !running.is_some_and(|running| running.covers(&entry.message.id))
        });
        let mut all: Vec<String> = waits.map(|entry| entry.message.id.clone()).collect();
        all.extend(running.map(|turn| turn.id.clone()));
        all.retain(|id| !self.has_ended(id));
        all
    }

    /// Ends the run of these prompts, if it is theirs that the agent works on.
    pub fn abort(
        &mut self,
        generation: u32,
        messages: &[String],
        done: Event,
        now_ms: Ms,
    ) -> Event {
        match self.server(generation, now_ms) {
            Err(failed) => failed,
            Ok(sandbox) => {
                sandbox.agent.abort(messages, now_ms);
                done
            }
        }
    }

    pub fn decline(&mut self, generation: u32, ask: &str, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Err(failed) => failed,
            Ok(sandbox) => {
                sandbox
                    .agent
                    .runs_mut()
                    .filter_map(|run| run.ask.as_mut())
                    .for_each(|ask| ask.1 = false);
                Event::Declined { id: ask.to_owned() }
            }
        }
    }

    /// A person answers what is asked, first come first served.
    fn answers(&mut self, turn: &str, ask: &str, now_ms: Ms) {
        let turn = self.turn(turn);
        let by = bobbin_core::person::Person {
            id: "bob".into(),
            name: "bob".into(),
        };
        let settlement = Settlement {
            by,
            choice: bobbin_core::ask::Choice::Once,
        };
        self.marks
            .settled
            .entry(ask.to_owned())
            .or_insert(settlement);
        for run in self
            .sandboxes
            .values_mut()
            .flat_map(|sandbox| sandbox.agent.runs_mut())
            .filter(|run| Some(run.turn) == turn)
        {
            if let Some(ask) = &mut run.ask {
                ask.1 = false;
            }
            run.ends_ms = run.ends_ms.map(|at| at.max(now_ms + 5_000));
        }
    }

    /// One look at a run: something to tell, or none yet.
    pub fn follow(&mut self, follow: &Follow, now_ms: Ms, dice: &mut Dice) -> Option<Event> {
        if let Some(by) = self
            .marks
            .cancelled
            .get(&follow.turn)
            .filter(|_| !follow.cancel_known)
        {
            return Some(Event::CancelSeen { by: by.clone() });
        }
        if let Some(known) = &follow.steers
            && let Some((id, by)) = self
                .marks
                .now
                .iter()
                .find(|(id, _)| !known.contains(id) && **id != follow.turn)
            && let Some(queued) = self.marks.queued.get(id)
        {
            return Some(Event::SteerSeen {
                turn: id.clone(),
                queued: queued.clone(),
                by: by.clone(),
            });
        }
        let ask_id = format!("per_{}", follow.turn);
        let settlement = self.marks.settled.get(&ask_id).cloned();
        let sandbox = match self.server(follow.generation, now_ms) {
            Ok(sandbox) => sandbox,
            Err(failed) => return Some(failed),
        };
        let open = sandbox
            .agent
            .run(&follow.message)
            .is_some_and(|run| run.asks(now_ms));
        let known = follow.asks.iter().find(|ask| ask.id == ask_id);
        if open && known.is_none() {
            return Some(Event::Asked {
                id: ask_id,
                about: About::Permission {
                    action: "bash".into(),
                    subject: "make".into(),
                    left_out: 0,
                    places: [].into(),
                    always: [].into(),
                },
            });
        }
        if !open && let Some(ask) = known.filter(|ask| !ask.settled) {
            return Some(Event::AskClosed {
                id: ask.id.clone(),
                settlement,
            });
        }
        if open {
            if dice.falls(20) {
                self.answers(&follow.turn, &ask_id, now_ms);
            }
            return None;
        }
        let seen = sandbox
            .agent
            .follow(&follow.message, &follow.further, now_ms)?;
        Some(match seen {
            Some(answer) => Event::Finished(answer),
            None => {
                // Broken off, or never begun: of the latter a restart is the cure.
                sandbox.agent.dies(now_ms);
                down()
            }
        })
    }

    /// What the run of this prompt changed in the files.
    pub fn read_changes(&mut self, generation: u32, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Err(failed) => failed,
            Ok(_) => Event::Changed(Changes {
                files: vec![Change {
                    file: "a".to_owned(),
                    how: How::Added,
                    added: 1,
                    removed: 0,
                    patch: String::new(),
                }],
            }),
        }
    }

    /// Every run that came to its end has left a file to be shown, which stays.
    pub fn list_artifacts(&mut self, generation: u32, now_ms: Ms) -> Event {
        match self.server(generation, now_ms) {
            Err(failed) => failed,
            Ok(sandbox) => {
                let over = sandbox
                    .agent
                    .runs()
                    .filter(|run| run.came_to_its_end(now_ms));
                let file = |run: &Run| Artifact {
                    path: format!("{}-{generation}.txt", run.turn),
                    size: 1,
                    sum: "1".to_owned(),
                };
                Event::Listed(over.map(file).collect())
            }
        }
    }

    pub fn post_artifact(
        &mut self,
        generation: u32,
        (turn, index, file): (&str, u32, &Artifact),
        now_ms: Ms,
    ) -> Event {
        if self.server(generation, now_ms).is_err() {
            return Event::Unshown {
                why: "could not be read".to_owned(),
            };
        }
        let kind = PostKind::Artifact(index);
        let id = post_key(&self.thread, turn, &kind);
        if !self.posts.contains_key(&id) {
            self.posts.insert(id.clone(), kind.clone());
            if let Some(turn) = self.turn(turn) {
                self.history.facts.push(Fact::Posted { turn, kind });
            }
            let times = self.showings.entry(file.path.clone()).or_insert(0);
            *times += 1;
            self.history.facts.push(Fact::Spent {
                what: "showings of one file",
                times: *times,
                bound: 1,
            });
        }
        Event::Posted(PostRef {
            channel: self.thread.to_string(),
            id,
        })
    }

    pub fn post(
        &mut self,
        turn: &str,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Event {
        let id = at.map_or_else(|| post_key(&self.thread, turn, kind), |at| at.id.clone());
        let stands = self.posts.contains_key(&id);
        let turn = self.turn(turn);
        if let (Some(turn), false, [_, ..]) = (turn, stands, post.calls()) {
            self.history.facts.push(Fact::Called {
                turn,
                kind: kind.clone(),
                who: post.calls().to_vec(),
            });
        }
        let post = post.bare();
        match (turn, post) {
            (Some(turn), Post::Card(card)) if !stands || at.is_some() => {
                let live = !matches!(card.state, CardState::Ended { .. });
                self.cards.insert(id.clone(), (turn, live));
            }
            (Some(turn), Post::Moved { .. }) => {
                self.cards.insert(id.clone(), (turn, false));
            }
            _ => {}
        }
        if !stands {
            self.posts.insert(id.clone(), kind.clone());
        }
        if let Some(turn) = turn {
            if !stands {
                self.history.facts.push(Fact::Posted {
                    turn,
                    kind: kind.clone(),
                });
            }
            if let Post::Card(card) = post
                && (!stands || at.is_some())
            {
                self.shown(turn, card);
            }
        }
        Event::Posted(PostRef {
            channel: self.thread.to_string(),
            id,
        })
    }

    fn shown(&mut self, turn: usize, card: &Card) {
        self.history.facts.push(match &card.state {
            CardState::Ended { outcome, .. } => Fact::Told {
                turn,
                ending: Ending::from(outcome),
            },
            _ => Fact::Shown { turn },
        });
    }

    /// The chat refused a post of this turn.
    pub fn refused(&mut self, turn: &str) {
        if let Some(turn) = self.turn(turn) {
            self.history.facts.push(Fact::Refused { turn });
        }
    }

    /// The agent could not be asked once more, after it had answered.
    pub fn withheld(&mut self) {
        let turn = self
            .record
            .as_ref()
            .and_then(|session| session.turn.as_ref());
        let ending = turn.filter(|turn| turn.stage.is_ending());
        if let Some(turn) = ending.and_then(|turn| self.turn(&turn.id)) {
            self.history.facts.push(Fact::Withheld { turn });
        }
    }

    /// All is quiet: what the promises look at.
    pub fn close(&mut self, now_ms: Ms) {
        let session = self.session();
        let ended = self.ended_turns();
        let agents = self.sandboxes.values().map(|sandbox| &sandbox.agent);
        let going = agents
            .flat_map(Agent::runs)
            .filter(|run| run.goes_on(now_ms));
        let astray = going.filter(|run| ended.contains(&run.turn));
        let astray: Vec<Fact> = astray.map(|run| Fact::Astray { turn: run.turn }).collect();
        self.history.facts.extend(astray);
        let live = self.cards.values().filter(|(_, live)| *live);
        let left: Vec<Fact> = live.map(|(turn, _)| Fact::Left { turn: *turn }).collect();
        self.history.facts.extend(left);
        let accepted = self.history.accepted.len() as u64;
        self.history.facts.push(Fact::Spent {
            what: "deliveries of one message",
            times: self.deliveries_most,
            bound: DELIVERIES_MAX,
        });
        self.history.facts.push(Fact::Spent {
            what: "calls",
            times: self.calls,
            bound: CALLS_MAX * (accepted + 1),
        });
        // A thread of which nothing was ever written ended as well.
        let session =
            session.unwrap_or_else(|| Session::new(self.thread.clone(), super::world::START_MS));
        self.history.end = Some(End {
            phase: session.phase,
            generation: session.generation,
            turn: session.turn.is_some(),
            listed: self
                .sandboxes
                .iter()
                .map(|(generation, sandbox)| (*generation, !sandbox.stopped))
                .collect(),
        });
    }
}
