//! The product's machine of one delivery, as `drive` runs it. Records, machines and outcomes are stored once and have
//! numbers, and a machine's reaction to an outcome is remembered, so that a state of the model takes a few bytes.
//!
//! Time stands still at [`NOW`]: when it passes, every time on record moves back instead ([`Driver::shift`]).

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::base::limits::{
    Limits, PollLimits, RecordLimits, RetryLimits, SandboxLimits, SetUpLimits, ShareLimits,
    TenantLimits, TurnLimits,
};
use bobbin_core::base::names::PromptIds;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::protocol::decide::Next;
use bobbin_core::protocol::drive::Delivery;
use bobbin_core::protocol::effect::{AgentEffect, Effect};
use bobbin_core::protocol::event::{Cause, Event};
use bobbin_core::protocol::machine::{Machine, Now, Step, StepOutcome};
use bobbin_core::protocol::ports::{Loaded, Saved};
use bobbin_core::records::control::Operation;
use bobbin_core::records::flags::{ControlFlags, Queued};
use bobbin_core::records::message::{DeadPrompt, Message, Prompt, Work};
use bobbin_core::records::parked::{Parked, Seen};
use bobbin_core::records::session::Session;
use bobbin_core::records::stage::{Prompted, Stage};
use bobbin_core::tenant::budgets::{BudgetScope, Budgets, MicroUsd, month};
use bobbin_core::tenant::environments::OFF;
use bobbin_core::tenant::repositories::{ALL, BoundForge};
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::Settings;

use super::super::transitions::Transition;

/// The number of every delivery of its message: the model itself records which ones returned it.
const RECEIVE: u32 = 1;

/// The current time, always.
pub const NOW: Ms = 10_000_000;
/// Times further back are all the same.
const PAST_MS: u64 = 1_000;
/// The version of everything stored, if a state must not count writes.
pub const PRESENT: u64 = 100;
/// The version of everything outdated.
pub const PAST: u64 = 99;

/// Small limits, so that each can be reached.
pub const LIMITS: Limits = Limits {
    sandbox: SandboxLimits {
        idle_pause_ms: 100,
        stale_grace_ms: 10,
        paused_ttl_ms: 100,
        create_ms: 50,
        start_ms: 50,
        stop_ms: 30,
        lifecycle_call_ms: 5,
        // A new sandbox exists at once or never.
        appear_ms: 0,
        ..SandboxLimits::DEFAULT
    },
    // Histories and crash points cover set-ups; here they would only multiply the states.
    set_up: SetUpLimits { all_ms: 0, ..SetUpLimits::DEFAULT },
    share: ShareLimits {
        // The age of a message ([`Item::Aged`]) bounds the polls of who works in a sandbox.
        busy_ms: 100_000,
        ..ShareLimits::DEFAULT
    },
    turn: TurnLimits {
        turn_ms: 300,
        clone_ms: 10,
        carry_ms: 10,
        health_start_ms: 10,
        ..TurnLimits::DEFAULT
    },
    poll: PollLimits {
        poll_ms: 1,
        hold_ms: 10,
        look_ms_min: 1,
        look_ms_max: 5,
        visibility_ms: 20,
        heartbeat_ms: 10,
    },
    retry: RetryLimits { attempts: 3, backoff_ms_max: 20, ..RetryLimits::DEFAULT },
    record: RecordLimits { timeline: 0, ..RecordLimits::DEFAULT },
    tenant: TenantLimits {
        // Counting a tenant's sandboxes changes nothing here and would double the states: the seeded histories cover
        // it.
        sandboxes: 0,
        ..TenantLimits::DEFAULT
    },
    ..Limits::DEFAULT
};

/// The minting of ids for a prompt that is sent into another turn's run.
pub const STEERED_MINT: u8 = 7;

/// A numbered set.
struct Table<T> {
    all: Vec<Arc<T>>,
    numbers: HashMap<Arc<T>, u32>,
}

