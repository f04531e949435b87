//! The live card of a turn: current activity, the plan, the newest steps, and the possible actions.

use bobbin_core::records::card::{
    Card, CardState, CardStep, PlanLine, PlanLineState, Spending, StepState, present,
};
use bobbin_core::records::changes;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::text::{dollars, one_line, shorten, span, thousands, units, visible};
use serde_json::{Value, json};

use super::sandboxes::shown;
use crate::discord::answer::WITHDRAW;
use crate::discord::bounds::{
    REASON_UNITS_MAX, STEP_UNITS_MAX, TEXT_DISPLAY_BYTES_MAX, TEXT_DISPLAY_OVERHEAD_BYTES,
    TEXT_DISPLAY_UNITS_MAX,
};
use crate::discord::components::{
    BLURPLE, DANGER, GREEN, GREY, PRIMARY, RED, SECONDARY, YELLOW, button, container, row, text,
};
use crate::discord::content::{inline, is_blank};
use crate::discord::custom_id::CustomId;

/// Maximum size of the plan on a card, in UTF-16 units and in bytes; the rest is for the steps.
const PLAN_UNITS_MAX: usize = 1_500;
const PLAN_BYTES_MAX: usize = 4_000;

/// The live card of a turn.
#[must_use]
pub fn card(card: &Card) -> Value {
    let title = format!("**{}**", title(&card.state));
    let advice = advice(card);
    let context = format!("-# {}", context(card));
    let fixed: Vec<&str> =
        [title.as_str(), context.as_str()].into_iter().chain(advice.as_deref()).collect();
    let plan = plan(&card.plan);
    let fixed: Vec<&str> = fixed.into_iter().chain(plan.as_deref()).collect();
    let used_units: usize = fixed.iter().map(|text| units(text)).sum();
    let used_bytes: usize = fixed.iter().map(|text| text.len() + TEXT_DISPLAY_OVERHEAD_BYTES).sum();
    let steps = steps(
        &card.steps,
        card.earlier,
        TEXT_DISPLAY_UNITS_MAX.saturating_sub(used_units),
        TEXT_DISPLAY_BYTES_MAX.saturating_sub(used_bytes + TEXT_DISPLAY_OVERHEAD_BYTES),
    );
    let mut parts = vec![text(&title)];
    parts.extend(advice.as_deref().map(text));
    parts.extend(plan.as_deref().map(text));
    parts.extend(steps.as_deref().map(text));
    parts.push(json!({"type": 14, "divider": true, "spacing": 1}));
    parts.push(text(&context));
    parts.extend(buttons(card));
    container(accent(&card.state), parts)
}

/// The row of buttons under a card; `None` if there is nothing to do about it.
fn buttons(card: &Card) -> Option<Value> {
    let turn = || card.turn.clone();
    let mut buttons = Vec::new();
    match &card.state {
        CardState::Ended { outcome, usage } => {
            if !matches!(outcome, Outcome::Answered | Outcome::Joined { .. }) {
                buttons.push(button(PRIMARY, "Reply", &CustomId::Reply));
            }
            if let Some(label) = outcome.again_label() {
                let again = CustomId::Again { turn: turn() };
                buttons.push(button(SECONDARY, &label, &again));
            }
            if usage.files > 0 {
                let diff = CustomId::Diff { turn: turn() };
                buttons.push(button(SECONDARY, "View diff", &diff));
            }
            if card.set_up.is_some() {
                let log = CustomId::SetUpLog { turn: turn() };
                buttons.push(button(SECONDARY, "Set-up log", &log));
            }
            if let Some(offer) = card.publish {
                buttons.push(button(SECONDARY, offer.label(), &CustomId::Publish));
            }
        }
        CardState::Stopping => {
            let stop = CustomId::Stop { turn: turn() };
            let mut stopping = button(SECONDARY, "Stopping…", &stop);
            stopping["disabled"] = json!(true);
            buttons.push(stopping);
        }
        CardState::Queued { now, .. } => {
            if *now {
                let now = CustomId::Now { turn: turn() };
                buttons.push(button(PRIMARY, "Send now", &now));
            }
            let withdraw = CustomId::Stop { turn: turn() };
            buttons.push(button(SECONDARY, WITHDRAW, &withdraw));
            buttons.push(button(DANGER, "Stop all", &CustomId::StopAll));
        }
        _ => {
            let stop = CustomId::Stop { turn: turn() };
            buttons.push(button(DANGER, "Stop", &stop));
            if card.waiting > 0 {
                buttons.push(button(DANGER, "Stop all", &CustomId::StopAll));
            }
        }
    }
    (!buttons.is_empty()).then(|| row(&buttons))
}

