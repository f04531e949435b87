//! The app's Home, and the same in words for a person who asks by command.
//!
//! It is published without a hash: a person's overviews are one group of the queue, so nobody else writes that view,
//! and the newest always counts.

use bobbin_core::base::ids::ThreadKey;
use bobbin_core::shown::overview::{ENDED_MAX, OpenRun, Picture, RUNS_MAX, ended};
use bobbin_core::tenant::settings::DefaultKind;
use bobbin_core::text::span;
use serde_json::{Value, json};

use crate::slack::blocks::{context, label, section};
use crate::slack::escape::{line, mrkdwn, quoted};
use crate::slack::home::{STOP_ACTION, clear_action, default_action, stop_value};
use crate::slack::limits::{
    BUTTON_UNITS_MAX, BUTTON_VALUE_CHARS_MAX, CONTEXT_UNITS_MAX, HEADER_UNITS_MAX, LABEL_UNITS_MAX,
    SECTION_UNITS_MAX,
};

/// Maximum length of a line in a section.
const LINE_UNITS_MAX: usize = 400;
/// Maximum number of asks named per run.
const ASKS_MAX: usize = 3;

/// Text if nothing runs.
const NOTHING_RUNS: &str = "None of your tasks is running. Mention Bobbin in a channel with a task, for example \
`@Bobbin fix the failing test in api`, or write to it under Messages. Each thread gets its own sandbox.";

/// The view for `views.publish`.
#[must_use]
pub fn home(picture: &Picture) -> Value {
    let mut blocks = Vec::new();
    if let Some(notice) = &picture.notice {
        blocks.push(section(&mrkdwn(notice, SECTION_UNITS_MAX)));
    }
    blocks.push(header("Your running tasks"));
    if picture.runs.is_empty() {
        blocks.push(section(NOTHING_RUNS));
    }
    let shown = picture.runs.iter().take(RUNS_MAX).enumerate();
    blocks.extend(shown.map(|(number, run)| running(number, run, picture.now_ms)));
    if !picture.ended.is_empty() {
        blocks.push(header("Recently"));
        let lines: Vec<String> = ended_lines(picture).collect();
        blocks.push(section(&lines.join("\n")));
    }
    if !picture.spending.is_empty() {
        blocks.push(header("Spending"));
        blocks.push(section(&mrkdwn(&picture.spending.join("\n"), SECTION_UNITS_MAX)));
    }
    blocks.push(header("Defaults of this workspace"));
    blocks.extend(defaults(picture));
    view(&blocks)
}

/// The view for somebody who may not use Bobbin.
#[must_use]
pub fn closed_home(why: &str) -> Value {
    view(&[section(&mrkdwn(why, SECTION_UNITS_MAX))])
}

fn view(blocks: &[Value]) -> Value {
    json!({ "type": "home", "blocks": blocks })
}

/// The content of a person's Home, in words for them alone.
#[must_use]
pub fn overview_words(picture: &Picture) -> String {
    let mut lines: Vec<String> = Vec::new();
    if picture.runs.is_empty() {
        lines.push("None of your tasks is running in this channel.".to_owned());
    }
    for run in picture.runs.iter().take(RUNS_MAX) {
        let for_ms = picture.now_ms.saturating_sub(run.since_ms);
        lines.push(format!("- {}, for {}.", run.state, span(for_ms)));
        let asks = run.asks.iter().take(ASKS_MAX);
        lines.extend(asks.map(|ask| format!("  - It asks in its thread: {ask}")));
    }
    lines.extend(
        picture
            .ended
            .iter()
            .take(ENDED_MAX)
            .map(|(_, entry)| format!("- {}", ended(entry, picture.now_ms))),
    );
    lines.extend(picture.spending.iter().map(|line| format!("- {line}")));
    lines.push(
        "In a thread, `@Bobbin status` says more and `@Bobbin stop` ends the run.".to_owned(),
    );
    lines.join("\n")
}

