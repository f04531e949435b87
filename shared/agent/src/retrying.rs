//! A model that did not answer and is asked again, in words for people.

use bobbin_core::base::credentials::redact;
use bobbin_core::base::ids::Ms;
use bobbin_core::records::card::{CardStep, StepState};
use chrono::DateTime;

use crate::steps::first_line;

/// Characters of what the model's provider said.
const SAID_CHARS_MAX: usize = 200;

/// A model that did not answer and is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retrying {
    /// What its provider said: one line, shortened, without credentials. Empty: nothing.
    said: String,
    /// The attempt number, from 1; `None` if the agent does not count them.
    attempt: Option<u32>,
    /// When it is asked again, where the agent says.
    next_ms: Option<Ms>,
}

impl Retrying {
    /// As the agent says it.
    #[must_use]
    pub fn new(said: &str, attempt: Option<u32>, next_ms: Option<Ms>) -> Self {
        let said = redact(&first_line(said, SAID_CHARS_MAX));
        // A sentence of ours goes on after it; what is left of a cut says so.
        let whole = said.strip_suffix(".…").or_else(|| said.strip_suffix('.'));
        Self {
            said: whole.unwrap_or(&said).to_owned(),
            attempt,
            next_ms: next_ms.filter(|at| *at > 0),
        }
    }

    /// As the card shows it.
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

    /// Why nobody waits for it, where it is asked again only after that time.
    #[must_use]
    pub fn later_than(&self, ends_ms: Ms) -> Option<String> {
        let next_ms = self.next_ms.filter(|at| *at >= ends_ms)?;
        let at = clock(next_ms)?;
        let failed = self.failed();
        Some(format!(
            "{failed}. It would be asked again at {at} at the earliest, which is later than a task may run. Send the task again then, or with another model."
        ))
    }

    fn failed(&self) -> String {
        if self.said.is_empty() {
            return "The model did not answer".to_owned();
        }
        format!("The model did not answer: {}", self.said)
    }
}

/// A time as everybody reads it; none for one that no calendar has.
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
            why.starts_with("The model did not answer: The quota is used up. It would be asked again at Nov 25, 10:00 UTC"),
            "{why}"
        );
    }
}
