//! What was spent, as its asker may see it: their own day, the thread, the channel and the place. Pure.

use crate::base::ids::Ms;
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::tenant::budgets::{BudgetKind, BudgetScope, Budgets, MicroUsd, day, month};
use crate::text::dollars;

/// Threads and people that are listed.
pub const LISTED_MAX: usize = 5;

const BAR_CELLS: u64 = 10;
const HARD: &str = "The cap is hard: the model key of this thread's own sandbox pays for no more than its tasks have set aside.";
const NOT_HARD: &str = "The cap is not hard: this thread's sandbox has no model key of its own, so steps under way can pass it.";

/// What a person is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsagePage {
    /// Those that are set.
    pub budgets: Budgets,
    /// What the thread has spent and set aside; `None` outside of a thread.
    pub thread: Option<MicroUsd>,
    /// Whether the server of the thread's sandbox has a capped key; `None`: no server runs.
    pub is_capped: Option<bool>,
    /// The stored sums.
    pub sums: Vec<(BudgetScope, MicroUsd)>,
    /// Threads as the chat shows them, the dearest first.
    pub threads: Vec<(String, MicroUsd)>,
    /// People by their ids with what they have spent this month, the highest first.
    pub people: Vec<(String, MicroUsd)>,
    /// The command that sets budgets, as typed there.
    pub command: String,
}

/// The stored sums that a person may see: only sums with a budget are counted.
#[must_use]
pub fn scopes(budgets: &Budgets, person: &str, channel: &str, now_ms: Ms) -> Vec<BudgetScope> {
    let (day, month) = (day(now_ms), month(now_ms));
    let all = [
        BudgetScope::Person { id: person.to_owned(), day },
        BudgetScope::Channel { id: channel.to_owned(), month: month.clone() },
        BudgetScope::Tenant { month },
    ];
    let is_somebodys = |scope: &BudgetScope| match scope {
        BudgetScope::Person { id, .. } | BudgetScope::Channel { id, .. } => !id.is_empty(),
        BudgetScope::Tenant { .. } | BudgetScope::Stack { .. } => true,
    };
    let is_set = |scope: &BudgetScope| budgets.of(scope.kind()).is_some();
    all.into_iter().filter(|scope| is_set(scope) && is_somebodys(scope)).collect()
}

/// What a thread has spent, with what its running turn has set aside.
#[must_use]
pub fn of_thread(session: &Session) -> MicroUsd {
    let reserved = session.turn.as_ref().and_then(|turn| turn.reserved.as_ref());
    session.spent + reserved.map_or(0, |reserved| reserved.amount)
}

/// Whether the thread's server has a capped key; `None` while none runs.
#[must_use]
pub fn is_capped(session: &Session) -> Option<bool> {
    let sandbox = &session.sandbox;
    (sandbox.phase == Phase::Active).then_some(sandbox.money.capped_until_ms.is_some())
}

/// The dearest of a list, without those that cost nothing.
#[must_use]
pub fn dearest(all: impl IntoIterator<Item = (String, MicroUsd)>) -> Vec<(String, MicroUsd)> {
    let mut all: Vec<(String, MicroUsd)> = all.into_iter().filter(|(_, sum)| *sum > 0).collect();
    all.sort_by(|(one, spent), (other, more)| (more, one).cmp(&(spent, other)));
    all.truncate(LISTED_MAX);
    all
}

impl UsagePage {
    /// The sums that are known, each beside its budget.
    #[must_use]
    pub fn sums(&self) -> Vec<String> {
        let sum = |kind: BudgetKind| {
            let of_kind = |(scope, _): &&(BudgetScope, MicroUsd)| scope.kind() == kind;
            self.sums.iter().find(of_kind).map(|(_, used)| *used)
        };
        let shown = [
            ("You, today", sum(BudgetKind::PersonDay), self.budgets.person_day),
            ("This thread", self.thread, self.budgets.thread),
            ("This channel, this month", sum(BudgetKind::ChannelMonth), self.budgets.channel_month),
            ("This place, this month", sum(BudgetKind::Month), self.budgets.month),
        ];
        let line = |(what, used, limit): (&str, Option<MicroUsd>, Option<MicroUsd>)| {
            Some(format!("{what}: {}", amount(used?, limit)))
        };
        shown.into_iter().filter_map(line).collect()
    }

    /// The whole page.
    #[must_use]
    pub fn words(&self) -> String {
        let mut lines = self.sums();
        if let Some(turn) = self.budgets.turn {
            lines.push(format!("Each task: up to {}", dollars(turn)));
        }
        lines.extend(self.cap());
        list("Most expensive threads that have a sandbox:", &self.threads, &mut lines);
        list("People, this month:", &self.people, &mut lines);
        lines.extend(self.uncounted());
        if !self.sums.is_empty() {
            lines.push(
                "Days and months are in UTC. A running task counts at its reserved amount."
                    .to_owned(),
            );
        }
        lines.join("\n")
    }

