//! All that a simulator's world holds at one moment, and the changes to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use bobbin_core::base::ids::{Ms, SandboxKey, SandboxName, Tenant, ThreadKey, TurnId};
use bobbin_core::base::limits::Limits;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::decide::orphan::is_orphan;
use bobbin_core::records::control::PublishStep;
use bobbin_core::records::flags::StoppedAll;
use bobbin_core::records::message::{DeadPrompt, Message, Work};
use bobbin_core::records::observations::NameWrite;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use bobbin_core::tenant::budgets::{BudgetScope, BudgetWrite, MicroUsd};
use bobbin_core::tenant::repositories::BoundForge;
use bobbin_core::tenant::runtime_mode::RuntimeMode;

use super::announcer::Announcing;
use super::due::Due;
use super::home::{Caller, Home};
use super::plan::{Late, Out, PlannedEvent, START_MS, Trouble};
use super::queue::{DELIVERIES_MAX, Entry, Group};
use super::thread::SimThread;
use super::transitions::Transition;
use crate::dice::Dice;
use crate::promises::{Fact, Request};

/// A queue forgets deduplication ids after this long.
const DEDUPLICATION_MS: u64 = 300_000;

/// The state of a worker's receipt.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    pub group: Group,
    pub(super) began_ms: Ms,
    /// Its process has been frozen since this time.
    pub(super) frozen_ms: Option<Ms>,
}

/// Polls of runs while nothing went wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct Looks {
    pub all: u64,
    /// The longest delay of a poll.
    pub latest_ms: u64,
    /// Polls that were late by more than the interval before them.
    pub too_late: u64,
}

pub struct Inner {
    pub now_ms: Ms,
    pub dice: Dice,
    pub trouble: Trouble,
    pub places: Vec<SimThread>,
    pub calls: u32,
    /// Every call takes exactly this long; for measurements.
    pub call_ms: Option<u64>,
    /// The runtime mode of new sandboxes.
    pub runtime: RuntimeMode,
    /// The forge, if there is one.
    pub forge: Option<BoundForge>,
    /// Every second sandbox's repository has a recipe.
    pub has_recipes: bool,
    /// A card is written before its work; otherwise after it, or by chance.
    pub cards_first: bool,
    /// The sweeper reads the index.
    pub sweeps: bool,
    /// Calls of the orphan hunt count as crash points.
    pub hunts_crash: bool,
    /// Spent and reserved amounts, and when each was last written.
    pub sums: BTreeMap<(String, String), Sum>,
    /// The highest value of a sum.
    pub sums_most: MicroUsd,
    /// The owner of each name.
    pub names: BTreeMap<(Tenant, SandboxName), SandboxKey>,
    /// The planted fault: a due item is sent a sweep each time it is seen.
    pub sweeps_each_time: bool,
    /// The planted fault: created sandboxes are never counted again.
    pub counts_once: bool,
    /// The planted fault: nobody compares the account of the stack's key.
    pub accounts_uncompared: bool,
    /// The planted fault: a refused token counts as refused for ever.
    pub gives_tokens_up: bool,
    /// The planted fault: what a closed thread could not be told is dropped.
    pub forgets_untold: bool,
    /// The planted fault: a dead letter is deleted as soon as its notice is sent.
    pub letters_go_unread: bool,
    /// The planted fault: a second sandbox is created whatever the state of its agent's.
    pub makes_unwanted: bool,
    /// The planted fault: a second sandbox is stopped while a turn of its agent is at work.
    pub pauses_used: bool,
    /// The planted fault: once the card is posted, nobody checks whether its turn has begun.
    pub forgets_announced: bool,
    /// The planted fault: no budget is checked.
    pub budgets_unasked: bool,
    /// The planted fault: a reserved amount is never given back.
    pub settles_nothing: bool,
    /// The planted fault: pushes what the sandbox has, whatever was shown.
    pub pushes_unshown: bool,
    /// Prompts are announced, and each step takes as long as these dice say.
    pub announcer: Option<Dice>,
    pub(super) outages: Vec<(Out, Ms)>,
    pub log: Vec<String>,
    pub logs: bool,
    pub transitions: BTreeSet<Transition>,
    /// Kinds of trouble that occurred.
    pub met: BTreeSet<&'static str>,
    pub(super) receipts: BTreeMap<u64, Receipt>,
    /// Receipts of frozen processes.
    pub(super) frozen: BTreeSet<u64>,
    pub(super) dying: BTreeSet<u64>,
    pub(super) tokens: u64,
    /// The worker that runs at the moment.
    pub(super) working: u64,
    /// When each task can continue.
    pub(super) wakes: BinaryHeap<Reverse<(Ms, u64)>>,
    /// When each group's head can be received; outdated entries are skipped when their time comes.
    pub(super) heads: BinaryHeap<Reverse<(Ms, Group)>>,
    /// Heads that wait for an execution, and since when.
    pub(super) crowd: BTreeSet<(Ms, Group)>,
    /// Until then other work occupies the executions.
    pub(super) crowded_until_ms: Ms,
    /// When a thread (by place) asked for a wake-up.
    pub(super) wake_ups: BinaryHeap<Reverse<(Ms, usize)>>,
    /// By time, then in planned order.
    pub(super) deeds: BTreeMap<(Ms, usize), (usize, PlannedEvent)>,
    pub(super) planned: usize,
    pub sweeps_sent: u64,
    /// No worker runs before this time.
    pub(super) idle_until_ms: Ms,
    /// What goes wrong in the sweeper while it sends.
    pub(super) of_sweeper: Dice,
    /// Which transactions keep meeting another of the same item.
    pub(super) of_transactions: Dice,
    /// Most executions of the worker; `None`: no limit.
    pub executions: Option<usize>,
    /// Polls of runs that nobody follows, before and after this time.
    pub at_work_ms: Ms,
    pub looks_before: Looks,
    pub looks: Looks,
    by_thread: BTreeMap<ThreadKey, usize>,
    /// Late calls that nobody waits for: the caller, and the place of the sandbox.
    pub later: Vec<(Ms, (Caller, usize), Late)>,
}

