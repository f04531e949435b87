//! What people see, as bodies of requests: cards, answers, asks, notices, the anchor of a thread.
//!
//! Text of models, people and tools is bounded and has no effect beyond being read. A body serves to create a message
//! and to edit it; only the name that makes a creation repeatable is added ([`with_nonce`]).

pub(in crate::discord) mod ask;

use bobbin_core::card::{
    Card, CardState, CardStep, PlanItem, PlanState, Post, ShownFile, StepState,
};
use bobbin_core::changes;
use bobbin_core::message::{Open, Prompt};
use bobbin_core::outcome::Outcome;
use bobbin_core::selection::Selection;
use bobbin_core::text::{discord_markdown, one_line, shorten, span, thousands, units};
use serde_json::{Value, json};

use super::answer::{COMPONENTS_V2, SUPPRESS_EMBEDS, WITHDRAW};
use super::bounds::{
    ANCHOR_UNITS_MAX, CONTENT_UNITS_MAX, REASON_UNITS_MAX, STEP_UNITS_MAX, TEXT_DISPLAY_BYTES_MAX,
    TEXT_DISPLAY_OVERHEAD_BYTES, TEXT_DISPLAY_UNITS_MAX, THREAD_NAME_UNITS_MAX,
};
use super::content::{bounded, called, emphasised_name, inline, is_blank, mute, visible};
use super::custom_id::CustomId;
use super::quoting::WORK_ON_QUOTED;

pub use ask::ask;

/// A body, and the file that goes with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The JSON of the message.
    pub body: Value,
    /// Goes as `files[0]` of a multipart request.
    pub file: Option<File>,
}

/// A file that goes along with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub media_type: &'static str,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Name of the file that holds an answer too long for messages.
pub const ANSWER_FILE: &str = "answer.md";
/// One chosen value on the line in the channel.
const CHOSEN_UNITS_MAX: usize = 80;
/// Name of the file that holds a turn's changes.
pub const DIFF_FILE: &str = "changes.diff";
/// Said below the part of an answer that stands beside its file.
const WHOLE_IN_FILE: &str =
    "-# This is only a part of it: the whole answer is in the attached file `answer.md`.";
/// What a plan may take of a card, in UTF-16 units and in bytes; the rest is for its steps.
const PLAN_UNITS_MAX: usize = 1_500;
const PLAN_BYTES_MAX: usize = 4_000;
/// Names of a file and of its folder take no more of a message.
const FILE_NAME_UNITS_MAX: usize = 100;
/// How long a thread stays in the channel's list without activity, in minutes.
const THREAD_LISTED_MIN: u32 = 1440;

const BLURPLE: u32 = 0x0058_65f2;
const YELLOW: u32 = 0x00fe_e75c;
const GREEN: u32 = 0x0057_f287;
const RED: u32 = 0x00ed_4245;
const GREY: u32 = 0x0099_aab5;

/// Styles of buttons, by Discord's numbers.
const PRIMARY: u8 = 1;
const SECONDARY: u8 = 2;
const SUCCESS: u8 = 3;
const DANGER: u8 = 4;

/// A post of any kind.
#[must_use]
pub fn post(post: &Post) -> Rendered {
    match post {
        Post::Moved { link, .. } => plain(moved(link.as_deref())),
        Post::Calling {
            people,
            post: inner,
        } => calling(self::post(inner), people),
        Post::Card(shown) => plain(card(shown)),
        Post::Chunk { text, last, file } => chunk(text, *last, file.as_deref()),
        Post::Ask {
            ask: shown,
            settled,
        } => plain(ask::ask(shown, settled.as_deref())),
        Post::File(file) => shown_file(file),
        Post::Notice(text) => plain(notice(text)),
    }
}

/// The address of a message.
#[must_use]
pub fn link(guild: &str, channel: &str, message: &str) -> String {
    format!("https://discord.com/channels/{guild}/{channel}/{message}")
}

