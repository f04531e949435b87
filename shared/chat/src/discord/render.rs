//! Posts as request bodies: cards, answers, asks, notices, the anchor of a thread.
//!
//! Text from models, people and tools is bounded and has no effect beyond being read. A body serves to create a message
//! and to edit it; only the nonce that makes a creation repeatable is added ([`with_nonce`]).

mod ask;
mod card;
mod fallback;
mod pull_request;
mod pull_review;
mod review;
mod sandboxes;

use bobbin_core::base::ids::{PostRef, SandboxName};
use bobbin_core::records::card::{Post, ShownFile};
use bobbin_core::records::changes;
use bobbin_core::records::message::{Open, Prompt};
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::DefaultKind;
use bobbin_core::text::{Dialect, one_line, parts, shorten, units, visible};
use serde_json::{Value, json};

use super::bounds::{
    ANCHOR_UNITS_MAX, CHUNK_UNITS, CONTENT_UNITS_MAX, REASON_UNITS_MAX, THREAD_NAME_UNITS_MAX,
};
use super::components::{GREY, PRIMARY, button, container, row, text};
use super::content::{bounded, called, emphasised_name, inline, is_blank, mute, noted, notice};
use super::custom_id::CustomId;
use super::flags::{COMPONENTS_V2, EPHEMERAL, SUPPRESS_EMBEDS};
use super::quoting::WORK_ON_QUOTED;

use self::ask::ask;
use self::card::card;
use self::fallback::WHOLE_IN_FILE;
pub use self::fallback::{as_one_text, as_text, blocked, smaller, without_file, without_reply};
use self::pull_request::pull_request;
use self::pull_review::pull_review;
use self::review::review;
pub use self::sandboxes::{ask_destroy, sandboxes};

/// A body, and its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The JSON of the message.
    pub body: Value,
    /// Sent as `files[0]` of a multipart request.
    pub file: Option<AttachedFile>,
}

/// A file attached to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    pub name: String,
    pub media_type: &'static str,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// Name of the file for an answer too long for messages.
pub const ANSWER_FILE: &str = "answer.md";
/// Maximum length of one chosen value on the line in the channel.
const CHOSEN_UNITS_MAX: usize = 80;
/// Maximum length of the id of a task from a terminal.
const ID_UNITS_MAX: usize = 60;
/// Name of the file for a turn's changes.
pub const DIFF_FILE: &str = "changes.diff";
/// Maximum length of the names of a file and its folder in a message.
const FILE_NAME_UNITS_MAX: usize = 100;
/// How long a thread stays in the channel's list without activity, in minutes.
const THREAD_LISTED_MIN: u32 = 1440;

/// Renders a post of any kind.
#[must_use]
pub fn post(post: &Post) -> Rendered {
    match post {
        Post::Moved { link, .. } => plain(moved(link.as_deref())),
        Post::Calling { people, post: inner } => calling(self::post(inner), people),
        Post::Card(shown) => plain(card(shown)),
        Post::Chunk { text, last, file, card } => {
            replying(chunk(text, *last, file.as_deref()), card.as_ref())
        }
        Post::Ask { ask: shown, settled } => plain(ask(shown, settled.as_deref())),
        Post::File(file) => shown_file(file),
        Post::Review(shown) => plain(review(shown)),
        Post::PullReview(shown) => plain(pull_review(shown)),
        Post::PullRequest(shown) => plain(pull_request(shown)),
        Post::Notice(text) | Post::Closing(text) => plain(notice(text)),
    }
}

/// Splits an answer. Tables are converted first: Discord has none, and an aligned one is longer than its source.
pub(crate) fn split(answer: &str) -> Vec<String> {
    parts(answer, Dialect::Backticks, CHUNK_UNITS)
}

/// Words for one person, in parts that each fit into a message.
pub(super) fn words(words: &str) -> Vec<String> {
    match units(words) {
        0..=CONTENT_UNITS_MAX => vec![words.to_owned()],
        _ => bobbin_core::text::split(words, CHUNK_UNITS),
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
        Some(to) => format!("-# A newer card has replaced this one: {to}"),
        None => "-# A newer card has replaced this one.".to_owned(),
    };
    container(GREY, vec![text("**Continued below**"), text(&line)])
}

