//! Comments on lines: their places, replies, changes, and what a push makes of them.

use serde::Deserialize;

use super::lines::{anchor, moved};
use super::verdicts::{begin, check_body, check_room, empty};
use super::{LineComment, Side, Speaker, Thread, told};
use crate::api_error::ApiError;
use crate::git::Git;
use crate::pulls::range;
use crate::record::Pull;
use crate::state::SharedEngine;

/// Where a comment is to be.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) line: Option<u64>,
    pub(crate) side: Side,
    pub(crate) start_line: Option<u64>,
    pub(crate) start_side: Option<String>,
    pub(crate) subject_type: Option<String>,
    pub(crate) position: Option<u64>,
}

fn outside(what: &str) -> ApiError {
    let told = format!("{what} must be part of the diff");
    ApiError::custom("PullRequestReviewComment", &format!("pull_request_review_thread.{told}"))
}

/// A thread at this place of a pull request's difference at a commit; it is not kept yet.
///
/// # Errors
/// The place is no part of the difference.
pub(super) async fn place(
    engine: &SharedEngine,
    pull: &Pull,
    sha: &str,
    place: Place,
) -> Result<Thread, ApiError> {
    let git = Git::new(engine, pull.repository);
    let known = git.commit(sha).await?.filter(|known| known == sha);
    let sha =
        known.ok_or_else(|| ApiError::field("PullRequestReviewComment", "commit_id", "invalid"))?;
    let (base, _) = range(&git, pull).await?;
    let changes = git.changes(&base, &sha).await?;
    let change = changes.into_iter().find(|one| one.path == place.path);
    let patch = change.ok_or_else(|| outside("path"))?.patch.unwrap_or_default();
    let mut thread = Thread {
        id: 0,
        pull: pull.id,
        path: place.path,
        side: place.side,
        line: None,
        original_line: None,
        start_line: place.start_line,
        original_start_line: place.start_line,
        is_outdated: false,
        position: 1,
        hunk: patch.lines().take(1).collect(),
        original_sha: sha.clone(),
        sha,
        resolved_by: None,
    };
    if place.subject_type.as_deref() == Some("file") {
        return Ok(thread);
    }
    if place.position.is_some() && place.line.is_none() {
        return Err(ApiError::unprocessable("This forge knows places by line, not by position"));
    }
    let line = place.line.ok_or_else(|| outside("line"))?;
    let (hunk, position) = anchor(&patch, place.side, line).ok_or_else(|| outside("line"))?;
    let start_side = match place.start_side.as_deref() {
        Some("LEFT") => Side::Left,
        Some("RIGHT") => Side::Right,
        _ => place.side,
    };
    if let Some(start) = place.start_line {
        let is_known = start < line && anchor(&patch, start_side, start).is_some();
        is_known.then_some(()).ok_or_else(|| outside("start_line"))?;
    }
    (thread.line, thread.original_line) = (Some(line), Some(line));
    (thread.hunk, thread.position) = (hunk, position);
    Ok(thread)
}

/// A comment on a line, in a review of its own.
///
/// # Errors
/// The place is no part of the difference.
pub(crate) async fn comment(
    engine: &SharedEngine,
    pull: &Pull,
    voice: Speaker,
    (sha, at): (&str, Place),
    body: String,
) -> Result<LineComment, ApiError> {
    check_body("PullRequestReviewComment", &body)?;
    let thread = place(engine, pull, sha, at).await?;
    let now = engine.clock.now_ms();
    let (review, comment) = engine.change(|inner| {
        check_room(inner)?;
        let review = empty(inner, pull, sha, voice, now);
        let comment = begin(inner, thread, &review, body, now);
        Ok((review, comment))
    })?;
    told::comment(engine, comment.id, "created", voice.author, None);
    told::review(engine, &review, "submitted");
    Ok(comment)
}

