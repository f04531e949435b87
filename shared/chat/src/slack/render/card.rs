//! The live card of a turn.

use bobbin_core::records::card::{
    Card, CardState, CardStep, PlanLine, PlanLineState, Spending, StepState, present,
};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::text::span;
use serde_json::{Value, json};

use super::ask::until;
use super::home::where_it_is;
use super::words::{facts, title};
use crate::slack::actions::{
    AGAIN_ACTION, DIFF_ACTION, NOW_ACTION, PUBLISH_ACTION, SET_UP_LOG_ACTION, STOP_ACTION,
    STOP_ALL_ACTION,
};
use crate::slack::blocks::{RenderedBlocks, context, label, section};
use crate::slack::escape::{line, mrkdwn, plain_line, units};
use crate::slack::limits::{
    BUTTON_UNITS_MAX, BUTTON_VALUE_CHARS_MAX, CONTEXT_UNITS_MAX, FALLBACK_UNITS_MAX,
    SECTION_UNITS_MAX, TASK_UNITS_MAX, TASKS_MAX,
};

/// Maximum length of one step's line.
const STEP_UNITS_MAX: usize = 280;
/// Maximum length of another thread's address.
const LINK_UNITS_MAX: usize = 300;
/// Room for the line that counts the steps, or the items of the plan, not shown.
const EARLIER_UNITS: usize = 40;

/// How a card shows its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CardStyle {
    /// As a `plan` block of tasks.
    #[default]
    Plan,
    /// As lines of a section: for workspaces that do not take the newer blocks.
    Lines,
}

/// `link` leads to the thread that the turn waits for, if any and if known.
pub(super) fn card(card: &Card, style: CardStyle, link: Option<&str>) -> RenderedBlocks {
    let title = title(&card.state);
    let told = told(card, link);
    let mut blocks = Vec::new();
    let todo = todo(&card.plan);
    if style == CardStyle::Plan && !card.steps.is_empty() {
        blocks.push(plan(title, card));
        blocks.extend(told.as_deref().map(section));
        blocks.extend(todo.as_deref().map(section));
    } else {
        blocks.push(section(&match &told {
            Some(told) => format!("*{title}.* {told}"),
            None => format!("*{title}*"),
        }));
        blocks.extend(todo.as_deref().map(section));
        blocks.extend(steps(&card.steps, card.earlier).as_deref().map(section));
    }
    let facts = line(&facts(card).join(" · "), CONTEXT_UNITS_MAX);
    if !facts.is_empty() {
        blocks.push(context(&facts));
    }
    blocks.extend(stop(card).or_else(|| afterwards(card)));
    let fallback = match (&card.state, told) {
        (_, Some(told)) => format!("{title}. {told}"),
        (CardState::Ended { .. }, None) => {
            format!("{title}, after {}", span(card.now_ms.saturating_sub(card.since_ms)))
        }
        (_, None) => title.to_owned(),
    };
    debug_assert!(
        units(&fallback) <= FALLBACK_UNITS_MAX,
        "the reason is cut below the limit of a section"
    );
    RenderedBlocks { text: fallback, blocks }
}

