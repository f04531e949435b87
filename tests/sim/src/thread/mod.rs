//! One thread of the simulator: its queue, record, posts and its own sandbox (`Home`), which others may use too.
//! `running` has what happens to agents, `chat` what happens to posts.

mod chat;
pub(crate) mod running;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::flags::{ControlFlags, Queued};
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::message::{Message, Work};
use bobbin_core::records::parked::{Forward, Parked, PollRequester};
use bobbin_core::records::sandbox::{Phase, SandboxRecord};
use bobbin_core::records::session::Session;
use bobbin_core::tenant::settings::Settings;

use crate::agent::Step;

use super::due::Due;
use super::forge::Repository;
use super::home::Home;
use super::queue::{DELIVERIES_MAX, Entry};
use crate::promises::{End, Ending, Fact, History, WHO_ASKS};

/// Most world calls for one accepted message.
const CALLS_MAX: u64 = 5_000;

pub struct SimThread {
    pub thread: ThreadKey,
    pub queue: VecDeque<Entry>,
    pub known_ids: BTreeMap<TurnId, Ms>,
    /// Messages that the queue gave up, until their notice is on record.
    pub letters: Vec<Message>,
    pub record: Option<Session>,
    pub flags: ControlFlags,
    /// What the last delivery of a turn's message left, and the receipt of that message.
    pub parked: Option<Parked>,
    pub receipt: u64,
    pub ledger: BTreeMap<TurnId, LedgerEntry>,
    /// The settings of the thread's tenant.
    pub settings: Settings,
    /// When its record is due.
    pub due: Due,
    /// Most sweeps that waited in one of its groups at the same time, and how often the sweeper could not know whether
    /// the queue had one.
    pub sweeps_most: u64,
    pub sweeps_unsure: u64,
    /// Its place among all.
    pub place: usize,
    /// Its own sandbox.
    pub home: Home,
    pub(super) posts: BTreeMap<String, PostKind>,
    /// The posted cards: their turn, and whether they look alive.
    pub(super) cards: BTreeMap<String, (usize, bool)>,
    /// Commits of the proposals in the thread, oldest first.
    pub proposals: Vec<String>,
    /// Its repository at the forge.
    pub forge: Repository,
    /// How often each of the agent's files was shown.
    showings: BTreeMap<String, u64>,
    /// Accepted turns by place.
    pub turns: Vec<TurnId>,
    pub history: History,
    pub deliveries_most: u64,
    /// When an agent last took a prompt.
    pub prompted_ms: Ms,
    /// The next run asks a person; the next run ends only on request.
    pub next_run_asks: bool,
    pub next_run_is_endless: bool,
    /// The next run crashes the worker that follows it; the next run takes this long.
    pub next_run_kills: bool,
    pub next_run_takes_ms: Option<u64>,
    /// Duration and cost of a model's step.
    pub step: Option<Step>,
    /// The last action in this thread deletes its own sandbox and its agent's second one.
    pub ends_both: bool,
    calls: u64,
    ended: Vec<TurnId>,
}

impl SimThread {
    pub fn new(thread: ThreadKey, place: usize) -> Self {
        Self {
            thread,
            queue: VecDeque::new(),
            known_ids: BTreeMap::new(),
            letters: Vec::new(),
            record: None,
            flags: ControlFlags::default(),
            parked: None,
            receipt: 0,
            ledger: BTreeMap::new(),
            settings: Settings::default(),
            due: Due::default(),
            sweeps_most: 0,
            sweeps_unsure: 0,
            place,
            home: Home::of(place),
            posts: BTreeMap::new(),
            cards: BTreeMap::new(),
            proposals: Vec::new(),
            forge: Repository::default(),
            showings: BTreeMap::new(),
            turns: Vec::new(),
            history: History {
                parts: 2,
                files: true,
                who_asks: Some(WHO_ASKS),
                ..History::default()
            },
            deliveries_most: 0,
            prompted_ms: 0,
            next_run_asks: false,
            next_run_is_endless: false,
            next_run_kills: false,
            next_run_takes_ms: None,
            step: None,
            ends_both: false,
            calls: 0,
            ended: Vec::new(),
        }
    }

    /// Phase and generation of its own sandbox.
    pub fn phase(&self) -> Option<(Phase, u32)> {
        let record = self.home.record.as_ref()?;
        Some((record.phase, record.generation))
    }

    /// Whether the record went through exactly these phases in a row.
    pub fn went_through(&self, phases: &[Phase]) -> bool {
        let timeline: Vec<Phase> = self
            .home
            .record
            .iter()
            .flat_map(|sandbox| &sandbox.history.timeline)
            .map(|entry| entry.phase)
            .collect();
        timeline.windows(phases.len()).any(|window| window == phases)
    }

    /// Whether the thread was asked a question of this turn.
    pub fn asked(&self, turn: usize) -> bool {
        self.history.facts.iter().any(
            |fact| matches!(fact, Fact::Posted { turn: at, kind: PostKind::Ask(_) } if *at == turn),
        )
    }

    pub fn in_short(&self) -> String {
        let all = self.queue.iter().chain(&self.home.queue);
        let waits: Vec<_> = all.map(|entry| entry.message.id.as_str()).collect();
        format!(
            "{}: {:?}, {:?}, queues {waits:?}",
            self.thread,
            self.record.as_ref().map(|s| (
                s.version,
                s.due_at_ms,
                s.place.link.as_ref(),
                s.turn.as_ref().map(|t| (&t.id, &t.stage))
            )),
            self.home.record.as_ref().map(|s| (
                s.version,
                s.phase,
                s.generation,
                s.due_at_ms,
                s.lease.as_ref(),
                &s.sharing.in_use,
                &s.sharing.waiting,
            )),
        )
    }