impl<T: Hash + Eq> Table<T> {
    fn new() -> Self {
        Self { all: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let (value, number) =
            (Arc::new(value), u32::try_from(self.all.len()).expect("fewer than 4 billion"));
        self.all.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }
}

/// Number of a record.
pub type SessionNo = u32;
/// Number of a machine.
pub type MachineNo = u32;
/// Number of an event.
pub type EventNo = u32;

/// The start of every delivery.
pub const START: MachineNo = 0;

/// A message of the model: its place in the order of acceptance, or a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    Message(u8),
    /// The same, accepted long ago.
    Aged(u8),
    /// The notice of a dead-lettered message.
    DeadLetter(u8),
    Sweep,
}

/// The worker and time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asked {
    pub item: Item,
    /// Distinguishes deliveries of one item.
    pub delivery: u8,
    /// The message is visible to others again.
    pub lapsed: bool,
    /// How often ids were minted for this item: new ones each time, as time passes.
    pub mints: u8,
}

/// The result of a step, in numbers; bit n of the control flags: message n has a cancel flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepResult {
    Read {
        record: SessionNo,
        flags: u8,
        /// The delivery before has left its state.
        parked: bool,
    },
    /// The same after managers have switched the project's set-up off.
    ReadOff {
        record: SessionNo,
    },
    Parked {
        flags: u8,
    },
    Written {
        flags: u8,
    },
    Conflict,
    /// The tenant's month has used this much.
    OverBudget {
        used: MicroUsd,
    },
    Done(EventNo),
    /// The results of a piece of work and its card.
    Both(EventNo, EventNo),
}

/// The machine after that.
#[derive(Debug, Clone, Copy)]
pub struct After {
    pub machine: MachineNo,
    /// Ids were minted.
    pub minted: bool,
}

struct Tables {
    sessions: Table<Session>,
    machines: Table<Machine>,
    events: Table<Event>,
    steps: HashMap<(MachineNo, StepResult, Asked), After>,
    transitions: BTreeSet<Transition>,
}

/// See the module.
pub struct Driver {
    messages: Vec<Message>,
    aged: Vec<Message>,
    notices: Vec<Message>,
    sweep: Message,
    /// The stack's runtime mode.
    runtime: RuntimeMode,
    /// The forge, and what it has open to its tenant.
    forge: Option<BoundForge>,
    settings: Settings,
    /// The same after managers have switched a project's set-up off.
    off: Settings,
    limits: &'static Limits,
    tables: Mutex<Tables>,
}

/// The accepted messages, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prompt,
    Reset,
    Operate(Operation),
}

/// A prompt for a sandbox with this repository.
pub fn prompt(repo: Option<&str>) -> Work {
    Work::Prompt(Prompt {
        text: "do".into(),
        by: person(),
        wants: Selection { repo: repo.map(str::to_owned), ..Selection::default() },
        ..Prompt::default()
    })
}

/// The person who says everything.
pub fn person() -> Person {
    Person { id: "ann".into(), name: "ann".into() }
}

impl Driver {
    /// A driver for one thread.
    pub fn new(kinds: &[Kind], runtime: RuntimeMode) -> Self {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let work = |kind: &Kind| match kind {
            Kind::Prompt => prompt(Some("acme/api")),
            Kind::Operate(want) => Work::Operate { want: *want, by: None },
            Kind::Reset => {
                Work::Reset { by: person(), membership: Membership::default(), keeps_files: false }
            }
        };
        let all = kinds.iter().map(|kind| (thread.clone(), work(kind)));
        Self { runtime, ..Self::of(&thread, all) }
    }

