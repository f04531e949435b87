//! The explored rows of shared sandboxes, what must occur, and the planted faults.

use std::collections::BTreeSet;

use bobbin_core::records::control::Operation;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::Phase;
use libtest_mimic::{Failed, Trial};
use stateright::Property;

use super::super::super::promises::{self, is_broken};
use super::super::super::transitions::Transition;
use super::super::driver::Driver;
use super::super::faults::Fault;
use super::super::walk::{CONVERGENCE, Explored, Walk, caught, hold};
use super::money::MONTH;
use super::{Action, Budget, Kind, Share, Shared, State, THREADS};
use crate::{deep, proof};

impl Explored for Shared {
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
        matches!(action, Action::Crash(_) | Action::Lapse(_) | Action::Age(_) | Action::Relink)
    }

    fn within(&self, state: &State) -> bool {
        self.within(state)
    }

    fn converged(&self, state: &State) -> bool {
        self.converged(state)
    }

    fn told(&self, state: &State) -> String {
        let why = (0..THREADS).map(|at| promises::check(&self.history(state, at, true)).err());
        let records = (0..THREADS).map(|at| (self.record(state, at), self.home(state, at)));
        format!("{:?}, with {:?}, {state:?}", why.collect::<Vec<_>>(), records.collect::<Vec<_>>())
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
            Property::always("month", |w: &Walk<Self>, s: &State| w.system.is_within_month(s)),
            // Proves that the case occurred.
            Property::sometimes("both at work", |w: &Walk<Self>, s: &State| {
                w.system.home(s, 0).sandbox.sharing.in_use.len() == 2
            }),
            Property::sometimes("one in line", |w: &Walk<Self>, s: &State| {
                !w.system.home(s, 0).sandbox.sharing.waiting.is_empty()
            }),
            Property::sometimes("paused", |w: &Walk<Self>, s: &State| {
                w.system.home(s, 0).sandbox.phase == Phase::Paused
            }),
            Property::sometimes("resumed", |w: &Walk<Self>, s: &State| {
                w.system.home(s, 0).sandbox.phase == Phase::Resuming
            }),
            Property::sometimes("destroyed", |w: &Walk<Self>, s: &State| {
                w.system.home(s, 0).sandbox.phase == Phase::Destroyed
            }),
            Property::sometimes("a turn that lost its sandbox", |w: &Walk<Self>, s: &State| {
                let lost = |at| {
                    let record = w.system.record(s, at);
                    record.ended.iter().any(|one| one.outcome == Outcome::Lost)
                };
                (0..THREADS).any(lost)
            }),
            Property::sometimes("gone to its own", |w: &Walk<Self>, s: &State| {
                w.system.home(s, 1).sandbox.generation > 0
            }),
            Property::sometimes("told", |_, s: &State| s.told != 0),
            Property::sometimes("month passed by steps", |_, s: &State| s.used > MONTH),
            Property::sometimes("stopped by budget", |w: &Walk<Self>, s: &State| {
                w.system.is_stopped(s, true)
            }),
            Property::sometimes("refused by budget", |w: &Walk<Self>, s: &State| {
                w.system.is_stopped(s, false)
            }),
            Property::sometimes("two at work on it", |_, s: &State| {
                let workers = || s.workers.iter().flatten();
                workers().any(|one| one.group < THREADS)
                    && workers().any(|one| one.group >= THREADS)
            }),
            Property::sometimes("converged", |w: &Walk<Self>, s| w.system.converged(s)),
        ]
    }
}

/// A row: how the threads share sandboxes, the accepted messages, the trouble, and what must occur.
struct Row {
    name: &'static str,
    share: Share,
    kinds: &'static [Kind],
    budget: Budget,
    reaches: &'static [&'static str],
}

const NONE: Budget = Budget { crashes: 0, lapses: 0, sweeps: 0, ages: 0 };

const ROWS: [Row; 5] = [
    Row {
        name: "private_sandbox_sweeps",
        share: Share::Private,
        kinds: &[Kind::Prompt(0)],
        budget: Budget { crashes: 1, sweeps: 1, ..NONE },
        reaches: &["paused", "resumed", "two at work on it", "converged"],
    },
    Row {
        name: "pauses_beside_turns",
        share: Share::Common,
        kinds: &[Kind::Prompt(1), Kind::Operate(Operation::Pause)],
        budget: Budget { crashes: 1, ages: 1, ..NONE },
        reaches: &["paused", "resumed", "two at work on it", "converged"],
    },
    Row {
        name: "threads_taking_turns",
        share: Share::Common,
        kinds: &[Kind::Prompt(0), Kind::Prompt(1)],
        budget: NONE,
        reaches: &["one in line", "converged"],
    },
    Row {
        name: "destroyed_parallel_threads",
        share: Share::Worktrees,
        kinds: &[Kind::Prompt(1), Kind::Operate(Operation::Destroy), Kind::Prompt(0)],
        budget: NONE,
        reaches: &[
            "both at work",
            "destroyed",
            "gone to its own",
            "told",
            "two at work on it",
            "converged",
        ],
    },
    Row {
        name: "destroys_under_turns",
        share: Share::Common,
        kinds: &[Kind::Prompt(1), Kind::Operate(Operation::Destroy)],
        budget: Budget { ages: 1, ..NONE },
        reaches: &[
            "destroyed",
            "a turn that lost its sandbox",
            "told",
            "two at work on it",
            "converged",
        ],
    },
];