/// A post that replies to a card; if the card was deleted, it replies to nothing.
fn replying(mut rendered: Rendered, card: Option<&PostRef>) -> Rendered {
    if let Some(card) = card {
        rendered.body["message_reference"] =
            json!({"message_id": card.id, "fail_if_not_exists": false});
    }
    rendered
}

/// A post that mentions these people on a separate line: nothing else in it can ping, and nobody else is pinged.
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

/// A file that the agent left to be shown: its name describes what cannot be seen.
fn shown_file(file: &ShownFile) -> Rendered {
    let content = super::content::span(&file.name, FILE_NAME_UNITS_MAX);
    Rendered {
        body: mute(json!({"content": content, "flags": SUPPRESS_EMBEDS,
            "attachments": [{"id": "0", "filename": file.name, "description": "A file from the agent"}]})),
        file: Some(AttachedFile {
            name: file.name.clone(),
            media_type: media_type(&file.name),
            bytes: file.bytes.clone(),
        }),
    }
}

/// A turn's changes, for one person: short ones in a code block, long ones as a file below a summary.
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
        file: Some(AttachedFile {
            name: DIFF_FILE.to_owned(),
            media_type: "text/x-diff; charset=utf-8",
            bytes: patch.as_bytes().to_vec(),
        }),
    }
}

/// The media type by the file extension; Discord itself goes by the name.
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

/// The body with the post's nonce: Discord returns the existing message with that nonce.
#[must_use]
pub fn with_nonce(mut body: Value, nonce: &str) -> Value {
    body["nonce"] = json!(nonce);
    body["enforce_nonce"] = json!(true);
    body
}

/// A text for one person, as an edit of a deferred answer that only they see.
#[must_use]
pub fn private_text(text: &str) -> Value {
    mute(json!({"content": bounded(text)}))
}

/// A body as a message that only one person sees, after a click.
#[must_use]
pub fn for_one(mut body: Value) -> Value {
    let flags = body["flags"].as_u64().unwrap_or(0);
    body["flags"] = json!(flags | EPHEMERAL);
    body
}

/// The line in the channel from which the thread starts.
#[must_use]
pub fn anchor(open: &Open) -> Value {
    let task = inline(&open.prompt.text, ANCHOR_UNITS_MAX);
    let quoted = super::answer::quoted(&open.prompt.quotes);
    let chosen = chosen(&open.prompt.wants);
    let from = from_terminal(open);
    mute(
        json!({"content": bounded(&format!("{} asked: {task}{quoted}\n-# {chosen}{from}The work continues in the thread below.", emphasised_name(&open.prompt.by)))}),
    )
}

/// Marks a task that nobody in the server requested; its id distinguishes it from others with the same text.
fn from_terminal(open: &Open) -> String {
    if open.prompt.membership.operates {
        format!("Sent from a terminal as {}. ", inline(&open.id, ID_UNITS_MAX))
    } else {
        String::new()
    }
}

/// The line in the channel if no thread could be created.
#[must_use]
pub fn anchor_failed(open: &Open, why: &str) -> Value {
    let task = inline(&open.prompt.text, ANCHOR_UNITS_MAX);
    mute(
        json!({"content": bounded(&format!("{} asked: {task}\n{}", emphasised_name(&open.prompt.by), shorten(why, REASON_UNITS_MAX)))}),
    )
}

/// The choices for the task, before the text that follows on the same line.
fn chosen(wants: &Selection) -> String {
    let sandbox = wants.sandbox.as_ref().map(SandboxName::as_str);
    DefaultKind::ALL
        .into_iter()
        .filter_map(|kind| kind.of(wants).as_deref())
        .chain(sandbox)
        .map(|one| format!("{} · ", inline(one, CHOSEN_UNITS_MAX)))
        .collect()
}

/// The request that starts a thread on a message.
#[must_use]
pub fn thread(prompt: &Prompt) -> Value {
    json!({"name": thread_name(subject(prompt)), "auto_archive_duration": THREAD_LISTED_MIN})
}

/// The subject of a task, in a person's words: those of the quoted message if the task only points at it.
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
        file: file.map(|text| AttachedFile {
            name: ANSWER_FILE.to_owned(),
            media_type: "text/markdown; charset=utf-8",
            bytes: text.as_bytes().to_vec(),
        }),
    }
}

fn plain(body: Value) -> Rendered {
    Rendered { body, file: None }
}

fn reply_row() -> Value {
    row(&[button(PRIMARY, "Reply", &CustomId::Reply)])
}

#[cfg(test)]
mod tests;
