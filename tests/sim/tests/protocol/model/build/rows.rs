//! The explored rows of prebuilds, what must occur, and the planted faults.

use std::collections::BTreeSet;

use bobbin_core::records::prebuild::BeginsWith;
use libtest_mimic::{Failed, Trial};
use stateright::Property;

use super::super::super::promises;
use super::super::super::transitions::Transition;
use super::super::driver::Driver;
use super::super::faults::Fault;
use super::super::walk::{CONVERGENCE, Explored, Walk, caught, hold};
use super::{
    Action, BARE, BUILDER, Budget, Building, ENDED, HINDERED, KEPT, Kind, Making, State, TAKEN,
    THREADS, TWICE,
};
use crate::{deep, proof};

fn troubles(walk: &Walk<Building>, state: &State, wanted: &str) -> bool {
    let record = walk.system.record(state, BUILDER);
    record.sandbox.history.operated.iter().any(|one| one.trouble.as_deref() == Some(wanted))
}

fn begins(walk: &Walk<Building>, state: &State, wanted: fn(&BeginsWith) -> bool) -> bool {
    (0..THREADS).any(|at| wanted(&walk.system.record(state, at).sandbox.project.begins))
}

impl Explored for Building {
    type State = State;
    type Action = Action;

    fn start(&self) -> State {
        self.begin.clone()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.actions(state, actions);
    }

    fn next(&self, last: &State, action: Action) -> State {
        self.next(last, action)
    }

    fn is_trouble(action: Action) -> bool {
        matches!(
            action,
            Action::Repeat(_)
                | Action::Fail(_)
                | Action::Send(_)
                | Action::Crash(_)
                | Action::Lapse(_)
                | Action::Spoil
                | Action::Vanish
                | Action::Lose
                | Action::LocksChange
                | Action::SwitchOff
        )
    }

    fn within(&self, state: &State) -> bool {
        self.within(state)
    }

    fn converged(&self, state: &State) -> bool {
        self.converged(state)
    }

    fn told(&self, state: &State) -> String {
        let why = promises::check(&self.history(state, true)).err();
        let records = [0, 1, BUILDER].map(|group| self.record(state, group));
        format!("{why:?}, with {records:?}, {state:?}")
    }

    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn properties() -> Vec<Property<Walk<Self>>> {
        vec![
            Property::always(ENDED, |_, s: &State| !s.broken.contains(&ENDED)),
            Property::always(TWICE, |_, s: &State| !s.broken.contains(&TWICE)),
            Property::always(BARE, |_, s: &State| !s.broken.contains(&BARE)),
            Property::always(HINDERED, |_, s: &State| !s.broken.contains(&HINDERED)),
            Property::always(TAKEN, |_, s: &State| !s.broken.contains(&TAKEN)),
            Property::always(KEPT, |_, s: &State| !s.broken.contains(&KEPT)),
            // Proves that the case occurred.
            Property::sometimes("built", |w: &Walk<Self>, s: &State| {
                let record = w.system.record(s, BUILDER);
                record.sandbox.history.operated.iter().any(|one| one.trouble.is_none())
            }),
            Property::sometimes("a failed set-up", |w, s| {
                troubles(w, s, "the project's set-up failed in it")
            }),
            Property::sometimes("no room", |w, s| troubles(w, s, "there is no room")),
            Property::sometimes("a snapshot that failed", |w, s| troubles(w, s, "it failed")),
            Property::sometimes("a snapshot too late", |w, s| {
                troubles(w, s, "it was not created in time")
            }),
            Property::sometimes("switched off", |w, s| {
                troubles(w, s, "managers have switched its set-up off")
            }),
            Property::sometimes("a builder that vanished", |w, s| {
                troubles(w, s, "it no longer exists")
            }),
            Property::sometimes("two at the provider", |_, s: &State| {
                s.snapshots.iter().filter(|one| one.making == Making::Ready).count() > 1
            }),
            Property::sometimes("an orphan found", |w: &Walk<Self>, s: &State| {
                let mut actions = Vec::new();
                w.system.actions(s, &mut actions);
                actions.iter().any(|action| matches!(action, Action::Hunt(_)))
            }),
            Property::sometimes("late", |_, s: &State| s.late.is_some()),
            Property::sometimes("two at work on it", |_, s: &State| {
                s.workers.iter().flatten().filter(|worker| worker.group == BUILDER).count() == 2
            }),
            Property::sometimes("a thread beside its builder", |_, s: &State| {
                let mut workers = s.workers.iter().flatten();
                workers.any(|worker| worker.group == BUILDER)
                    && s.workers.iter().flatten().any(|worker| worker.group != BUILDER)
            }),
            Property::sometimes("begun with a prebuild", |w, s| {
                begins(w, s, |begins| begins.prebuild().is_some())
                    && s.provided.iter().flatten().any(|one| one.prebuilt)
            }),
            Property::sometimes("begun without one that is gone", |w, s| {
                begins(w, s, |begins| matches!(begins, BeginsWith::ImageInstead(Some(_))))
            }),
            Property::sometimes("all answered", |w: &Walk<Self>, s: &State| {
                (0..THREADS).all(|at| !w.system.record(s, at).ended.is_empty())
            }),
            Property::sometimes("converged", |w: &Walk<Self>, s| w.system.converged(s)),
        ]
    }
}