/// A card that has become too old to be edited.
fn moved(to: Option<&str>) -> Value {
    let line = match to {
        Some(to) => format!("-# A newer card took the place of this one: {to}"),
        None => "-# A newer card took the place of this one.".to_owned(),
    };
    container(GREY, vec![text("**This goes on below**"), text(&line)])
}

/// The same, with these people called by a line of its own: the only thing in it that can ping, and only them.
fn calling(rendered: Rendered, people: &[String]) -> Rendered {
    let Rendered { mut body, file } = rendered;
    if let Some((line, allowed)) = called(people) {
        let of_parts = body["flags"].as_u64().unwrap_or(0) & COMPONENTS_V2 != 0;
        match body.get_mut("components").and_then(Value::as_array_mut) {
            Some(parts) if of_parts => parts.push(text(&line)),
            _ => {
                let content = body["content"].as_str().unwrap_or_default();
                body["content"] = json!(noted(content, &line));
            }
        }
        body["allowed_mentions"] = allowed;
    }
    Rendered { body, file }
}

/// A file that the agent left to be shown: its name says what cannot be seen.
fn shown_file(file: &ShownFile) -> Rendered {
    let content = super::content::span(&file.name, FILE_NAME_UNITS_MAX);
    Rendered {
        body: mute(json!({"content": content, "flags": SUPPRESS_EMBEDS,
            "attachments": [{"id": "0", "filename": file.name, "description": "A file of the agent"}]})),
        file: Some(File {
            name: file.name.clone(),
            media_type: media_type(&file.name),
            bytes: file.bytes.clone(),
        }),
    }
}

/// What a turn changed, for one person: short ones in a block, long ones as a file below a summary.
#[must_use]
pub fn diff(patch: &str) -> Rendered {
    let (summary, changed) = changes::parts(patch);
    let summary = visible(summary).replace("```", "'''");
    let block = format!("```diff\n{}\n```", visible(changed).trim_end());
    let inline = format!("```\n{summary}\n```\n{block}");
    if !changed.contains("```") && units(&inline) <= CONTENT_UNITS_MAX {
        return plain(mute(json!({"content": inline})));
    }
    let content = format!("```\n{}\n```", shorten(&summary, CONTENT_UNITS_MAX - 20));
    Rendered {
        body: mute(json!({"content": content,
            "attachments": [{"id": "0", "filename": DIFF_FILE, "description": "What the task changed in the files"}]})),
        file: Some(File {
            name: DIFF_FILE.to_owned(),
            media_type: "text/x-diff; charset=utf-8",
            bytes: patch.as_bytes().to_vec(),
        }),
    }
}

/// A media type by the name's ending; Discord looks at the name itself.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "txt" | "md" | "log" | "csv" | "json" | "diff" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// The body with the name of the post: Discord gives back the message that already has it.
#[must_use]
pub fn with_nonce(mut body: Value, nonce: &str) -> Value {
    body["nonce"] = json!(nonce);
    body["enforce_nonce"] = json!(true);
    body
}

/// A short word about the session.
#[must_use]
pub fn notice(text: &str) -> Value {
    mute(json!({"content": bounded(text), "flags": SUPPRESS_EMBEDS}))
}

/// A word for one person, as an edit of a deferred answer that only they see.
#[must_use]
pub fn told(text: &str) -> Value {
    mute(json!({"content": bounded(text)}))
}

/// The same as a message of its own, after a click.
#[must_use]
pub fn whispered(text: &str) -> Value {
    for_one(told(text))
}

/// A body as a message that only one person sees, after a click.
#[must_use]
pub fn for_one(mut body: Value) -> Value {
    let flags = body["flags"].as_u64().unwrap_or(0);
    body["flags"] = json!(flags | super::answer::EPHEMERAL);
    body
}