/// A stored sum.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    pub used: MicroUsd,
    /// When it was last written.
    written_ms: Ms,
}

impl Inner {
    /// Whether another write of one of these sums happened since then.
    pub(super) fn sums_meet(&self, tenant: &Tenant, writes: &[BudgetWrite], since_ms: Ms) -> bool {
        let sums = writes.iter().filter_map(|one| self.sums.get(&one.scope.place(tenant)));
        sums.into_iter().any(|sum| sum.written_ms > since_ms)
    }

    /// The first sum that leaves less than the amount to reserve.
    pub(super) fn over_budget(
        &self,
        tenant: &Tenant,
        writes: &[BudgetWrite],
    ) -> Option<(BudgetScope, MicroUsd)> {
        writes.iter().find_map(|one| {
            let used = self.sums.get(&one.scope.place(tenant)).map_or(0, |sum| sum.used);
            let is_over =
                one.at_most.is_some_and(|at_most| used > at_most && !self.budgets_unasked);
            is_over.then(|| (one.scope.clone(), used))
        })
    }

    pub(super) fn write_sums(&mut self, tenant: &Tenant, writes: &[BudgetWrite]) {
        for one in writes.iter().filter(|one| one.add > 0 || !self.settles_nothing) {
            let sum = self.sums.entry(one.scope.place(tenant)).or_default();
            sum.used = sum.used.checked_add_signed(one.add).expect("no sum falls below zero");
            sum.written_ms = self.now_ms;
            self.sums_most = self.sums_most.max(sum.used);
        }
    }

