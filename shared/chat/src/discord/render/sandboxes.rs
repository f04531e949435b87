//! The list of named sandboxes, and the question whether to delete one.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::shown::sandboxes::{Listed, SandboxAction, SandboxesPage, losses};
use serde_json::{Value, json};

use super::super::components::{BLURPLE, DANGER, PRIMARY, SECONDARY, button, container, row, text};
use super::super::content::{bounded, inline, mute};
use super::super::custom_id::CustomId;

/// Maximum length of one line about a sandbox.
const LINE_UNITS_MAX: usize = 300;

/// A page of the list, for one person.
#[must_use]
pub fn sandboxes(page: &SandboxesPage) -> Value {
    let mut parts = vec![text(&format!("**{}**", page.heading()))];
    for sandbox in &page.shown {
        parts.push(text(&line(sandbox, page)));
        let buttons: Vec<Value> = sandbox
            .actions(page.in_thread)
            .into_iter()
            .filter(|action| {
                *action != SandboxAction::Connect || page.here.as_ref() != Some(&sandbox.key)
            })
            .map(|action| {
                let key = sandbox.key.clone();
                button(style(action), action.label(), &CustomId::Sandbox { action, key })
            })
            .collect();
        if !buttons.is_empty() {
            parts.push(row(&buttons));
        }
    }
    if page.pages > 1 {
        parts.push(row(&[
            turn("Previous", page.page.checked_sub(1)),
            turn("Next", Some(page.page + 1).filter(|next| *next < page.pages)),
        ]));
    }
    container(BLURPLE, parts)
}

/// A button to another page; disabled if the page does not exist.
fn turn(label: &str, to: Option<usize>) -> Value {
    let page = to.map(|page| u32::try_from(page).unwrap_or(u32::MAX));
    // Two buttons of a message must not have the same id.
    let id = CustomId::Sandboxes { page: page.unwrap_or(u32::MAX) };
    let mut turn = button(SECONDARY, label, &id);
    turn["disabled"] = json!(page.is_none());
    turn
}

fn line(sandbox: &Listed, page: &SandboxesPage) -> String {
    let here = if page.here.as_ref() == Some(&sandbox.key) { " (this thread's)" } else { "" };
    let facts = inline(&sandbox.facts(page.now_ms).join(" · "), LINE_UNITS_MAX);
    let told = sandbox.last_result(page.now_ms);
    let told =
        told.map_or_else(String::new, |told| format!("\n-# {}", inline(&told, LINE_UNITS_MAX)));
    format!("**{}**{here}\n{facts}{told}", sandbox.called())
}

const fn style(action: SandboxAction) -> u8 {
    match action {
        SandboxAction::Connect => PRIMARY,
        SandboxAction::Stop | SandboxAction::Start | SandboxAction::Snapshot => SECONDARY,
        SandboxAction::Destroy => DANGER,
    }
}

/// The question whether to delete a sandbox, with what would be lost. Not made of components alone, so that text can
/// replace its buttons.
#[must_use]
pub fn ask_destroy(sandbox: &Listed, now_ms: Ms) -> Value {
    let lines = losses(sandbox, now_ms, shown);
    let lines: String = lines.iter().map(|line| format!("\n- {line}")).collect();
    let words = format!("Destroy **{}**?{lines}", sandbox.called());
    let key = sandbox.key.clone();
    mute(json!({
        "content": bounded(&words),
        "components": [row(&[
            button(DANGER, "Destroy", &CustomId::Destroy { key }),
            button(SECONDARY, "Cancel", &CustomId::Keep),
        ])],
    }))
}

/// A thread as shown to readers: Discord displays its name, as a link.
pub(super) fn shown(thread: &ThreadKey) -> String {
    match thread {
        ThreadKey::Discord { thread, .. } => format!("<#{thread}>"),
        _ => "another thread".to_owned(),
    }
}