    /// A driver for messages of several groups.
    pub fn of(thread: &ThreadKey, all: impl Iterator<Item = (ThreadKey, Work)>) -> Self {
        let message = |id: String, work| Message {
            id: id.into(),
            thread: thread.clone(),
            accepted_at_ms: NOW,
            work,
        };
        let messages = all
            .enumerate()
            .map(|(at, (thread, work))| Message { thread, ..message(format!("m{at}"), work) });
        let messages: Vec<Message> = messages.collect();
        let aged = messages.iter().map(|message| Message {
            accepted_at_ms: NOW - 2 * LIMITS.share.busy_ms,
            ..message.clone()
        });
        let notices = messages.iter().map(|dead| {
            let prompt = dead
                .prompt_of(&dead.id)
                .map(|prompt| Box::new(DeadPrompt { accepted_at_ms: NOW, prompt: prompt.clone() }));
            let turn = dead.id.clone();
            message(format!("b{}", dead.id), Work::DeadLetter { turn, prompt })
        });
        let mut tables = Tables {
            sessions: Table::new(),
            machines: Table::new(),
            events: Table::new(),
            steps: HashMap::new(),
            transitions: BTreeSet::new(),
        };
        // Number 0: nothing is stored.
        tables.sessions.number(Session::new(thread.clone(), NOW));
        tables.machines.number(Machine::Start);
        Self {
            aged: aged.collect(),
            notices: notices.collect(),
            messages: messages.clone(),
            sweep: message("sweep".into(), Work::Sweep),
            runtime: RuntimeMode::OpenCode,
            forge: None,
            settings: Settings::default(),
            off: Settings::default(),
            limits: &LIMITS,
            tables: Mutex::new(tables),
        }
    }

    /// Adds a forge whose repositories are open to everybody.
    pub fn at_forge(mut self, forge: BoundForge) -> Self {
        self.forge = Some(forge);
        self.settings.repositories.open(None, ALL.to_owned());
        self
    }

    /// Sets other limits.
    pub fn within(self, limits: &'static Limits) -> Self {
        Self { limits, ..self }
    }

    /// Lets managers switch this repository's set-up off.
    pub fn with_switch(mut self, repository: &str) -> Self {
        self.off.environments.set(repository, OFF);
        self
    }

    /// All accepted messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Sets these budgets from now on.
    pub fn set_budgets(&mut self, budgets: Budgets) {
        self.settings.budgets = budgets;
        self.tables().steps.clear();
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn session(&self, number: SessionNo) -> Arc<Session> {
        Arc::clone(&self.tables().sessions.all[number as usize])
    }

    pub fn machine(&self, number: MachineNo) -> Arc<Machine> {
        Arc::clone(&self.tables().machines.all[number as usize])
    }

    pub fn event_no(&self, event: Event) -> EventNo {
        self.tables().events.number(event)
    }

    fn event(&self, number: EventNo) -> Event {
        (*self.tables().events.all[number as usize]).clone()
    }

    /// The transitions decided so far.
    pub fn transitions(&self) -> BTreeSet<Transition> {
        self.tables().transitions.clone()
    }

    /// The highest version of any session.
    pub fn version_most(&self) -> u64 {
        self.tables().sessions.all.iter().map(|session| session.version).max().unwrap_or(0)
    }

    /// The number of a record.
    pub fn session_no(&self, session: Session) -> SessionNo {
        self.tables().sessions.number(session)
    }

    /// The number of a machine.
    pub fn machine_no(&self, machine: Machine) -> MachineNo {
        self.tables().machines.number(machine)
    }

    /// Lets time pass for a record.
    pub fn shift(&self, number: SessionNo, by_ms: u64) -> SessionNo {
        let mut session = (*self.session(number)).clone();
        shift(&mut session, by_ms);
        self.session_no(session)
    }

    /// Lets time pass for a machine's knowledge.
    pub fn shift_machine(&self, number: MachineNo, by_ms: u64) -> MachineNo {
        let mut machine = (*self.machine(number)).clone();
        match &mut machine {
            Machine::Start | Machine::End(_) => {}
            Machine::Reread { known, .. }
            | Machine::Overtaken { known, .. }
            | Machine::Act { known, .. } => {
                shift(&mut known.session, by_ms);
            }
            Machine::Write { known, decision, .. } => {
                shift(&mut known.session, by_ms);
                shift(&mut decision.session, by_ms);
            }
        }
        self.machine_no(machine)
    }

    fn message(&self, item: Item) -> &Message {
        match item {
            Item::Message(at) => &self.messages[usize::from(at)],
            Item::Aged(at) => &self.aged[usize::from(at)],
            Item::DeadLetter(at) => &self.notices[usize::from(at)],
            Item::Sweep => &self.sweep,
        }
    }

    fn delivery(&self, item: Item, delivery: u8) -> Delivery<'_> {
        let message = self.message(item);
        Delivery {
            message,
            id: delivery_id(message, delivery),
            receive: RECEIVE,
            follow_until_ms: NOW,
            model: "",
            providers: &[],
            runtime: self.runtime,
            forge: self.forge.as_ref(),
            limits: self.limits,
            split: |text| vec![text.to_owned()],
        }
    }

