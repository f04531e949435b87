//! All that a simulator's world holds at one moment, and what happens to it.

use std::collections::{BTreeMap, BTreeSet};

use bobbin_core::decide::orphan::is_orphan;
use bobbin_core::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::limits::Limits;
use bobbin_core::message::{DeadPrompt, Message, Work};
use bobbin_core::person::Person;
use bobbin_core::sandbox::Phase;
use bobbin_core::session::Session;

use super::plan::{Deed, Late, Out, START_MS, Trouble};
use super::queue::{DELIVERIES_MAX, Entry};
use super::thread::SimThread;
use super::transitions::Transition;
use crate::fuzz::dice::Dice;
use crate::promises::Request;

/// A queue forgets deduplication ids after this long.
const DEDUPLICATION_MS: u64 = 300_000;

/// What a worker's receipt is worth.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    pub place: usize,
    pub(super) began_ms: Ms,
    /// Its process stands still since this time.
    pub(super) frozen_ms: Option<Ms>,
}

pub struct Inner {
    pub now_ms: Ms,
    pub dice: Dice,
    pub trouble: Trouble,
    pub places: Vec<SimThread>,
    pub calls: u32,
    /// Every call takes exactly so long, where that is to be measured.
    pub call_ms: Option<u64>,
    /// Of a piece of work and its card the card goes first; else the work does, or chance decides.
    pub cards_first: bool,
    /// The sweeper looks at the index.
    pub sweeps: bool,
    /// Calls of the orphan hunt count, and may be crashed at.
    pub hunts_crash: bool,
    /// The planted fault: what was made is never counted again.
    pub counts_once: bool,
    /// The planted fault: a token that is not taken is taken for one that never will be.
    pub gives_tokens_up: bool,
    /// The planted fault: a dead letter is taken away once its burial has been sent.
    pub letters_go_unread: bool,
    pub(super) outages: Vec<(Out, Ms)>,
    pub log: Vec<String>,
    pub logs: bool,
    pub transitions: BTreeSet<Transition>,
    /// Kinds of trouble that came about.
    pub met: BTreeSet<&'static str>,
    pub(super) receipts: BTreeMap<u64, Receipt>,
    pub(super) dying: BTreeSet<u64>,
    pub(super) next_wake_ms: Ms,
    pub(super) tokens: u64,
    pub(super) deeds: Vec<(Ms, usize, Deed)>,
    /// Calls on their way that nobody waits for any more.
    pub later: Vec<(Ms, usize, Late)>,
}

impl Inner {
    /// As many threads at the start of a history, of two tenants in turn.
    pub(super) fn new(threads: usize, seed: u64, trouble: Trouble) -> Self {
        let places = (0..threads).map(|at| {
            SimThread::new(
                ThreadKey::discord(&format!("{}", at % 2 + 1), &format!("{}", at + 10))
                    .expect("valid"),
            )
        });
        Self {
            now_ms: START_MS,
            dice: Dice::new(seed),
            trouble,
            places: places.collect(),
            calls: 0,
            call_ms: None,
            cards_first: false,
            sweeps: true,
            hunts_crash: false,
            counts_once: false,
            gives_tokens_up: false,
            letters_go_unread: false,
            outages: Vec::new(),
            log: Vec::new(),
            logs: false,
            transitions: BTreeSet::new(),
            met: BTreeSet::new(),
            receipts: BTreeMap::new(),
            dying: BTreeSet::new(),
            next_wake_ms: Ms::MAX,
            tokens: 0,
            deeds: Vec::new(),
            later: Vec::new(),
        }
    }

    pub fn note(&mut self, place: usize, what: impl FnOnce() -> String) {
        if self.logs {
            let (at, thread) = (self.now_ms - START_MS, &self.places[place].thread);
            self.log.push(format!("{:>9} ms  {thread}  {}", at, what()));
        }
    }