    /// A dead letter's notice counts for its message.
    pub(super) fn turn(&self, id: &TurnId) -> Option<usize> {
        let id = id.strip_prefix("bury-").unwrap_or(id);
        self.turns.iter().position(|turn| turn == id)
    }

    pub fn has_ended(&self, turn: &TurnId) -> bool {
        self.ended.iter().any(|ended| ended == turn)
    }

    pub fn counted(&mut self) {
        self.calls += 1;
    }

    /// Keeps a written record and notes what is new in it. The flags that its writer has read are spent.
    pub fn keep(
        &mut self,
        session: &Session,
        entries: &[LedgerEntry],
        known: &ControlFlags,
        (now_ms, lag_ms): (Ms, u64),
    ) {
        let spent = known.spent(session);
        self.flags = std::mem::take(&mut self.flags).without(&spent);
        for entry in entries {
            let before = self.ledger.insert(entry.turn.clone(), entry.clone());
            // The ledger's entry is final: a second end of a turn is one too many.
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
                    self.history
                        .facts
                        .push(Fact::Ended { turn, ending: Ending::from(&ended.outcome) });
                }
            }
        }
        let twice = |id: &TurnId| session.ended.iter().filter(|ended| ended.id == *id).count() > 1;
        if let Some(turn) = self.ended.iter().find(|id| twice(id)).and_then(|id| self.turn(id)) {
            self.history.facts.push(Fact::Ended { turn, ending: Ending::Lost });
        }
        // Like the table: observations are not kept.
        let stored = Session::decode(&session.encode(), None);
        self.record = Some(stored.expect("a record can be read"));
        self.due.keep(session.due_at_ms, now_ms, lag_ms);
    }

    /// Notes the sandbox record's results of operations that were accepted here.
    pub fn keep_operated(&mut self, record: &SandboxRecord) {
        for operated in &record.history.operated {
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
    }

    /// The ledger's entries of these turns.
    pub fn recalled(&self, turns: &[TurnId]) -> Vec<LedgerEntry> {
        let found = turns.iter().filter_map(|turn| self.ledger.get(turn));
        found.cloned().collect()
    }

    /// Turns whose end is on record.
    pub(super) fn ended_turns(&self) -> BTreeSet<usize> {
        let ended = self.ended.iter().filter_map(|id| self.turn(id));
        ended.collect()
    }

    /// Makes this turn's waiting message visible now, if its receipt is still the last one.
    pub fn bring_forward(&mut self, turn: &TurnId, wish: PollRequester, now_ms: Ms) -> bool {
        let (Some(parked), Some(entry)) = (&self.parked, self.queue.front_mut()) else {
            return false;
        };
        let wanted = matches!(parked.forward(turn, wish, now_ms), Forward::Now { .. });
        let waits = entry.visible_ms > now_ms && entry.last == self.receipt;
        if wanted && waits {
            (entry.holder, entry.visible_ms) = (None, now_ms);
        }
        wanted && waits
    }

    /// The same on a person's request, for the turn whose message is first.
    pub fn wish_for_running(&mut self, now_ms: Ms) -> bool {
        let first = self.queue.front().map(|entry| entry.message.id.clone());
        first.is_some_and(|turn| self.bring_forward(&turn, PollRequester::Person, now_ms))
    }

    /// Somebody sends the waiting prompt into the running turn. Answers whether that could be marked.
    pub fn now(&mut self, id: &TurnId) -> bool {
        let waits = self.queue.iter().find(|entry| entry.message.id == *id);
        let (Some(entry), Some(running)) =
            (waits, self.record.as_ref().and_then(|session| session.turn.as_ref()))
        else {
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
        self.flags.queued.insert(id.to_owned(), queued);
        self.flags.now.insert(id.to_owned(), by);
        true
    }

    /// The current turn and all waiting prompts.
    pub fn all_turns(&self) -> Vec<TurnId> {
        let running = self.record.as_ref().and_then(|session| session.turn.as_ref());
        let waits = self.queue.iter().filter(|entry| {
            matches!(entry.message.work, Work::Prompt(_))
                && !running.is_some_and(|running| running.covers(&entry.message.id))
        });
        let mut all: Vec<TurnId> = waits.map(|entry| entry.message.id.clone()).collect();
        all.extend(running.map(|turn| turn.id.clone()));
        all.retain(|id| !self.has_ended(id));
        all
    }

    /// At rest: notes what the promises check.
    pub fn close(&mut self) {
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
            what: "sweeps that wait in one group",
            times: self.sweeps_most,
            bound: 1 + self.sweeps_unsure,
        });
        self.history.facts.push(Fact::Spent {
            what: "calls",
            times: self.calls,
            bound: CALLS_MAX * (accepted + 1),
        });
        // A sandbox without a record counts as ended.
        let sandbox = self.home.record.clone().unwrap_or_default();
        let there = self.home.sandboxes.iter();
        self.history.end = Some(End {
            phase: sandbox.phase,
            generation: sandbox.generation,
            turn: self.record.as_ref().is_some_and(|record| record.turn.is_some()),
            listed: there.map(|(generation, sandbox)| (*generation, !sandbox.stopped)).collect(),
            is_settled: true,
        });
    }
}