    /// The start of a history with this many threads, which belong to two tenants in turn.
    pub(super) fn new(threads: usize, seed: u64, trouble: Trouble) -> Self {
        let places = (0..threads).map(|at| {
            let guild = format!("{}", at % 2 + 1);
            let key = ThreadKey::discord(&guild, &format!("{}", at + 10));
            SimThread::new(key.expect("valid"), at)
        });
        let places: Vec<SimThread> = places.collect();
        let by_thread = places.iter().map(|one| (one.thread.clone(), one.place));
        Self {
            by_thread: by_thread.collect(),
            now_ms: START_MS,
            dice: Dice::new(seed),
            trouble,
            places,
            calls: 0,
            call_ms: None,
            runtime: RuntimeMode::default(),
            forge: None,
            has_recipes: false,
            cards_first: false,
            sweeps: true,
            hunts_crash: false,
            sums: BTreeMap::new(),
            sums_most: 0,
            names: BTreeMap::new(),
            sweeps_each_time: false,
            counts_once: false,
            accounts_uncompared: false,
            gives_tokens_up: false,
            forgets_untold: false,
            letters_go_unread: false,
            makes_unwanted: false,
            pauses_used: false,
            forgets_announced: false,
            budgets_unasked: false,
            settles_nothing: false,
            pushes_unshown: false,
            announcer: None,
            outages: Vec::new(),
            log: Vec::new(),
            logs: false,
            transitions: BTreeSet::new(),
            met: BTreeSet::new(),
            receipts: BTreeMap::new(),
            frozen: BTreeSet::new(),
            dying: BTreeSet::new(),
            tokens: 0,
            working: 0,
            wakes: BinaryHeap::new(),
            heads: BinaryHeap::new(),
            crowd: BTreeSet::new(),
            wake_ups: BinaryHeap::new(),
            deeds: BTreeMap::new(),
            planned: 0,
            sweeps_sent: 0,
            idle_until_ms: 0,
            of_sweeper: Dice::new(seed ^ 0x5357_4545_5045_5253),
            of_transactions: Dice::new(seed ^ 0x4D45_4554),
            executions: None,
            crowded_until_ms: 0,
            at_work_ms: 0,
            looks_before: Looks::default(),
            looks: Looks::default(),
            later: Vec::new(),
        }
    }

    /// The place of a thread or of a sandbox; a sandbox that was no thread's first gets its own place.
    pub fn place_of(&mut self, thread: &ThreadKey) -> usize {
        let thread = match thread {
            ThreadKey::Sandbox(key) => key.thread(),
            thread => thread,
        };
        if let Some(place) = self.known(thread) {
            return place;
        }
        let place = self.places.len();
        self.places.push(SimThread::new(thread.clone(), place));
        self.by_thread.insert(thread.clone(), place);
        place
    }

    /// The place of a thread, if it has one.
    pub(super) fn known(&self, thread: &ThreadKey) -> Option<usize> {
        self.by_thread.get(thread).copied()
    }

    /// The place of the sandbox that this thread uses.
    pub fn home_of(&mut self, place: usize) -> usize {
        let record = self.places[place].record.as_ref();
        match record.and_then(|session| session.place.link.clone()) {
            Some(key) => self.place_of(key.thread()),
            None => place,
        }
    }

    /// The stored state of a thread and its sandbox, or of a group that has only a sandbox.
    pub fn stored(&mut self, group: Group) -> Option<Session> {
        let at = if group.of_sandbox { group.place } else { self.home_of(group.place) };
        let sandbox = self.places[at].home.record.clone();
        if group.of_sandbox {
            let thread = self.places[at].thread.sandbox().group();
            return Some(Session { sandbox: sandbox?, ..Session::new(thread, 0) });
        }
        self.places[at].home.users.insert(group.place);
        // The sandbox's own group can create things before the thread has a record.
        let fresh = || Session::new(self.places[group.place].thread.clone(), 0);
        let record = self.places[group.place].record.clone();
        let record = record.or_else(|| sandbox.is_some().then(fresh))?;
        Some(Session { sandbox: sandbox.unwrap_or_default(), ..record })
    }

    /// Whether these names can be written.
    pub fn names_are_free(&self, names: &[NameWrite]) -> bool {
        names.iter().all(|one| {
            let key = (one.sandbox.tenant(), one.name.clone());
            self.names.get(&key).is_none_or(|of| *of == one.sandbox)
        })
    }

    /// Writes them.
    pub fn write_names(&mut self, names: &[NameWrite]) {
        for one in names {
            let key = (one.sandbox.tenant(), one.name.clone());
            if one.released {
                self.names.remove(&key);
            } else {
                self.names.insert(key, one.sandbox.clone());
            }
        }
    }

