//! Reviews and comments on lines over REST.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, created, nothing, ok};
use crate::api_error::{Answer, ApiError};
use crate::permission::Level;
use crate::pulls::ask_for_review;
use crate::record::{Pull, RepositoryRecord};
use crate::reviews::threads::{self, Place};
use crate::reviews::{LineComment, Review, Thread, verdicts};

const RIGHT: [&str; 1] = ["pull_requests"];

/// The pull request of the path, for a caller who reads it.
fn read(call: &Call) -> Result<Pull, ApiError> {
    let repository = call.repository("pull_requests", Level::Read)?;
    call.pull_in(&repository, "pull_number")
}

/// The review of the path.
fn review_of(call: &Call, pull: &Pull) -> Result<Review, ApiError> {
    let found = call.engine.lock().talk.review(call.number("review_id")?)?.clone();
    if found.pull == pull.id { Ok(found) } else { Err(ApiError::not_found()) }
}

/// The comment of the path, its thread, and its pull request.
fn comment_of(
    call: &Call,
    repository: &RepositoryRecord,
) -> Result<(LineComment, Thread, Pull), ApiError> {
    let inner = call.engine.lock();
    let comment = inner.talk.comment(call.number("comment_id")?)?.clone();
    let thread = inner.talk.thread(comment.thread)?.clone();
    let pull = inner.pull_of_id(thread.pull)?.clone();
    if pull.repository == repository.id {
        Ok((comment, thread, pull))
    } else {
        Err(ApiError::not_found())
    }
}

fn told(call: &Call, comment: &LineComment) -> Result<Value, ApiError> {
    let inner = call.engine.lock();
    let thread = inner.talk.thread(comment.thread)?;
    Ok(call.show(&inner).line_comment(comment, thread))
}

pub(super) async fn list(call: &Call) -> Answer {
    let pull = read(call)?;
    let inner = call.engine.lock();
    let own = inner.talk.reviews.iter().filter(|one| one.pull == pull.id);
    call.list(own.map(|one| call.show(&inner).review(one)).collect())
}

pub(super) async fn submit(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHT)?;
    let pull = call.pull_in(&repository, "pull_number")?;
    let review = verdicts::submit(&call.engine, &pull, call.voice()?, call.read()?).await?;
    let inner = call.engine.lock();
    ok(call.show(&inner).review(&review))
}

pub(super) async fn dismiss(call: &Call) -> Answer {
    let repository = call.writable("pull_requests")?;
    let pull = call.pull_in(&repository, "pull_number")?;
    let review = review_of(call, &pull)?;
    let review = verdicts::dismiss(&call.engine, review.id)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).review(&review))
}

pub(super) async fn comments_of_review(call: &Call) -> Answer {
    let pull = read(call)?;
    let review = review_of(call, &pull)?;
    let inner = call.engine.lock();
    let all = inner.talk.comments_of(pull.id).into_iter();
    let own = all.filter(|(comment, _)| comment.review == review.id);
    call.list(own.map(|(one, thread)| call.show(&inner).line_comment(one, thread)).collect())
}

pub(super) async fn comments(call: &Call) -> Answer {
    let pull = read(call)?;
    let inner = call.engine.lock();
    let all = inner.talk.comments_of(pull.id).into_iter();
    call.list(all.map(|(one, thread)| call.show(&inner).line_comment(one, thread)).collect())
}

#[derive(Deserialize)]
struct NewComment {
    body: String,
    commit_id: Option<String>,
    in_reply_to: Option<u64>,
    #[serde(flatten)]
    place: Place,
}

pub(super) async fn comment(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHT)?;
    let pull = call.pull_in(&repository, "pull_number")?;
    let new: NewComment = call.read()?;
    let (engine, voice) = (&call.engine, call.voice()?);
    let comment = match new.in_reply_to {
        Some(top) => threads::reply(engine, &pull, voice, top, new.body)?,
        None => {
            let sha = new.commit_id.unwrap_or_else(|| pull.head_sha.clone());
            threads::comment(engine, &pull, voice, (&sha, new.place), new.body).await?
        }
    };
    created(told(call, &comment)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    body: String,
}

pub(super) async fn reply(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHT)?;
    let pull = call.pull_in(&repository, "pull_number")?;
    let Text { body } = call.read()?;
    let top = call.number("comment_id")?;
    let comment = threads::reply(&call.engine, &pull, call.voice()?, top, body)?;
    created(told(call, &comment)?)
}

pub(super) async fn get_comment(call: &Call) -> Answer {
    let repository = call.repository("pull_requests", Level::Read)?;
    let (comment, _, _) = comment_of(call, &repository)?;
    ok(told(call, &comment)?)
}

pub(super) async fn edit_comment(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHT)?;
    let (comment, _, _) = comment_of(call, &repository)?;
    let actor = call.changes(&repository, comment.voice.author)?;
    let Text { body } = call.read()?;
    let comment = threads::edit(&call.engine, comment.id, actor, body)?;
    ok(told(call, &comment)?)
}

pub(super) async fn delete_comment(call: &Call) -> Answer {
    let repository = call.talkable(&RIGHT)?;
    let (comment, _, _) = comment_of(call, &repository)?;
    let actor = call.changes(&repository, comment.voice.author)?;
    threads::delete(&call.engine, comment.id, actor)?;
    nothing()
}

/// Whose comment a reaction is for.
pub(super) fn reacted(call: &Call) -> Result<u64, ApiError> {
    let repository = call.talkable(&RIGHT)?;
    Ok(comment_of(call, &repository)?.0.id)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reviewers {
    #[serde(default)]
    reviewers: Vec<String>,
    #[serde(default)]
    team_reviewers: Vec<String>,
}

async fn request(call: &Call, is_asked: bool) -> Answer {
    let repository = call.writable("pull_requests")?;
    let pull = call.pull_in(&repository, "pull_number")?;
    let Reviewers { reviewers, team_reviewers } = call.read()?;
    if !team_reviewers.is_empty() {
        return Err(ApiError::unprocessable("This forge has no teams"));
    }
    let pull = ask_for_review(&call.engine, &pull, call.actor()?, &reviewers, is_asked).await?;
    let inner = call.engine.lock();
    let told = call.show(&inner).pull(&pull, None);
    super::json_answer(if is_asked { StatusCode::CREATED } else { StatusCode::OK }, told)
}

/// Asking again for a review tells those who are asked again.
pub(super) async fn request_reviewers(call: &Call) -> Answer {
    request(call, true).await
}

pub(super) async fn remove_reviewers(call: &Call) -> Answer {
    request(call, false).await
}

pub(super) async fn requested_reviewers(call: &Call) -> Answer {
    let pull = read(call)?;
    let inner = call.engine.lock();
    let users = pull.reviewers.iter().map(|id| call.show(&inner).user_of(*id));
    ok(json!({ "users": users.collect::<Vec<_>>(), "teams": [] }))
}