fn running(number: usize, run: &OpenRun, now_ms: u64) -> Value {
    let for_ms = now_ms.saturating_sub(run.since_ms);
    let mut lines =
        vec![format!("*{}* {}, for {}", run.state, where_it_is(&run.thread), span(for_ms))];
    let asks = run.asks.iter().take(ASKS_MAX);
    lines.extend(asks.map(|ask| format!("• Decide in its thread: {}", line(ask, LINE_UNITS_MAX))));
    let mut block = section(&lines.join("\n"));
    let value = stop_value(&run.thread, &run.turn)
        .filter(|value| value.len() <= BUTTON_VALUE_CHARS_MAX && run.state != "Stopping");
    if let Some(value) = value {
        block["accessory"] = json!({
            "type": "button", "action_id": format!("{STOP_ACTION}{number}"), "style": "danger", "value": value,
            "text": label("Stop", BUTTON_UNITS_MAX), "accessibility_label": "Stop this run",
        });
    }
    block
}

fn ended_lines(picture: &Picture) -> impl Iterator<Item = String> {
    picture.ended.iter().take(ENDED_MAX).map(|(thread, entry)| {
        let words = line(&ended(entry, picture.now_ms), LINE_UNITS_MAX);
        format!("• {words} ({})", where_it_is(thread))
    })
}

/// Slack shows the channel's name to people who may see it.
pub(super) fn where_it_is(thread: &ThreadKey) -> String {
    match thread {
        ThreadKey::Slack { channel, .. } if channel.starts_with('D') => {
            "in our direct message".to_owned()
        }
        ThreadKey::SlackDirect { .. } => "in our direct message".to_owned(),
        ThreadKey::Slack { channel, .. } => format!("in <#{channel}>"),
        _ => "elsewhere".to_owned(),
    }
}

fn defaults(picture: &Picture) -> Vec<Value> {
    let kinds = DefaultKind::ALL.map(|kind| (kind, kind.label(), kind.of(&picture.defaults)));
    let said = |kind: DefaultKind, name: &str, value: &Option<String>| match (value, kind) {
        (Some(value), _) => format!("*{name}:* `{}`", quoted(value, LINE_UNITS_MAX)),
        (None, DefaultKind::PullRequests) => format!("*{name}:* none; they are opened as drafts"),
        (None, DefaultKind::PullRequestsBy) => {
            format!("*{name}:* none; everyone who may use me may open them")
        }
        (None, DefaultKind::Submodules) => format!("*{name}:* none; they are left out"),
        (None, DefaultKind::ReviewBots) => format!("*{name}:* none; only people's reviews count"),
        (None, _) => format!("*{name}:* none; the operator's setting applies"),
    };
    let choose = |kind: DefaultKind, name: &str| match kind {
        DefaultKind::PullRequests => "Choose how pull requests are opened".to_owned(),
        DefaultKind::PullRequestsBy => "Choose who may open pull requests".to_owned(),
        DefaultKind::Submodules => "Choose whether submodules come along".to_owned(),
        DefaultKind::ReviewBots => "Name bots whose reviews count".to_owned(),
        _ => format!("Choose a default {}", name.to_lowercase()),
    };
    if !picture.manages {
        let lines = kinds.map(|(kind, name, value)| said(kind, name, value));
        let who = "People who manage this workspace can change them here. For one task, write `repo:owner/name`, \
`model:provider/model`, `agent:plan`, `provider:name` or `runtime:native` before its text.";
        return vec![section(&lines.join("\n")), context(who)];
    }
    let mut blocks = Vec::new();
    for (kind, name, value) in kinds {
        blocks.push(section(&said(kind, name, value)));
        let mut elements = vec![json!({
            "type": "external_select", "action_id": default_action(kind), "min_query_length": 0,
            "placeholder": label(&choose(kind, name), LABEL_UNITS_MAX),
        })];
        if value.is_some() {
            elements.push(json!({
                "type": "button", "action_id": clear_action(kind), "value": "clear",
                "text": label("Clear", BUTTON_UNITS_MAX), "accessibility_label": format!("Clear the default {}", name.to_lowercase()),
            }));
        }
        blocks.push(json!({ "type": "actions", "elements": elements }));
    }
    let more =
        mrkdwn("Channels can have their own defaults: /bobbin config help.", CONTEXT_UNITS_MAX);
    blocks.push(context(&more));
    blocks
}

fn header(text: &str) -> Value {
    json!({ "type": "header", "text": label(text, HEADER_UNITS_MAX) })
}