fn tasks(n: usize) -> String {
    match n {
        1 => "one task".to_owned(),
        n => format!("{n} tasks"),
    }
}

fn title(state: &CardState) -> String {
    match state {
        CardState::Received => "Received".to_owned(),
        CardState::Queued { ahead, .. } => format!("Queued, {} before it", tasks(*ahead)),
        CardState::Shared { .. } => "Waiting for another thread".to_owned(),
        CardState::Creating => "Making a sandbox".to_owned(),
        CardState::SettingUp { step, of } => format!("Setting up the project ({step} of {of})"),
        CardState::Resuming => "Waking the sandbox".to_owned(),
        CardState::Working => "Working".to_owned(),
        CardState::Waiting => "Waiting for a decision".to_owned(),
        CardState::Stopping => "Stopping".to_owned(),
        CardState::Ended { outcome, .. } => match outcome {
            Outcome::Answered => "Done".to_owned(),
            Outcome::Joined { .. } => "Sent into the running task".to_owned(),
            Outcome::Failed { .. } => "This did not work".to_owned(),
            Outcome::OverBudget { .. } => "Stopped by budget".to_owned(),
            Outcome::Cancelled { by } => format!("Stopped by {}", inline(by, 64)),
            Outcome::Lost => "The sandbox was lost".to_owned(),
        },
    }
}

/// What happened and what to do next, if the turn ended without an answer; what is being retried, while it runs.
fn advice(card: &Card) -> Option<String> {
    if let CardState::Shared { holder } = &card.state {
        let holder = holder.as_ref();
        let holder = holder.map_or_else(|| "another thread".to_owned(), shown);
        return Some(format!("Waits until {holder} is done: both work in the same directory."));
    }
    let CardState::Ended { outcome, .. } = &card.state else {
        return match (&card.trouble, card.ends_ms) {
            (Some(trouble), _) => {
                Some(format!("-# Trying again: {}", inline(trouble, REASON_UNITS_MAX)))
            }
            (None, Some(ends_ms)) => Some(format!(
                "-# The provider deletes this sandbox <t:{}:R>, and its time could not be extended. What is not pushed by then is lost.",
                ends_ms / 1_000
            )),
            (None, None) => {
                let warning = card.spending.and_then(Spending::warning);
                warning.map(|warning| format!("-# {warning}"))
            }
        };
    };
    match outcome {
        Outcome::Answered => None,
        Outcome::Joined { .. } => Some("The agent has it, and answers it together with its current task.".to_owned()),
        Outcome::Failed { reason } => {
            let reason = inline(reason, REASON_UNITS_MAX);
            Some(format!("{reason}\n-# Reply continues in this thread, `/reset` gives it a fresh sandbox."))
        }
        Outcome::OverBudget { reason, .. } => Some(inline(reason, REASON_UNITS_MAX)),
        Outcome::Cancelled { .. } => Some("What was done so far is kept. Reply continues in the same sandbox.".to_owned()),
        Outcome::Lost => Some("It vanished while the agent was working, together with everything that was only in it. \"Run again\" repeats the task in a fresh one.".to_owned()),
    }
}

const fn accent(state: &CardState) -> u32 {
    match state {
        CardState::Waiting => YELLOW,
        CardState::Stopping | CardState::Queued { .. } | CardState::Shared { .. } => GREY,
        CardState::Ended { outcome, .. } => match outcome {
            Outcome::Answered | Outcome::Joined { .. } => GREEN,
            Outcome::Failed { .. } | Outcome::Lost => RED,
            Outcome::Cancelled { .. } | Outcome::OverBudget { .. } => GREY,
        },
        _ => BLURPLE,
    }
}

