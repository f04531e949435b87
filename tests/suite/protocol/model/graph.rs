//! The exploration: stateright visits every state and judges the promises; the edges that it walks are kept, and from
//! the converged states the graph is walked backwards, because "from every reachable state convergence is possible"
//! is not a property of one path.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Instant;

use bobbin_core::message::Operation;
use bobbin_core::sandbox::Phase;

use libtest_mimic::{Failed, Trial};
use stateright::{Checker, Expectation, Model, Property};

use super::super::promises::{self, Ending};
use super::super::transitions::Transition;
use super::driver::{Kind, LIMITS};
use super::faults::Fault;
use super::system::{Action, Budget, State, System};
use crate::run::beside;

/// The system and what the checker walked.
struct Walk {
    system: System,
    edges: Mutex<Edges>,
}

#[derive(Default)]
struct Edges {
    numbers: HashMap<u64, u32>,
    /// Nodes from which this one is reached without trouble.
    back: Vec<Vec<u32>>,
    goal: Vec<bool>,
    cut: Vec<bool>,
    /// How the node was first reached.
    via: Vec<Option<(u32, Action)>>,
}

impl Edges {
    fn node(&mut self, state: &State, system: &System, via: Option<(u32, Action)>) -> u32 {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        let key = hasher.finish();
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = u32::try_from(self.back.len()).expect("fewer than 4 billion");
        self.numbers.insert(key, number);
        self.back.push(Vec::new());
        self.goal.push(system.converged(state));
        self.cut.push(!system.within(state));
        self.via.push(via);
        number
    }

    /// Nodes from which no converged one, and no cut one, can be reached without further trouble.
    fn dead_ends(&self) -> Vec<u32> {
        let mut reaches: Vec<bool> = self
            .goal
            .iter()
            .zip(&self.cut)
            .map(|(goal, cut)| *goal || *cut)
            .collect();
        let mut todo: Vec<u32> = (0..)
            .zip(&reaches)
            .filter(|(_, reaches)| **reaches)
            .map(|(node, _)| node)
            .collect();
        while let Some(node) = todo.pop() {
            for before in &self.back[node as usize] {
                if !std::mem::replace(&mut reaches[*before as usize], true) {
                    todo.push(*before);
                }
            }
        }
        (0..)
            .zip(reaches)
            .filter(|(_, reaches)| !reaches)
            .map(|(node, _)| node)
            .collect()
    }

    fn path(&self, mut node: u32) -> Vec<Action> {
        let mut path = Vec::new();
        while let Some((before, action)) = self.via[node as usize] {
            path.push(action);
            node = before;
        }
        path.reverse();
        path
    }
}

fn ended(walk: &Walk, state: &State, ending: Ending) -> bool {
    walk.system
        .record(state)
        .ended
        .iter()
        .any(|turn| Ending::from(&turn.outcome) == ending)
}

/// Bit of a promise in [`State::broken`], by its number in the design.
fn breaks(state: &State, number: u8) -> bool {
    promises::ALL
        .iter()
        .position(|promise| promise.number == number)
        .is_some_and(|at| state.broken & (1 << at) != 0)
}