    /// Does something with a thread and a place's sandbox, which may be its own.
    pub fn with<T>(
        &mut self,
        place: usize,
        at: usize,
        act: impl FnOnce(&mut SimThread, &mut Home, &mut Dice) -> T,
    ) -> T {
        let mut home = std::mem::take(&mut self.places[at].home);
        let done = act(&mut self.places[place], &mut home, &mut self.dice);
        self.places[at].home = home;
        done
    }

    /// A call reaches the provider.
    pub fn land(&mut self, (from, at): (Caller, usize), call: Late) {
        let now_ms = self.now_ms;
        let mut home = std::mem::take(&mut self.places[at].home);
        home.land(from, call, &mut self.places, now_ms);
        self.places[at].home = home;
    }

    /// A run has begun in a workspace: notes which threads are at work there.
    pub fn note_work(&mut self, at: usize, generation: u32, workspace: &str) {
        let Some(sandbox) = self.places[at].home.sandboxes.get(&generation) else {
            return;
        };
        let mut who = BTreeSet::new();
        for (place, agent) in &sandbox.agents {
            let thread = &self.places[*place];
            let ended = thread.ended_turns();
            let runs = agent.runs().filter(|run| run.workspace == workspace);
            let going = runs.filter(|run| run.goes_on(self.now_ms) && !ended.contains(&run.turn));
            // One turn's prompts are one run.
            who.extend(going.map(|_| thread.thread.to_string()));
        }
        if who.len() > 1 {
            self.met.insert("crowded");
        }
        let workspace = format!("{generation}:{workspace}");
        let who = who.into_iter().collect();
        self.places[at].home.facts.push(Fact::Working { workspace, who });
    }

    pub fn queue(&mut self, group: Group) -> &mut std::collections::VecDeque<Entry> {
        let here = &mut self.places[group.place];
        if group.of_sandbox { &mut here.home.queue } else { &mut here.queue }
    }

    /// Groups whose head can be received now, or whose holder's receipt has expired: ordered by place, or by waiting
    /// time if executions are few.
    pub(super) fn visible(&mut self, limits: &Limits) -> Vec<Group> {
        let mut groups = std::mem::take(&mut self.crowd);
        while let Some(at_ms) = self.next_head_ms().filter(|at_ms| *at_ms <= self.now_ms)
            && let Some(Reverse((_, group))) = self.heads.pop()
        {
            groups.insert((at_ms, group));
        }
        let expired = self.frozen.iter().filter_map(|token| {
            let group = self.receipts.get(token)?.group;
            let is_over = self.visible_until_ms(*token, limits) <= self.now_ms;
            is_over.then_some((self.now_ms, group))
        });
        groups.extend(expired.collect::<Vec<_>>());
        let groups = groups.into_iter().map(|(_, group)| group);
        if self.executions.is_some() {
            return groups.collect();
        }
        let by_place: BTreeSet<Group> = groups.collect();
        by_place.into_iter().collect()
    }

    /// Whether something waits for an execution.
    pub(super) fn is_crowded(&self) -> bool {
        !self.crowd.is_empty() || self.now_ms < self.crowded_until_ms
    }

    /// Polls of a run come when the delivery before said so, or earlier on request.
    pub(super) fn came(&mut self, place: usize, visible_ms: Ms) {
        let late_ms = self.now_ms - visible_ms;
        let Some(parked) = &self.places[place].parked else {
            return;
        };
        let interval_ms = parked.until_ms - parked.at_ms;
        let looks =
            if self.now_ms < self.at_work_ms { &mut self.looks_before } else { &mut self.looks };
        looks.all += 1;
        looks.latest_ms = looks.latest_ms.max(late_ms);
        looks.too_late += u64::from(late_ms > interval_ms);
    }

