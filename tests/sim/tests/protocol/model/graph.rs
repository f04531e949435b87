//! The rows of one thread: what is explored, what must occur, and the planted faults.

use std::collections::BTreeSet;

use bobbin_core::records::control::Operation;
use bobbin_core::records::sandbox::Phase;
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use libtest_mimic::{Failed, Trial};
use stateright::Property;

use super::super::promises::{self, Ending, is_broken};
use super::super::transitions::Transition;
use super::driver::{Driver, Kind, LIMITS};
use super::faults::Fault;
use super::system::{Action, Budget, State, System};
use super::walk::{CONVERGENCE, Explored, Walk, caught, hold};
use crate::{deep, proof};

fn ended(walk: &Walk<System>, state: &State, ending: Ending) -> bool {
    walk.system.record(state).ended.iter().any(|turn| Ending::from(&turn.outcome) == ending)
}

impl Explored for System {
    type State = State;
    type Action = Action;

    fn start(&self) -> State {
        self.start()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.actions(state, actions);
    }

    fn next(&self, last: &State, action: Action) -> State {
        self.next(last, action)
    }

    fn is_trouble(action: Action) -> bool {
        action.is_trouble()
    }

    fn within(&self, state: &State) -> bool {
        self.within(state)
    }

    fn converged(&self, state: &State) -> bool {
        self.converged(state)
    }

    fn told(&self, state: &State) -> String {
        let why = promises::check(&self.history(state, true)).err();
        format!("{why:?}, with {:?}", self.record(state))
    }

    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn properties() -> Vec<Property<Walk<Self>>> {
        vec![
            Property::always("promise 1", |_, s: &State| !is_broken(s.broken, 1)),
            Property::always("promise 3", |_, s: &State| !is_broken(s.broken, 3)),
            Property::always("promise 4", |_, s: &State| !is_broken(s.broken, 4)),
            Property::always("promise 5", |_, s: &State| !is_broken(s.broken, 5)),
            Property::always("promise 6", |_, s: &State| !is_broken(s.broken, 6)),
            Property::always("promise 10", |_, s: &State| !is_broken(s.broken, 10)),
            Property::always("promise 12", |_, s: &State| !is_broken(s.broken, 12)),
            Property::always(STOP, |_, s: &State| !s.stop_ignored),
            Property::always(ANSWERED, |w: &Walk<Self>, s: &State| !w.system.hides_an_answer(s)),
            Property::always(GIVEN_UP, |w: &Walk<Self>, s: &State| {
                let killed = usize::from(w.system.budget.kills - s.left.kills);
                killed <= (LIMITS.retry.attempts as usize + 1) * w.system.kinds.len()
            }),
            // Proves that the case occurred.
            Property::sometimes("answered", |w, s| ended(w, s, Ending::Answered)),
            Property::sometimes("answered after a crash", |w: &Walk<Self>, s: &State| {
                s.left.crashes < w.system.budget.crashes && ended(w, s, Ending::Answered)
            }),
            Property::sometimes("failed", |w, s| ended(w, s, Ending::Failed)),
            Property::sometimes("cancelled", |w, s| ended(w, s, Ending::Cancelled)),
            Property::sometimes("lost", |w, s| ended(w, s, Ending::Lost)),
            Property::sometimes("joined", |w, s| ended(w, s, Ending::Joined)),
            Property::sometimes("sent out of order", |_, s: &State| s.steered == 0b100),
            Property::sometimes("lost together", |w: &Walk<Self>, s: &State| {
                s.steered != 0
                    && w.system.record(s).turn.is_none()
                    && ended(w, s, Ending::Lost)
                    && !ended(w, s, Ending::Joined)
            }),
            Property::sometimes("a run that was left", |w: &Walk<Self>, s: &State| {
                w.system.record(s).stray.is_some()
            }),
            Property::sometimes("a letter whose notice died", |w: &Walk<Self>, s: &State| {
                let dead = (w.system.budget.deaths - s.left.deaths).into();
                s.letters.count_ones() < dead && s.letters != 0 && s.queue.is_empty()
            }),
            Property::sometimes("a hunt of a namesake", |w: &Walk<Self>, s: &State| {
                s.left.namesakes < w.system.budget.namesakes
            }),
            Property::sometimes("answered after a failure", |w: &Walk<Self>, s: &State| {
                ended(w, s, Ending::Failed) && ended(w, s, Ending::Answered)
            }),
            Property::sometimes("an abort on its way to the next run", |_, s: &State| {
                s.abort_comes_too_late()
            }),
            Property::sometimes("operated", |w: &Walk<Self>, s| {
                let record = w.system.record(s);
                record.sandbox.history.operated.iter().any(|one| one.trouble.is_none())
            }),
            Property::sometimes("paused", |w: &Walk<Self>, s| {
                w.system.record(s).sandbox.phase == Phase::Paused
            }),
            Property::sometimes("resumed", |w: &Walk<Self>, s| {
                w.system.record(s).sandbox.phase == Phase::Resuming
            }),
            Property::sometimes("destroyed", |w: &Walk<Self>, s| {
                w.system.record(s).sandbox.generation > 0
                    && w.system.record(s).sandbox.phase == Phase::Destroyed
            }),
            Property::sometimes("made anew", |w: &Walk<Self>, s| {
                w.system.record(s).sandbox.generation > 1
            }),
            Property::sometimes("two at work", |_, s: &State| {
                s.workers.iter().all(Option::is_some)
            }),
            Property::sometimes("arrived late", |_, s: &State| s.late.is_some()),
            Property::sometimes("an orphan found", |_, s: &State| s.finds_orphan()),
            Property::sometimes("converged", |w: &Walk<Self>, s| w.system.converged(s)),
        ]
    }
}