/// The line in the channel on which the thread hangs.
#[must_use]
pub fn anchor(open: &Open) -> Value {
    let task = inline(&open.prompt.text, ANCHOR_UNITS_MAX);
    let quoted = super::answer::quoted(&open.prompt.quotes);
    let chosen = chosen(&open.prompt.wants);
    mute(
        json!({"content": bounded(&format!("{} asked: {task}{quoted}\n-# {chosen}The work goes on in the thread below.", emphasised_name(&open.prompt.by)))}),
    )
}

/// The same, when no thread could be made.
#[must_use]
pub fn anchor_failed(open: &Open, why: &str) -> Value {
    let task = inline(&open.prompt.text, ANCHOR_UNITS_MAX);
    mute(
        json!({"content": bounded(&format!("{} asked: {task}\n{}", emphasised_name(&open.prompt.by), shorten(why, REASON_UNITS_MAX)))}),
    )
}

/// What was chosen for the task, before the words that follow it on the same line.
fn chosen(wants: &Selection) -> String {
    [&wants.repo, &wants.model, &wants.agent]
        .into_iter()
        .flatten()
        .map(|one| format!("{} · ", inline(one, CHOSEN_UNITS_MAX)))
        .collect()
}

/// The request that starts a thread on a message.
#[must_use]
pub fn thread(prompt: &Prompt) -> Value {
    json!({"name": thread_name(subject(prompt)), "auto_archive_duration": THREAD_LISTED_MIN})
}

/// What a task is about, in a person's words: those of a quoted message where the task is nothing but that.
fn subject(prompt: &Prompt) -> &str {
    match prompt.quotes.last() {
        Some(quote) if prompt.text == WORK_ON_QUOTED => &quote.text,
        _ => &prompt.text,
    }
}

/// A thread's name: the task, on one line.
#[must_use]
pub fn thread_name(prompt: &str) -> String {
    if is_blank(prompt) {
        return "Sandbox task".to_owned();
    }
    shorten(&visible(&one_line(prompt)), THREAD_NAME_UNITS_MAX)
}

/// One part of an answer, with a Reply button under the last one.
#[must_use]
pub fn chunk(text: &str, last: bool, file: Option<&str>) -> Rendered {
    let tables = discord_markdown(text);
    let text = if units(tables.trim()) <= CONTENT_UNITS_MAX {
        &tables
    } else {
        text
    };
    let content = match file {
        Some(_) if is_blank(text) => "The answer is in the attached file.".to_owned(),
        Some(_) => noted(text, WHOLE_IN_FILE),
        None => bounded(text),
    };
    let mut body = mute(json!({"content": content, "flags": SUPPRESS_EMBEDS}));
    if last {
        body["components"] = json!([reply_row()]);
    }
    if file.is_some() {
        body["attachments"] =
            json!([{"id": "0", "filename": ANSWER_FILE, "description": "The whole answer"}]);
    }
    Rendered {
        body,
        file: file.map(|text| File {
            name: ANSWER_FILE.to_owned(),
            media_type: "text/markdown; charset=utf-8",
            bytes: text.as_bytes().to_vec(),
        }),
    }
}