    /// Every group of the queue.
    pub fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        (0..self.places.len())
            .flat_map(|place| [false, true].map(|of_sandbox| Group { place, of_sandbox }))
    }

    pub fn note(&mut self, place: usize, what: impl FnOnce() -> String) {
        if self.logs {
            let (at, thread) = (self.now_ms - START_MS, &self.places[place].thread);
            self.log.push(format!("{:>9} ms  {thread}  {}", at, what()));
        }
    }

    /// Whether this service is down.
    pub fn is_out(&self, what: Out) -> bool {
        let now_ms = self.now_ms;
        let mut all = self.outages.iter();
        all.any(|(out, until_ms)| *out == what && now_ms < *until_ms)
    }

    /// This service goes down for this long.
    pub fn goes_out(&mut self, what: Out, for_ms: u64) {
        let until_ms = self.now_ms + for_ms;
        self.met.insert(match what {
            Out::Table => "table out",
            Out::Writes => "writes out",
            Out::Chat => "chat out",
            Out::Token => "token refused",
            Out::Access => "threads closed",
            Out::Provider => "provider out",
            Out::Account => "account out",
        });
        self.outages.push((what, until_ms));
        if what == Out::Provider {
            let places = self.places.iter_mut();
            places.for_each(|place| place.home.cut(until_ms));
        }
    }

    /// A message that was delivered too often becomes a dead letter.
    pub(super) fn gives_up(&mut self, group: Group) {
        let spent = |entry: &mut Entry| entry.receives >= DELIVERIES_MAX;
        if let Some(dead) = self.queue(group).pop_front_if(spent) {
            self.met.insert("dead letter");
            self.sweep_is_done(group, &dead.message);
            // The dead letter of a notice's message is still there; sweeps repeat by themselves.
            if matches!(
                dead.message.work,
                Work::Prompt(_)
                    | Work::Reset { .. }
                    | Work::Name { .. }
                    | Work::Connect { .. }
                    | Work::Publish { .. }
            ) {
                self.places[group.place].letters.push(dead.message);
            }
        }
    }

    /// When a group's sweeps are due.
    pub(super) fn due(&mut self, group: Group) -> &mut Due {
        let here = &mut self.places[group.place];
        if group.of_sandbox { &mut here.home.due } else { &mut here.due }
    }

    /// The sweeper may send the next one.
    pub(super) fn sweep_is_done(&mut self, group: Group, sweep: &Message) {
        let now_ms = self.now_ms;
        if sweep.is_marked() {
            self.due(group).is_done(&sweep.id, now_ms);
        }
    }

    /// A dead letter is kept until its notice is on record; until then the notice is sent again.
    pub(super) fn tell_dead(&mut self, place: usize) {
        let letters = std::mem::take(&mut self.places[place].letters);
        for dead in letters {
            if self.places[place].has_ended(&dead.id) {
                continue;
            }
            let prompt = dead.prompt_of(&dead.id).map(|prompt| {
                Box::new(DeadPrompt { accepted_at_ms: dead.accepted_at_ms, prompt: prompt.clone() })
            });
            let notice = Message {
                id: format!("bury-{}", dead.id).into(),
                thread: dead.thread.clone(),
                accepted_at_ms: self.now_ms,
                work: Work::DeadLetter { turn: dead.id.clone(), prompt },
            };
            self.send(notice);
            if !self.letters_go_unread {
                self.places[place].letters.push(dead);
            }
        }
    }

    /// Whether trouble may occur now.
    pub fn troubled(&self) -> bool {
        matches!(self.trouble, Trouble::Dice { until_ms } if self.now_ms < until_ms)
    }

    /// How long this worker's message stays invisible, by its last heartbeat.
    pub fn visible_until_ms(&self, token: u64, limits: &Limits) -> Ms {
        let Some(receipt) = self.receipts.get(&token) else {
            return 0;
        };
        if !self.holds(token) {
            return 0;
        }
        let now_ms = receipt.frozen_ms.unwrap_or(self.now_ms);
        let beats = (now_ms - receipt.began_ms) / limits.poll.heartbeat_ms;
        receipt.began_ms + beats * limits.poll.heartbeat_ms + limits.poll.visibility_ms
    }

    /// When a sandbox was created, relative to all; one that the provider does not list yet comes last.
    pub fn made(&self, place: usize, generation: u32) -> (Ms, usize, u32) {
        let sandbox = self.places[place].home.sandboxes.get(&generation);
        let created_ms = sandbox.map_or(Ms::MAX, |sandbox| sandbox.created_ms);
        (created_ms, place, generation)
    }

    pub(super) fn holds(&self, token: u64) -> bool {
        let Some(receipt) = self.receipts.get(&token) else {
            return false;
        };
        let here = &self.places[receipt.group.place];
        let of_sandbox = receipt.group.of_sandbox;
        let queue = if of_sandbox { &here.home.queue } else { &here.queue };
        let head = queue.front();
        head.is_some_and(|entry| entry.holder == Some(token))
    }

    /// Freezes the process and its heartbeat.
    pub fn freeze(&mut self, token: u64) {
        let now_ms = self.now_ms;
        if let Some(receipt) = self.receipts.get_mut(&token) {
            receipt.frozen_ms = Some(now_ms);
            self.frozen.insert(token);
        }
    }

    /// Thaws the process; its heartbeat too, if nobody else has the message by now.
    pub fn thaw(&mut self, token: u64, limits: &Limits) {
        if self.visible_until_ms(token, limits) > self.now_ms
            && let Some(receipt) = self.receipts.get_mut(&token)
        {
            receipt.frozen_ms = None;
            self.frozen.remove(&token);
        }
    }

    pub fn is_frozen(&self, token: u64) -> bool {
        self.receipts.get(&token).is_some_and(|receipt| receipt.frozen_ms == Some(self.now_ms))
    }

    pub fn is_dying(&self, token: u64) -> bool {
        self.dying.contains(&token)
    }

    pub fn kill(&mut self, token: u64) {
        self.met.insert("crash");
        self.dying.insert(token);
    }

    /// The running task continues at this time.
    pub fn wake_at(&mut self, at_ms: Ms) {
        self.wakes.push(Reverse((at_ms, self.working)));
    }

    /// A sandbox's group gets a wake-up at this time.
    pub fn wake_up_at(&mut self, place: usize, at_ms: Ms) {
        self.places[place].home.wake_ms = Some(at_ms);
        self.wake_ups.push(Reverse((at_ms, place)));
    }

    /// This group's head or its time may have changed.
    pub(super) fn touch(&mut self, group: Group) {
        let head = self.queue(group).front();
        if let Some(at_ms) = head.and_then(Entry::waits_until_ms) {
            self.heads.push(Reverse((at_ms, group)));
        }
    }

    /// When the next head can be received.
    pub(super) fn next_head_ms(&mut self) -> Option<Ms> {
        while let Some(Reverse((at_ms, group))) = self.heads.peek().copied() {
            let head = self.queue(group).front();
            if head.and_then(Entry::waits_until_ms) == Some(at_ms) {
                return Some(at_ms);
            }
            self.heads.pop();
        }
        None
    }

    /// A person stops everything: one flag for all that waits, announced or not, and a stop of the running turn.
    pub(super) fn stop_all(&mut self, place: usize) {
        let all = StoppedAll {
            by: Person { id: "bob".into(), name: "bob".into() },
            until_ms: self.now_ms,
        };
        let here = &mut self.places[place];
        let id = format!("all-{}", self.now_ms).as_str().into();
        here.flags.stopped_all.insert(id, all);
        let running = here.record.as_ref().and_then(|it| it.turn.as_ref());
        if let Some(turn) = running.map(|turn| turn.id.clone()) {
            self.stop(place, &turn);
        }
    }

    /// A person stops a turn: the flag and the abort.
    pub(super) fn stop(&mut self, place: usize, turn: &TurnId) {
        let here = &mut self.places[place];
        if !here.has_ended(turn) && here.turns.iter().any(|known| known == turn) {
            let by = Person { id: "bob".into(), name: "bob".into() };
            here.flags.cancelled.insert(turn.to_owned(), by);
            if here.wish_for_running(self.now_ms) {
                self.met.insert("brought forward");
                let of_sandbox = false;
                self.touch(Group { place, of_sandbox });
            }
            let here = &self.places[place];
            if let Some(abort) = here.to_abort(turn) {
                let now_ms = self.now_ms;
                let late_ms = if self.troubled() { self.dice.below(20_000) } else { 0 };
                let is_turn = false;
                let spot = (Caller { place, is_turn }, self.home_of(place));
                match late_ms {
                    0 => self.land(spot, abort),
                    _ => self.later.push((now_ms + late_ms, spot, abort)),
                }
            }
        }
    }

    /// Puts a message into its group, unless the queue knows its id.
    pub fn send(&mut self, message: Message) {
        let now_ms = self.now_ms;
        let group = Group {
            place: self.place_of(&message.thread),
            of_sandbox: !message.thread.is_conversation(),
        };
        let place = group.place;
        let here = &mut self.places[place];
        here.known_ids.retain(|_, at| *at + DEDUPLICATION_MS > now_ms);
        // A repeat does not extend the queue's memory.
        if here.known_ids.contains_key(&message.id) {
            return;
        }
        here.known_ids.insert(message.id.clone(), now_ms);
        let accepted = match &message.work {
            Work::Prompt(_) => Some(Request::Prompt),
            Work::Reset { .. } | Work::Name { .. } | Work::Connect { .. } => Some(Request::Notice),
            Work::Publish { .. } => Some(Request::Publication),
            Work::Operate { .. } | Work::Create(_) => Some(Request::Operation),
            Work::Sweep
            | Work::Poll
            | Work::Reconcile
            | Work::Build(_)
            | Work::DeadLetter { .. } => None,
        };
        match &message.work {
            Work::Operate { want, .. } => drop(self.met.insert(want.word())),
            Work::Create(_) => drop(self.met.insert("create")),
            Work::Build(_) => drop(self.met.insert("build")),
            Work::Name { .. } => drop(self.met.insert("name")),
            Work::Connect { .. } => drop(self.met.insert("connect")),
            Work::Publish { step: PublishStep::Show { .. }, .. } => {
                self.met.insert("propose");
            }
            Work::Publish { step: PublishStep::Push { .. }, .. } => {
                self.met.insert("press");
            }
            _ => {}
        }
        if let Some(kind) = accepted {
            if here.turns.contains(&message.id) {
                self.met.insert("duplicate");
            } else {
                here.turns.push(message.id.clone());
                here.history.accepted.push(kind);
            }
        }
        if let (Work::Prompt(prompt), true) = (&message.work, self.announcer.is_some()) {
            let begins = Announcing::Begins(message.id.clone(), prompt.clone());
            self.announces_later(place, Some(begins), 0);
        }
        self.queue(group).push_back(Entry {
            message,
            receives: 0,
            visible_ms: now_ms,
            holder: None,
            last: 0,
        });
        self.touch(group);
    }
}

