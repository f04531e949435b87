//! Posts as Slack's JSON. Pure: the same post gives the same JSON, and every limit of Block Kit holds for any text.
//!
//! Progress and questions are sections in mrkdwn; answers, notices and words for one person are `markdown` blocks, which
//! take the agent's Markdown as it is. Every message carries a fallback `text` and, as metadata, the name of the post,
//! by which a repeat finds it. Absent: emoji as the only bearer of a meaning, mentions, link previews.

mod ask;
mod card;
mod escape;
mod words;

use serde_json::{Value, json};

pub(super) use self::escape::quoted;
use self::escape::{markdown, mrkdwn};
use super::limits::{FALLBACK_UNITS_MAX, MARKDOWN_UNITS_MAX};
use crate::card::{CardState, Post, PostRef};

/// `metadata.event_type` of every post of ours.
pub const EVENT_TYPE: &str = "bobbin";

/// Said below the part of an answer that stands beside its file.
const WHOLE_IN_FILE: &str =
    "_This is only a part of it: the whole answer is in the file `answer.md` above._";
/// A patch up to this length is shown in a block; a longer one is a file.
const DIFF_INLINE_UNITS_MAX: usize = 3_000;

/// A message's visible part.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// For notifications and screen readers, escaped, at most 4,000 characters.
    pub text: String,
    /// Block Kit blocks, at most 50.
    pub blocks: Vec<Value>,
}

/// Renders a post.
#[must_use]
pub fn post(post: &Post) -> Rendered {
    match post {
        Post::Card(card) => card::card(card),
        Post::Chunk { text, .. } if text.trim().is_empty() => {
            free("The agent finished without words.")
        }
        Post::Chunk {
            text,
            file: Some(_),
            ..
        } => free(&format!("{text}\n\n{WHOLE_IN_FILE}")),
        Post::Chunk { text, .. } => free(text),
        Post::File(file) => free(&format!("`{}`", file.name)),
        Post::Ask { ask, settled } => ask::ask(ask, settled.as_deref()),
        Post::Notice(text) => free(text),
    }
}

/// Free words in Markdown: an answer's part, a notice, a status, a refusal.
#[must_use]
pub fn free(text: &str) -> Rendered {
    let text = if text.trim().is_empty() {
        "(nothing)"
    } else {
        text
    };
    let block = json!({ "type": "markdown", "text": markdown(text, MARKDOWN_UNITS_MAX) });
    Rendered {
        text: mrkdwn(text, FALLBACK_UNITS_MAX),
        blocks: vec![block],
    }
}

/// What a turn changed, as Markdown for one person; none when it is too long for that, or cannot stand in a block.
#[must_use]
pub fn diff(patch: &str) -> Option<String> {
    let (summary, changed) = crate::changes::parts(patch);
    let fits = escape::units(patch) <= DIFF_INLINE_UNITS_MAX && !patch.contains("```");
    fits.then(|| format!("```\n{summary}\n```\n```diff\n{}\n```", changed.trim_end()))
}

/// The summary of a patch, as the comment of its file.
#[must_use]
pub fn diff_summary(patch: &str) -> String {
    let (summary, _) = crate::changes::parts(patch);
    format!(
        "```{}```",
        mrkdwn(&summary.replace("```", "'''"), DIFF_INLINE_UNITS_MAX)
    )
}

/// The arguments of `chat.postMessage` for a post in a thread.
#[must_use]
pub fn message(channel: &str, root_ts: &str, key: &str, rendered: &Rendered) -> Value {
    json!({
        "channel": channel,
        "thread_ts": root_ts,
        "text": rendered.text,
        "blocks": rendered.blocks,
        "metadata": metadata(key),
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// The arguments of `chat.update` for a post that stands.
#[must_use]
pub fn update(at: &PostRef, key: &str, rendered: &Rendered) -> Value {
    json!({ "channel": at.channel, "ts": at.id, "text": rendered.text, "blocks": rendered.blocks, "metadata": metadata(key) })
}

fn metadata(key: &str) -> Value {
    json!({ "event_type": EVENT_TYPE, "event_payload": { "op_id": key } })
}

/// The arguments of `chat.postEphemeral`: words that one person sees.
#[must_use]
pub fn ephemeral(channel: &str, thread_ts: Option<&str>, user: &str, text: &str) -> Value {
    let Rendered { text, blocks } = free(text);
    let mut arguments = json!({ "channel": channel, "user": user, "text": text, "blocks": blocks });
    if let Some(thread_ts) = thread_ts {
        arguments["thread_ts"] = thread_ts.into();
    }
    arguments
}

/// The arguments of `chat.postMessage` for words in a direct message, where nobody else is.
#[must_use]
pub fn direct(channel: &str, thread_ts: Option<&str>, text: &str) -> Value {
    let Rendered { text, blocks } = free(text);
    let mut arguments = json!({ "channel": channel, "text": text, "blocks": blocks, "unfurl_links": false, "unfurl_media": false });
    if let Some(thread_ts) = thread_ts {
        arguments["thread_ts"] = thread_ts.into();
    }
    arguments
}

/// The status of an agent session (`agents.sessions.setStatus`). It never clears itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The agent works; Slack shows its own Stop button.
    Processing,
    /// Idle.
    Active,
    /// Waits for a person.
    Suspended,
}

impl Status {
    /// The status that goes with a card.
    #[must_use]
    pub const fn of(state: &CardState) -> Self {
        match state {
            CardState::Waiting => Self::Suspended,
            CardState::Ended { .. } => Self::Active,
            _ => Self::Processing,
        }
    }

    /// Slack's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Active => "active",
            Self::Suspended => "suspended",
        }
    }

    /// The line that `assistant.threads.setStatus` shows; empty clears it.
    #[must_use]
    pub const fn line(self) -> &'static str {
        match self {
            Self::Processing => "is working…",
            Self::Active => "",
            Self::Suspended => "waits for an answer",
        }
    }
}

fn section(text: &str) -> Value {
    json!({ "type": "section", "text": text_object(text) })
}

/// `verbatim`: names and addresses in it are not turned into links or mentions by Slack.
fn text_object(text: &str) -> Value {
    json!({ "type": "mrkdwn", "text": text, "verbatim": true })
}

fn context(text: &str) -> Value {
    json!({ "type": "context", "elements": [text_object(text)] })
}

/// A button label: plain text, never empty.
fn label(text: &str, units_max: usize) -> Value {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if text.is_empty() {
        "(no words)".to_owned()
    } else {
        markdown(&text, units_max)
    };
    json!({ "type": "plain_text", "text": text, "emoji": false })
}
