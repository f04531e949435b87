//! A failed model call that will be retried, described for people.

use bobbin_core::base::credentials::redact;
use bobbin_core::base::ids::Ms;
use bobbin_core::records::card::{CardStep, StepState};
use chrono::DateTime;

use crate::reason::Reason;
use crate::steps::first_line;

/// Longest part of the vendor's message, in characters.
const SAID_CHARS_MAX: usize = 200;

/// A failed model call that will be retried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retrying {
    /// The vendor's message: one line, shortened, without credentials; may be empty.
    said: String,
    /// The attempt number, from 1; `None` if the agent does not count them.
    attempt: Option<u32>,
    /// Time of the next attempt, if the agent reports it.
    next_ms: Option<Ms>,
    /// Why no attempt will help: the vendor's account or key has no money left.
    spent: Option<String>,
}

impl Retrying {
    /// From the agent's own message.
    #[must_use]
    pub fn new(said: &str, attempt: Option<u32>, next_ms: Option<Ms>) -> Self {
        let reason = Reason::of("", None, said, "");
        let spent = reason.is_budget().then(|| reason.text().to_owned());
        let said = redact(&first_line(said, SAID_CHARS_MAX));
        // A sentence of ours follows it; a cut is still marked.
        let whole = said.strip_suffix(".…").or_else(|| said.strip_suffix('.'));
        Self {
            said: whole.unwrap_or(&said).to_owned(),
            attempt,
            next_ms: next_ms.filter(|at| *at > 0),
            spent,
        }
    }

    /// The step for the card.
    #[must_use]
    pub fn step(&self) -> CardStep {
        let at = self.next_ms.and_then(clock);
        let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
        let attempt = self.attempt.map(|nth| format!(" (attempt {nth})"));
        let attempt = attempt.unwrap_or_default();
        CardStep {
            text: format!("{}, trying again{at}{attempt}", self.failed()),
            state: StepState::Running,
        }
    }

    /// Why no attempt will help, if the vendor's account or key has no money left.
    #[must_use]
    pub fn over_budget(&self) -> Option<&str> {
        self.spent.as_deref()
    }

    /// If the next attempt comes only after that time: why nobody waits for it.
    #[must_use]
    pub fn later_than(&self, ends_ms: Ms) -> Option<String> {
        let next_ms = self.next_ms.filter(|at| *at >= ends_ms)?;
        let at = clock(next_ms)?;
        let failed = self.failed();
        Some(format!(
            "{failed}. The earliest retry would be at {at}, which is later than a task may run. Send the task again then, or choose another model."
        ))
    }

    fn failed(&self) -> String {
        if self.said.is_empty() {
            return "The model did not answer".to_owned();
        }
        format!("The model did not answer: {}", self.said)
    }
}

/// A time in readable form; `None` if it is beyond the calendar's range.
fn clock(at_ms: Ms) -> Option<String> {
    let at = DateTime::from_timestamp_millis(i64::try_from(at_ms).ok()?)?;
    Some(at.format("%b %-d, %H:%M UTC").to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 24 November 2026, 10:00 UTC.
    const NOW_MS: Ms = 1_795_514_400_000;
    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn retry_step_shows_reason_without_secrets() {
        let said = "You have exceeded the 5-hour usage quota.\nIt will reset at 16:11, key sk-ant-api03-abcdefghijklmnop";
        let retrying = Retrying::new(said, Some(1), Some(NOW_MS + HOUR_MS));
        assert_eq!(
            retrying.step().text,
            "The model did not answer: You have exceeded the 5-hour usage quota, trying again at Nov 24, 11:00 UTC (attempt 1)"
        );
        let shown = Retrying::new("bad key sk-ant-api03-abcdefghijklmnop", None, None);
        assert!(!shown.step().text.contains("abcdefgh"), "{shown:?}");
        let nothing = Retrying::new("", None, None).step();
        assert_eq!(nothing.text, "The model did not answer, trying again");
    }

    /// OpenCode tries again for more than a minute what no attempt can cure.
    #[test]
    fn spent_money_is_not_retried() {
        for code in ["project_spend_limit_exceeded", "organization_spend_limit_exceeded"] {
            let retrying = Retrying::new(&format!("429: {code}"), Some(1), Some(NOW_MS));
            assert!(retrying.over_budget().unwrap().contains(code), "{retrying:?}");
        }
        assert_eq!(Retrying::new("Rate limit reached", Some(1), None).over_budget(), None);
    }

    #[test]
    fn late_retry_is_not_awaited() {
        let ends_ms = NOW_MS + HOUR_MS;
        let soon = Retrying::new("quota", Some(1), Some(ends_ms - 1));
        assert_eq!(soon.later_than(ends_ms), None);
        let unknown = Retrying::new("quota", Some(1), None);
        assert_eq!(unknown.later_than(ends_ms), None);
        let tomorrow = Retrying::new("The quota is used up.", Some(1), Some(NOW_MS + 24 * HOUR_MS));
        let why = tomorrow.later_than(ends_ms).unwrap();
        assert!(
            why.starts_with("The model did not answer: The quota is used up. The earliest retry would be at Nov 25, 10:00 UTC"),
            "{why}"
        );
    }
}
