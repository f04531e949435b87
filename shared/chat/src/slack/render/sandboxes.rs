//! The list of named sandboxes, and the question whether to delete one: for one person alone.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::shown::sandboxes::{Listed, SandboxAction, SandboxesPage, losses};
use serde_json::{Value, json};

use super::home::where_it_is;
use crate::slack::blocks::{RenderedBlocks, context, label, section};
use crate::slack::escape::{line, mrkdwn};
use crate::slack::limits::{
    BUTTON_UNITS_MAX, CONTEXT_UNITS_MAX, FALLBACK_UNITS_MAX, SECTION_UNITS_MAX,
};
use crate::slack::sandboxes::Button;

/// Maximum length of one line about a sandbox.
const LINE_UNITS_MAX: usize = 400;

/// A page of the list.
#[must_use]
pub fn sandboxes(page: &SandboxesPage) -> RenderedBlocks {
    let mut blocks = vec![section(&mrkdwn(&page.heading(), SECTION_UNITS_MAX))];
    let mut text = page.heading();
    for (number, sandbox) in page.shown.iter().enumerate() {
        let is_here = page.here.as_ref() == Some(&sandbox.key);
        let here = if is_here { " (this thread's)" } else { "" };
        let facts = line(&sandbox.facts(page.now_ms).join(" · "), LINE_UNITS_MAX);
        blocks.push(section(&format!("*{}*{here}\n{facts}", sandbox.called())));
        if let Some(told) = sandbox.last_result(page.now_ms) {
            blocks.push(context(&line(&told, CONTEXT_UNITS_MAX)));
        }
        text = format!("{text}\n{}: {facts}", sandbox.called());
        let buttons: Vec<Value> = sandbox
            .actions(page.in_thread)
            .into_iter()
            .filter(|action| *action != SandboxAction::Connect || !is_here)
            .map(|action| {
                let told = format!("{} {}", action.label(), sandbox.called());
                let id = Button::Sandbox(action, sandbox.key.clone());
                let mut button = button(&id, action.label(), &told, &page.thread);
                match action {
                    SandboxAction::Connect => button["style"] = "primary".into(),
                    SandboxAction::Destroy => button["style"] = "danger".into(),
                    SandboxAction::Stop | SandboxAction::Start | SandboxAction::Snapshot => {}
                }
                button
            })
            .collect();
        if !buttons.is_empty() {
            let id = format!("v1:box:{number}");
            blocks.push(json!({ "type": "actions", "block_id": id, "elements": buttons }));
        }
    }
    let turns: Vec<Value> = [
        ("Previous", page.page.checked_sub(1)),
        ("Next", Some(page.page + 1).filter(|next| *next < page.pages)),
    ]
    .into_iter()
    .filter_map(|(words, to)| {
        let to = Button::Page(u32::try_from(to?).ok()?);
        Some(button(&to, words, &format!("{words} page of the list"), &page.thread))
    })
    .collect();
    if !turns.is_empty() {
        blocks.push(json!({ "type": "actions", "block_id": "v1:boxes", "elements": turns }));
    }
    RenderedBlocks { text: mrkdwn(&text, FALLBACK_UNITS_MAX), blocks }
}

/// The question whether to delete a sandbox, with what would be lost.
#[must_use]
pub fn ask_destroy(thread: &ThreadKey, sandbox: &Listed, now_ms: Ms) -> RenderedBlocks {
    let called = sandbox.called();
    // Each line is ours except for the channels in it, which Slack shows by name.
    let lines = losses(sandbox, now_ms, where_it_is);
    let lines: String = lines.iter().map(|line| format!("\n• {line}")).collect();
    let words = format!("*Destroy {called}?*{lines}");
    let destroy = Button::Destroy(sandbox.key.clone());
    let mut destroy = button(&destroy, "Destroy", &format!("Destroy {called}"), thread);
    destroy["style"] = "danger".into();
    let cancel = button(&Button::Keep, "Cancel", "Destroy nothing", thread);
    RenderedBlocks {
        text: format!("Destroy {called}?"),
        blocks: vec![
            section(&words),
            json!({ "type": "actions", "block_id": "v1:destroy", "elements": [destroy, cancel] }),
        ],
    }
}

fn button(button: &Button, words: &str, told: &str, thread: &ThreadKey) -> Value {
    json!({
        "type": "button", "action_id": button.action_id(), "value": button.value(thread),
        "text": label(words, BUTTON_UNITS_MAX), "accessibility_label": line(told, BUTTON_UNITS_MAX),
    })
}