    /// Whether this is away.
    pub fn is_out(&self, what: Out) -> bool {
        let now_ms = self.now_ms;
        let mut all = self.outages.iter();
        all.any(|(out, until_ms)| *out == what && now_ms < *until_ms)
    }

    /// This goes away for so long.
    pub fn goes_out(&mut self, what: Out, for_ms: u64) {
        let until_ms = self.now_ms + for_ms;
        self.met.insert(match what {
            Out::Table => "table out",
            Out::Writes => "writes out",
            Out::Chat => "chat out",
            Out::Token => "token refused",
            Out::Provider => "provider out",
        });
        self.outages.push((what, until_ms));
        if what == Out::Provider {
            self.places.iter_mut().for_each(|place| place.cut(until_ms));
        }
    }

    /// What was delivered as often as the queue does is a dead letter.
    pub(super) fn gives_up(&mut self, place: usize) {
        let here = &mut self.places[place];
        let spent = |entry: &mut Entry| entry.receives >= DELIVERIES_MAX;
        if let Some(dead) = here.queue.pop_front_if(spent) {
            self.met.insert("dead letter");
            // The letter of the message that a burial is about is still there; sweeps come again by themselves.
            if matches!(dead.message.work, Work::Prompt(_) | Work::Reset { .. }) {
                here.letters.push(dead.message);
            }
        }
    }

    /// A dead letter is kept until its burial is on record, and until then sends that again.
    pub(super) fn bury(&mut self, place: usize) {
        let letters = std::mem::take(&mut self.places[place].letters);
        for dead in letters {
            if self.places[place].has_ended(&dead.id) {
                continue;
            }
            let prompt = dead.prompt_of(&dead.id).map(|prompt| {
                Box::new(DeadPrompt {
                    accepted_at_ms: dead.accepted_at_ms,
                    prompt: prompt.clone(),
                })
            });
            let burial = Message {
                id: format!("bury-{}", dead.id).into(),
                thread: dead.thread.clone(),
                accepted_at_ms: self.now_ms,
                work: Work::DeadLetter {
                    turn: dead.id.clone(),
                    prompt,
                },
            };
            self.send(place, burial);
            if !self.letters_go_unread {
                self.places[place].letters.push(dead);
            }
        }
    }

    /// Whether dice may fall badly now.
    pub fn troubled(&self) -> bool {
        matches!(self.trouble, Trouble::Dice { until_ms } if self.now_ms < until_ms)
    }

    /// Until when the message of this worker stays invisible: by its last heartbeat.
    pub fn visible_until_ms(&self, token: u64, limits: &Limits) -> Ms {
        let Some(receipt) = self.receipts.get(&token) else {
            return 0;
        };
        if !self.holds(token) {
            return 0;
        }
        let now_ms = receipt.frozen_ms.unwrap_or(self.now_ms);
        let beats = (now_ms - receipt.began_ms) / limits.heartbeat_ms;
        receipt.began_ms + beats * limits.heartbeat_ms + limits.visibility_ms
    }

    /// When a sandbox was made, among all; one that the provider does not list yet comes last.
    pub fn made(&self, place: usize, generation: u32) -> (Ms, usize, u32) {
        let sandbox = self.places[place].sandboxes.get(&generation);
        let created_ms = sandbox.map_or(Ms::MAX, |sandbox| sandbox.created_ms);
        (created_ms, place, generation)
    }

    pub(super) fn holds(&self, token: u64) -> bool {
        let Some(receipt) = self.receipts.get(&token) else {
            return false;
        };
        self.places[receipt.place]
            .queue
            .front()
            .is_some_and(|entry| entry.holder == Some(token))
    }

    /// The process stands still, its heartbeat too.
    pub fn freeze(&mut self, token: u64) {
        let now_ms = self.now_ms;
        if let Some(receipt) = self.receipts.get_mut(&token) {
            receipt.frozen_ms = Some(now_ms);
        }
    }