const STOP: &str = "a stop does not wait for a slice";
const ANSWERED: &str = "what the agent has answered is not told as failed";
const GIVEN_UP: &str = "a run that kills whoever follows it is given up";
/// A row: the accepted messages, the trouble, and what must occur.
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
    lies: 0,
    kills: 0,
    deaths: 0,
    namesakes: 0,
    late: false,
    late_aborts: false,
};

const ROWS: [Row; 20] = [
    Row {
        name: "lying_provider_answers",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { lies: 2, sweeps: 1, losses: 1, hunts: 1, ..NONE },
        reaches: &["answered", "lost", "converged"],
    },
    Row {
        name: "dead_letter_notices",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, sweeps: 1, deaths: 3, ..NONE },
        reaches: &[
            "answered",
            "failed",
            "a letter whose notice died",
            "answered after a failure",
            "converged",
        ],
    },
    Row {
        name: "two_namesake_stacks",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, sweeps: 1, hunts: 1, namesakes: 2, ..NONE },
        reaches: &["answered", "paused", "a hunt of a namesake", "converged"],
    },
    Row {
        name: "broken_connections",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, cuts: 3, ..NONE },
        reaches: &[
            "answered",
            "failed",
            "a run that was left",
            "answered after a failure",
            "converged",
        ],
    },
    Row {
        name: "broken_steered_runs",
        kinds: &[Kind::Prompt, Kind::Prompt, Kind::Prompt],
        budget: Budget { nows: 1, cuts: 2, ..NONE },
        reaches: &["joined", "failed", "a run that was left", "converged"],
    },
    Row {
        name: "delayed_aborts",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, stops: 2, late_aborts: true, ..NONE },
        reaches: &["answered", "cancelled", "an abort on its way to the next run", "converged"],
    },
    Row {
        name: "runs_killing_workers",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { kills: 6, ..NONE },
        reaches: &["failed", "answered after a failure", "a run that was left", "converged"],
    },
    Row {
        name: "crashes_and_duplicates",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 2, duplicates: 1, sweeps: 2, ..NONE },
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
        budget: Budget { crashes: 2, sweeps: 1, ..NONE },
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
        budget: Budget { crashes: 1, lapses: 1, sweeps: 1, hunts: 1, late: true, ..NONE },
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
        budget: Budget { crashes: 1, lapses: 1, sweeps: 1, late: true, ..NONE },
        reaches: &["two at work", "arrived late", "paused", "resumed", "converged"],
    },
    Row {
        name: "stops_and_slices",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, stops: 1, windows: 2, ..NONE },
        reaches: &["answered", "cancelled", "failed", "converged"],
    },
    Row {
        name: "prompts_sent_now",
        kinds: &[Kind::Prompt, Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, nows: 2, ..NONE },
        reaches: &["answered", "joined", "sent out of order", "converged"],
    },
    Row {
        name: "runs_of_two_prompts",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { nows: 1, stops: 1, losses: 1, ..NONE },
        reaches: &["joined", "lost together", "cancelled", "converged"],
    },
    Row {
        name: "operator_pause_resume",
        kinds: &[Kind::Prompt, Kind::Operate(Operation::Pause), Kind::Operate(Operation::Resume)],
        budget: Budget { crashes: 1, duplicates: 1, sweeps: 1, late: true, ..NONE },
        reaches: &["paused", "resumed", "operated", "arrived late", "converged"],
    },
    Row {
        name: "pauses_during_resume",
        kinds: &[Kind::Prompt, Kind::Prompt, Kind::Operate(Operation::Pause)],
        budget: Budget { stops: 1, sweeps: 1, ..NONE },
        reaches: &["cancelled", "paused", "operated", "converged"],
    },
    Row {
        name: "swept_stray_runs",
        kinds: &[Kind::Prompt],
        budget: Budget { stops: 1, cuts: 6, sweeps: 2, ..NONE },
        reaches: &["cancelled", "a run that was left", "paused", "converged"],
    },
    Row {
        name: "operator_destroys",
        kinds: &[Kind::Prompt, Kind::Operate(Operation::Destroy), Kind::Prompt],
        budget: Budget { crashes: 1, lapses: 1, late: true, ..NONE },
        reaches: &["destroyed", "made anew", "operated", "two at work", "converged"],
    },
    Row {
        name: "unheard_sendings",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, losses: 1, doubts: 1, ..NONE },
        reaches: &["answered", "lost", "made anew", "resumed", "converged"],
    },
    Row {
        name: "lost_sandboxes",
        kinds: &[Kind::Prompt, Kind::Prompt],
        budget: Budget { crashes: 1, losses: 2, sweeps: 1, hunts: 1, ..NONE },
        reaches: &["lost", "made anew", "resumed", "converged"],
    },
];

