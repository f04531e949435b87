//! Posts as Slack's JSON. Pure: the same post gives the same JSON, and every limit of Block Kit holds for any text.
//!
//! Progress is a plan of tasks (or sections in mrkdwn, [`CardStyle`]); questions are sections; answers, notices and
//! texts for one person are `markdown` blocks, which take the agent's Markdown unchanged. Every message carries a
//! fallback `text` and, as metadata, the key of the post, by which a repeat finds it. Absent: emoji as the only carrier
//! of a meaning, mentions, link previews.

mod ask;
mod card;
mod home;
mod pull_request;
mod pull_review;
mod review;
mod sandboxes;
mod stream;
mod words;

use bobbin_core::base::ids::{PostRef, SandboxName};
use bobbin_core::records::card::{Card, CardState, Post};
use bobbin_core::records::message::Prompt;
use bobbin_core::tenant::settings::DefaultKind;
use bobbin_core::text::{Dialect, parts, shorten, visible, without_controls};
use serde_json::{Value, json};

pub use self::card::CardStyle;
pub use self::home::{closed_home, home, overview_words};
pub use self::sandboxes::{ask_destroy, sandboxes};
pub use self::stream::{Recipient, append_stream, start_stream, stop_stream, stream_pieces};
pub use super::blocks::{EVENT_TYPE, RenderedBlocks};
use super::blocks::{context, metadata, section};
use super::escape::{line, markdown, mrkdwn, prose, units};
use super::limits::{FALLBACK_UNITS_MAX, MARKDOWN_UNITS_MAX, TEXT_UNITS_MAX};

/// Longest part of an answer, in UTF-16 units: a `markdown` block holds 12,000 characters.
const CHUNK_UNITS: usize = 11_500;
/// Maximum characters of a name, and of a task, in the message that starts the task's thread: a section holds 3,000.
const NAME_UNITS_MAX: usize = 100;
const TASK_UNITS_MAX: usize = 2_400;
/// Maximum length of one chosen value, or an id, in its last line.
const CHOSEN_UNITS_MAX: usize = 80;
/// Line below the part of an answer that is posted beside its file.
const WHOLE_IN_FILE: &str =
    "_This is only a part: the whole answer is in the file `answer.md` above._";
/// A patch up to this length is shown in a block; a longer one is a file.
const DIFF_INLINE_UNITS_MAX: usize = 3_000;

/// Renders a post with the newest blocks.
#[must_use]
pub fn post(post: &Post) -> RenderedBlocks {
    post_as(post, CardStyle::Plan)
}

/// Renders a post for a workspace that takes cards in this style.
#[must_use]
pub fn post_as(post: &Post, style: CardStyle) -> RenderedBlocks {
    match post {
        Post::Card(card) => card::card(card, style, None),
        Post::Chunk { text, file, .. } => free(&part(text, file.is_some())),
        Post::File(file) => free(&format!("`{}`", file.name)),
        Post::Review(shown) => review::review(shown),
        Post::PullReview(shown) => pull_review::pull_review(shown),
        Post::PullRequest(shown) => pull_request::pull_request(shown),
        Post::Ask { ask, settled } => ask::ask(ask, settled.as_deref()),
        Post::Notice(text) | Post::Closing(text) => free(text),
        Post::Moved { link, .. } => moved(link.as_deref()),
        Post::Calling { people, post: inner } => calling(self::post(inner), people),
    }
}

/// The text of a part of an answer.
fn part(text: &str, is_in_file: bool) -> String {
    if text.trim().is_empty() {
        "The agent finished without a written answer.".to_owned()
    } else if is_in_file {
        format!("{text}\n\n{WHOLE_IN_FILE}")
    } else {
        text.to_owned()
    }
}

/// All of a part of an answer as a message without blocks; `None`: it is another post.
#[must_use]
pub fn whole(post: &Post) -> Option<String> {
    let Post::Chunk { text, file, .. } = post.bare() else {
        return None;
    };
    let text = fallback(&without_controls(&part(text, file.is_some())), TEXT_UNITS_MAX);
    Some(match called(post.calls()) {
        Some(line) => beside(text, &line, TEXT_UNITS_MAX),
        None => text,
    })
}