    /// It goes on; its heartbeat too, if nobody else has the message by now.
    pub fn thaw(&mut self, token: u64, limits: &Limits) {
        if self.visible_until_ms(token, limits) > self.now_ms
            && let Some(receipt) = self.receipts.get_mut(&token)
        {
            receipt.frozen_ms = None;
        }
    }

    pub fn is_frozen(&self, token: u64) -> bool {
        self.receipts
            .get(&token)
            .is_some_and(|receipt| receipt.frozen_ms == Some(self.now_ms))
    }

    pub fn is_dying(&self, token: u64) -> bool {
        self.dying.contains(&token)
    }

    pub fn kill(&mut self, token: u64) {
        self.met.insert("crash");
        self.dying.insert(token);
    }

    pub fn wake_at(&mut self, at_ms: Ms) {
        self.next_wake_ms = self.next_wake_ms.min(at_ms);
    }

    /// A person stops a turn: the flag, and the abort.
    pub(super) fn stop(&mut self, place: usize, turn: &TurnId) {
        let here = &mut self.places[place];
        if !here.has_ended(turn) && here.turns.iter().any(|known| known == turn) {
            let by = Person {
                id: "bob".into(),
                name: "bob".into(),
            };
            here.flags.cancelled.insert(turn.to_owned(), by);
            if let Some(abort) = here.to_abort(turn) {
                let now_ms = self.now_ms;
                let late_ms = if self.troubled() {
                    self.dice.below(20_000)
                } else {
                    0
                };
                match late_ms {
                    0 => self.places[place].land(abort, now_ms),
                    _ => self.later.push((now_ms + late_ms, place, abort)),
                }
            }
        }
    }

    /// Puts a message into its group, unless its id is known to the queue.
    pub fn send(&mut self, place: usize, message: Message) {
        let now_ms = self.now_ms;
        let here = &mut self.places[place];
        here.known_ids
            .retain(|_, at| *at + DEDUPLICATION_MS > now_ms);
        // A repeat does not make the queue remember it for longer.
        if here.known_ids.contains_key(&message.id) {
            return;
        }
        here.known_ids.insert(message.id.clone(), now_ms);
        let accepted = match &message.work {
            Work::Prompt(_) => Some(Request::Prompt),
            Work::Reset { .. } => Some(Request::Reset),
            Work::Operate { .. } => Some(Request::Operation),
            Work::Sweep | Work::Reconcile | Work::DeadLetter { .. } => None,
        };
        if let Work::Operate { want } = &message.work {
            self.met.insert(want.word());
        }
        if let Some(kind) = accepted {
            if here.turns.contains(&message.id) {
                self.met.insert("duplicate");
            } else {
                here.turns.push(message.id.clone());
                here.history.accepted.push(kind);
            }
        }
        here.queue.push_back(Entry {
            message,
            receives: 0,
            visible_ms: now_ms,
            holder: None,
        });
    }
}

/// Nothing goes wrong any more, no sandbox belongs to nobody, and no record waits for a sweep to get out of a passing phase.
pub fn settled(inner: &Inner) -> bool {
    let passing = |session: &Session| {
        matches!(
            session.sandbox.phase,
            Phase::Creating | Phase::Resuming | Phase::Pausing | Phase::Destroying
        )
    };
    let astray = |session: &Session| session.stray.is_some();
    let orphaned = |place: &SimThread| {
        let orphan = |generation: &u32| is_orphan(place.record.as_ref(), *generation, 0, 1, 0);
        place.sandboxes.keys().any(orphan)
    };
    !inner.troubled()
        && !inner.places.iter().any(orphaned)
        && !inner
            .places
            .iter()
            .filter_map(|place| place.record.as_ref())
            .any(|session| passing(session) || astray(session))
}

/// No record has anything due any more.
pub fn nothing_due(inner: &Inner) -> bool {
    inner.places.iter().all(|place| {
        place
            .record
            .as_ref()
            .is_none_or(|session| matches!(session.sandbox.phase, Phase::Destroyed | Phase::Error))
            && place.sandboxes.is_empty()
    })
}