impl Model for Walk {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.system.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.system.actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let next = self.system.next(last, action);
        let mut edges = self.edges.lock().expect("nobody panics while holding this");
        let from = edges.node(last, &self.system, None);
        let to = edges.node(&next, &self.system, Some((from, action)));
        if !action.is_trouble() && from != to {
            edges.back[to as usize].push(from);
        }
        Some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        self.system.within(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("promise 1", |_, s| !breaks(s, 1)),
            Property::always("promise 3", |_, s| !breaks(s, 3)),
            Property::always("promise 4", |_, s| !breaks(s, 4)),
            Property::always("promise 5", |_, s| !breaks(s, 5)),
            Property::always("promise 6", |_, s| !breaks(s, 6)),
            Property::always("promise 10", |_, s| !breaks(s, 10)),
            Property::always("promise 12", |_, s| !breaks(s, 12)),
            Property::always(STOP, |_, s: &State| !s.stop_ignored),
            Property::always(ANSWERED, |w: &Self, s: &State| !w.system.hides_an_answer(s)),
            Property::always(GIVEN_UP, |w: &Self, s: &State| {
                let killed = usize::from(w.system.budget.kills - s.left.kills);
                killed <= (LIMITS.attempts as usize + 1) * w.system.kinds.len()
            }),
            // Against a pass for want of an occasion.
            Property::sometimes("answered", |w, s| ended(w, s, Ending::Answered)),
            Property::sometimes("answered after a crash", |w: &Self, s: &State| {
                s.left.crashes < w.system.budget.crashes && ended(w, s, Ending::Answered)
            }),
            Property::sometimes("failed", |w, s| ended(w, s, Ending::Failed)),
            Property::sometimes("cancelled", |w, s| ended(w, s, Ending::Cancelled)),
            Property::sometimes("lost", |w, s| ended(w, s, Ending::Lost)),
            Property::sometimes("joined", |w, s| ended(w, s, Ending::Joined)),
            Property::sometimes("sent out of order", |_, s: &State| s.steered == 0b100),
            Property::sometimes("lost together", |w: &Self, s: &State| {
                s.steered != 0
                    && w.system.record(s).turn.is_none()
                    && ended(w, s, Ending::Lost)
                    && !ended(w, s, Ending::Joined)
            }),
            Property::sometimes("a run that was left", |w: &Self, s: &State| {
                w.system.record(s).stray.is_some()
            }),
            Property::sometimes("a letter whose burial died", |w: &Self, s: &State| {
                let dead = (w.system.budget.deaths - s.left.deaths).into();
                s.letters.count_ones() < dead && s.letters != 0 && s.queue.is_empty()
            }),
            Property::sometimes("a hunt of a namesake", |w: &Self, s: &State| {
                s.left.namesakes < w.system.budget.namesakes
            }),
            Property::sometimes("answered after a failure", |w: &Self, s: &State| {
                ended(w, s, Ending::Failed) && ended(w, s, Ending::Answered)
            }),
            Property::sometimes("an abort on its way to the next run", |_, s: &State| {
                s.abort_comes_too_late()
            }),
            Property::sometimes("operated", |w: &Self, s| {
                let record = w.system.record(s);
                record
                    .sandbox
                    .operated
                    .iter()
                    .any(|one| one.trouble.is_none())
            }),
            Property::sometimes("paused", |w: &Self, s| {
                w.system.record(s).sandbox.phase == Phase::Paused
            }),
            Property::sometimes("resumed", |w: &Self, s| {
                w.system.record(s).sandbox.phase == Phase::Resuming
            }),
            Property::sometimes("destroyed", |w: &Self, s| {
                w.system.record(s).sandbox.generation > 0
                    && w.system.record(s).sandbox.phase == Phase::Destroyed
            }),
            Property::sometimes("made anew", |w: &Self, s| {
                w.system.record(s).sandbox.generation > 1
            }),
            Property::sometimes("two at work", |_, s: &State| {
                s.workers.iter().all(Option::is_some)
            }),
            Property::sometimes("arrived late", |_, s: &State| s.late.is_some()),
            Property::sometimes("an orphan found", |_, s: &State| s.finds_orphan()),
            Property::sometimes("converged", |w: &Self, s| w.system.converged(s)),
        ]
    }
}

const STOP: &str = "a stop does not wait for a slice";
const ANSWERED: &str = "what the agent has answered is not told as failed";
const GIVEN_UP: &str = "a run that kills whoever follows it is given up";
/// What the walk backwards finds.
const CONVERGENCE: &str = "promise 9";
/// States of one exploration; more is a mistake in the bounds.
const STATES_MAX: usize = 1_500_000;

