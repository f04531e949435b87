//! The cost of turns against their tenant's month: one stored sum that both threads change.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::budgets::{BudgetWrite, Budgets, MicroUsd, RESERVED_MIN};

use super::super::faults::Fault;
use super::{Known, Run, Shared, State, THREADS};

/// The cost of a step, and the number of steps in a run.
const STEP: MicroUsd = 200_000;
const STEPS: u8 = 3;
/// Not a whole number of steps, so that a turn exceeds its reservation.
const TURN: MicroUsd = 250_000;
/// The second turn reserves what the first one leaves: the least that a turn needs to begin.
pub const MONTH: MicroUsd = TURN + RESERVED_MIN;

impl Shared {
    /// From now on the month and each turn have a budget.
    pub fn within_month(mut self) -> Self {
        let budgets = Budgets { turn: Some(TURN), month: Some(MONTH), ..Budgets::default() };
        self.driver.set_budgets(budgets);
        self.is_capped = true;
        self
    }

    /// Changes the stored sum with the records; returns the sum that leaves too little.
    pub(super) fn change_sums(&self, s: &mut State, writes: &[BudgetWrite]) -> Option<MicroUsd> {
        let used = s.used;
        let is_over = |one: &BudgetWrite| one.at_most.is_some_and(|at_most| used > at_most);
        if writes.iter().any(is_over) && !self.has(Fault::SumsUnasked) {
            return Some(used);
        }
        let kept = |one: &&BudgetWrite| one.add > 0 || !self.has(Fault::NothingGivenBack);
        let change: i64 = writes.iter().filter(kept).map(|one| one.add).sum();
        s.used = used.checked_add_signed(change).expect("no sum falls below zero");
        None
    }

    /// Spent amounts, and reservations of running turns if higher, exceed the month by at most one step for each turn
    /// that can run.
    pub(super) fn is_within_month(&self, s: &State) -> bool {
        let of_thread = |at: usize| {
            let record = self.record(s, at);
            let turn = record.turn.as_ref();
            let reserved = turn.and_then(|turn| turn.reserved.as_ref()).map_or(0, |it| it.amount);
            let spent = turn.and_then(|turn| self.driver.turn_of(&turn.id));
            let spent = spent.and_then(|turn| s.known[usize::from(turn)].spent());
            record.spent + reserved.max(spent.unwrap_or_default())
        };
        (0..THREADS).map(of_thread).sum::<MicroUsd>() <= MONTH + STEP * THREADS as u64
    }

    /// Nothing is reserved: the stored sum is what the threads have spent.
    pub(super) fn is_settled(&self, s: &State) -> bool {
        !self.is_capped
            || (0..THREADS).map(|at| self.record(s, at).spent).sum::<MicroUsd>() == s.used
    }

    /// Whether a budget ended a turn, after or before its run began.
    pub(super) fn is_stopped(&self, s: &State, is_begun: bool) -> bool {
        (0..THREADS).any(|at| {
            self.record(s, at).ended.iter().any(|ended| {
                let turn = self.driver.turn_of(&ended.id).map_or(0, usize::from);
                matches!(ended.outcome, Outcome::OverBudget { .. })
                    && (s.known[turn].run != Run::None) == is_begun
            })
        })
    }
}

impl Known {
    /// Takes a step before a poll, unless its earlier cost is to be seen first. Returns whether the run continues.
    pub(super) fn goes_on(&mut self, budget: Option<MicroUsd>) -> bool {
        if budget.is_none_or(|budget| self.spent() < Some(budget)) {
            self.steps += 1;
        }
        self.steps < STEPS
    }

    /// The cost of its runs; `None`: nothing.
    pub(super) fn spent(&self) -> Option<MicroUsd> {
        (self.steps > 0).then(|| u64::from(self.steps) * STEP)
    }
}
