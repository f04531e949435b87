//! Webhooks of reviews, threads and comments. They tell nobody's membership.

use serde_json::{Value, json};

use super::{Remark, Review, Thread};
use crate::rest::show::Show;
use crate::state::SharedEngine;
use crate::webhooks::tell_all;

/// In webhooks a member is shown as a contributor.
fn unknown(mut told: Value) -> Value {
    if told["author_association"] == "MEMBER" {
        told["author_association"] = "CONTRIBUTOR".into();
    }
    told
}

fn pull(show: &Show<'_>, id: u64) -> Value {
    show.inner.pull_of_id(id).map_or(Value::Null, |one| show.pull(one, None))
}

fn repository_of(engine: &SharedEngine, pull: u64) -> u64 {
    engine.lock().pull_of_id(pull).map_or(0, |one| one.repository)
}

pub(super) fn review(engine: &SharedEngine, review: &Review, action: &str) {
    let repository = repository_of(engine, review.pull);
    let sender = Some(review.voice.author);
    tell_all(engine, repository, sender, "pull_request_review", |show, _| {
        let mut told = unknown(show.review(review));
        told["state"] = review.verdict.word().to_lowercase().into();
        json!({ "action": action, "review": told, "pull_request": pull(show, review.pull) })
    });
}

pub(super) fn comment(
    engine: &SharedEngine,
    id: u64,
    action: &str,
    actor: u64,
    former: Option<String>,
) {
    let found = {
        let inner = engine.lock();
        let comment = inner.talk.comment(id).cloned();
        comment.and_then(|one| Ok((inner.talk.thread(one.thread)?.clone(), one)))
    };
    let Ok((thread, comment)) = found else { return };
    let repository = repository_of(engine, thread.pull);
    tell_all(engine, repository, Some(actor), "pull_request_review_comment", |show, _| {
        let mut told = json!({
            "action": action, "comment": unknown(show.line_comment(&comment, &thread)),
            "pull_request": pull(show, thread.pull),
        });
        if let Some(former) = &former {
            told["changes"] = json!({ "body": { "from": former } });
        }
        told
    });
}

pub(super) fn thread(engine: &SharedEngine, thread: &Thread, action: &str, actor: u64) {
    let repository = repository_of(engine, thread.pull);
    tell_all(engine, repository, Some(actor), "pull_request_review_thread", |show, _| {
        let comments = show.inner.talk.comments_in(thread.id);
        let comments = comments.map(|one| unknown(show.line_comment(one, thread)));
        json!({
            "action": action, "pull_request": pull(show, thread.pull),
            "thread": {
                "node_id": show.node("PullRequestReviewThread", thread.id),
                "comments": comments.collect::<Vec<_>>(),
            },
        })
    });
}

pub(super) fn remark(
    engine: &SharedEngine,
    remark: &Remark,
    action: &str,
    actor: u64,
    former: Option<String>,
) {
    let repository = repository_of(engine, remark.pull);
    tell_all(engine, repository, Some(actor), "issue_comment", |show, _| {
        let issue = show.inner.pull_of_id(remark.pull);
        let issue = issue.map_or(Value::Null, |one| unknown(show.issue(one)));
        let mut told =
            json!({ "action": action, "issue": issue, "comment": unknown(show.remark(remark)) });
        if let Some(former) = &former {
            told["changes"] = json!({ "body": { "from": former } });
        }
        told
    });
}