/// What an exploration came to.
struct Found {
    states: usize,
    cut: usize,
    version: u64,
    /// Properties that do not hold, with the shortest way there.
    broken: Vec<(&'static str, String)>,
    /// What never came about.
    never: Vec<&'static str>,
}

fn explore(
    kinds: &[Kind],
    budget: Budget,
    fault: Option<Fault>,
) -> Result<(Found, BTreeSet<Transition>), Failed> {
    let walk = Walk {
        system: System::new(kinds, budget, fault),
        edges: Mutex::default(),
    };
    let checker = walk
        .checker()
        .threads(1)
        .target_state_count(STATES_MAX * 4)
        .spawn_bfs()
        .join();
    let walk = checker.model();
    let edges = std::mem::take(&mut *walk.edges.lock().expect("the checker has ended"));
    if !checker.is_done() || edges.back.len() > STATES_MAX {
        return Err(format!("more than {STATES_MAX} states: the bounds are too wide").into());
    }
    let found = checker.discoveries();
    let (mut broken, mut never) = (Vec::new(), Vec::new());
    for property in walk.properties() {
        match (&property.expectation, found.get(property.name)) {
            (Expectation::Always, Some(path)) => {
                broken.push((property.name, format!("{:?}", path.clone().into_actions())))
            }
            (Expectation::Sometimes, None) => never.push(property.name),
            _ => {}
        }
    }
    let dead = edges.dead_ends();
    if let Some(first) = dead.first() {
        let path = edges.path(*first);
        let end = path.iter().fold(walk.system.start(), |state, action| {
            walk.system.next(&state, *action)
        });
        let why = promises::check(&walk.system.history(&end, true)).err();
        broken.push((
            CONVERGENCE,
            format!(
                "{} dead ends, the first after {path:?}: {why:?}, with {:?}",
                dead.len(),
                walk.system.record(&end)
            ),
        ));
    }
    let cut = edges.cut.iter().filter(|cut| **cut).count();
    let version = walk.system.driver.version_most();
    Ok((
        Found {
            states: edges.back.len(),
            cut,
            version,
            broken,
            never,
        },
        walk.system.driver.transitions(),
    ))
}

/// A row: what is accepted, what may go wrong, and what must come about.
struct Row {
    name: &'static str,
    kinds: &'static [Kind],
    budget: Budget,
    reaches: &'static [&'static str],
}

const NONE: Budget = Budget {
    crashes: 0,
    lapses: 0,
    duplicates: 0,
    sweeps: 0,
    windows: 0,
    stops: 0,
    nows: 0,
    losses: 0,
    hunts: 0,
    doubts: 0,
    cuts: 0,
    kills: 0,
    deaths: 0,
    namesakes: 0,
    late: false,
    late_aborts: false,
};