/// A reply to the top comment of a thread, in a review of its own.
///
/// # Errors
/// There is no such top comment.
pub(crate) fn reply(
    engine: &SharedEngine,
    pull: &Pull,
    voice: Speaker,
    to: u64,
    body: String,
) -> Result<LineComment, ApiError> {
    check_body("PullRequestReviewComment", &body)?;
    let now = engine.clock.now_ms();
    let (review, comment) = engine.change(|inner| {
        check_room(inner)?;
        let top = inner.talk.comment(to)?.clone();
        let thread = inner.talk.thread(top.thread)?.clone();
        if thread.pull != pull.id || top.reply_to.is_some() {
            return Err(ApiError::not_found());
        }
        let review = empty(inner, pull, &pull.head_sha, voice, now);
        let id = inner.new_id();
        let (review_id, reply_to) = (review.id, Some(to));
        let comment = LineComment {
            id,
            review: review_id,
            reply_to,
            voice,
            body,
            created_at: now,
            updated_at: now,
            ..top
        };
        inner.talk.comments.push(comment.clone());
        Ok((review, comment))
    })?;
    told::comment(engine, comment.id, "created", voice.author, None);
    told::review(engine, &review, "submitted");
    Ok(comment)
}

/// Changes the text of a comment.
///
/// # Errors
/// There is no such comment, or no such text.
pub(crate) fn edit(
    engine: &SharedEngine,
    id: u64,
    actor: u64,
    body: String,
) -> Result<LineComment, ApiError> {
    check_body("PullRequestReviewComment", &body)?;
    let now = engine.clock.now_ms();
    let (former, comment) = engine.change(|inner| {
        let mut all = inner.talk.comments.iter_mut();
        let comment = all.find(|one| one.id == id).ok_or_else(ApiError::not_found)?;
        let former = std::mem::replace(&mut comment.body, body);
        comment.updated_at = now;
        Ok((former, comment.clone()))
    })?;
    told::comment(engine, id, "edited", actor, Some(former));
    Ok(comment)
}

/// Removes a comment, and its thread with the last one.
///
/// # Errors
/// There is no such comment.
pub(crate) fn delete(engine: &SharedEngine, id: u64, actor: u64) -> Result<(), ApiError> {
    engine.lock().talk.comment(id)?;
    told::comment(engine, id, "deleted", actor, None);
    engine.change(|inner| {
        let talk = &mut inner.talk;
        let thread = talk.comment(id)?.thread;
        talk.comments.retain(|one| one.id != id);
        talk.reactions.retain(|one| one.of != id);
        if talk.comments_in(thread).next().is_none() {
            talk.threads.retain(|one| one.id != thread);
        }
        Ok(())
    })
}

/// Settles a thread, or opens it again.
///
/// # Errors
/// There is no such thread.
pub(crate) fn resolve(
    engine: &SharedEngine,
    id: u64,
    actor: u64,
    is_resolved: bool,
) -> Result<Thread, ApiError> {
    let (thread, is_news) = engine.change(|inner| {
        let mut all = inner.talk.threads.iter_mut();
        let thread = all.find(|one| one.id == id).ok_or_else(ApiError::not_found)?;
        let is_news = thread.resolved_by.is_some() != is_resolved;
        if is_news {
            thread.resolved_by = is_resolved.then_some(actor);
        }
        Ok((thread.clone(), is_news))
    })?;
    if is_news {
        told::thread(engine, &thread, if is_resolved { "resolved" } else { "unresolved" }, actor);
    }
    Ok(thread)
}

/// Moves the threads of a pull request with a push; where it changed their lines they are outdated.
///
/// # Errors
/// Git or the state failed.
pub(crate) async fn follow(
    engine: &SharedEngine,
    pull: &Pull,
    (old, new): (&str, &str),
) -> Result<(), ApiError> {
    let threads: Vec<Thread> = engine.lock().talk.threads_of(pull.id).cloned().collect();
    let git = Git::new(engine, pull.repository);
    for thread in threads.into_iter().filter(|one| one.side == Side::Right && !one.is_outdated) {
        let plain =
            ["diff-tree", "-r", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv"];
        let rest = ["--no-renames", old, new, "--", thread.path.as_str()];
        let arguments: Vec<&str> = plain.into_iter().chain(rest).collect();
        let difference = String::from_utf8_lossy(&git.bytes(&arguments).await?).into_owned();
        let line = thread.line.map(|line| moved(&difference, line));
        let start = thread.start_line.and_then(|line| moved(&difference, line));
        engine.change(|inner| {
            let mut all = inner.talk.threads.iter_mut();
            let kept = all.find(|one| one.id == thread.id).ok_or_else(ApiError::not_found)?;
            kept.is_outdated = line == Some(None);
            kept.line = line.flatten();
            kept.start_line = start.filter(|_| kept.line.is_some());
            if !kept.is_outdated {
                new.clone_into(&mut kept.sha);
            }
            Ok(())
        })?;
    }
    Ok(())
}
