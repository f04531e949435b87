//! What turns cost, against the month of their tenant: one stored sum that both threads change.

use bobbin_core::records::outcome::Outcome;
use bobbin_core::tenant::budgets::{BudgetWrite, Budgets, MicroUsd, RESERVED_MIN};

use super::super::faults::Fault;
use super::{Known, Run, Shared, State, THREADS};

/// What a step costs, and how many a run takes.
const STEP: MicroUsd = 200_000;
const STEPS: u8 = 3;
/// No whole number of steps, so that a turn passes what it has set aside.
const TURN: MicroUsd = 250_000;
/// The second turn sets aside what the first one leaves, the least that begins a turn.
pub const MONTH: MicroUsd = TURN + RESERVED_MIN;

impl Shared {
    /// From now on the month and each turn have a budget.
    pub fn within_month(mut self) -> Self {
        let budgets = Budgets { turn: Some(TURN), month: Some(MONTH), ..Budgets::default() };
        self.driver.set_budgets(budgets);
        self.is_capped = true;
        self
    }

    /// Changes the stored sum with the records; what it is, where it leaves too little.
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

    /// What was spent, and for running turns what is set aside if that is more, passes the month by no more than a step
    /// for each turn that can run.
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

    /// Nothing is set aside: the stored sum is what the threads have spent.
    pub(super) fn is_settled(&self, s: &State) -> bool {
        !self.is_capped
            || (0..THREADS).map(|at| self.record(s, at).spent).sum::<MicroUsd>() == s.used
    }

    /// Whether a turn was ended by a budget, after or before its run began.
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
    /// Takes a step before a look, unless what it has spent is to be seen first. Whether the run goes on.
    pub(super) fn goes_on(&mut self, budget: Option<MicroUsd>) -> bool {
        if budget.is_none_or(|budget| self.spent() < Some(budget)) {
            self.steps += 1;
        }
        self.steps < STEPS
    }

    /// What its runs have cost; `None`: nothing.
    pub(super) fn spent(&self) -> Option<MicroUsd> {
        (self.steps > 0).then(|| u64::from(self.steps) * STEP)
    }
}
