//! File changes of an OpenCode run.
//!
//! OpenCode stores a run's changes (its sum) on the prompt: when the run begins and after each step, each time in the
//! background. So at the end of a run the stored sum may be of an earlier step (measured on 1.18.33). Each step's own
//! changes are in the run's messages before the run ends; they tell whether the sum is the last one.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::records::changes::{ChangedFile, Changes};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::client::{OpenCode, OpenCodeError};
use super::types::{FileDiff, OpenCodeMessage};
use crate::runtime::Reported;

/// How long, and how often, to poll for a sum that lacks a step's changes.
const SUM_MS_MAX: u64 = 20_000;
const LOOK_MS: u64 = 250;
/// A file that several steps have changed may be back at its first state: a sum without it that stays the same for this
/// long is the last one.
const SETTLED_MS: u64 = 3_000;

/// The files changed by a prompt's run, if OpenCode sums them up in time. If a file's name is not UTF-8, its snapshots
/// stop, and neither the sum nor a step names any file (seen on 1.18.33).
pub(super) async fn summed_up(
    client: &OpenCode,
    session: &str,
    message: &str,
) -> Result<Reported, OpenCodeError> {
    let messages = client.messages_since(session, message).await?;
    let told = told(&messages, message);
    let by_tools = ran_tools(&messages, message);
    // A person waits for the stop, and OpenCode may have stopped summing up as well.
    let bound_ms = if is_cut(&messages, message) { SETTLED_MS } else { SUM_MS_MAX };
    drop(messages);
    let until = Instant::now() + Duration::from_millis(bound_ms);
    let mut sum: Vec<FileDiff> = Vec::new();
    let mut since = Instant::now();
    loop {
        let now = client.diff(session, message).await?;
        if now != sum {
            (sum, since) = (now, Instant::now());
        }
        let standing = standing(&told, &sum);
        let is_last = match standing {
            SumStanding::Whole => true,
            SumStanding::Unclear => since.elapsed() >= Duration::from_millis(SETTLED_MS),
            SumStanding::Behind => false,
        };
        if is_last || Instant::now() >= until {
            let may_lack = by_tools && sum.is_empty();
            let changes = Changes {
                files: sum.into_iter().map(ChangedFile::from).collect(),
                unknown: standing == SumStanding::Behind,
            };
            return Ok(Reported { changes, may_lack });
        }
        sleep(Duration::from_millis(LOOK_MS)).await;
    }
}

/// A sum compared with the changes of the steps.
#[derive(Debug, PartialEq, Eq)]
enum SumStanding {
    /// It names every file.
    Whole,
    /// It lacks some files that may be back at their first state.
    Unclear,
    /// It lacks some files that are certainly different.
    Behind,
}

/// The steps of a prompt's run, oldest first.
fn steps<'a>(
    messages: &'a [OpenCodeMessage],
    prompt: &str,
) -> impl DoubleEndedIterator<Item = &'a OpenCodeMessage> {
    let is_of = move |message: &&OpenCodeMessage| message.info.parent_id.as_deref() == Some(prompt);
    messages.iter().filter(is_of)
}

fn has_ended(step: &OpenCodeMessage) -> bool {
    step.parts().any(|part| part["type"] == "step-finish")
}

fn ran_tools(messages: &[OpenCodeMessage], prompt: &str) -> bool {
    steps(messages, prompt).flat_map(OpenCodeMessage::parts).any(|part| part["type"] == "tool")
}

/// Whether the run was stopped, or broke off, in its last step.
fn is_cut(messages: &[OpenCodeMessage], prompt: &str) -> bool {
    steps(messages, prompt).next_back().is_some_and(|last| !has_ended(last))
}

/// For each file, by absolute path, how many steps of a prompt's run have changed it. A step without an end is never
/// summed up.
fn told(messages: &[OpenCodeMessage], prompt: &str) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for message in steps(messages, prompt).filter(|message| has_ended(message)) {
        for patch in message.parts().filter(|part| part["type"] == "patch") {
            for file in patch["files"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                *told.entry(file.to_owned()).or_default() += 1;
            }
        }
    }
    told
}

