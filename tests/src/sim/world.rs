//! A simulator in virtual time: queues, table, provider, agents and chat for a few threads, and the real `drive`
//! as its workers. What goes wrong is a [`Trouble`]: nothing, dice, or a crash at chosen calls.
//!
//! Time stands still while anything can be done and then jumps to the next moment at which something happens, so that
//! hours pass in milliseconds. All chance comes from one seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bobbin_core::decide::orphan::is_orphan;
use bobbin_core::drive::{Delivery, Verdict, drive};
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::limits::Limits;
use bobbin_core::message::{DeadPrompt, Message, Prompt, Work};
use bobbin_core::person::{Person, Standing};
use bobbin_core::selection::Selection;
use bobbin_core::session::{Phase, Session};

use super::promises::{Accepted, Fact};
use super::thread::SimThread;
use super::transitions::Transition;
use super::worker::Worker;
use crate::fuzz::dice::Dice;

/// When every history begins.
pub const START_MS: Ms = 1_800_000_000_000;
/// A queue forgets deduplication ids after this long.
const DEDUPLICATION_MS: u64 = 300_000;
/// The sweeper's tick.
const TICK_MS: u64 = 60_000;
/// A worker's function is ended after this long.
const FUNCTION_MS: u64 = 15 * 60_000;
/// Deliveries after which the queue gives a message up.
pub const DELIVERIES_MAX: u64 = bobbin_core::limits::DELIVERIES_MAX as u64;
/// Rounds of the executor, so that a history ends.
const ROUNDS_MAX: u32 = 400_000;

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Trouble {
    None,
    /// By dice, up to this time.
    Dice {
        until_ms: Ms,
    },
    /// The worker dies at these calls, counted from the start: before (false) or after (true) what they do.
    Crashes {
        at: Vec<(u32, bool)>,
        hit: usize,
    },
    /// From this call on, counted from the start.
    Outage {
        at: u32,
        of: Out,
        for_ms: u64,
    },
}

/// What Bobbin stands on, and what may be away for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Out {
    /// Nothing can be read or written.
    Table,
    /// What is read can be read, and nothing be written.
    Writes,
    Chat,
    /// The chat does not take the bot's token.
    Token,
    /// Neither the provider's own calls nor the paths to its sandboxes; what runs there goes on.
    Provider,
}

impl Out {
    pub const ALL: [Self; 5] = [
        Self::Table,
        Self::Writes,
        Self::Chat,
        Self::Token,
        Self::Provider,
    ];
}

/// A person or the platform does something at a time.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "most of them send, and there are few at a time"
)]
pub enum Deed {
    Send(Message),
    /// Stop for the turn with this id.
    Stop(String),
    /// Stop for everything that runs or waits.
    StopAll,
    /// "Send now" for the prompt with this id.
    Now(String),
    Lose,
    ServerDies,
    /// The server takes what it is sent and never answers.
    Hangs,
    /// Nobody reaches the server for so long, and what it works on goes on.
    Cut(u64),
    StopsByItself,
    /// What all threads stand on is away for so long.
    Out(Out, u64),
    /// Nothing: time passes until then.
    Rest,
}

/// A worker (or the orphan hunt) under way.
struct Task {
    work: Pin<Box<dyn Future<Output = Verdict> + Send>>,
    token: u64,
    place: usize,
    dies_at_ms: Ms,
}

/// What a worker's receipt is worth.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    pub place: usize,
    began_ms: Ms,
    /// Its process stands still since this time.
    frozen_ms: Option<Ms>,
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
    outages: Vec<(Out, Ms)>,
    pub log: Vec<String>,
    pub logs: bool,
    pub transitions: BTreeSet<Transition>,
    /// Kinds of trouble that came about.
    pub met: BTreeSet<&'static str>,
    receipts: BTreeMap<u64, Receipt>,
    dying: BTreeSet<u64>,
    next_wake_ms: Ms,
    tokens: u64,
    deeds: Vec<(Ms, usize, Deed)>,
    /// Calls on their way that nobody waits for any more.
    pub later: Vec<(Ms, usize, Late)>,
}

/// A call that arrives late.
#[derive(Debug, Clone)]
pub enum Late {
    Create(u32),
    Stop(u32),
    Delete(u32),
    /// An abort of the run of these prompts.
    Abort(u32, Vec<String>),
}