/// Details beyond the title, escaped, below the limit of a section.
fn told(card: &Card, link: Option<&str>) -> Option<String> {
    let room = SECTION_UNITS_MAX - 200;
    let outcome = match (&card.state, &card.trouble) {
        (CardState::Ended { outcome, .. }, _) => outcome,
        (CardState::Queued { ahead: 1, .. }, _) => {
            return Some("One task comes before it.".to_owned());
        }
        (CardState::Queued { ahead, .. }, _) => {
            return Some(format!("{ahead} tasks come before it."));
        }
        (CardState::Shared { holder }, _) => {
            let there = holder.as_ref().map(where_it_is).unwrap_or_default();
            let holder = match link {
                Some(link) => format!("<{}|another thread>", mrkdwn(link, LINK_UNITS_MAX)),
                None => "another thread".to_owned(),
            };
            return Some(format!(
                "Waits until {} is done: both work in the same directory.",
                format!("{holder} {there}").trim_end()
            ));
        }
        (_, Some(trouble)) => return Some(format!("Trying again: {}", line(trouble, room))),
        (_, None) => {
            let ends = card.ends_ms.map(|ends_ms| {
                format!(
                    "The provider deletes this sandbox at {}, and its time could not be extended. What is not pushed by then is lost.",
                    until(ends_ms)
                )
            });
            return ends.or_else(|| card.spending.and_then(Spending::warning));
        }
    };
    match outcome {
        Outcome::Answered => None,
        Outcome::Joined { .. } => {
            Some("The agent has it, and answers it together with its current task.".to_owned())
        }
        Outcome::Failed { reason } => {
            Some(format!("{}\nNothing else is lost: send another message in this thread to continue.", mrkdwn(reason.trim(), room)))
        }
        Outcome::OverBudget { reason, .. } => Some(mrkdwn(reason.trim(), room)),
        Outcome::Cancelled { by } => Some(format!("By {}. The work done until then is kept.", person(by))),
        Outcome::Lost => Some(
            "The sandbox disappeared while the agent was working, with everything that was not pushed. \"Run again\" \
repeats the task in a fresh one."
                .to_owned(),
        ),
    }
}

/// A typed command names only the id of its author; Slack shows the name, and an edit pings nobody.
fn person(by: &str) -> String {
    let is_id = by.len() >= 6
        && by.starts_with(['U', 'W'])
        && by.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    match by {
        _ if is_id => format!("<@{by}>"),
        "" => "a person in this thread".to_owned(),
        name => line(name, 200),
    }
}

/// The steps as tasks: the newest ones, preceded by the number of those not shown. The title says what happens now.
fn plan(title: &str, card: &Card) -> Value {
    let steps = &card.steps;
    let left_out = match steps.len() {
        all if all > TASKS_MAX => all + 1 - TASKS_MAX,
        _ => 0,
    };
    let earlier = card.earlier + left_out;
    let task = |id: String, title: &str, status: &str| json!({ "type": "task_card", "task_id": id, "title": plain_line(title, TASK_UNITS_MAX), "status": status });
    let mut tasks = Vec::new();
    if earlier > 0 {
        let words = format!("{earlier} earlier steps");
        tasks.push(task("earlier".to_owned(), &words, "complete"));
    }
    let over = matches!(card.state, CardState::Ended { .. });
    for (number, step) in steps.iter().enumerate().skip(left_out) {
        let status = match step.state {
            // A run that has ended leaves nothing spinning.
            StepState::Running if over => "complete",
            StepState::Running => "in_progress",
            StepState::Done => "complete",
            StepState::Failed => "error",
        };
        tasks.push(task(format!("step-{number}"), &step.text, status));
    }
    let now = steps.iter().rev().find(|step| step.state == StepState::Running);
    let title = match (&card.state, now) {
        (CardState::Working, Some(now)) => plain_line(&now.text, TASK_UNITS_MAX),
        _ => title.to_owned(),
    };
    json!({ "type": "plan", "title": title, "tasks": tasks })
}