/// A row: the accepted messages, the trouble and actions, and what must occur.
struct Row {
    name: &'static str,
    kinds: &'static [Kind],
    budget: Budget,
    /// The provider's limit of snapshots.
    room: usize,
    reaches: &'static [&'static str],
}

const NONE: Budget = Budget {
    crashes: 0,
    lapses: 0,
    late: 0,
    repeats: 0,
    fails: 0,
    losses: 0,
    holes: 0,
    changes: 0,
    offs: 0,
};
const AMPLE: usize = 9;

const ROWS: [Row; 11] = [
    Row {
        name: "builds_of_two_workers",
        kinds: &[Kind::Build(0)],
        budget: Budget { lapses: 1, late: 1, ..NONE },
        room: AMPLE,
        reaches: &["built", "an orphan found", "late", "two at work on it", "converged"],
    },
    Row {
        name: "builds_of_two_hashes",
        kinds: &[Kind::Build(0), Kind::Build(1)],
        budget: Budget { crashes: 1, late: 1, changes: 1, ..NONE },
        room: AMPLE,
        reaches: &["built", "two at the provider", "late", "converged"],
    },
    Row {
        name: "failing_builds",
        kinds: &[Kind::Build(0), Kind::Again(0)],
        budget: Budget { crashes: 1, late: 1, fails: 2, ..NONE },
        room: AMPLE,
        reaches: &[
            "built",
            "a failed set-up",
            "a snapshot that failed",
            "a snapshot too late",
            "converged",
        ],
    },
    Row {
        name: "vanishing_builders",
        kinds: &[Kind::Build(0), Kind::Again(0)],
        budget: Budget { late: 1, losses: 2, ..NONE },
        room: AMPLE,
        reaches: &["built", "a builder that vanished", "an orphan found", "late", "converged"],
    },
    Row {
        name: "builds_without_room",
        kinds: &[Kind::Build(0), Kind::Build(1)],
        budget: Budget { crashes: 1, changes: 1, ..NONE },
        room: 2,
        reaches: &["built", "no room", "converged"],
    },
    Row {
        name: "builds_switched_off",
        kinds: &[Kind::Build(0), Kind::Build(1)],
        budget: Budget { crashes: 1, late: 1, offs: 1, ..NONE },
        room: AMPLE,
        reaches: &["built", "switched off", "late", "converged"],
    },
    Row {
        name: "threads_beside_builders",
        kinds: &[Kind::Build(0), Kind::Prompt(0)],
        budget: Budget { crashes: 1, holes: 1, ..NONE },
        room: AMPLE,
        reaches: &[
            "built",
            "a thread beside its builder",
            "begun with a prebuild",
            "begun without one that is gone",
            "converged",
        ],
    },
    Row {
        name: "threads_asking_for_builds",
        kinds: &[Kind::Prompt(0), Kind::Prompt(1)],
        budget: Budget { holes: 1, ..NONE },
        room: AMPLE,
        reaches: &[
            "built",
            "begun with a prebuild",
            "begun without one that is gone",
            "all answered",
            "converged",
        ],
    },
    Row {
        name: LARGE[0],
        kinds: &[Kind::Build(0)],
        budget: Budget { crashes: 1, lapses: 1, late: 1, repeats: 1, ..NONE },
        room: AMPLE,
        reaches: &["built", "an orphan found", "late", "two at work on it", "converged"],
    },
    Row {
        name: LARGE[1],
        kinds: &[Kind::Build(0), Kind::Prompt(0)],
        budget: Budget { holes: 1, changes: 1, offs: 1, ..NONE },
        room: AMPLE,
        reaches: &[
            "built",
            "switched off",
            "begun with a prebuild",
            "begun without one that is gone",
            "converged",
        ],
    },
    Row {
        name: LARGE[2],
        kinds: &[Kind::Prompt(0), Kind::Prompt(1)],
        budget: Budget { crashes: 1, holes: 1, ..NONE },
        room: AMPLE,
        reaches: &[
            "built",
            "begun with a prebuild",
            "begun without one that is gone",
            "all answered",
            "converged",
        ],
    },
];