/// The world; workers hold it too.
#[derive(Clone)]
pub struct World {
    inner: Arc<Mutex<Inner>>,
    pub limits: Arc<Limits>,
}

impl Inner {
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
    fn gives_up(&mut self, place: usize) {
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
    fn bury(&mut self, place: usize) {
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
                id: format!("bury-{}", dead.id),
                thread: dead.thread.clone(),
                accepted_at_ms: self.now_ms,
                work: Work::Bury {
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

    fn holds(&self, token: u64) -> bool {
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

    /// A person stops a turn: the mark, and the abort.
    fn stop(&mut self, place: usize, turn: &str) {
        let here = &mut self.places[place];
        if !here.has_ended(turn) && here.turns.iter().any(|known| known == turn) {
            let by = Person {
                id: "bob".into(),
                name: "bob".into(),
            };
            here.marks.cancelled.insert(turn.to_owned(), by);
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
            Work::Prompt(_) => Some(Accepted::Prompt),
            Work::Reset { .. } => Some(Accepted::Reset),
            Work::Operate { .. } => Some(Accepted::Operation),
            Work::Sweep | Work::Look | Work::Bury { .. } => None,
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

/// A message in its group.
#[derive(Debug, Clone)]
pub struct Entry {
    pub message: Message,
    receives: u64,
    visible_ms: Ms,
    holder: Option<u64>,
}

/// Waits for a moment.
pub struct Pause {
    world: World,
    until_ms: Ms,
}

impl Future for Pause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.world.lock();
        if inner.now_ms >= self.until_ms {
            return Poll::Ready(());
        }
        inner.wake_at(self.until_ms);
        Poll::Pending
    }
}

/// Lets everybody else go first, once; no time passes.
pub struct Aside {
    world: World,
    went: bool,
}

impl Future for Aside {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.went, true) {
            return Poll::Ready(());
        }
        let mut inner = self.world.lock();
        let now_ms = inner.now_ms;
        inner.wake_at(now_ms);
        Poll::Pending
    }
}

impl World {
    pub fn aside(&self) -> Aside {
        Aside {
            world: self.clone(),
            went: false,
        }
    }

    pub fn new(threads: usize, seed: u64, trouble: Trouble, limits: Limits) -> Self {
        let places = (0..threads).map(|at| {
            SimThread::new(
                ThreadKey::discord(&format!("{}", at % 2 + 1), &format!("{}", at + 10))
                    .expect("valid"),
            )
        });
        let inner = Inner {
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
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            limits: Arc::new(limits),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pause(&self, ms: u64) -> Pause {
        let until_ms = self.lock().now_ms + ms;
        Pause {
            world: self.clone(),
            until_ms,
        }
    }

    /// Something will be done in a place, `after_ms` from the start.
    pub fn plan(&self, after_ms: u64, place: usize, deed: Deed) {
        self.lock().deeds.push((START_MS + after_ms, place, deed));
    }

    pub fn message(&self, place: usize, id: &str, work: Work) -> Message {
        let inner = self.lock();
        Message {
            id: id.to_owned(),
            thread: inner.places[place].thread.clone(),
            accepted_at_ms: inner.now_ms,
            work,
        }
    }

    /// Runs until nothing is under way or waits, and `done` says so too.
    ///
    /// # Errors
    /// When it does not come to that within its bound.
    pub fn run(&self, done: fn(&Inner) -> bool) -> Result<(), String> {
        let mut tasks: Vec<Task> = Vec::new();
        let mut tick_ms = self.lock().now_ms + TICK_MS;
        for _ in 0..ROUNDS_MAX {
            self.deeds();
            self.deliver(&mut tasks);
            self.poll(&mut tasks);
            let mut inner = self.lock();
            let idle = tasks.is_empty()
                && inner.deeds.is_empty()
                && inner.later.is_empty()
                && inner
                    .places
                    .iter()
                    .all(|place| place.queue.is_empty() && place.letters.is_empty());
            if idle && done(&inner) {
                return Ok(());
            }
            let mut next_ms = inner.next_wake_ms.min(tick_ms);
            inner.next_wake_ms = Ms::MAX;
            next_ms = next_ms.min(
                inner
                    .deeds
                    .iter()
                    .map(|deed| deed.0)
                    .min()
                    .unwrap_or(Ms::MAX),
            );
            next_ms = next_ms.min(
                inner
                    .later
                    .iter()
                    .map(|late| late.0)
                    .min()
                    .unwrap_or(Ms::MAX),
            );
            next_ms = next_ms.min(
                tasks
                    .iter()
                    .map(|task| task.dies_at_ms)
                    .min()
                    .unwrap_or(Ms::MAX),
            );
            let heads = inner
                .places
                .iter()
                .filter_map(|place| place.queue.front())
                .filter(|entry| entry.holder.is_none());
            next_ms = next_ms.min(heads.map(|entry| entry.visible_ms).min().unwrap_or(Ms::MAX));
            inner.now_ms = inner.now_ms.max(next_ms);
            if inner.now_ms >= tick_ms {
                tick_ms += TICK_MS;
                drop(inner);
                self.tick(&mut tasks);
            }
        }
        Err(format!(
            "it did not come to rest: {:?}",
            self.lock()
                .places
                .iter()
                .map(SimThread::in_short)
                .collect::<Vec<_>>()
        ))
    }

    fn deeds(&self) {
        let mut inner = self.lock();
        let now_ms = inner.now_ms;
        let mut due: Vec<_> = inner
            .deeds
            .extract_if(.., |deed| deed.0 <= now_ms)
            .collect();
        due.sort_by_key(|deed| deed.0);
        for (_, place, deed) in due {
            inner.note(place, || format!("{deed:?}"));
            match deed {
                Deed::Send(message) => inner.send(place, message),
                Deed::Stop(turn) => inner.stop(place, &turn),
                Deed::StopAll => {
                    let all = inner.places[place].all_turns();
                    if all.len() > 1 {
                        inner.met.insert("stop all");
                    }
                    all.iter().for_each(|turn| inner.stop(place, turn));
                }
                Deed::Now(turn) => {
                    if inner.places[place].now(&turn) {
                        inner.met.insert("wanted now");
                    }
                }
                Deed::Lose => inner.places[place].lose(),
                Deed::ServerDies => inner.places[place].server_dies(now_ms),
                Deed::Hangs => {
                    inner.places[place].hangs();
                    inner.met.insert("hung");
                }
                Deed::Cut(for_ms) => {
                    inner.places[place].cut(now_ms + for_ms);
                    inner.met.insert("cut");
                }
                Deed::StopsByItself => inner.places[place].stops_by_itself(now_ms),
                Deed::Out(what, for_ms) => inner.goes_out(what, for_ms),
                Deed::Rest => {}
            }
        }
        let sweeps = inner.sweeps;
        for place in (0..inner.places.len()).filter(|_| sweeps) {
            let here = &mut inner.places[place];
            let Some(at_ms) = here.wake_ms.take_if(|at_ms| *at_ms <= now_ms) else {
                continue;
            };
            let thread = here.thread.clone();
            let message = Message {
                id: format!("wake-{}-{at_ms}", thread.short_hash()),
                thread,
                accepted_at_ms: at_ms,
                work: Work::Sweep,
            };
            inner.met.insert("wake-up");
            inner.send(place, message);
        }
        let late: Vec<_> = inner
            .later
            .extract_if(.., |late| late.0 <= now_ms)
            .collect();
        for (_, place, late) in late {
            inner.met.insert("late");
            inner.note(place, || format!("arrives late: {late:?}"));
            inner.places[place].land(late, now_ms);
        }
    }

    /// Gives each group's head to a worker, once it is visible.
    fn deliver(&self, tasks: &mut Vec<Task>) {
        let mut inner = self.lock();
        for place in 0..inner.places.len() {
            let now_ms = inner.now_ms;
            // A receipt whose heartbeat stopped is worth nothing after its time.
            if let Some(token) = inner.places[place]
                .queue
                .front()
                .and_then(|entry| entry.holder)
                && inner.visible_until_ms(token, &self.limits) <= now_ms
            {
                inner.met.insert("zombie");
                inner.note(place, || {
                    "the message is visible again while its worker still lives".to_owned()
                });
                if let Some(entry) = inner.places[place].queue.front_mut() {
                    (entry.holder, entry.visible_ms) = (None, now_ms);
                }
            }
            let is_held = |entry: &Entry| entry.holder.is_some() || entry.visible_ms > now_ms;
            if !inner.places[place].queue.front().is_none_or(is_held) {
                inner.gives_up(place);
            }
            let token = inner.tokens + 1;
            let Some(entry) = inner.places[place].queue.front_mut() else {
                continue;
            };
            if entry.holder.is_some() || entry.visible_ms > now_ms {
                continue;
            }
            entry.receives += 1;
            entry.holder = Some(token);
            let (message, receives) = (entry.message.clone(), entry.receives);
            inner.tokens = token;
            let most = inner.places[place].deliveries_most.max(receives);
            inner.places[place].deliveries_most = most;
            inner.receipts.insert(
                token,
                Receipt {
                    place,
                    began_ms: now_ms,
                    frozen_ms: None,
                },
            );
            let skew_ms = if inner.troubled() {
                inner.dice.below(10_000)
            } else {
                0
            };
            if skew_ms > 0 {
                inner.met.insert("clock skew");
            }
            inner.note(place, || {
                format!("delivers {} for the {receives}. time", message.id)
            });
            let hand = Worker::new(self.clone(), place, token, skew_ms, &message.work);
            let limits = Arc::clone(&self.limits);
            let work = Box::pin(async move {
                let delivery = Delivery {
                    id: format!("{}#{receives}", message.id),
                    receive: u32::try_from(receives).unwrap_or(u32::MAX),
                    message: &message,
                    slice_until_ms: now_ms + limits.slice_ms,
                    model: "m",
                    providers: &[],
                    limits: &limits,
                    split: |text| text.split(' ').map(str::to_owned).collect(),
                };
                drive(&hand, &delivery).await
            });
            tasks.push(Task {
                work,
                token,
                place,
                dies_at_ms: now_ms + FUNCTION_MS,
            });
        }
    }

    fn poll(&self, tasks: &mut Vec<Task>) {
        let mut at = 0;
        while at < tasks.len() {
            let verdict = match tasks[at]
                .work
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(verdict) => Some(verdict),
                Poll::Pending => None,
            };
            let mut inner = self.lock();
            let Task {
                token,
                place,
                dies_at_ms,
                ..
            } = tasks[at];
            let dies = inner.dying.remove(&token) || inner.now_ms >= dies_at_ms;
            if verdict.is_none() && !dies {
                at += 1;
                continue;
            }
            let until_ms = inner.visible_until_ms(token, &self.limits);
            let holds = inner.holds(token);
            let now_ms = inner.now_ms;
            if inner.receipts.remove(&token).is_none() {
                drop(inner);
                drop(tasks.swap_remove(at));
                continue;
            }
            inner.note(place, || {
                format!("ends: {verdict:?} (its receipt is good: {holds})")
            });
            if holds {
                let queue = &mut inner.places[place].queue;
                match verdict {
                    Some(Verdict::Done) => drop(queue.pop_front()),
                    Some(Verdict::Hold { delay_ms, .. } | Verdict::Newer { delay_ms, .. }) => {
                        give_back(queue, now_ms + delay_ms);
                    }
                    None => give_back(queue, until_ms),
                }
            }
            drop(inner);
            drop(tasks.swap_remove(at));
        }
    }

    /// A record of a thread for which the provider lists nothing: it is asked to look, when it is time for that.
    fn look(&self, inner: &mut Inner, place: usize) {
        let now_ms = inner.now_ms;
        let armed = inner.places[place].index_says(now_ms).is_some();
        if !inner.sweeps || !armed || now_ms % self.limits.look_ms >= TICK_MS {
            return;
        }
        inner.met.insert("look");
        let thread = inner.places[place].thread.clone();
        let message = Message {
            id: format!("look-{}-{now_ms}", thread.short_hash()),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Look,
        };
        inner.send(place, message);
    }

    /// A call of the orphan hunt, before or after what it does: it may die there.
    async fn hunts(&self, token: u64, after: bool) {
        let dies = {
            let mut inner = self.lock();
            if !inner.hunts_crash {
                return;
            }
            inner.calls += u32::from(!after);
            let call = inner.calls;
            match &mut inner.trouble {
                Trouble::Crashes { at, hit } if at.contains(&(call, after)) => {
                    *hit += 1;
                    inner.kill(token);
                    true
                }
                _ => false,
            }
        };
        if dies {
            std::future::pending::<()>().await;
        }
    }

    /// The sweeper: what the index, which lags, calls due becomes a message; then the orphan hunt.
    fn tick(&self, tasks: &mut Vec<Task>) {
        let mut inner = self.lock();
        let sweeps = inner.sweeps;
        let now_ms = inner.now_ms;
        for place in (0..inner.places.len()).filter(|_| sweeps) {
            let Some(due_ms) = inner.places[place]
                .index_says(now_ms)
                .filter(|due_ms| *due_ms <= now_ms)
            else {
                continue;
            };
            let thread = inner.places[place].thread.clone();
            let id = format!("sweep-{}-{due_ms}", thread.short_hash());
            inner.send(
                place,
                Message {
                    id,
                    thread,
                    accepted_at_ms: now_ms,
                    work: Work::Sweep,
                },
            );
        }
        for place in 0..inner.places.len() {
            inner.bury(place);
            if inner.places[place].sandboxes.is_empty() {
                self.look(&mut inner, place);
                continue;
            }
            inner.tokens += 1;
            let (token, wait_ms) = (inner.tokens, inner.dice.below(20_000));
            let (world, grace_ms) = (self.clone(), self.limits.stale_grace_ms);
            let work = Box::pin(async move {
                // List first; what is read afterwards is at least as new.
                world.hunts(token, false).await;
                let listed: Vec<(u32, Ms)> = world.lock().places[place]
                    .sandboxes
                    .iter()
                    .map(|(generation, sandbox)| (*generation, sandbox.created_ms))
                    .collect();
                world.hunts(token, true).await;
                world.pause(wait_ms).await;
                world.hunts(token, false).await;
                let record = world.lock().places[place].session();
                world.hunts(token, true).await;
                for (generation, created_ms) in listed {
                    world.pause(wait_ms).await;
                    let now_ms = world.lock().now_ms;
                    if !is_orphan(record.as_ref(), generation, created_ms, now_ms, grace_ms) {
                        continue;
                    }
                    world.hunts(token, false).await;
                    {
                        let mut inner = world.lock();
                        inner.met.insert("orphan");
                        inner.note(place, || {
                            format!("the hunt deletes generation {generation}")
                        });
                        inner.places[place].land(Late::Delete(generation), now_ms);
                    }
                    world.hunts(token, true).await;
                }
                Verdict::Done
            });
            tasks.push(Task {
                work,
                token,
                place,
                dies_at_ms: now_ms + FUNCTION_MS,
            });
        }
    }

    /// Writes the end under every history, so that the promises can be judged.
    pub fn settle(&self) {
        let mut inner = self.lock();
        let now_ms = inner.now_ms;
        inner
            .places
            .iter_mut()
            .for_each(|place| place.close(now_ms));
        let places = inner.places.iter();
        let tenants: BTreeSet<String> = places.map(|place| place.thread.tenant()).collect();
        for tenant in tenants.iter().filter(|_| self.limits.tenant_sandboxes > 0) {
            let places = inner.places.iter_mut();
            let mut of_tenant: Vec<_> = places
                .filter(|place| place.thread.tenant() == *tenant)
                .collect();
            let times = of_tenant
                .iter()
                .map(|place| place.sandboxes.len() as u64)
                .sum();
            of_tenant[0].history.facts.push(Fact::Spent {
                what: "sandboxes of a tenant",
                times,
                bound: u64::from(self.limits.tenant_sandboxes),
            });
        }
    }
}

fn give_back(queue: &mut VecDeque<Entry>, visible_ms: Ms) {
    if let Some(entry) = queue.front_mut() {
        (entry.holder, entry.visible_ms) = (None, visible_ms);
    }
}

/// Nothing goes wrong any more, no sandbox belongs to nobody, and no record waits for a sweep to get out of a passing phase.
pub fn settled(inner: &Inner) -> bool {
    let passing = |session: &Session| {
        matches!(
            session.phase,
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
            .is_none_or(|session| matches!(session.phase, Phase::Destroyed | Phase::Error))
            && place.sandboxes.is_empty()
    })
}

pub fn prompt(text: &str) -> Work {
    let by = Person {
        id: "ann".into(),
        name: "ann".into(),
    };
    Work::Prompt(Prompt {
        text: text.to_owned(),
        by,
        wants: Selection {
            repo: Some("acme/api".to_owned()),
            ..Selection::default()
        },
        ..Prompt::default()
    })
}

pub fn reset() -> Work {
    Work::Reset {
        by: Person {
            id: "ann".into(),
            name: "ann".into(),
        },
        standing: Standing::default(),
    }
}
