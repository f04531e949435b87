//! Raw answers, character by character, against samples in the structure that AWS's reference documents.
//!
//! A file of `tests/wire` is a conversation: exchanges between lines of `===`, each a request, a line of `=`, and the
//! answer. `<name>` stands for some text that is the same wherever the name comes again, `<#name>` for a number. An
//! answer may have more headers than the sample names, but none that the sample names without a value; a sample without
//! a body and without `content-length: 0` leaves the body open.

use std::collections::BTreeMap;
use std::time::SystemTime;

use axum::http::{HeaderMap, Request};
use bobbin_local_aws::{AccessKey, EngineKeys};
use regex::Regex;
use serde_json::Value;

use crate::support::{Stack, send, sign};

/// What the names of a conversation stand for so far.
type Names = BTreeMap<String, String>;

struct Message {
    first: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Message {
    fn read(text: &str) -> Self {
        let text: String = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        let (head, body) = text.trim_start().split_once("\n\n").unwrap_or((text.trim(), ""));
        let mut lines = head.lines();
        let first = lines.next().unwrap().to_owned();
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_owned(), value.trim().to_owned())
            })
            .collect();
        Self { first, headers, body: body.trim_end().to_owned() }
    }
}

/// The text with known names filled in.
fn filled(text: &str, names: &Names) -> String {
    let mut filled = text.to_owned();
    for (name, value) in names {
        filled = filled.replace(&format!("<{name}>"), value);
    }
    filled
}

/// Compares and learns the names that are new.
fn compare(sample: &str, answered: &str, names: &mut Names) {
    let known = filled(sample, names);
    let name = Regex::new("<(#?)([a-z][a-z-]*)>").unwrap();
    let (mut pattern, mut end, mut new) = (String::new(), 0, Vec::new());
    for found in name.captures_iter(&known) {
        let whole = found.get(0).unwrap();
        pattern += &regex::escape(&known[end..whole.start()]);
        pattern += if found[1].is_empty() { r#"((?:[^"<>\\]|\\.)+)"# } else { "([0-9]+)" };
        end = whole.end();
        new.push(found[2].to_owned());
    }
    pattern += &regex::escape(&known[end..]);
    let found = Regex::new(&format!("^{pattern}$")).unwrap().captures(answered);
    let found = found.unwrap_or_else(|| panic!("expected {known}\nbut got  {answered}"));
    for (index, name) in new.into_iter().enumerate() {
        // The id of a request is new with each.
        if name != "id" {
            names.insert(name, found[index + 1].to_owned());
        }
    }
}

fn compare_headers(sample: &Message, headers: &HeaderMap, names: &mut Names) {
    for (name, value) in &sample.headers {
        let told = headers.get(name).map(|told| told.to_str().unwrap());
        match (value.as_str(), told) {
            ("", None) => {}
            ("", Some(told)) => panic!("{name} is there: {told}"),
            (_, None) => panic!("{name} is missing in {headers:?}"),
            (value, Some(told)) => compare(value, told, names),
        }
    }
}

/// JSON with the members of each object by their names, whose order says nothing; anything else as it is.
fn sorted(text: String) -> String {
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => value.to_string(),
        Err(_) => text,
    }
}

fn service(asked: &Message) -> &'static str {
    let target = asked.headers.iter().find(|(name, _)| name == "x-amz-target");
    match (target.map(|(_, target)| target.as_str()), asked.first.as_str()) {
        (Some(target), _) if target.starts_with("AmazonSQS") => "sqs",
        (Some(target), _) if target.starts_with("DynamoDB") => "dynamodb",
        (Some(_), _) => "secretsmanager",
        (None, first) if first.contains(" /schedules") => "scheduler",
        (None, first) if first.contains("/functions/") => "lambda",
        (None, _) => "cloudformation",
    }
}

/// Holds one conversation with an engine; returns how many exchanges it had.
async fn converse(stack: &Stack, key: &AccessKey, text: &str) -> usize {
    let mut names = Names::new();
    let exchanges: Vec<_> = text.split("\n===\n").collect();
    for exchange in &exchanges {
        let (asked, sample) = exchange.split_once("\n=\n").unwrap();
        let (asked, sample) = (Message::read(asked), Message::read(sample));
        let (method, path) = asked.first.split_once(' ').unwrap();
        let mut request =
            Request::builder().method(method).uri(format!("{}{path}", stack.engine.endpoint()));
        for (name, value) in &asked.headers {
            request = request.header(name, value);
        }
        let body = filled(&asked.body, &names).into_bytes();
        let request = request.body(body).unwrap();
        let service = service(&asked);
        let signed = sign(request, service, key, SystemTime::now());
        let (status, headers, answered) = send(signed).await;
        let answered = String::from_utf8(answered).unwrap();
        assert_eq!(status.to_string(), sample.first, "{asked}: {answered}", asked = asked.first);
        compare_headers(&sample, &headers, &mut names);
        let is_empty = sample.headers.iter().any(|header| header.0 == "content-length");
        if is_empty || !sample.body.is_empty() {
            compare(&sample.body, &sorted(answered), &mut names);
        }
    }
    exchanges.len()
}

#[tokio::test]
async fn raw_answers_match_aws_reference() {
    let keys = EngineKeys::generate();
    let stack = Stack::start_signed(&keys).await;
    for (text, count) in [
        (include_str!("../wire/queues.http"), 11),
        (include_str!("../wire/tables.http"), 5),
        (include_str!("../wire/others.http"), 9),
    ] {
        assert_eq!(converse(&stack, &keys.person, text).await, count);
    }
}