/// Nothing goes wrong any more, no sandbox is an orphan, and no record waits for a sweep to leave a temporary phase.
pub fn settled(inner: &Inner) -> bool {
    let passing = |place: &SimThread| {
        let phase = place.phase().map(|(phase, _)| phase);
        matches!(
            phase,
            Some(Phase::Creating | Phase::Resuming | Phase::Pausing | Phase::Destroying)
        )
    };
    // Do not wait for an abandoned run whose sandbox is not at work.
    let astray = |place: &SimThread| {
        let record = place.record.as_ref();
        let is_up = matches!(place.phase(), Some((Phase::Active | Phase::Resuming, _)));
        is_up
            && record.is_some_and(|session| session.stray.is_some() && session.due_at_ms.is_some())
    };
    // What a thread could not be told is retried until it succeeds.
    let untold = |place: &SimThread| {
        let record = place.record.as_ref();
        record.is_some_and(|session| !session.untold.is_empty())
    };
    !inner.troubled()
        && !inner.places.iter().any(has_orphan)
        && !inner.places.iter().any(|place| passing(place) || astray(place) || untold(place))
}

fn has_orphan(place: &SimThread) -> bool {
    let record = place.home.record.as_ref();
    let orphan = |generation: &u32| is_orphan(record, *generation, 0, 1, 0);
    place.home.is_hiding() || place.home.sandboxes.keys().any(orphan)
}

/// No record is due any more.
pub fn nothing_due(inner: &Inner) -> bool {
    inner.places.iter().all(|place| {
        let phase = place.phase().map(|(phase, _)| phase);
        matches!(phase, None | Some(Phase::Destroyed | Phase::Error))
            && place.home.sandboxes.is_empty()
    })
}
