//! The product's `decide`, one await at a time, as `drive` calls it. Sessions and effects are kept once and named by
//! numbers, and what `decide` once said is remembered, so that a state of the model is a few bytes.
//!
//! Time stands still at [`NOW`]: when it passes, every time on record moves back instead ([`Driver::shift`]).

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bobbin_core::decide::{Context, Decision, Next, decide};
use bobbin_core::drive::Delivery;
use bobbin_core::effect::Effect;
use bobbin_core::event::Event;
use bobbin_core::ids::{Ms, PromptIds, ThreadKey};
use bobbin_core::limits::Limits;
use bobbin_core::message::{DeadPrompt, Message, Operation, Prompt, Work};
use bobbin_core::person::{Person, Standing};
use bobbin_core::selection::Selection;
use bobbin_core::session::{Marks, Queued, Session, Stage};
use bobbin_core::settings::Settings;

use super::super::transitions::Transition;

/// The present time, always.
pub const NOW: Ms = 1_000_000;
/// Times further back are all the same.
const PAST_MS: u64 = 1_000;

/// Small bounds, so that every one of them can be met.
pub const LIMITS: Limits = Limits {
    idle_pause_ms: 100,
    stale_grace_ms: 10,
    paused_ttl_ms: 100,
    create_ms: 50,
    start_ms: 50,
    turn_ms: 300,
    slice_ms: 10,
    visibility_ms: 20,
    heartbeat_ms: 10,
    lifecycle_call_ms: 5,
    stop_ms: 30,
    poll_ms: 1,
    attempts: 3,
    // Counting a tenant's sandboxes changes nothing here and would double the states: the seeded histories do it.
    tenant_sandboxes: 0,
    timeline: 0,
    ..Limits::DEFAULT
};

/// The minting under which a prompt is sent into the run of another turn.
pub const STEERED_MINT: u8 = 7;

/// A numbered set.
struct Table<T> {
    all: Vec<Arc<T>>,
    numbers: HashMap<Arc<T>, u32>,
}

impl<T: Hash + Eq> Table<T> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let (value, number) = (
            Arc::new(value),
            u32::try_from(self.all.len()).expect("fewer than 4 billion"),
        );
        self.all.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }
}

/// Number of a session.
pub type SessionNo = u32;
/// Number of an effect.
pub type EffectNo = u32;

/// A message of the model: its place in the order of acceptance, or a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    Message(u8),
    /// The burial of a message that ended among the dead letters.
    Burial(u8),
    Sweep,
}

/// What comes after a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    Do(EffectNo),
    /// Work and card at the same time.
    Both(EffectNo, EffectNo),
    Done,
    Hold,
}

/// What `decide` is asked besides session and event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asked {
    pub item: Item,
    /// Tells deliveries of one item apart.
    pub delivery: u8,
    /// The message is visible to others again.
    pub lapsed: bool,
    /// Bit n: message n carries a cancel mark.
    pub marks: u8,
    /// How often ids were minted for this item: each time other ones, as time passes.
    pub mints: u8,
}

/// A decision, in numbers.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub session: SessionNo,
    /// The stored part changed: it has to be saved first.
    pub save: bool,
    pub plan: Plan,
    /// Ids were minted.
    pub minted: bool,
}

struct Tables {
    sessions: Table<Session>,
    effects: Table<Effect>,
    events: Table<Event>,
    steps: HashMap<(SessionNo, u32, Asked), Step>,
    shifts: HashMap<(SessionNo, u64), SessionNo>,
    transitions: BTreeSet<Transition>,
}

/// See the module.
pub struct Driver {
    messages: Vec<Message>,
    burials: Vec<Message>,
    sweep: Message,
    tables: Mutex<Tables>,
}

/// What is accepted, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prompt,
    Reset,
    Operate(Operation),
}

fn person() -> Person {
    Person {
        id: "ann".into(),
        name: "ann".into(),
    }
}