/// The living card of a turn.
#[must_use]
pub fn card(card: &Card) -> Value {
    let title = format!("**{}**", title(&card.state));
    let advice = advice(card);
    let context = format!("-# {}", context(card));
    let fixed: Vec<&str> = [title.as_str(), context.as_str()]
        .into_iter()
        .chain(advice.as_deref())
        .collect();
    let plan = plan(&card.plan);
    let fixed: Vec<&str> = fixed.into_iter().chain(plan.as_deref()).collect();
    let used_units: usize = fixed.iter().map(|text| units(text)).sum();
    let used_bytes: usize = fixed
        .iter()
        .map(|text| text.len() + TEXT_DISPLAY_OVERHEAD_BYTES)
        .sum();
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
    match &card.state {
        CardState::Ended { outcome, usage } => {
            let mut buttons = Vec::new();
            let turn = card.turn.clone();
            if !matches!(outcome, Outcome::Answered | Outcome::Joined { .. }) {
                buttons.push(button(PRIMARY, "Reply", &CustomId::Reply));
            }
            if matches!(outcome, Outcome::Lost | Outcome::Failed { .. }) {
                let again = CustomId::Again { turn: turn.clone() };
                buttons.push(button(SECONDARY, "Run again", &again));
            }
            if usage.files > 0 {
                buttons.push(button(SECONDARY, "View diff", &CustomId::Diff { turn }));
            }
            if !buttons.is_empty() {
                parts.push(row(&buttons));
            }
        }
        CardState::Stopping => {
            let stop = CustomId::Stop {
                turn: card.turn.clone(),
            };
            parts.push(json!({"type": 1, "components": [{"type": 2, "style": SECONDARY, "label": "Stopping…", "custom_id": stop.text(), "disabled": true}]}));
        }
        CardState::Queued { now, .. } => parts.push(waiting_row(&card.turn, *now)),
        _ => {
            let stop = CustomId::Stop {
                turn: card.turn.clone(),
            };
            let mut buttons = vec![button(DANGER, "Stop", &stop)];
            if card.waiting > 0 {
                buttons.push(button(SECONDARY, "Stop all", &CustomId::StopAll));
            }
            parts.push(row(&buttons));
        }
    }
    container(accent(&card.state), parts)
}

/// The same message without its file, saying so.
#[must_use]
pub fn without_file(body: &Value) -> Value {
    let mut less = body.clone();
    less.as_object_mut()
        .into_iter()
        .for_each(|fields| drop(fields.remove("attachments")));
    let content = body["content"].as_str().unwrap_or_default();
    less["content"] = json!(match content.strip_suffix(WHOLE_IN_FILE) {
        Some(part) => noted(
            part.trim_end(),
            "-# The file with the whole answer could not be attached: this server does not take it."
        ),
        None => noted(
            content,
            "-# The file could not be attached: this server does not take it."
        ),
    });
    less
}

/// In place of a message that the server's filter refused.
#[must_use]
pub fn blocked(body: &Value) -> Value {
    const WORDS: &str = "This part was blocked by this server's message filter. Ask for it as a file in the sandbox.";
    let mut less = if body["flags"].as_u64().unwrap_or(0) & COMPONENTS_V2 == 0 {
        notice(WORDS)
    } else {
        container(GREY, vec![text(WORDS)])
    };
    if body["components"].is_array() && less["components"].is_null() {
        less["components"] = body["components"].clone();
    }
    less
}

/// The same message with half of each longer text display; none when it has no long ones.
#[must_use]
pub fn smaller(body: &Value) -> Option<Value> {
    const KEPT_UNITS: usize = 200;
    fn halve(parent: &mut Value, changed: &mut bool) {
        let parts = parent.get_mut("components").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            let content = part["content"].as_str().unwrap_or_default();
            if part["type"] == 10 && units(content) > KEPT_UNITS {
                *changed = true;
                // A code block stays closed, and nobody approves half a command for a whole one.
                let half = bobbin_core::text::split(content, units(content) / 2);
                let half = half.first().map_or("", String::as_str);
                part["content"] = json!(format!("{half}\n**This text is shortened.**"));
            }
            halve(part, changed);
        }
    }
    let mut less = body.clone();
    let mut changed = false;
    halve(&mut less, &mut changed);
    changed.then_some(less)
}

/// The text of a message, without components.
#[must_use]
pub fn as_text(body: &Value) -> Value {
    fn collect<'v>(part: &'v Value, into: &mut Vec<&'v str>) {
        into.extend(part["content"].as_str());
        part["components"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|child| collect(child, into));
    }
    let mut texts = Vec::new();
    collect(body, &mut texts);
    let mut less = notice(&texts.join("\n"));
    less["allowed_mentions"] = body["allowed_mentions"].clone();
    less
}