/// Too many states for every change.
const LARGE: [&str; 3] =
    ["repeated_builds", "builds_of_changing_projects", "threads_asking_under_crashes"];

/// A design fault, its row, and the properties that find it.
type Planted = (&'static str, Fault, &'static [Kind], Budget, &'static str);

const PLANTED: [Planted; 9] = [
    (
        "builder_that_nobody_hunts",
        Fault::NoHunt,
        &[Kind::Build(0)],
        Budget { late: 1, ..NONE },
        CONVERGENCE,
    ),
    (
        "unfinished_snapshot_off_record",
        Fault::UnfinishedUnkept,
        &[Kind::Build(0)],
        Budget { fails: 1, ..NONE },
        CONVERGENCE,
    ),
    ("build_without_its_end", Fault::ResultsUnkept, &[Kind::Build(0)], NONE, CONVERGENCE),
    ("same_prebuild_again", Fault::BuiltAgain, &[Kind::Build(0), Kind::Again(0)], NONE, TWICE),
    ("key_in_a_builder", Fault::KeyedBuilders, &[Kind::Build(0)], NONE, BARE),
    (
        "turn_that_waits_for_a_prebuild",
        Fault::GoneIsAnOutage,
        &[Kind::Build(0), Kind::Prompt(0)],
        Budget { holes: 1, ..NONE },
        HINDERED,
    ),
    ("persons_snapshot_giving_way", Fault::AnythingGivesWay, &[Kind::Build(0)], NONE, TAKEN),
    (
        "prebuild_deleted_before_the_next",
        Fault::RecordedGivesWay,
        &[Kind::Build(0), Kind::Build(1)],
        Budget { changes: 1, ..NONE },
        TAKEN,
    ),
    (
        "useless_prebuild_kept",
        Fault::UselessUnsaid,
        &[Kind::Build(0), Kind::Prompt(0)],
        Budget { holes: 1, ..NONE },
        KEPT,
    ),
];

/// What happens in the smaller rows, for the document.
pub fn transitions_of_few_states() -> impl Iterator<Item = Result<BTreeSet<Transition>, String>> {
    ROWS.iter().filter(|row| !LARGE.contains(&row.name)).map(explored)
}

fn explored(row: &Row) -> Result<BTreeSet<Transition>, String> {
    let system = Building::new(row.kinds, row.budget, None).with_room(row.room);
    hold(row.name, system, row.reaches)
}

fn is_found((name, fault, kinds, budget, by): &Planted) -> Result<(), Failed> {
    let system = |fault| Building::new(kinds, *budget, fault);
    caught(name, by, system(None), system(Some(*fault)))
}

pub fn trials() -> Vec<Trial> {
    let rows = ROWS.iter().map(|row| {
        let held = proof(format!("protocol::model::{}_keep_the_promises", row.name), move || {
            explored(row).map(drop).map_err(Failed::from)
        });
        if LARGE.contains(&row.name) { deep(held) } else { held }
    });
    let planted = PLANTED.iter().map(|planted| {
        proof(format!("protocol::model::{}_is_caught", planted.0), move || is_found(planted))
    });
    rows.chain(planted).collect()
}