const ROWS: [Row; 17] = [
    Row {
        name: "messages_that_die_and_burials_that_are_lost",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            sweeps: 1,
            deaths: 3,
            ..NONE
        },
        reaches: &[
            "answered",
            "failed",
            "a letter whose burial died",
            "answered after a failure",
            "converged",
        ],
    },
    Row {
        name: "two_stacks_of_one_name_at_one_provider",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            sweeps: 1,
            hunts: 1,
            namesakes: 2,
            ..NONE
        },
        reaches: &["answered", "paused", "a hunt of a namesake", "converged"],
    },
    Row {
        name: "paths_that_break_under_a_run",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            cuts: 3,
            ..NONE
        },
        reaches: &[
            "answered",
            "failed",
            "a run that was left",
            "answered after a failure",
            "converged",
        ],
    },
    Row {
        name: "paths_that_break_under_two_prompts",
        kinds: &[Kind::Prompt, Kind::Prompt, Kind::Prompt],
        budget: Budget {
            nows: 1,
            cuts: 2,
            ..NONE
        },
        reaches: &["joined", "failed", "a run that was left", "converged"],
    },
    Row {
        name: "aborts_that_come_late",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            stops: 2,
            late_aborts: true,
            ..NONE
        },
        reaches: &[
            "answered",
            "cancelled",
            "an abort on its way to the next run",
            "converged",
        ],
    },
    Row {
        name: "runs_that_kill_whoever_follows_them",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { kills: 6, ..NONE },
        reaches: &[
            "failed",
            "answered after a failure",
            "a run that was left",
            "converged",
        ],
    },
    Row {
        name: "crashes_and_duplicates",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 2,
            duplicates: 1,
            sweeps: 2,
            ..NONE
        },
        reaches: &[
            "answered after a crash",
            "paused",
            "resumed",
            "destroyed",
            "made anew",
            "converged",
        ],
    },
    Row {
        name: "three_messages",
        kinds: &[Kind::Prompt, Kind::Prompt, Kind::Reset],
        budget: Budget {
            crashes: 2,
            sweeps: 1,
            ..NONE
        },
        reaches: &[
            "answered after a crash",
            "paused",
            "resumed",
            "destroyed",
            "made anew",
            "converged",
        ],
    },
    Row {
        name: "zombies",
        kinds: &[Kind::Prompt, Kind::Reset],
        budget: Budget {
            crashes: 1,
            lapses: 1,
            sweeps: 1,
            hunts: 1,
            late: true,
            ..NONE
        },
        reaches: &[
            "answered after a crash",
            "two at work",
            "arrived late",
            "an orphan found",
            "converged",
        ],
    },
    Row {
        name: "late_stops_and_prompts",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            lapses: 1,
            sweeps: 1,
            late: true,
            ..NONE
        },
        reaches: &[
            "two at work",
            "arrived late",
            "paused",
            "resumed",
            "converged",
        ],
    },
    Row {
        name: "stops_and_slices",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            stops: 1,
            windows: 2,
            ..NONE
        },
        reaches: &["answered", "cancelled", "failed", "converged"],
    },
    Row {
        name: "prompts_sent_now",
        kinds: &[Kind::Prompt, Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            nows: 2,
            ..NONE
        },
        reaches: &["answered", "joined", "sent out of order", "converged"],
    },
    Row {
        name: "runs_of_two_prompts",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            nows: 1,
            stops: 1,
            losses: 1,
            ..NONE
        },
        reaches: &["joined", "lost together", "cancelled", "converged"],
    },
    Row {
        name: "an_operator_who_pauses_and_resumes",
        kinds: &[
            Kind::Prompt,
            Kind::Operate(Operation::Pause),
            Kind::Operate(Operation::Resume),
        ],
        budget: Budget {
            crashes: 1,
            duplicates: 1,
            sweeps: 1,
            late: true,
            ..NONE
        },
        reaches: &["paused", "resumed", "operated", "arrived late", "converged"],
    },
    Row {
        name: "an_operator_who_destroys",
        kinds: &[
            Kind::Prompt,
            Kind::Operate(Operation::Destroy),
            Kind::Prompt,
        ],
        budget: Budget {
            crashes: 1,
            lapses: 1,
            sweeps: 1,
            late: true,
            ..NONE
        },
        reaches: &[
            "destroyed",
            "made anew",
            "operated",
            "two at work",
            "converged",
        ],
    },
    Row {
        name: "sendings_that_nobody_hears_of",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            losses: 1,
            doubts: 1,
            ..NONE
        },
        reaches: &["answered", "lost", "made anew", "resumed", "converged"],
    },
    Row {
        name: "lost_sandboxes",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget {
            crashes: 1,
            losses: 2,
            sweeps: 1,
            hunts: 1,
            ..NONE
        },
        reaches: &["lost", "made anew", "resumed", "converged"],
    },
];