/// An answer in parts that each fit into a message.
pub(crate) fn split(answer: &str) -> Vec<String> {
    parts(answer, Dialect::Entities, CHUNK_UNITS)
}

/// A card of a turn that waits for another thread, with a link to it.
#[must_use]
pub fn card_linked(card: &Card, style: CardStyle, link: &str) -> RenderedBlocks {
    card::card(card, style, Some(link))
}

/// The address of a message, in a thread or not, on the workspace's own site (from `auth.test`, with a trailing slash).
#[must_use]
pub fn link(site: &str, root_ts: Option<&str>, at: &PostRef) -> String {
    let (channel, ts) = (&at.channel, at.id.replace('.', ""));
    match root_ts {
        Some(root_ts) => {
            format!("{site}archives/{channel}/p{ts}?thread_ts={root_ts}&cid={channel}")
        }
        None => format!("{site}archives/{channel}/p{ts}"),
    }
}

/// A card that cannot be edited for much longer.
fn moved(link: Option<&str>) -> RenderedBlocks {
    let told = match link {
        Some(link) => format!("*Continued below.* <{}|Go to the newer card>", mrkdwn(link, 300)),
        None => "*Continued below*, in a newer card.".to_owned(),
    };
    RenderedBlocks {
        text: "Continued below, in a newer card.".to_owned(),
        blocks: vec![section(&told)],
    }
}

/// Maximum number of people mentioned in one message.
const CALLED_MAX: usize = 4;

/// A post that mentions these people on a separate line: the only part of it that is not escaped.
#[must_use]
pub fn calling(rendered: RenderedBlocks, people: &[String]) -> RenderedBlocks {
    let Some(line) = called(people) else {
        return rendered;
    };
    let RenderedBlocks { text, mut blocks } = rendered;
    let text = beside(text, &line, FALLBACK_UNITS_MAX);
    blocks.push(section(&line));
    RenderedBlocks { text, blocks }
}

/// The line that mentions these people; `None` if there are none.
fn called(people: &[String]) -> Option<String> {
    let is_id = |id: &&String| {
        (2..=MEMBER_ID_CHARS_MAX).contains(&id.len())
            && id.starts_with(['U', 'W'])
            && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    };
    let called: Vec<String> =
        people.iter().filter(is_id).take(CALLED_MAX).map(|id| format!("<@{id}>")).collect();
    (!called.is_empty()).then(|| called.join(" "))
}

/// A text with that line, within a limit.
fn beside(mut text: String, line: &str, units_max: usize) -> String {
    let room = units_max - line.len() - 1;
    if units(&text) > room {
        // An entity that is cut in half would show as its remains.
        text = shorten(&text, room);
    }
    format!("{text}\n{line}")
}

/// Maximum characters of a person's id in Slack; today's have eleven.
const MEMBER_ID_CHARS_MAX: usize = 24;

/// Free text in Markdown: a part of an answer, a notice, a status, a refusal.
#[must_use]
pub fn free(text: &str) -> RenderedBlocks {
    let text = without_controls(text);
    let text = match text.trim() {
        "" => "(nothing)",
        _ => &text,
    };
    let block = json!({ "type": "markdown", "text": markdown(text, MARKDOWN_UNITS_MAX) });
    RenderedBlocks { text: fallback(text, FALLBACK_UNITS_MAX), blocks: vec![block] }
}

/// Free text where no block shows it.
fn fallback(text: &str, units_max: usize) -> String {
    prose(&text.replace("&lt;", "<"), units_max)
}

/// A turn's changes, as Markdown for one person; `None` if too long for that, or not allowed in a block.
#[must_use]
pub fn diff(patch: &str) -> Option<String> {
    let patch = visible(patch);
    let (summary, changed) = bobbin_core::records::changes::parts(&patch);
    let fits = units(&patch) <= DIFF_INLINE_UNITS_MAX && !patch.contains("```");
    fits.then(|| format!("```\n{summary}\n```\n```diff\n{}\n```", changed.trim_end()))
}

/// The summary of a patch, as the comment of its file.
#[must_use]
pub fn diff_summary(patch: &str) -> String {
    let (summary, _) = bobbin_core::records::changes::parts(patch);
    format!("```{}```", mrkdwn(&summary.replace("```", "'''"), DIFF_INLINE_UNITS_MAX))
}

