//! The explored rows of publications, what must occur, and the planted faults.

use std::collections::BTreeSet;

use bobbin_core::records::publication::PullRequestState;
use libtest_mimic::{Failed, Trial};
use stateright::Property;

use super::super::super::promises::{self, Fact, is_broken};
use super::super::super::transitions::Transition;
use super::super::driver::Driver;
use super::super::faults::Fault;
use super::super::walk::{Explored, Walk, caught, hold};
use super::{Action, Budget, Kind, Publishing, State};
use crate::{deep, proof};

fn pushes(state: &State) -> usize {
    state.facts.iter().filter(|fact| matches!(fact, Fact::Pushed { .. })).count()
}

impl Explored for Publishing {
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
            Action::Crash(_)
                | Action::Lapse(_)
                | Action::Send(_)
                | Action::FilesChange
                | Action::PersonPushes
                | Action::PersonMerges
                | Action::PersonCloses
                | Action::PersonDeletes
        )
    }

    fn within(&self, _: &State) -> bool {
        true
    }

    fn converged(&self, state: &State) -> bool {
        self.converged(state)
    }

    fn told(&self, state: &State) -> String {
        let why = promises::check(&self.history(state, true)).err();
        format!("{why:?}, with {:?}, {state:?}", self.record(state))
    }

    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn properties() -> Vec<Property<Walk<Self>>> {
        vec![
            Property::always("promise 3", |_, s: &State| !is_broken(s.broken, 3)),
            Property::always("promise 15", |_, s: &State| !is_broken(s.broken, 15)),
            // Proves that the case occurred.
            Property::sometimes("opened", |w: &Walk<Self>, s: &State| {
                let record = w.system.record(s);
                let publication = record.published.publication.as_ref();
                publication.is_some_and(|publication| publication.pull_request.is_some())
            }),
            Property::sometimes("updated", |_, s: &State| {
                let is_open = |pull| pull == Some(PullRequestState::Open);
                pushes(s) > 1 && s.branches.iter().any(|branch| is_open(branch.pull))
            }),
            Property::sometimes("on two branches", |_, s: &State| {
                s.branches.iter().filter(|branch| branch.pulls > 0).count() > 1
            }),
            Property::sometimes("merged", |_, s: &State| {
                s.branches.iter().any(|branch| branch.pull == Some(PullRequestState::Merged))
            }),
            Property::sometimes("brought", |_, s: &State| s.files.brought != 0),
            Property::sometimes("pushed after a person", |_, s: &State| {
                let is_after =
                    |branch: &super::Branch| branch.at.is_some() && branch.has & s.files.has != 0;
                s.files.has != 0 && s.branches.iter().any(is_after) && pushes(s) > 0
            }),
            Property::sometimes("end shown", |_, s: &State| {
                s.branches.iter().any(|branch| branch.card == Some(PullRequestState::Merged))
            }),
            Property::sometimes("late", |_, s: &State| s.late.is_some()),
            Property::sometimes("two at work on it", |_, s: &State| {
                s.workers.iter().all(Option::is_some)
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
    reaches: &'static [&'static str],
}

const NONE: Budget = Budget { crashes: 0, lapses: 0, late: 0, commits: 0, ends: 0, works: 0 };
const PUBLISHED: &[Kind] = &[Kind::Show, Kind::Press(1)];
const UPDATED: &[Kind] = &[Kind::Show, Kind::Press(1), Kind::Show, Kind::Press(2)];

const WATCHED: &[Kind] = &[Kind::Show, Kind::Press(1), Kind::Watch];

const ROWS: [Row; 7] = [
    Row {
        name: "presses_under_crashes",
        kinds: &[Kind::Show, Kind::Press(1), Kind::Press(1)],
        budget: Budget { crashes: 2, lapses: 1, late: 1, works: 1, ..NONE },
        reaches: &["opened", "late", "two at work on it", "converged"],
    },
    Row {
        name: "commits_of_a_person",
        kinds: UPDATED,
        budget: Budget { crashes: 1, late: 1, commits: 1, works: 1, ..NONE },
        reaches: &["opened", "updated", "brought", "pushed after a person", "late", "converged"],
    },
    Row {
        name: "ended_pull_requests",
        kinds: UPDATED,
        budget: Budget { crashes: 1, ends: 1, works: 1, ..NONE },
        reaches: &["opened", "updated", "on two branches", "merged", "converged"],
    },
    Row {
        name: "commits_of_two_persons",
        kinds: UPDATED,
        budget: Budget { lapses: 1, commits: 2, works: 2, ..NONE },
        reaches: &["opened", "updated", "pushed after a person", "two at work on it", "converged"],
    },
    Row {
        name: "watched_pull_requests",
        kinds: &[Kind::Show, Kind::Press(1), Kind::Show, Kind::Watch],
        budget: Budget { crashes: 1, lapses: 1, ends: 1, ..NONE },
        reaches: &["opened", "merged", "end shown", "two at work on it", "converged"],
    },
    Row {
        name: "all_forge_troubles",
        kinds: UPDATED,
        budget: Budget { crashes: 1, late: 1, commits: 1, ends: 1, works: 1, ..NONE },
        reaches: &["updated", "on two branches", "merged", "brought", "late", "converged"],
    },
    Row {
        name: LARGE,
        kinds: UPDATED,
        budget: Budget { lapses: 1, late: 1, commits: 1, ends: 1, works: 1, ..NONE },
        reaches: &["updated", "on two branches", "merged", "brought", "late", "converged"],
    },
];

/// Too many states for every change.
const LARGE: &str = "all_forge_troubles_to_two_workers";

/// A design fault, its row, and the properties that find it.
type Planted = (&'static str, Fault, &'static [Kind], Budget, &'static str);

const PLANTED: [Planted; 5] = [
    (
        "push_over_a_persons_commit",
        Fault::PushesOverAnything,
        PUBLISHED,
        Budget { commits: 1, ..NONE },
        "promise 15",
    ),
    (
        "push_of_unseen_work",
        Fault::PushesUnshown,
        PUBLISHED,
        Budget { works: 1, ..NONE },
        "promise 15",
    ),
    (
        "pull_request_opened_unseen",
        Fault::OpensUnseen,
        PUBLISHED,
        Budget { crashes: 1, ..NONE },
        "promise 15",
    ),
    ("card_that_stays_old", Fault::EditsAreLost, WATCHED, Budget { ends: 1, ..NONE }, "promise 9"),
    ("poll_of_the_past", Fault::PollsSeeThePast, WATCHED, Budget { ends: 1, ..NONE }, "promise 9"),
];

/// What happens in the smaller rows, for the document.
pub fn transitions_of_few_states() -> impl Iterator<Item = Result<BTreeSet<Transition>, String>> {
    ROWS.iter().filter(|row| row.name != LARGE).map(explored)
}

fn explored(row: &Row) -> Result<BTreeSet<Transition>, String> {
    let system = Publishing::new(row.kinds, row.budget, None);
    hold(row.name, system, row.reaches)
}

fn is_found((name, fault, kinds, budget, by): &Planted) -> Result<(), Failed> {
    let system = |fault| Publishing::new(kinds, *budget, fault);
    caught(name, by, system(None), system(Some(*fault)))
}

pub fn trials() -> Vec<Trial> {
    let rows = ROWS.iter().map(|row| {
        let held = proof(format!("protocol::model::{}_keep_the_promises", row.name), move || {
            explored(row).map(drop).map_err(Failed::from)
        });
        if row.name == LARGE { deep(held) } else { held }
    });
    let planted = PLANTED.iter().map(|planted| {
        proof(format!("protocol::model::{}_is_caught", planted.0), move || is_found(planted))
    });
    rows.chain(planted).collect()
}