/// The text of a message as the only text display of one that is made of components; of another one as its content.
#[must_use]
pub fn as_one_text(body: &Value) -> Value {
    let mut one = as_text(body);
    if body["flags"].as_u64().unwrap_or(0) & COMPONENTS_V2 != 0 {
        one["components"] = json!([{"type": 10, "content": one["content"]}]);
        one["flags"] = json!(COMPONENTS_V2);
        one.as_object_mut()
            .into_iter()
            .for_each(|fields| drop(fields.remove("content")));
    }
    one
}

/// Text with a line below it, both within a message's content.
fn noted(content: &str, line: &str) -> String {
    format!(
        "{}\n{line}",
        shorten(content, CONTENT_UNITS_MAX - units(line) - 1)
    )
    .trim()
    .to_owned()
}

fn plain(body: Value) -> Rendered {
    Rendered { body, file: None }
}

fn container(accent: u32, parts: Vec<Value>) -> Value {
    mute(
        json!({"flags": COMPONENTS_V2, "components": [{"type": 17, "accent_color": accent, "components": parts}]}),
    )
}

fn text(content: &str) -> Value {
    json!({"type": 10, "content": content})
}

fn row(parts: &[Value]) -> Value {
    json!({"type": 1, "components": parts})
}

fn button(style: u8, label: &str, id: &CustomId) -> Value {
    json!({"type": 2, "style": style, "label": label, "custom_id": id.text()})
}

/// What can be done about a task that waits.
fn waiting_row(turn: &str, now: bool) -> Value {
    let turn = || turn.to_owned();
    let mut buttons = vec![button(
        SECONDARY,
        WITHDRAW,
        &CustomId::Stop { turn: turn() },
    )];
    if now {
        buttons.insert(
            0,
            button(PRIMARY, "Send now", &CustomId::Now { turn: turn() }),
        );
    }
    buttons.push(button(DANGER, "Stop all", &CustomId::StopAll));
    row(&buttons)
}

fn reply_row() -> Value {
    row(&[button(PRIMARY, "Reply", &CustomId::Reply)])
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
        CardState::Creating => "Making a sandbox".to_owned(),
        CardState::Resuming => "Waking the sandbox".to_owned(),
        CardState::Working => "Working".to_owned(),
        CardState::Waiting => "Waiting for a decision".to_owned(),
        CardState::Stopping => "Stopping".to_owned(),
        CardState::Ended { outcome, .. } => match outcome {
            Outcome::Answered => "Done".to_owned(),
            Outcome::Joined { .. } => "Sent into the running task".to_owned(),
            Outcome::Failed { .. } => "This did not work".to_owned(),
            Outcome::Cancelled { by } => format!("Stopped by {}", inline(by, 64)),
            Outcome::Lost => "The sandbox was lost".to_owned(),
        },
    }
}

/// What happened and what to do next, for an end that is not an answer; what is tried again, while it is.
fn advice(card: &Card) -> Option<String> {
    let CardState::Ended { outcome, .. } = &card.state else {
        let trouble = card.trouble.as_ref()?;
        return Some(format!(
            "-# Trying again: {}",
            inline(trouble, REASON_UNITS_MAX)
        ));
    };
    match outcome {
        Outcome::Answered => None,
        Outcome::Joined { .. } => Some("The agent has it, and answers it together with what it was working on.".to_owned()),
        Outcome::Failed { reason } => {
            let reason = inline(reason, REASON_UNITS_MAX);
            Some(format!("{reason}\n-# Reply goes on in this thread, `/reset` gives it a fresh sandbox."))
        }
        Outcome::Cancelled { .. } => Some("What was done so far is kept. Reply goes on in the same sandbox.".to_owned()),
        Outcome::Lost => Some("It vanished while the agent was working, with everything that was only in it. \"Run again\" repeats the task in a fresh one.".to_owned()),
    }
}

