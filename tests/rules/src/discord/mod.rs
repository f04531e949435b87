//! Discord's HTTP API: bodies of requests, and answers to interactions.

mod commands;
mod description;
mod message;
mod parts;

use serde_json::Value;

pub use crate::outside;

/// The route of an answer to an interaction, however it is given.
pub const CALLBACK: &str = "/interactions/{interaction_id}/{interaction_token}/callback";
/// Only the person who asked sees it.
const EPHEMERAL: u64 = 64;
/// The message is made of components.
const COMPONENTS_V2: u64 = 32_768;

/// Fails the test unless the body fits the route in every respect that can be checked here.
///
/// # Panics
/// When it does not fit.
pub fn assert_fits(path: &str, method: &str, body: &Value) {
    let wrong = wrong(path, method, body);
    assert!(wrong.is_empty(), "{method} {path}: {wrong:#?}\n{body:#}");
}

/// What is wrong with a body for a route as the description writes it (`/channels/{channel_id}/messages`).
#[must_use]
pub fn wrong(path: &str, method: &str, body: &Value) -> Vec<String> {
    let mut wrong = own_rules(path, body);
    wrong.extend(description::wrong(path, method, body));
    wrong
}

/// Rules of the documentation, or seen in production, that the description does not state.
#[must_use]
pub fn own_rules(path: &str, body: &Value) -> Vec<String> {
    let mut rules = Rules::default();
    if path.ends_with("/commands") {
        commands::check(body, &mut rules);
    } else if path.ends_with("/threads") {
        message::thread(path, body, &mut rules);
    } else {
        message::check(path, body, &mut rules);
    }
    rules.wrong
}

/// What is wrong with an answer to an interaction of this type (2 command, 3 component, 4 completion, 5 form).
/// `on_message`: the interaction came from something on a message.
#[must_use]
pub fn wrong_answer(interaction: u64, on_message: bool, answer: &Value) -> Vec<String> {
    let mut wrong = wrong(CALLBACK, "post", answer);
    let may: &[u64] = match (interaction, on_message) {
        (1, _) => &[1],
        (2, _) => &[4, 5, 9],
        (3, _) => &[4, 5, 6, 7, 9],
        (4, _) => &[8],
        (5, true) => &[4, 5, 6, 7],
        _ => &[4, 5],
    };
    if !answer["type"].as_u64().is_some_and(|kind| may.contains(&kind)) {
        wrong.push(format!(
            "an interaction of type {interaction} is not answered with a callback of type {}",
            answer["type"]
        ));
    }
    wrong
}

/// A request as it went out.
#[derive(Debug)]
pub struct Sent<'s> {
    /// The HTTP method, in capitals.
    pub method: &'s str,
    /// Behind the version, with ids.
    pub path: &'s str,
    /// The JSON body; of a multipart request its `payload_json`. Null for none.
    pub body: &'s Value,
    /// Field and file name of each file.
    pub files: Vec<(&'s str, &'s str)>,
}

/// What is wrong with a request.
#[must_use]
pub fn wrong_request(sent: &Sent<'_>) -> Vec<String> {
    let method = sent.method.to_lowercase();
    let route = match description::route(&method, sent.path) {
        description::Route::Known(route) => route,
        description::Route::Unknown => return vec!["Discord has no such route".to_owned()],
        description::Route::NoDescription => message::template(sent.path),
    };
    let mut wrong = match sent.body {
        Value::Null => Vec::new(),
        body => wrong(&route, &method, body),
    };
    let mut rules = Rules::default();
    files(sent, &mut rules);
    wrong.extend(rules.wrong);
    wrong
}

/// Every file has a slot, every new slot a file, and what is shown as an attachment is one of them.
fn files(sent: &Sent<'_>, rules: &mut Rules) {
    let slots = sent.body["attachments"].as_array();
    let slots: Vec<&Value> = slots.into_iter().flatten().collect();
    for (field, name) in &sent.files {
        let slot = field.strip_prefix("files[").and_then(|rest| rest.strip_suffix(']'));
        rules.must(slot.is_some(), "a file is sent as files[n]");
        let has = |one: &&Value| slot == one["id"].as_str() && one["filename"] == *name;
        rules.must(slots.iter().any(has), "every file is named among the attachments");
    }
    // Ids of what stands already are snowflakes; numbers this small are slots of this request.
    let new = slots.iter().filter(|one| one["id"].as_str().is_some_and(|id| id.len() <= 2));
    rules.must(new.count() == sent.files.len(), "every new attachment has its file");
    rules.must(sent.files.len() <= 10, "at most 10 files");
    let text = sent.body.to_string();
    for shown in text.split("attachment://").skip(1) {
        let name: String = shown.chars().take_while(|c| !matches!(c, '"' | '\\')).collect();
        let there = slots.iter().any(|one| one["filename"] == name.as_str());
        rules.must(there, "what is shown as an attachment is attached");
    }
}

/// What does not hold.
#[derive(Debug, Default)]
struct Rules {
    wrong: Vec<String>,
}

impl Rules {
    fn must(&mut self, holds: bool, words: &str) {
        if !holds {
            self.wrong.push(words.to_owned());
        }
    }
}

/// Characters as Discord's strictest reading counts them.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Nothing of it could be seen; Discord refuses such text as empty.
fn is_blank(text: &str) -> bool {
    let unseen = |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{3164}');
    text.chars().all(|c| c.is_whitespace() || c.is_control() || unseen(c))
}

#[cfg(test)]
mod tests;