fn standing(told: &BTreeMap<String, usize>, sum: &[FileDiff]) -> SumStanding {
    let is_named = |path: &str| {
        let mut files = sum.iter();
        files.any(|one| {
            let rest = path.strip_suffix(one.file.as_str());
            rest.is_some_and(|rest| rest.ends_with('/'))
        })
    };
    let lacks = told.iter().filter(|(path, _)| !is_named(path));
    // A file that only one step has changed cannot be back at its first state.
    match lacks.map(|(_, steps)| *steps).min() {
        None => SumStanding::Whole,
        Some(1) => SumStanding::Behind,
        Some(_) => SumStanding::Unclear,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::endpoint::Endpoint;
    use bobbin_test_server::{Reply, Server};
    use serde_json::json;

    use super::*;
    use crate::runtime::server_http;

    fn step(prompt: &str, files: &[&str], has_ended: bool) -> Value {
        let mut parts = vec![json!({"id": "p1", "type": "step-start", "snapshot": "a"})];
        if has_ended {
            parts.push(json!({"id": "p2", "type": "step-finish", "reason": "tool-calls"}));
        }
        if !files.is_empty() {
            parts.push(json!({"id": "p3", "type": "patch", "hash": "a", "files": files}));
        }
        json!({"info": {"id": "m", "role": "assistant", "parentID": prompt}, "parts": parts})
    }

    fn prompt(id: &str) -> Value {
        json!({"info": {"id": id, "role": "user"}, "parts": []})
    }

    fn sum(files: &[&str]) -> Value {
        let file = |file: &&str| json!({"file": file, "additions": 1, "deletions": 0, "status": "added", "patch": ""});
        files.iter().map(file).collect()
    }

    /// The result for a server with these messages and these sums, and how often a sum was requested.
    async fn read(messages: Value, sums: &[Value]) -> (Vec<String>, usize) {
        let mut replies = vec![Reply::json(200, &messages)];
        replies.extend(sums.iter().map(|sum| Reply::json(200, sum)));
        let server = Server::answering(replies).await;
        let endpoint = Endpoint { url: server.base().to_owned(), headers: Vec::new() };
        let client = OpenCode::new(server_http(server.base()).unwrap(), endpoint, "pw");
        let found = summed_up(&client, "ses_1", "msg_1").await.unwrap();
        let asked = server.lines().into_iter();
        let asked = asked.filter(|line| line.contains("/diff?messageID=msg_1"));
        (found.changes.files.into_iter().map(|one| one.file).collect(), asked.count())
    }

    #[tokio::test]
    async fn stale_diff_summary_is_reread() {
        let messages = json!([
            prompt("msg_1"),
            step("msg_1", &["/work/src/a.txt"], true),
            step("msg_1", &["/work/b.txt"], true),
            step("msg_1", &[], true),
        ]);
        let sums = [sum(&[]), sum(&["src/a.txt"]), sum(&["b.txt", "src/a.txt"])];
        let read = read(messages, &sums).await;
        assert_eq!(read, (vec!["b.txt".to_owned(), "src/a.txt".to_owned()], 3));
    }

    #[tokio::test]
    async fn unchanged_turn_reads_summary_once() {
        let messages = json!([
            prompt("msg_0"),
            step("msg_0", &["/work/of_another.txt"], true),
            prompt("msg_1"),
            step("msg_1", &[], true),
            // Stopped: the step is reported, but never summed up.
            step("msg_1", &["/work/stopped.txt"], false),
        ]);
        assert_eq!(read(messages, &[sum(&[])]).await, (Vec::new(), 1));
    }

    #[test]
    fn stopped_run_is_recognised() {
        let messages: Vec<OpenCodeMessage> = serde_json::from_value(json!([
            prompt("msg_1"),
            step("msg_1", &["/work/a.txt"], true),
            step("msg_1", &[], false),
        ]))
        .unwrap();
        assert!(is_cut(&messages, "msg_1"));
        assert!(!is_cut(&messages[..2], "msg_1"));
    }

    #[test]
    fn file_changed_twice_may_be_unchanged() {
        let messages: Vec<OpenCodeMessage> = serde_json::from_value(json!([
            prompt("msg_1"),
            step("msg_1", &["/work/kept.txt", "/work/tmp.py"], true),
            step("msg_1", &["/work/tmp.py"], true),
        ]))
        .unwrap();
        let told = told(&messages, "msg_1");
        assert!(!is_cut(&messages, "msg_1"));
        let at = |files: &[&str]| {
            let sum: Vec<FileDiff> = serde_json::from_value(sum(files)).unwrap();
            standing(&told, &sum)
        };
        assert_eq!(at(&[]), SumStanding::Behind);
        assert_eq!(at(&["kept.txt"]), SumStanding::Unclear);
        assert_eq!(at(&["ept.txt", "tmp.py"]), SumStanding::Behind);
        assert_eq!(at(&["kept.txt", "tmp.py"]), SumStanding::Whole);
    }
}