/// A design fault, its row, and the properties that find it.
type Planted = (&'static str, Fault, &'static [Kind], Budget, &'static str);

const PLANTED: [Planted; 19] = [
    (
        "believing_one_absence",
        Fault::OneLookIsBelieved,
        &[Kind::Prompt, Kind::Prompt],
        Budget { lies: 1, ..NONE },
        CONVERGENCE,
    ),
    (
        "letter_deleted_before_notice",
        Fault::LettersGoUnread,
        &[Kind::Prompt],
        Budget { deaths: 2, ..NONE },
        CONVERGENCE,
    ),
    (
        "stack_matched_by_name",
        Fault::StacksByName,
        &[Kind::Prompt],
        Budget { namesakes: 1, ..NONE },
        "promise 6",
    ),
    (
        "blind_prompt_resending",
        Fault::SentAgainUnseen,
        &[Kind::Prompt],
        Budget { cuts: 1, ..NONE },
        ANSWERED,
    ),
    (
        "abandoned_stray_run",
        Fault::RunsAreLeft,
        &[Kind::Prompt, Kind::Prompt],
        Budget { cuts: 2, ..NONE },
        "promise 10",
    ),
    (
        "untargeted_abort",
        Fault::AbortsHitAnything,
        &[Kind::Prompt, Kind::Prompt],
        Budget { stops: 1, late_aborts: true, ..NONE },
        "promise 6",
    ),
    (
        "uncounted_crash",
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
    ("no_post_id", Fault::NoPostId, &[Kind::Prompt], Budget { crashes: 1, ..NONE }, "promise 3"),
    (
        "sweeper_stops_directly",
        Fault::SweeperStopsDirectly,
        &[Kind::Prompt, Kind::Prompt],
        NONE,
        "promise 6",
    ),
    (
        "reaper_reading_before_listing",
        Fault::ReadBeforeList,
        &[Kind::Prompt],
        Budget { hunts: 1, ..NONE },
        "promise 6",
    ),
    (
        "no_reaper",
        Fault::NoHunt,
        &[Kind::Prompt, Kind::Reset],
        Budget { crashes: 1, late: true, ..NONE },
        CONVERGENCE,
    ),
    (
        "stop_through_the_queue",
        Fault::StopThroughTheQueue,
        &[Kind::Prompt],
        Budget { stops: 1, windows: 1, ..NONE },
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
        "doubt_taken_for_no",
        Fault::DoubtIsNo,
        &[Kind::Prompt, Kind::Prompt],
        Budget { losses: 1, doubts: 1, ..NONE },
        "promise 5",
    ),
    ("zombies_act", Fault::ZombiesAct, &[Kind::Prompt], Budget { lapses: 1, ..NONE }, CONVERGENCE),
];

/// What happens in the smaller rows, for the document.
pub fn transitions_of_few_states() -> impl Iterator<Item = Result<BTreeSet<Transition>, String>> {
    let few = ROWS.iter().filter(|row| row.budget.lapses == 0 && row.budget.losses <= 1);
    few.map(|row| explored(row, RuntimeMode::OpenCode))
}

/// Rows that also run with the daemon's agents: a prompt is sent more than once, or ended.
const BY_THE_DAEMON: [&str; 6] = [
    "broken_connections",
    "broken_steered_runs",
    "prompts_sent_now",
    "runs_of_two_prompts",
    "swept_stray_runs",
    "unheard_sendings",
];

fn explored(row: &Row, runtime: RuntimeMode) -> Result<BTreeSet<Transition>, String> {
    let system = System::new(row.kinds, row.budget, None).in_mode(runtime);
    hold(row.name, system, row.reaches)
}

fn is_found((name, fault, kinds, budget, by): &Planted) -> Result<(), Failed> {
    let system = |fault| System::new(kinds, *budget, fault);
    caught(name, by, system(None), system(Some(*fault)))
}

/// Rows of half a million states and more.
const LARGE: [&str; 5] = [
    "operator_destroys",
    "late_stops_and_prompts",
    "lost_sandboxes",
    "stops_and_slices",
    "zombies",
];

pub fn trials() -> Vec<Trial> {
    let rows = ROWS.iter().map(|row| {
        let held = proof(format!("protocol::model::{}_keep_the_promises", row.name), move || {
            explored(row, RuntimeMode::OpenCode).map(drop).map_err(Failed::from)
        });
        if LARGE.contains(&row.name) { deep(held) } else { held }
    });
    let daemons = ROWS.iter().filter(|row| BY_THE_DAEMON.contains(&row.name));
    let daemons = daemons.map(|row| {
        proof(format!("protocol::model::{}_keep_the_promises_by_the_daemon", row.name), move || {
            explored(row, RuntimeMode::Native).map(drop).map_err(Failed::from)
        })
    });
    let planted = PLANTED.iter().map(|planted| {
        proof(format!("protocol::model::{}_is_caught", planted.0), move || is_found(planted))
    });
    rows.chain(daemons).chain(planted).collect()
}