impl Driver {
    pub fn new(kinds: &[Kind]) -> Self {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let message = |id: String, work| Message {
            id,
            thread: thread.clone(),
            accepted_at_ms: NOW,
            work,
        };
        let messages = kinds.iter().enumerate().map(|(at, kind)| {
            let work = match kind {
                Kind::Prompt => Work::Prompt(Prompt {
                    text: "do".into(),
                    by: person(),
                    wants: Selection {
                        repo: Some("acme/api".to_owned()),
                        ..Selection::default()
                    },
                    ..Prompt::default()
                }),
                Kind::Operate(want) => Work::Operate { want: *want },
                Kind::Reset => Work::Reset {
                    by: person(),
                    standing: Standing::default(),
                },
            };
            message(format!("m{at}"), work)
        });
        let messages: Vec<Message> = messages.collect();
        let burials = messages.iter().map(|dead| {
            let prompt = dead.prompt_of(&dead.id).map(|prompt| {
                Box::new(DeadPrompt {
                    accepted_at_ms: NOW,
                    prompt: prompt.clone(),
                })
            });
            let turn = dead.id.clone();
            message(format!("b{}", dead.id), Work::Bury { turn, prompt })
        });
        let mut tables = Tables {
            sessions: Table::new(),
            effects: Table::new(),
            events: Table::new(),
            steps: HashMap::new(),
            shifts: HashMap::new(),
            transitions: BTreeSet::new(),
        };
        // Number 0: nothing is stored.
        tables.sessions.number(Session::new(thread.clone(), NOW));
        Self {
            burials: burials.collect(),
            messages: messages.clone(),
            sweep: message("sweep".into(), Work::Sweep),
            tables: Mutex::new(tables),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn session(&self, number: SessionNo) -> Arc<Session> {
        Arc::clone(&self.tables().sessions.all[number as usize])
    }

    pub fn effect(&self, number: EffectNo) -> Arc<Effect> {
        Arc::clone(&self.tables().effects.all[number as usize])
    }

    pub fn event_no(&self, event: Event) -> u32 {
        self.tables().events.number(event)
    }

    pub fn event(&self, number: u32) -> Event {
        (*self.tables().events.all[number as usize]).clone()
    }

    /// The transitions that were decided on so far.
    pub fn transitions(&self) -> BTreeSet<Transition> {
        self.tables().transitions.clone()
    }

    /// The highest version that any session came to.
    pub fn version_most(&self) -> u64 {
        self.tables()
            .sessions
            .all
            .iter()
            .map(|session| session.version)
            .max()
            .unwrap_or(0)
    }

    /// A changed copy of a session.
    pub fn changed(&self, number: SessionNo, change: impl FnOnce(&mut Session)) -> SessionNo {
        let mut session = (*self.session(number)).clone();
        change(&mut session);
        self.tables().sessions.number(session)
    }

    /// Lets time pass for a session.
    pub fn shift(&self, number: SessionNo, by_ms: u64) -> SessionNo {
        if let Some(shifted) = self.tables().shifts.get(&(number, by_ms)) {
            return *shifted;
        }
        let back = |at: &mut Ms| *at = at.saturating_sub(by_ms).max(NOW - PAST_MS);
        let shifted = self.changed(number, |session| {
            back(&mut session.phase_since_ms);
            back(&mut session.last_activity_ms);
            session.due_at_ms.as_mut().map(back);
            session.wake_at_ms.as_mut().map(back);
            if let Some(lease) = &mut session.lease {
                back(&mut lease.until_ms);
            }
            session.seen.stop_asked_ms.as_mut().map(back);
            if let Some(turn) = &mut session.turn {
                turn.card_since_ms.as_mut().map(back);
            }
            session
                .turn
                .as_mut()
                .and_then(|turn| turn.prompted_at_ms.as_mut())
                .map(back);
        });
        self.tables().shifts.insert((number, by_ms), shifted);
        shifted
    }

    fn message(&self, item: Item) -> &Message {
        match item {
            Item::Message(at) => &self.messages[usize::from(at)],
            Item::Burial(at) => &self.burials[usize::from(at)],
            Item::Sweep => &self.sweep,
        }
    }

    /// Asks the product.
    pub fn decide(&self, session: SessionNo, event: Event, asked: Asked) -> Step {
        let mut tables = self.tables();
        let event_no = tables.events.number(event.clone());
        if let Some(step) = tables.steps.get(&(session, event_no, asked)) {
            return *step;
        }
        let before = Arc::clone(&tables.sessions.all[session as usize]);
        drop(tables);
        let message = self.message(asked.item);
        let delivery = Delivery {
            message,
            id: delivery_id(message, asked.delivery),
            receive: 1,
            slice_until_ms: NOW,
            model: "",
            providers: &[],
            limits: &LIMITS,
            split: |text| vec![text.to_owned()],
        };
        let mut marks = Marks::default();
        for (at, message) in self.messages.iter().enumerate() {
            if asked.marks & (1 << at) != 0 {
                marks.cancelled.insert(message.id.clone(), person());
            }
        }
        let visible_until_ms = if asked.lapsed {
            NOW
        } else {
            NOW + LIMITS.visibility_ms
        };
        let transition = Transition::before(before.phase, &message.work, &event);
        let Decision {
            session: mut after,
            next,
        } = decide(
            (*before).clone(),
            event,
            &Context {
                now_ms: NOW,
                visible_until_ms,
                delivery: &delivery,
                marks: &marks,
                settings: &Settings::default(),
            },
        );
        let transition = transition.after(after.phase);
        let had_ids = before
            .turn
            .as_ref()
            .is_some_and(|turn| turn.prompt_ids.is_some());
        let mut minted = false;
        if let Some(ids) = after
            .turn
            .as_mut()
            .and_then(|turn| turn.prompt_ids.as_mut())
            && !had_ids
        {
            *ids = PromptIds {
                message: format!("msg-{}-{}", message.id, asked.mints),
                part: String::new(),
            };
            minted = true;
        }
        // Under ids of its own, so that a prompt that was sent into a run and then again in its own turn is seen as two.
        let mut renamed = Vec::new();
        for steered in after.turn.iter_mut().flat_map(|turn| &mut turn.steered) {
            let name = format!("msg-{}-{STEERED_MINT}", steered.turn);
            renamed.push((
                std::mem::replace(&mut steered.ids.message, name.clone()),
                name,
            ));
            steered.ids.part.clear();
            steered.accepted_at_ms = 0;
        }
        for ended in &mut after.ended {
            ended.at_ms = 0;
        }
        after.fresh_since_ms = 0;
        after.seen.entries.clear();
        let save = !after.same_record(&before);
        let own = after.turn.as_ref().and_then(|turn| turn.prompt_ids.clone());
        let named = |mut effect: Effect| {
            let before: Vec<&mut String> = match &mut effect {
                Effect::SendPrompt { ids, .. } => vec![&mut ids.message],
                Effect::FindPrompt { message, .. } => vec![message],
                Effect::Abort {
                    message, messages, ..
                } => messages.iter_mut().chain([message]).collect(),
                _ => return effect,
            };
            for before in before {
                let steered = renamed.iter().find(|(minted, _)| minted == before);
                *before = match (steered, &own) {
                    (Some((_, name)), _) => name.clone(),
                    (None, Some(own)) => own.message.clone(),
                    (None, None) => String::new(),
                };
            }
            if let Effect::SendPrompt { ids, .. } = &mut effect {
                ids.part.clear();
            }
            effect
        };
        let mut tables = self.tables();
        tables.transitions.insert(transition);
        let plan = match next {
            Next::Do(effect) => Plan::Do(tables.effects.number(named(effect))),
            Next::Together { work, card } => {
                let work = tables.effects.number(named(work));
                Plan::Both(work, tables.effects.number(card))
            }
            Next::Done => Plan::Done,
            Next::Hold { .. } => Plan::Hold,
        };
        let step = Step {
            session: tables.sessions.number(after),
            save,
            plan,
            minted,
        };
        tables.steps.insert((session, event_no, asked), step);
        step
    }

    /// The id of a message.
    pub fn id_of(&self, message: u8) -> &str {
        &self.messages[usize::from(message)].id
    }

    /// The mark of a message that waits.
    pub fn queued(&self, message: u8) -> Queued {
        let message = &self.messages[usize::from(message)];
        let prompt = match &message.work {
            Work::Prompt(prompt) => Some(Box::new(prompt.clone())),
            _ => None,
        };
        Queued {
            by: person(),
            accepted_at_ms: 0,
            card: None,
            refused: false,
            prompt,
        }
    }

    /// Which message a turn belongs to, or what is said at a message's burial.
    pub fn turn_of(&self, id: &str) -> Option<u8> {
        let id = id.strip_prefix('b').unwrap_or(id);
        let at = self.messages.iter().position(|message| message.id == id)?;
        u8::try_from(at).ok()
    }

    /// A number for the delivery that no holder of a lease has.
    pub fn fresh_delivery(&self, record: SessionNo, item: Item, other: Option<u8>) -> u8 {
        let session = self.session(record);
        let message = self.message(item);
        (0..=2)
            .find(|number| {
                Some(*number) != other
                    && session
                        .lease
                        .as_ref()
                        .is_none_or(|lease| lease.holder != delivery_id(message, *number))
            })
            .expect("two are taken at most")
    }
}

fn delivery_id(message: &Message, delivery: u8) -> String {
    format!("{}#{delivery}", message.id)
}

/// Whether the agent may have this turn's prompt.
pub fn with_agent(session: &Session) -> bool {
    session
        .turn
        .as_ref()
        .is_some_and(|turn| matches!(turn.stage, Stage::Prompting | Stage::Running))
}