    /// Whether the vendor bounds what the thread's sandbox spends.
    fn cap(&self) -> Option<String> {
        let is_capped = self.is_capped.filter(|_| !self.budgets.is_empty())?;
        Some(if is_capped { HARD } else { NOT_HARD }.to_owned())
    }

    /// What is not counted, and how that is changed.
    fn uncounted(&self) -> Option<String> {
        let all = [
            ("people", self.budgets.person_day),
            ("channels", self.budgets.channel_month),
            ("this place", self.budgets.month),
        ];
        let missing = all.into_iter().filter(|(_, budget)| budget.is_none());
        let missing: Vec<&str> = missing.map(|(what, _)| what).collect();
        let how = format!("A manager sets one with `{}`.", self.command);
        match missing[..] {
            [] => None,
            [_, _, _] => {
                Some(format!("Only threads are counted: nothing else has a budget here. {how}"))
            }
            _ => Some(format!(
                "Not counted, because there is no budget: {}. {how}",
                missing.join(", ")
            )),
        }
    }
}

/// A sum, beside its budget if there is one: `▓▓▓▓░░░░░░ $123.40 of $300.00`.
#[must_use]
pub fn amount(used: MicroUsd, limit: Option<MicroUsd>) -> String {
    let Some(limit) = limit else { return dollars(used) };
    let filled = (used.saturating_mul(BAR_CELLS) / limit.max(1)).min(BAR_CELLS);
    let bar = (0..BAR_CELLS).map(|cell| if cell < filled { '▓' } else { '░' });
    format!("{} {} of {}", bar.collect::<String>(), dollars(used), dollars(limit))
}

fn list(head: &str, all: &[(String, MicroUsd)], lines: &mut Vec<String>) {
    if !all.is_empty() {
        lines.push(head.to_owned());
    }
    lines.extend(all.iter().map(|(who, sum)| format!("- {who} {}", dollars(*sum))));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-28.
    const NOW_MS: Ms = 1_795_824_000_000;

    fn command() -> String {
        "/sandbox-config budget".to_owned()
    }

    #[test]
    fn a_page_shows_sums_beside_their_budgets() {
        let budgets = Budgets {
            turn: Some(2_000_000),
            thread: Some(5_000_000),
            person_day: Some(10_000_000),
            channel_month: None,
            month: Some(300_000_000),
        };
        let sums = scopes(&budgets, "4", "20", NOW_MS);
        let expected = [
            BudgetScope::Person { id: "4".to_owned(), day: "2026-11-28".to_owned() },
            BudgetScope::Tenant { month: "2026-11".to_owned() },
        ];
        assert_eq!(sums, expected);
        let page = UsagePage {
            budgets,
            thread: Some(420_000),
            is_capped: Some(true),
            sums: sums.into_iter().zip([10_000_000, 123_400_000]).collect(),
            threads: vec![("<#2>".to_owned(), 1_500_000)],
            people: vec![("`4`".to_owned(), 100_000_000)],
            command: command(),
        };
        assert_eq!(
            page.words(),
            "\
You, today: ▓▓▓▓▓▓▓▓▓▓ $10.00 of $10.00
This thread: ░░░░░░░░░░ $0.42 of $5.00
This place, this month: ▓▓▓▓░░░░░░ $123.40 of $300.00
Each task: up to $2.00
The cap is hard: the model key of this thread's own sandbox pays for no more than its tasks have set aside.
Most expensive threads that have a sandbox:
- <#2> $1.50
People, this month:
- `4` $100.00
Not counted, because there is no budget: channels. A manager sets one with `/sandbox-config budget`.
Days and months are in UTC. A running task counts at its reserved amount."
        );
    }

    #[test]
    fn a_cap_that_is_not_hard_says_so() {
        let page = |is_capped, turn| {
            let budgets = Budgets { turn, ..Budgets::default() };
            UsagePage { is_capped, budgets, ..UsagePage::default() }.words()
        };
        let said = "The cap is not hard: this thread's sandbox has no model key of its own, so steps under way can pass it.";
        assert!(page(Some(false), Some(2_000_000)).contains(said));
        assert!(!page(None, Some(2_000_000)).contains("The cap"), "no server runs");
        assert!(!page(Some(false), None).contains("The cap"), "nothing is capped");
    }

    #[test]
    fn without_budgets_only_threads_are_counted() {
        let page =
            UsagePage { thread: Some(1_320_000), command: command(), ..UsagePage::default() };
        assert_eq!(
            page.words(),
            "\
This thread: $1.32
Only threads are counted: nothing else has a budget here. A manager sets one with `/sandbox-config budget`."
        );
        assert_eq!(scopes(&Budgets::default(), "4", "20", NOW_MS), []);
    }

    #[test]
    fn only_the_dearest_are_listed() {
        let all = [("a", 1), ("b", 3), ("c", 0), ("d", 3), ("e", 9), ("f", 2), ("g", 4)];
        let names: Vec<String> = dearest(all.map(|(name, sum)| (name.to_owned(), sum)))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["e", "g", "b", "d", "f"]);
    }
}