const fn accent(state: &CardState) -> u32 {
    match state {
        CardState::Waiting => YELLOW,
        CardState::Stopping | CardState::Queued { .. } => GREY,
        CardState::Ended { outcome, .. } => match outcome {
            Outcome::Answered | Outcome::Joined { .. } => GREEN,
            Outcome::Failed { .. } | Outcome::Lost => RED,
            Outcome::Cancelled { .. } => GREY,
        },
        _ => BLURPLE,
    }
}

fn context(card: &Card) -> String {
    let mut facts = Vec::new();
    match &card.state {
        CardState::Ended {
            outcome: Outcome::Joined { .. },
            ..
        } => facts.push(format!(
            "waited for {}",
            span(card.now_ms.saturating_sub(card.since_ms))
        )),
        CardState::Ended { usage, .. } => {
            facts.push(format!(
                "worked for {}",
                span(card.now_ms.saturating_sub(card.since_ms))
            ));
            if usage.files > 0 {
                facts.push(changes::in_short(usage));
            }
            if usage.tokens > 0 {
                facts.push(format!("{} tokens", thousands(usage.tokens)));
            }
            facts.extend(cost(usage.cost_micro_usd));
        }
        // Counts by itself on the reader's device, without an edit.
        _ => facts.push(format!("began <t:{}:R>", card.since_ms / 1000)),
    }
    if card.waiting > 0 {
        facts.push(format!("{} more waiting", card.waiting));
    }
    if !is_blank(&card.model) {
        facts.push(inline(&card.model, 100));
    }
    facts.join(" · ")
}

/// The agent's plan, a line each.
fn plan(items: &[PlanItem]) -> Option<String> {
    let line = |item: &PlanItem| {
        let text = inline(&item.text, STEP_UNITS_MAX);
        match item.state {
            PlanState::Done => format!("☑ {text}"),
            PlanState::Now => format!("▶ **{text}**"),
            PlanState::Next => format!("☐ {text}"),
            PlanState::Dropped => format!("☐ ~~{text}~~"),
        }
    };
    let (mut units_left, mut bytes_left) = (PLAN_UNITS_MAX, PLAN_BYTES_MAX);
    let mut lines = Vec::new();
    for line in items.iter().map(line) {
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

/// The newest steps that fit, oldest first, and how many came before them.
fn steps(steps: &[CardStep], earlier: usize, units_max: usize, bytes_max: usize) -> Option<String> {
    // Room for the line that counts those left out.
    let (mut units_left, mut bytes_left) =
        (units_max.saturating_sub(60), bytes_max.saturating_sub(60));
    let mut shown = Vec::new();
    for step in steps.iter().rev() {
        // The verb tells what runs from what is done; only a failure needs a word of its own.
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

/// One line of our own words with code spans of foreign text in it: each span stays one, and nothing else has an effect.
fn with_code(text: &str, units_max: usize) -> String {
    let plain = shorten(&one_line(text), units_max);
    let parts: Vec<&str> = plain.split('`').collect();
    if parts.len() != 3 || is_blank(parts[1]) {
        return inline(&plain, units_max);
    }
    let words = |text: &str| {
        if is_blank(text) {
            text.to_owned()
        } else {
            inline(text, units_max)
        }
    };
    let space = if parts[0].ends_with(' ') { " " } else { "" };
    format!(
        "{}{space}`{}`{}",
        words(parts[0].trim_end()),
        visible(parts[1]),
        words(parts[2])
    )
}

fn cost(micro_usd: u64) -> Option<String> {
    match micro_usd {
        0 => None,
        1..5_000 => Some("under $0.01".to_owned()),
        _ => {
            let cents = micro_usd.saturating_add(5_000) / 10_000;
            Some(format!("${}.{:02}", thousands(cents / 100), cents % 100))
        }
    }
}

#[cfg(test)]
mod tests;