fn context(card: &Card) -> String {
    let mut facts = Vec::new();
    match &card.state {
        CardState::Ended { outcome: Outcome::Joined { .. }, .. } => {
            facts.push(format!("waited for {}", span(card.now_ms.saturating_sub(card.since_ms))))
        }
        CardState::Ended { usage, .. } => {
            facts.push(format!("took {}", span(card.now_ms.saturating_sub(card.since_ms))));
            facts.extend(changes::in_short(usage));
            if usage.tokens > 0 {
                facts.push(format!("{} tokens", thousands(usage.tokens)));
            }
            let cost = usage.cost_micro_usd;
            let cost = (cost > 0).then(|| dollars(cost));
            facts.extend(card.spending.map(Spending::fact).or(cost));
        }
        CardState::Queued { .. } => facts.push(format!("asked <t:{}:R>", card.since_ms / 1000)),
        // The reader's device counts the time, without an edit.
        _ => {
            facts.push(format!("began <t:{}:R>", card.since_ms / 1000));
            facts.extend(card.spending.map(Spending::fact));
        }
    }
    facts.extend(card.set_up.clone());
    if card.waiting > 0 {
        facts.push(format!("{} more waiting", card.waiting));
    }
    if !is_blank(&card.model) {
        facts.push(inline(&card.model, 100));
    }
    facts.join(" · ")
}

/// The agent's plan around the present item, one line per item, and the number of the others.
fn plan(items: &[PlanLine]) -> Option<String> {
    let line = |item: &PlanLine| {
        let text = inline(&item.text, STEP_UNITS_MAX);
        match item.state {
            PlanLineState::Done => format!("☑ {text}"),
            PlanLineState::Now => format!("▶ **{text}**"),
            PlanLineState::Next => format!("☐ {text}"),
            PlanLineState::Dropped => format!("☐ ~~{text}~~"),
        }
    };
    let (mut units_left, mut bytes_left) = (PLAN_UNITS_MAX, PLAN_BYTES_MAX);
    let mut lines = Vec::new();
    for line in present(items).iter().map(line) {
        if units(&line) >= units_left || line.len() >= bytes_left {
            break;
        }
        units_left -= units(&line) + 1;
        bytes_left -= line.len() + 1;
        lines.push(line);
    }
    let more = items.len() - lines.len();
    if more > 0 {
        lines.push(format!("-# and {more} more"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The newest steps that fit, oldest first, and the number of earlier ones.
fn steps(steps: &[CardStep], earlier: usize, units_max: usize, bytes_max: usize) -> Option<String> {
    // Room for the line that counts those left out.
    let (mut units_left, mut bytes_left) =
        (units_max.saturating_sub(60), bytes_max.saturating_sub(60));
    let mut shown = Vec::new();
    for step in steps.iter().rev() {
        // The verb form distinguishes running from finished steps; only a failure needs an extra word.
        let (mark, word) = match step.state {
            StepState::Running => ("…", ""),
            StepState::Done => ("✓", ""),
            StepState::Failed => ("✗", " (failed)"),
        };
        let line = format!("{mark} {}{word}", with_code(&step.text, STEP_UNITS_MAX));
        let (line_units, line_bytes) = (units(&line) + 1, line.len() + 1);
        if line_units > units_left || line_bytes > bytes_left {
            break;
        }
        units_left -= line_units;
        bytes_left -= line_bytes;
        shown.push(line);
    }
    match steps.len() - shown.len() + earlier {
        0 => {}
        1 => shown.push("-# and 1 earlier step".to_owned()),
        left_out => shown.push(format!("-# and {left_out} earlier steps")),
    }
    shown.reverse();
    (!shown.is_empty()).then(|| shown.join("\n"))
}

/// One line of our own text with code spans of foreign text in it: each span stays one, and nothing else has an effect.
fn with_code(text: &str, units_max: usize) -> String {
    let plain = shorten(&one_line(text), units_max);
    let parts: Vec<&str> = plain.split('`').collect();
    if parts.len() != 3 || is_blank(parts[1]) {
        return inline(&plain, units_max);
    }
    let words = |text: &str| {
        if is_blank(text) { text.to_owned() } else { inline(text, units_max) }
    };
    let space = if parts[0].ends_with(' ') { " " } else { "" };
    format!("{}{space}`{}`{}", words(parts[0].trim_end()), visible(parts[1]), words(parts[2]))
}