/// Two threads at work at once, within the month of their tenant.
const CAPPED: [Row; 3] = [
    Row {
        name: "month_of_two_threads",
        share: Share::Apart,
        kinds: &[Kind::Prompt(0), Kind::Prompt(1)],
        budget: Budget { crashes: 1, ..NONE },
        reaches: &["month passed by steps", "stopped by budget", "converged"],
    },
    Row {
        name: "exhausted_month",
        share: Share::Apart,
        kinds: &[Kind::Prompt(0), Kind::Prompt(1), Kind::Prompt(0)],
        budget: Budget { crashes: 1, ..NONE },
        reaches: &["stopped by budget", "refused by budget", "converged"],
    },
    Row {
        name: "month_under_destroys",
        share: Share::Apart,
        kinds: &[Kind::Prompt(0), Kind::Operate(Operation::Destroy)],
        budget: Budget { ages: 1, ..NONE },
        reaches: &["a turn that lost its sandbox", "destroyed", "converged"],
    },
];

/// Faults around the stored sum.
const MISCOUNTED: [Planted; 2] = [
    (
        "sum_added_to_unasked",
        Fault::SumsUnasked,
        Share::Apart,
        &[Kind::Prompt(0), Kind::Prompt(1)],
        NONE,
        "month",
    ),
    (
        "reservation_kept",
        Fault::NothingGivenBack,
        Share::Apart,
        &[Kind::Prompt(0), Kind::Operate(Operation::Destroy)],
        Budget { ages: 1, ..NONE },
        CONVERGENCE,
    ),
];

/// A design fault, its row, and the properties that find it.
type Planted = (&'static str, Fault, Share, &'static [Kind], Budget, &'static str);

const PLANTED: [Planted; 5] = [
    (
        "endless_lease",
        Fault::EndlessLease,
        Share::Common,
        &[Kind::Operate(Operation::Pause), Kind::Prompt(1)],
        Budget { crashes: 1, ..NONE },
        CONVERGENCE,
    ),
    (
        "ignored_lease",
        Fault::UnseenLease,
        Share::Common,
        &[Kind::Operate(Operation::Pause), Kind::Prompt(1)],
        NONE,
        "promise 6",
    ),
    (
        "unchecked_workspace",
        Fault::UncheckedWorkspace,
        Share::Common,
        &[Kind::Prompt(0), Kind::Prompt(1)],
        NONE,
        "promise 10",
    ),
    (
        "pause_ignoring_users",
        Fault::UnseenUse,
        Share::Worktrees,
        &[Kind::Prompt(1), Kind::Operate(Operation::Pause)],
        NONE,
        "promise 6",
    ),
    (
        "link_changed_mid_turn",
        Fault::LinkAtOnce,
        Share::Common,
        &[Kind::Prompt(1)],
        NONE,
        CONVERGENCE,
    ),
];

/// What happens in the smaller rows, for the document.
pub fn transitions_of_few_states() -> impl Iterator<Item = Result<BTreeSet<Transition>, String>> {
    ROWS.iter().map(explored).chain(CAPPED.iter().map(counted))
}

fn explored(row: &Row) -> Result<BTreeSet<Transition>, String> {
    let system = Shared::new(row.share, row.kinds, row.budget, None);
    hold(row.name, system, row.reaches)
}

/// The same with a monthly budget.
fn counted(row: &Row) -> Result<BTreeSet<Transition>, String> {
    let system = Shared::new(row.share, row.kinds, row.budget, None);
    hold(row.name, system.within_month(), row.reaches)
}

fn is_counted((name, fault, share, kinds, budget, by): &Planted) -> Result<(), Failed> {
    let system = |fault| Shared::new(*share, kinds, *budget, fault).within_month();
    caught(name, by, system(None), system(Some(*fault)))
}

fn is_found((name, fault, share, kinds, budget, by): &Planted) -> Result<(), Failed> {
    let system = |fault| Shared::new(*share, kinds, *budget, fault);
    caught(name, by, system(None), system(Some(*fault)))
}

/// Half a million states.
const LARGE: &str = "destroyed_parallel_threads";

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
    let capped = CAPPED.iter().map(|row| {
        proof(format!("protocol::model::{}_keeps_its_budget", row.name), move || {
            counted(row).map(drop).map_err(Failed::from)
        })
    });
    let miscounted = MISCOUNTED.iter().map(|planted| {
        proof(format!("protocol::model::{}_is_caught", planted.0), move || is_counted(planted))
    });
    rows.chain(planted).chain(capped).chain(miscounted).collect()
}