/// A design fault, the row in which it is switched on, and the property that finds it.
type Planted = (&'static str, Fault, &'static [Kind], Budget, &'static str);

const PLANTED: [Planted; 18] = [
    (
        "a_letter_that_goes_before_its_burial_is_on_record",
        Fault::LettersGoUnread,
        &[Kind::Prompt],
        Budget { deaths: 2, ..NONE },
        CONVERGENCE,
    ),
    (
        "a_stack_that_is_known_by_its_name_alone",
        Fault::StacksByName,
        &[Kind::Prompt],
        Budget {
            namesakes: 1,
            ..NONE
        },
        "promise 6",
    ),
    (
        "a_prompt_that_is_sent_again_unseen",
        Fault::SentAgainUnseen,
        &[Kind::Prompt],
        Budget { cuts: 1, ..NONE },
        ANSWERED,
    ),
    (
        "a_run_that_is_left_to_itself",
        Fault::RunsAreLeft,
        &[Kind::Prompt, Kind::Prompt],
        Budget { cuts: 2, ..NONE },
        "promise 10",
    ),
    (
        "an_abort_that_hits_anything",
        Fault::AbortsHitAnything,
        &[Kind::Prompt, Kind::Prompt],
        Budget {
            stops: 1,
            late_aborts: true,
            ..NONE
        },
        "promise 6",
    ),
    (
        "a_crash_that_is_not_counted",
        Fault::CrashesUncounted,
        &[Kind::Prompt],
        Budget { kills: 6, ..NONE },
        GIVEN_UP,
    ),
    (
        "no_condition",
        Fault::NoCondition,
        &[Kind::Prompt, Kind::Reset],
        Budget { lapses: 1, ..NONE },
        "promise 6",
    ),
    (
        "random_names",
        Fault::RandomNames,
        &[Kind::Prompt],
        Budget { crashes: 1, ..NONE },
        "promise 1",
    ),
    (
        "effect_before_intent",
        Fault::EffectBeforeIntent,
        &[Kind::Prompt],
        Budget { crashes: 1, ..NONE },
        "promise 5",
    ),
    (
        "no_prompt_id",
        Fault::NoPromptId,
        &[Kind::Prompt],
        Budget { crashes: 1, ..NONE },
        "promise 5",
    ),
    (
        "no_post_id",
        Fault::NoPostId,
        &[Kind::Prompt],
        Budget { crashes: 1, ..NONE },
        "promise 3",
    ),
    (
        "sweeper_stops_directly",
        Fault::SweeperStopsDirectly,
        &[Kind::Prompt, Kind::Prompt],
        NONE,
        "promise 6",
    ),
    (
        "reaper_reads_before_it_lists",
        Fault::ReadBeforeList,
        &[Kind::Prompt],
        Budget { hunts: 1, ..NONE },
        "promise 6",
    ),
    (
        "no_reaper",
        Fault::NoHunt,
        &[Kind::Prompt, Kind::Reset],
        Budget {
            crashes: 1,
            late: true,
            ..NONE
        },
        CONVERGENCE,
    ),
    (
        "stop_through_the_queue",
        Fault::StopThroughTheQueue,
        &[Kind::Prompt],
        Budget {
            stops: 1,
            windows: 1,
            ..NONE
        },
        STOP,
    ),
    (
        "slice_without_cursor",
        Fault::SliceWithoutCursor,
        &[Kind::Prompt],
        Budget { windows: 1, ..NONE },
        "promise 5",
    ),
    (
        "a_doubt_that_is_taken_for_a_no",
        Fault::DoubtIsNo,
        &[Kind::Prompt, Kind::Prompt],
        Budget {
            losses: 1,
            doubts: 1,
            ..NONE
        },
        "promise 5",
    ),
    (
        "zombies_act",
        Fault::ZombiesAct,
        &[Kind::Prompt],
        Budget { lapses: 1, ..NONE },
        CONVERGENCE,
    ),
];

/// What was decided in the smaller rows, for the document.
///
/// # Errors
/// As the row's test.
pub fn transitions() -> Result<BTreeSet<Transition>, Failed> {
    let mut all = BTreeSet::new();
    for row in ROWS
        .iter()
        .filter(|row| row.budget.lapses == 0 && row.budget.losses <= 1)
    {
        all.extend(hold(row)?);
    }
    Ok(all)
}

fn hold(row: &Row) -> Result<BTreeSet<Transition>, Failed> {
    let began = Instant::now();
    let (found, transitions) = explore(row.kinds, row.budget, None)?;
    let Found {
        states,
        cut,
        version,
        ..
    } = found;
    println!(
        "{}: {states} states, records up to version {version}, {cut} cut by the bounds, {:?}",
        row.name,
        began.elapsed()
    );
    if !found.broken.is_empty() {
        return Err(format!("{}: {:#?}", row.name, found.broken).into());
    }
    if let Some(never) = row.reaches.iter().find(|name| found.never.contains(name)) {
        return Err(format!("{}: \"{never}\" never came about", row.name).into());
    }
    Ok(transitions)
}

fn caught((name, fault, kinds, budget, by): &Planted) -> Result<(), Failed> {
    let (sound, _) = explore(kinds, *budget, None)?;
    if !sound.broken.is_empty() {
        return Err(format!("without the fault: {:#?}", sound.broken).into());
    }
    let (found, _) = explore(kinds, *budget, Some(*fault))?;
    let names: Vec<&str> = found.broken.iter().map(|(name, _)| *name).collect();
    println!(
        "{name}: caught by {names:?} ({} states, {} without the fault)",
        found.states, sound.states
    );
    if names.contains(by) {
        Ok(())
    } else {
        Err(format!("{name} is not caught by {by}, only by {names:?}").into())
    }
}

pub fn trials() -> Vec<Trial> {
    let rows = ROWS.iter().map(|row| {
        beside(
            format!("protocol::model::{}_keep_the_promises", row.name),
            move || hold(row).map(drop),
        )
    });
    let planted = PLANTED.iter().map(|planted| {
        beside(
            format!("protocol::model::{}_is_caught", planted.0),
            move || caught(planted),
        )
    });
    rows.chain(planted).collect()
}