    /// The product's next request.
    pub fn step<'a>(&self, machine: &'a Machine, item: Item, lapsed: bool) -> Step<'a> {
        machine.step(now(lapsed), &self.delivery(item, 0))
    }

    fn flags(&self, bits: u8) -> ControlFlags {
        let marked = (0..).zip(&self.messages);
        let marked =
            marked.filter(|(at, _)| bits.checked_shr(*at).is_some_and(|bits| bits & 1 != 0));
        ControlFlags {
            cancelled: marked.map(|(_, message)| (message.id.clone(), person())).collect(),
            ..ControlFlags::default()
        }
    }

    fn loaded(&self, record: SessionNo, settings: &Settings) -> Loaded {
        let record = self.session(record);
        Loaded {
            session: (record.version > 0 || record.sandbox.version > 0).then(|| (*record).clone()),
            flags: ControlFlags::default(),
            in_ledger: false,
            settings: settings.clone(),
            parked: None,
        }
    }

    fn outcome(&self, came: StepResult, message: &Message) -> StepOutcome {
        match came {
            StepResult::Parked { flags } => StepOutcome::Parked(Some(self.flags(flags))),
            StepResult::Read { record, flags, parked } => {
                let parked = parked.then(|| Parked {
                    turn: message.id.clone(),
                    receive: RECEIVE - 1,
                    at_ms: NOW,
                    until_ms: NOW,
                    seen: Seen::default(),
                });
                let loaded = self.loaded(record, &self.settings);
                StepOutcome::Loaded(Ok(Loaded { flags: self.flags(flags), parked, ..loaded }))
            }
            StepResult::ReadOff { record } => {
                StepOutcome::Loaded(Ok(self.loaded(record, &self.off)))
            }
            StepResult::Written { flags } => {
                StepOutcome::Saved(Ok(Saved::Written(self.flags(flags))))
            }
            StepResult::Conflict => StepOutcome::Saved(Ok(Saved::Conflict)),
            StepResult::OverBudget { used } => {
                let scope = BudgetScope::Tenant { month: month(NOW) };
                StepOutcome::Saved(Ok(Saved::OverBudget { scope, used }))
            }
            StepResult::Done(event) => StepOutcome::Done(self.event(event).into()),
            StepResult::Both(work, card) => {
                let [work, card] = [work, card].map(|event| self.event(event).into());
                StepOutcome::BothDone { work, card }
            }
        }
    }

    /// Gives the product the result.
    pub fn after(&self, machine: MachineNo, came: StepResult, asked: Asked) -> After {
        if let Some(after) = self.tables().steps.get(&(machine, came, asked)) {
            return *after;
        }
        let before = self.machine(machine);
        let delivery = self.delivery(asked.item, asked.delivery);
        let outcome = self.outcome(came, delivery.message);
        // What the decision is about, and the record that it uses.
        let seen = match (&*before, &outcome) {
            (Machine::Start, StepOutcome::Loaded(Ok(found))) => {
                let fresh = || Session::new(delivery.message.thread.clone(), NOW);
                let record = found.session.clone().unwrap_or_else(fresh);
                Some((None, record))
            }
            (Machine::Reread { known, cause }, _) => match &**cause {
                Cause::Done(_, event) => Some((Some(event.clone()), known.session.clone())),
                Cause::Delivered | Cause::Both { .. } => None,
            },
            // The same decision on the sandbox as somebody else left it.
            (Machine::Overtaken { known, cause }, StepOutcome::Loaded(Ok(found))) => {
                let stored = found.session.as_ref();
                let sandbox = stored.map(|stored| stored.sandbox.clone());
                let seen =
                    Session { sandbox: sandbox.unwrap_or_default(), ..known.session.clone() };
                Some((event_of(cause), seen))
            }
            // The same decision again, with the sum known.
            (
                Machine::Write { known, cause, .. },
                StepOutcome::Saved(Ok(Saved::OverBudget { .. })),
            ) => Some((event_of(cause), known.session.clone())),
            // Decisions are made on the work; the card beside it is reported like any other.
            (Machine::Act { known, .. }, StepOutcome::Done(performed))
            | (Machine::Act { known, .. }, StepOutcome::BothDone { work: performed, .. }) => {
                Some((Some(performed.event.clone()), known.session.clone()))
            }
            _ => None,
        };
        let mut after = (*before).clone().after(outcome, now(asked.lapsed), &delivery);
        let mut minted = false;
        // The number of its decisions would distinguish equal places.
        let decided = match &mut after {
            Machine::Write { known, decision, .. } => {
                known.decisions = 0;
                Some((&mut decision.session, &mut decision.next))
            }
            Machine::Act { known, next } => {
                known.decisions = 0;
                Some((&mut known.session, &mut **next))
            }
            Machine::Start
            | Machine::Reread { .. }
            | Machine::Overtaken { .. }
            | Machine::End(_) => None,
        };
        if let (Some((event, record)), Some((session, next))) = (seen, decided) {
            let work = &delivery.message.work;
            let transition = Transition::before(record.sandbox.phase, work, event.as_ref())
                .after(session.sandbox.phase);
            self.tables().transitions.insert(transition);
            let had_ids = record.turn.is_some_and(|turn| turn.stage.ids().is_some());
            let mint = (!had_ids).then(|| format!("msg-{}-{}", delivery.message.id, asked.mints));
            minted = name_ids(session, next, mint);
        }
        let after = After { machine: self.machine_no(after), minted };
        self.tables().steps.insert((machine, came, asked), after);
        after
    }

    /// The id of a message.
    pub fn id_of(&self, message: u8) -> &str {
        &self.messages[usize::from(message)].id
    }

    /// The flag of a waiting message.
    pub fn queued(&self, message: u8) -> Queued {
        let message = &self.messages[usize::from(message)];
        let prompt = match &message.work {
            Work::Prompt(prompt) => Some(Box::new(prompt.clone())),
            _ => None,
        };
        Queued { by: person(), accepted_at_ms: 0, card: None, refused: false, prompt }
    }

    /// The message of a turn, or of what a message's notice says.
    pub fn turn_of(&self, id: &str) -> Option<u8> {
        let id = id.strip_prefix('b').unwrap_or(id);
        let at = self.messages.iter().position(|message| message.id == id)?;
        u8::try_from(at).ok()
    }

    /// A delivery number that no lease holder has.
    pub fn fresh_delivery(&self, record: SessionNo, item: Item, other: Option<u8>) -> u8 {
        let session = self.session(record);
        let message = self.message(item);
        (0..=2)
            .find(|number| {
                Some(*number) != other
                    && session
                        .sandbox
                        .lease
                        .as_ref()
                        .is_none_or(|lease| lease.holder != delivery_id(message, *number))
            })
            .expect("two are taken at most")
    }
}

