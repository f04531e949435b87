//! Whether all direct messages of a person are one thread, as a function of when a message was sent.
//!
//! Promised: every process that asks about the same message gets the same answer, whenever it asks and however often
//! the setting has changed meanwhile, so that a message delivered twice is in one thread. A switch applies to messages
//! sent some time after it was made. By then it is stored, and whoever reads the settings after such a message was sent
//! sees it. That time is longer than writing a switch can take and the clocks can differ.

use serde::{Deserialize, Serialize};

use super::Settings;
use crate::base::ids::Ms;
use crate::base::person::Person;

/// Switches that are kept; messages from before the oldest one had the opposite setting.
pub const SWITCHES_MAX: usize = 50;

/// All direct messages of a person became one thread, or ceased to be one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectSwitch {
    /// Id of the message that requested it, so that a repeat is recognised.
    pub id: String,
    /// When it was made.
    pub at_ms: Ms,
    /// It applies to messages sent at this time or later.
    pub since_ms: Ms,
    /// The person who switched it.
    pub by: Person,
    /// They are one thread.
    pub one_thread: bool,
}

impl Settings {
    /// Whether a direct message sent at `sent_ms`, by the chat's clock, is in its author's one thread. The settings
    /// must be read after that time.
    #[must_use]
    pub fn is_one_thread(&self, sent_ms: Ms) -> bool {
        let before = |switch: &&DirectSwitch| switch.since_ms <= sent_ms;
        match self.direct.iter().rev().find(before) {
            Some(switch) => switch.one_thread,
            None => self.direct.first().is_some_and(|first| !first.one_thread),
        }
    }

    /// The settings after a switch. A switch to the present setting, or one that was already made, changes nothing.
    pub(super) fn switched(
        &self,
        id: &str,
        one_thread: bool,
        by: &Person,
        now_ms: Ms,
        switch_ms: u64,
    ) -> Self {
        let mut next = self.clone();
        let last = self.direct.last();
        let holds = last.is_some_and(|last| last.one_thread) == one_thread;
        if holds || self.direct.iter().any(|made| made.id == id) {
            return next;
        }
        // Never before the last one, even if a clock is behind.
        let earliest_ms = last.map_or(0, |last| last.since_ms + 1);
        next.direct.push(DirectSwitch {
            id: id.to_owned(),
            at_ms: now_ms,
            since_ms: (now_ms + switch_ms).max(earliest_ms),
            by: by.clone(),
            one_thread,
        });
        let surplus = next.direct.len().saturating_sub(SWITCHES_MAX);
        next.direct.drain(..surplus);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::person::Membership;
    use crate::tenant::settings::{NotChanged, SettingsChange};

    const SWITCH_MS: u64 = 20;

    fn switch(settings: &Settings, id: &str, one_thread: bool, now_ms: Ms) -> Settings {
        let manager = Membership { manages: true, ..Membership::default() };
        let change = SettingsChange::Direct { one_thread };
        settings.changed(id, &change, &Person::default(), &manager, now_ms, SWITCH_MS).expect("may")
    }

    #[test]
    fn direct_threads_are_separate_by_default() {
        let fresh = Settings::default();
        assert!(!fresh.is_one_thread(0) && !fresh.is_one_thread(u64::MAX));
        let change = SettingsChange::Direct { one_thread: true };
        let visitor = Membership::default();
        let refused = fresh.changed("a", &change, &Person::default(), &visitor, 1, SWITCH_MS);
        assert_eq!(refused, Err(NotChanged::NotAllowed));
        let one = switch(&fresh, "a", true, 100);
        let of = [99, 119, 120, 10_000].map(|sent_ms| one.is_one_thread(sent_ms));
        assert_eq!(of, [false, false, true, true]);
    }

    #[test]
    fn later_switch_never_moves_messages() {
        let mut settings = Settings::default();
        let mut seen: Vec<(Ms, bool)> = Vec::new();
        let mut one_thread = false;
        for now_ms in (1_000..4_000).step_by(7) {
            if now_ms % 3 == 0 {
                one_thread = !one_thread;
                settings = switch(&settings, &now_ms.to_string(), one_thread, now_ms);
            }
            // As long as the oldest kept switch is older; also at its own time.
            let oldest = settings.direct.first().map_or(0, |first| first.since_ms);
            seen.retain(|(sent_ms, _)| settings.direct.len() < SWITCHES_MAX || *sent_ms >= oldest);
            for (sent_ms, was) in &seen {
                assert_eq!(settings.is_one_thread(*sent_ms), *was, "{sent_ms} at {now_ms}");
            }
            // A reader of the settings knows this for all messages sent until a later switch can apply.
            for sent_ms in [now_ms, now_ms + SWITCH_MS - 1] {
                seen.push((sent_ms, settings.is_one_thread(sent_ms)));
            }
        }
        assert_eq!(settings.direct.len(), SWITCHES_MAX);
        let first = settings.direct[0].since_ms;
        assert_ne!(settings.is_one_thread(first - 1), settings.is_one_thread(first));
    }

    #[test]
    fn redundant_switch_is_ignored() {
        let once = switch(&Settings::default(), "a", true, 100);
        assert_eq!(switch(&once, "a", true, 900), once);
        assert_eq!(switch(&once, "b", true, 900), once);
        let back = switch(&once, "c", false, 100);
        assert_eq!(switch(&back, "a", true, 900), back);
        let since: Vec<Ms> = back.direct.iter().map(|one| one.since_ms).collect();
        assert_eq!(since, [120, 121]);
        let never = Settings::default();
        assert_eq!(switch(&never, "d", false, 100), never);
    }
}
