//! A message sent on to Bobbin: which part is the sender's own request, and which is quoted beside it.
//!
//! The text of the sender's own message is the prompt. Somebody else's message is quoted with its author's name, and so
//! are messages that it replies to or forwards. In other bots' messages the embeds are read, where alerts and builds
//! describe events. Everything is bounded.

use bobbin_core::records::message::Quote;
use bobbin_core::text::shorten;
use serde_json::Value;

use super::bounds::{QUOTED_UNITS_MAX, QUOTES_MAX};
use super::content::is_blank;
use super::interaction::{DiscordAttachment, DiscordMessage, User};

/// The request if the sender only pointed at somebody else's message.
pub const WORK_ON_QUOTED: &str = "Work on the quoted message.";
/// The request if there are files and no text.
const LOOK_AT_FILES: &str = "Look at the attached files.";

/// A message that was sent on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The prompt, quotation included.
    pub(super) text: String,
    /// The quoted messages, oldest first.
    pub(super) quotes: Vec<Quote>,
}

/// Reads a message that `sender` sends on; `None` if there is nothing to work on.
pub(super) fn read(message: &DiscordMessage, sender: &str) -> Option<Sent> {
    let own = message.author.as_ref().is_some_and(|by| by.id == sender);
    let answered = message.referenced_message.as_deref();
    let forwarded = message.message_snapshots.iter().map(|one| &one.message);
    let mut quotes: Vec<Quote> = answered
        .into_iter()
        .chain(forwarded)
        .chain((!own).then_some(message))
        .filter_map(quoted)
        .collect();
    let surplus = quotes.len().saturating_sub(QUOTES_MAX);
    quotes.drain(..surplus);
    let words = words(message);
    let text = match (own && !is_blank(&words), quotes.is_empty()) {
        (true, _) => words,
        (false, false) => WORK_ON_QUOTED.to_owned(),
        (false, true) if files(message).next().is_some() => LOOK_AT_FILES.to_owned(),
        (false, true) => return None,
    };
    Some(Sent { text, quotes })
}

/// The files of a message and of the messages that it forwards.
pub(super) fn files(message: &DiscordMessage) -> impl Iterator<Item = &DiscordAttachment> {
    let forwarded = message.message_snapshots.iter();
    let forwarded = forwarded.flat_map(|one| &one.message.attachments);
    message.attachments.iter().chain(forwarded)
}

fn quoted(message: &DiscordMessage) -> Option<Quote> {
    let text = shorten(&words(message), QUOTED_UNITS_MAX);
    let by = message.author.as_ref().map(name).unwrap_or_default();
    (!is_blank(&text)).then_some(Quote { by, text })
}

fn name(user: &User) -> String {
    let chosen = user.global_name.as_ref().filter(|name| !is_blank(name));
    chosen.unwrap_or(&user.username).clone()
}

/// All readable text of a message.
fn words(message: &DiscordMessage) -> String {
    let mut parts = vec![message.content.trim().to_owned()];
    parts.extend(message.embeds.iter().map(boxed));
    displayed(&message.components, &mut parts);
    parts.retain(|part| !is_blank(part));
    parts.join("\n\n")
}

/// An embed's title, address, text and fields, one line each.
fn boxed(embed: &Value) -> String {
    let line = |name: &str| embed[name].as_str().map(str::to_owned);
    let fields = embed["fields"].as_array().into_iter().flatten();
    let fields = fields.filter_map(|field| {
        let (name, value) = (field["name"].as_str()?, field["value"].as_str()?);
        Some(format!("{name}: {value}"))
    });
    let lines: Vec<String> =
        ["title", "url", "description"].into_iter().filter_map(line).chain(fields).collect();
    lines.join("\n")
}

/// The text displays of a message that consists of components.
fn displayed(components: &[Value], into: &mut Vec<String>) {
    for part in components {
        if part["type"] == 10 {
            into.extend(part["content"].as_str().map(str::to_owned));
        }
        if let Some(inside) = part["components"].as_array() {
            displayed(inside, into);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(message: Value) -> Option<(String, Vec<(String, String)>)> {
        let message: DiscordMessage = serde_json::from_value(message).expect("a message");
        let sent = read(&message, "4")?;
        let quotes = sent.quotes.into_iter().map(|quote| (quote.by, quote.text));
        Some((sent.text, quotes.collect()))
    }

    fn pair(by: &str, text: &str) -> (String, String) {
        (by.to_owned(), text.to_owned())
    }

    #[test]
    fn own_reply_quotes_its_parent() {
        let own = json!({"content": "Fix this", "author": {"id": "4", "username": "robin"},
            "referenced_message": {"content": "It is broken", "author": {"id": "5", "username": "sam.dev", "global_name": "Sam"}}});
        assert_eq!(sent(own), Some(("Fix this".to_owned(), vec![pair("Sam", "It is broken")])));
    }

    #[test]
    fn foreign_message_is_quoted_with_author() {
        let other = json!({"content": "It is broken", "author": {"id": "5", "username": "sam", "global_name": null}});
        assert_eq!(
            sent(other),
            Some((WORK_ON_QUOTED.to_owned(), vec![pair("sam", "It is broken")]))
        );
    }

    #[test]
    fn forward_keeps_files_without_author() {
        let forward = json!({"content": "", "author": {"id": "4", "username": "robin"}, "message_reference": {"type": 1},
            "message_snapshots": [{"message": {"content": "Old words", "attachments": [{"filename": "a.log", "url": "https://cdn.discordapp.com/a"}]}}]});
        let message: DiscordMessage = serde_json::from_value(forward.clone()).expect("a message");
        assert_eq!(files(&message).count(), 1);
        assert_eq!(sent(forward), Some((WORK_ON_QUOTED.to_owned(), vec![pair("", "Old words")])));
    }

    #[test]
    fn bot_embeds_and_components_are_quoted() {
        let alert = json!({"content": "", "author": {"id": "9", "username": "CI", "bot": true}, "embeds": [
            {"title": "Build 7 failed", "url": "https://ci.example/7", "fields": [{"name": "Branch", "value": "main"}]}],
            "components": [{"type": 17, "components": [{"type": 10, "content": "step: test"}]}]});
        let text = "Build 7 failed\nhttps://ci.example/7\nBranch: main\n\nstep: test";
        assert_eq!(sent(alert), Some((WORK_ON_QUOTED.to_owned(), vec![pair("CI", text)])));
    }

    #[test]
    fn quotes_are_bounded_empty_messages_ignored() {
        let snapshot =
            |n: usize| json!({"message": {"content": format!("{n} {}", "x".repeat(9_000))}});
        let many = json!({"author": {"id": "4"}, "message_snapshots": (0..20).map(snapshot).collect::<Vec<_>>()});
        let (_, quotes) = sent(many).expect("something");
        assert_eq!(quotes.len(), QUOTES_MAX);
        assert!(quotes.iter().all(|(_, text)| bobbin_core::text::units(text) <= QUOTED_UNITS_MAX));
        assert!(quotes[QUOTES_MAX - 1].1.starts_with("19 "));
        assert_eq!(sent(json!({"author": {"id": "4"}})), None);
        assert_eq!(
            sent(json!({"message_snapshots": [{"message": null}], "referenced_message": null})),
            None
        );
        let file = json!({"attachments": [{"filename": "a", "url": "u"}]});
        assert_eq!(sent(file), Some((LOOK_AT_FILES.to_owned(), Vec::new())));
    }
}