fn event_of(cause: &Cause) -> Option<Event> {
    match cause {
        Cause::Delivered => None,
        Cause::Done(_, event) | Cause::Both { work: (_, event), .. } => Some(event.clone()),
    }
}

fn now(lapsed: bool) -> Now {
    Now { ms: NOW, visible_until_ms: NOW + if lapsed { 0 } else { LIMITS.poll.visibility_ms } }
}

fn shift(session: &mut Session, by_ms: u64) {
    let back = |at: &mut Ms| *at = at.saturating_sub(by_ms).max(NOW - PAST_MS);
    back(&mut session.sandbox.phase_since_ms);
    back(&mut session.sandbox.last_activity_ms);
    session.due_at_ms.as_mut().map(back);
    session.sandbox.due_at_ms.as_mut().map(back);
    session.sandbox.wake_at_ms.as_mut().map(back);
    if let Some(lease) = &mut session.sandbox.lease {
        back(&mut lease.until_ms);
    }
    for one in &mut session.sandbox.sharing.waiting {
        back(&mut one.until_ms);
    }
    for one in &mut session.sandbox.snapshots {
        back(&mut one.at_ms);
    }
    session.observed.sandbox.stop_asked_ms.as_mut().map(back);
    if let Some(turn) = &mut session.turn {
        turn.card.since_ms.as_mut().map(back);
        if let Some(prompted) = prompted_of(&mut turn.stage) {
            back(&mut prompted.at_ms);
        }
    }
}

