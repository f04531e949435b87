//! Counts and states in words.

use bobbin_core::records::card::{Card, CardState, Spending};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::usage::Usage;
use bobbin_core::text::{dollars, span, thousands};

/// The current activity, in a few words.
pub(super) fn title(state: &CardState) -> &'static str {
    match state {
        CardState::Received => "Received, getting ready",
        CardState::Queued { .. } => "Queued",
        CardState::Shared { .. } => "Waiting for another thread",
        CardState::Creating => "Creating a sandbox",
        CardState::SettingUp { .. } => "Setting up the project",
        CardState::Resuming => "Waking the sandbox",
        CardState::Working => "Working",
        CardState::Waiting => "Waiting for your answer below",
        CardState::Stopping => "Stopping",
        CardState::Ended { outcome, .. } => match outcome {
            Outcome::Answered => "Done",
            Outcome::Failed { .. } => "Failed",
            Outcome::OverBudget { .. } => "Stopped by budget",
            Outcome::Cancelled { .. } => "Stopped",
            Outcome::Joined { .. } => "Sent into the running task",
            Outcome::Lost => "Lost",
        },
    }
}

/// The facts under a card: model, time, and at the end the cost.
pub(super) fn facts(card: &Card) -> Vec<String> {
    let took = span(card.now_ms.saturating_sub(card.since_ms));
    let mut facts = vec![card.model.clone()];
    match &card.state {
        CardState::Ended { usage: usage @ Usage { tokens, cost_micro_usd, .. }, outcome } => {
            let waited = matches!(outcome, Outcome::Joined { .. });
            let what = if waited { "waited for" } else { "took" };
            facts.push(format!("{what} {took}"));
            facts.extend(bobbin_core::records::changes::in_short(usage));
            if *tokens > 0 {
                facts.push(format!("{} tokens", thousands(*tokens)));
            }
            match card.spending {
                Some(spending) => facts.push(spending.fact()),
                None if *cost_micro_usd > 0 => facts.push(dollars(*cost_micro_usd)),
                None => {}
            }
        }
        _ => {
            facts.push(took);
            facts.extend(card.spending.map(Spending::fact));
        }
    }
    facts.extend(card.set_up.clone());
    if card.waiting > 0 {
        facts.push(format!("{} more waiting", card.waiting));
    }
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// A time of day in UTC, as fallback for Slack's own date token.
pub(super) fn clock(ms: u64) -> String {
    let minutes = ms / 60_000 % 1_440;
    format!("{:02}:{:02} UTC", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_for_people() {
        assert_eq!(
            [45_999, 120_000, 192_000, 3_600_000, 3_845_000].map(span),
            ["45 s", "2 min 0 s", "3 min 12 s", "1 h 0 min", "1 h 4 min"]
        );
        assert_eq!([7, 1_000, 1_234_567].map(thousands), ["7", "1,000", "1,234,567"]);
        assert_eq!(clock(12 * 3_600_000 + 5 * 60_000), "12:05 UTC");
    }
}