/// The agent's plan around the present item, one line per item, and the number of the others.
fn todo(items: &[PlanLine]) -> Option<String> {
    let mut room = SECTION_UNITS_MAX - EARLIER_UNITS;
    let mut lines = Vec::new();
    for item in present(items) {
        let text = line(&item.text, STEP_UNITS_MAX);
        let line = match item.state {
            PlanLineState::Done => format!("☑ {text}"),
            PlanLineState::Now => format!("▶ *{text}*"),
            PlanLineState::Next => format!("☐ {text}"),
            PlanLineState::Dropped => format!("☐ ~{text}~"),
        };
        let Some(left) = room.checked_sub(units(&line) + 1) else {
            break;
        };
        room = left;
        lines.push(line);
    }
    let more = items.len() - lines.len();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The newest steps that fit, and the number of earlier ones.
fn steps(steps: &[CardStep], before: usize) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = SECTION_UNITS_MAX - EARLIER_UNITS;
    for step in steps.iter().rev() {
        let text = match step.state {
            StepState::Running => format!("… {}", line(&step.text, STEP_UNITS_MAX)),
            StepState::Done => format!("✓ {}", line(&step.text, STEP_UNITS_MAX)),
            StepState::Failed => format!("✗ Failed: {}", line(&step.text, STEP_UNITS_MAX)),
        };
        let Some(left) = room.checked_sub(units(&text) + 1) else {
            break;
        };
        room = left;
        lines.push(text);
    }
    match steps.len() - lines.len() + before {
        0 => {}
        1 => lines.push("and 1 earlier step".to_owned()),
        earlier => lines.push(format!("and {earlier} earlier steps")),
    }
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The buttons on the card of an ended turn: one repeats a failed task, one shows the changes, one leads
/// to a pull request.
fn afterwards(card: &Card) -> Option<Value> {
    let CardState::Ended { outcome, usage } = &card.state else {
        return None;
    };
    let mut buttons = Vec::new();
    if let Some(words) = outcome.again_label() {
        let told = match outcome {
            Outcome::OverBudget { .. } => "Let this task spend more",
            _ => "Run this task again",
        };
        buttons.push(json!({
            "type": "button", "action_id": AGAIN_ACTION, "value": card.turn,
            "text": label(&words, BUTTON_UNITS_MAX), "accessibility_label": told,
        }));
    }
    if usage.files > 0 {
        buttons.push(json!({
            "type": "button", "action_id": DIFF_ACTION, "value": card.turn,
            "text": label("View diff", BUTTON_UNITS_MAX), "accessibility_label": "View what this task changed in the files",
        }));
    }
    if card.set_up.is_some() {
        buttons.push(json!({
            "type": "button", "action_id": SET_UP_LOG_ACTION, "value": card.turn,
            "text": label("Set-up log", BUTTON_UNITS_MAX), "accessibility_label": "View the output of the project's set-up",
        }));
    }
    if let Some(offer) = card.publish {
        buttons.push(json!({
            "type": "button", "action_id": PUBLISH_ACTION, "value": card.turn,
            "text": label(offer.label(), BUTTON_UNITS_MAX), "accessibility_label": "Show what a pull request would publish",
        }));
    }
    let usable = !card.turn.is_empty() && card.turn.len() <= BUTTON_VALUE_CHARS_MAX;
    (usable && !buttons.is_empty())
        .then(|| json!({ "type": "actions", "block_id": "v1:card", "elements": buttons }))
}

/// The Stop button, while there is something to stop.
fn stop(card: &Card) -> Option<Value> {
    let over = matches!(card.state, CardState::Stopping | CardState::Ended { .. });
    let usable = !card.turn.is_empty() && card.turn.len() <= BUTTON_VALUE_CHARS_MAX;
    if over || !usable {
        return None;
    }
    let button = |action: &str, words: &str, told: &str| {
        json!({
            "type": "button", "action_id": action, "value": card.turn,
            "text": label(words, BUTTON_UNITS_MAX), "accessibility_label": told,
        })
    };
    let mut buttons = Vec::new();
    match card.state {
        CardState::Queued { now, .. } => {
            if now {
                let told = "Send this task into the running one";
                buttons.push(button(NOW_ACTION, "Send now", told));
            }
            let told = "Take this task out of the queue";
            buttons.push(button(STOP_ACTION, "Withdraw", told));
        }
        _ => {
            let mut stop = button(STOP_ACTION, "Stop", "Stop this run");
            stop["style"] = "danger".into();
            buttons.push(stop);
        }
    }
    if card.waiting > 0 || matches!(card.state, CardState::Queued { .. }) {
        let told = "Stop the running task and take all waiting tasks out of the queue";
        let mut stop_all = button(STOP_ALL_ACTION, "Stop all", told);
        stop_all["style"] = "danger".into();
        buttons.push(stop_all);
    }
    Some(json!({ "type": "actions", "block_id": "v1:card", "elements": buttons }))
}