fn prompted_of(stage: &mut Stage) -> Option<&mut Prompted> {
    match stage {
        Stage::Prompting(prompted) | Stage::Running(prompted) => Some(prompted),
        Stage::Ending { prompted, .. } => prompted.as_mut(),
        Stage::Received { .. } => None,
    }
}

fn ids_of(stage: &mut Stage) -> Option<&mut PromptIds> {
    match stage {
        Stage::Received { ids } => ids.as_mut(),
        stage => prompted_of(stage).map(|prompted| &mut prompted.ids),
    }
}

/// Gives a decision the model's own prompt ids and removes what would distinguish equal states. Returns whether ids
/// were minted.
fn name_ids(session: &mut Session, next: &mut Next, mint: Option<String>) -> bool {
    let turn = session.turn.as_mut();
    let own = turn.and_then(|turn| ids_of(&mut turn.stage));
    let minted =
        own.zip(mint).map(|(ids, message)| *ids = PromptIds { message, part: String::new() });
    // Under its own ids, so that a prompt sent into a run and again in its own turn is seen as two.
    let mut renamed = Vec::new();
    for steered in session.turn.iter_mut().flat_map(|turn| &mut turn.steered) {
        let name = format!("msg-{}-{STEERED_MINT}", steered.turn);
        renamed.push((std::mem::replace(&mut steered.ids.message, name.clone()), name));
        steered.ids.part.clear();
        steered.accepted_at_ms = 0;
    }
    for ended in &mut session.ended {
        ended.at_ms = 0;
    }
    // How long it has worked there matters only after days.
    for one in &mut session.sandbox.sharing.in_use {
        one.since_ms = NOW;
    }
    session.conversation.fresh_since_ms = 0;
    session.observed.writes.entries.clear();
    let own = session.turn.as_ref();
    let own = own.and_then(|turn| turn.stage.ids());
    let (Next::Do(effect) | Next::Together { work: effect, .. }) = next else {
        return minted.is_some();
    };
    let ids: Vec<&mut String> = match effect {
        Effect::Agent(AgentEffect::SendPrompt { ids, .. }) => {
            ids.part.clear();
            vec![&mut ids.message]
        }
        Effect::Agent(AgentEffect::FindPrompt { message, .. }) => vec![message],
        Effect::Agent(AgentEffect::Abort { message, messages, .. }) => {
            messages.iter_mut().chain([message]).collect()
        }
        _ => Vec::new(),
    };
    for id in ids {
        let steered = renamed.iter().find(|(minted, _)| minted == id);
        *id = match (steered, own) {
            (Some((_, name)), _) => name.clone(),
            (None, Some(own)) => own.message.clone(),
            (None, None) => String::new(),
        };
    }
    minted.is_some()
}

fn delivery_id(message: &Message, delivery: u8) -> String {
    format!("{}#{delivery}", message.id)
}

/// Whether the agent may have this turn's prompt.
pub fn with_agent(session: &Session) -> bool {
    session.turn.as_ref().is_some_and(|turn| turn.stage.is_with_agent())
}

/// A machine's knowledge of its thread and sandbox.
pub fn knows(machine: &Machine) -> Option<&Session> {
    match machine {
        Machine::Start | Machine::End(_) => None,
        Machine::Reread { known, .. }
        | Machine::Write { known, .. }
        | Machine::Overtaken { known, .. }
        | Machine::Act { known, .. } => Some(&known.session),
    }
}

/// Applies this to everything that a machine knows.
pub fn each_known(machine: &mut Machine, mut act: impl FnMut(&mut Session)) {
    match machine {
        Machine::Start | Machine::End(_) => {}
        Machine::Reread { known, .. }
        | Machine::Overtaken { known, .. }
        | Machine::Act { known, .. } => act(&mut known.session),
        Machine::Write { known, decision, .. } => {
            act(&mut known.session);
            act(&mut decision.session);
        }
    }
}