/// The arguments of `chat.postMessage` for a post in a thread, or in direct messages under no message.
#[must_use]
pub fn message(
    channel: &str,
    root_ts: Option<&str>,
    key: &str,
    rendered: &RenderedBlocks,
) -> Value {
    let mut arguments = json!({
        "channel": channel,
        "text": rendered.text,
        "blocks": rendered.blocks,
        "metadata": metadata(key),
        "unfurl_links": false,
        "unfurl_media": false,
    });
    if let Some(root_ts) = root_ts {
        arguments["thread_ts"] = root_ts.into();
    }
    arguments
}

/// The arguments of `chat.update` for an existing post.
#[must_use]
pub fn update(at: &PostRef, key: &str, rendered: &RenderedBlocks) -> Value {
    json!({ "channel": at.channel, "ts": at.id, "text": rendered.text, "blocks": rendered.blocks, "metadata": metadata(key) })
}

/// The arguments of `chat.postEphemeral`: a message for one person.
#[must_use]
pub fn ephemeral(
    channel: &str,
    thread_ts: Option<&str>,
    user: &str,
    rendered: &RenderedBlocks,
) -> Value {
    let RenderedBlocks { text, blocks } = rendered;
    let mut arguments = json!({ "channel": channel, "user": user, "text": text, "blocks": blocks });
    if let Some(thread_ts) = thread_ts {
        arguments["thread_ts"] = thread_ts.into();
    }
    arguments
}

/// The arguments of `chat.postMessage` for a text in a direct message, where nobody else is.
#[must_use]
pub fn direct_message(channel: &str, thread_ts: Option<&str>, rendered: &RenderedBlocks) -> Value {
    let RenderedBlocks { text, blocks } = rendered;
    // With metadata like every post of ours: a message without it is a stream that was cut off.
    let mut arguments = json!({ "channel": channel, "text": text, "blocks": blocks, "metadata": metadata("word"),
        "unfurl_links": false, "unfurl_media": false });
    if let Some(thread_ts) = thread_ts {
        arguments["thread_ts"] = thread_ts.into();
    }
    arguments
}

/// The arguments of `chat.postMessage` for the message that starts the thread of a task from a terminal. The task is
/// quoted as its author wrote it, shortened, and mentions nobody.
#[must_use]
pub fn opening(channel: &str, key: &str, id: &str, prompt: &Prompt) -> Value {
    let by = line(&prompt.by.name, NAME_UNITS_MAX);
    let task = mrkdwn(&prompt.text, TASK_UNITS_MAX);
    let wants = &prompt.wants;
    let sandbox = wants.sandbox.as_ref().map(SandboxName::as_str);
    let chosen: String = DefaultKind::ALL
        .into_iter()
        .filter_map(|kind| kind.of(wants).as_deref())
        .chain(sandbox)
        .map(|one| format!("{} · ", line(one, CHOSEN_UNITS_MAX)))
        .collect();
    let from = format!(
        "{chosen}Sent from a terminal as {}. The work continues in the thread.",
        line(id, CHOSEN_UNITS_MAX)
    );
    json!({
        "channel": channel,
        "text": mrkdwn(&format!("{} asked: {}", prompt.by.name, prompt.text), FALLBACK_UNITS_MAX),
        "blocks": [section(&format!("*{by}* asked:\n{task}")), context(&from)],
        "metadata": metadata(key),
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// The status of an agent session (`agents.sessions.setStatus`). It never clears itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentSessionStatus {
    /// The agent works; Slack shows its own Stop button.
    Processing,
    /// Nothing is in progress.
    Active,
    /// Waits for a person.
    Suspended,
}

impl AgentSessionStatus {
    /// The status for a card of the thread's current turn; `None` for a turn that waits behind it.
    #[must_use]
    pub const fn of(state: &CardState) -> Option<Self> {
        match state {
            CardState::Queued { .. } => None,
            CardState::Waiting => Some(Self::Suspended),
            CardState::Ended { .. } => Some(Self::Active),
            _ => Some(Self::Processing),
        }
    }

    /// The value for Slack's API.
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
