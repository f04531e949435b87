//! Reviews: submitted with their comments, and dismissed.

use serde::Deserialize;
use serde_json::json;

use super::threads::{Place, place};
use super::{LineComment, Review, Speaker, Thread, Verdict, told};
use crate::api_error::ApiError;
use crate::git::Git;
use crate::limits::{TALK_MAX, TEXT_CHARS_MAX};
use crate::pulls::range;
use crate::record::Pull;
use crate::state::{ForgeState, SharedEngine};

/// A review as it is submitted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReview {
    commit_id: Option<String>,
    body: Option<String>,
    event: Option<String>,
    #[serde(default)]
    comments: Vec<NewComment>,
}

#[derive(Deserialize)]
struct NewComment {
    body: String,
    #[serde(flatten)]
    place: Place,
}

fn refused(told: &str) -> ApiError {
    ApiError { errors: Some(json!([told])), ..ApiError::unprocessable("Unprocessable Entity") }
}

/// Checks the text of a comment or review.
///
/// # Errors
/// There is none, or it is too long.
pub(crate) fn check_body(resource: &str, body: &str) -> Result<(), ApiError> {
    if body.trim().is_empty() {
        return Err(ApiError::field(resource, "body", "missing_field"));
    }
    if body.chars().count() > TEXT_CHARS_MAX {
        return Err(ApiError::custom(resource, "body is too long (maximum is 65536 characters)"));
    }
    Ok(())
}

/// Refuses what the forge cannot hold.
pub(crate) fn check_room(inner: &ForgeState) -> Result<(), ApiError> {
    let talk = &inner.talk;
    let all = talk.reviews.len() + talk.comments.len() + talk.remarks.len() + talk.reactions.len();
    if all >= TALK_MAX { Err(ApiError::full("comments")) } else { Ok(()) }
}

/// A review of its own, without a text: of a single comment.
pub(super) fn empty(
    inner: &mut ForgeState,
    pull: &Pull,
    sha: &str,
    voice: Speaker,
    now: i64,
) -> Review {
    let review = Review {
        id: inner.new_id(),
        pull: pull.id,
        voice,
        verdict: Verdict::Commented,
        body: String::new(),
        sha: sha.to_owned(),
        submitted_at: now,
    };
    inner.talk.reviews.push(review.clone());
    review
}

/// Whether a commit is one of the pull request's.
async fn has_commit(engine: &SharedEngine, pull: &Pull, sha: &str) -> Result<bool, ApiError> {
    let git = Git::new(engine, pull.repository);
    let (base, head) = range(&git, pull).await?;
    Ok(git.commit(sha).await?.is_some_and(|known| known == sha)
        && git.is_ancestor(sha, &head).await?
        && !git.is_ancestor(sha, &base).await?)
}

/// Submits a review. It is told once, and each of its comments besides.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn submit(
    engine: &SharedEngine,
    pull: &Pull,
    voice: Speaker,
    new: NewReview,
) -> Result<Review, ApiError> {
    let verdict = match new.event.as_deref() {
        Some("APPROVE") => Verdict::Approved,
        Some("REQUEST_CHANGES") => Verdict::ChangesRequested,
        Some("COMMENT") => Verdict::Commented,
        _ => {
            return Err(ApiError::unprocessable(
                "This forge has no pending reviews: say the event",
            ));
        }
    };
    let body = new.body.unwrap_or_default();
    let is_own = voice.author == pull.author;
    match verdict {
        Verdict::Approved if is_own => {
            return Err(refused("Can not approve your own pull request"));
        }
        Verdict::ChangesRequested if is_own => {
            return Err(refused("Can not request changes on your own pull request"));
        }
        Verdict::ChangesRequested if body.is_empty() => return Err(refused("Body is missing")),
        Verdict::Commented if body.is_empty() && new.comments.is_empty() => {
            return Err(refused("Body is missing"));
        }
        _ if !body.is_empty() => check_body("PullRequestReview", &body)?,
        _ => {}
    }
    let sha = new.commit_id.unwrap_or_else(|| pull.head_sha.clone());
    if !has_commit(engine, pull, &sha).await? {
        let told = "commit_id is not part of the pull request";
        return Err(ApiError::custom("PullRequestReview", told));
    }
    let mut places: Vec<(String, Thread)> = Vec::new();
    for one in new.comments {
        check_body("PullRequestReviewComment", &one.body)?;
        places.push((one.body, place(engine, pull, &sha, one.place).await?));
    }
    let now = engine.clock.now_ms();
    let (review, comments) = engine.change(|inner| {
        check_room(inner)?;
        let review = Review { verdict, body, ..empty(inner, pull, &sha, voice, now) };
        if let Some(kept) = inner.talk.reviews.last_mut() {
            kept.clone_from(&review);
        }
        let mut comments = Vec::new();
        for (body, thread) in places {
            comments.push(begin(inner, thread, &review, body, now).id);
        }
        let pull = inner.pull_mut(pull.repository, pull.number)?;
        pull.reviewers.retain(|one| *one != voice.author);
        pull.updated_at = now;
        Ok((review, comments))
    })?;
    told::review(engine, &review, "submitted");
    for id in comments {
        told::comment(engine, id, "created", voice.author, None);
    }
    Ok(review)
}

/// Begins a thread with a comment.
pub(super) fn begin(
    inner: &mut ForgeState,
    thread: Thread,
    review: &Review,
    body: String,
    now: i64,
) -> LineComment {
    let thread = Thread { id: inner.new_id(), ..thread };
    let comment = LineComment {
        id: inner.new_id(),
        thread: thread.id,
        review: review.id,
        reply_to: None,
        voice: review.voice,
        body,
        created_at: now,
        updated_at: now,
    };
    inner.talk.threads.push(thread);
    inner.talk.comments.push(comment.clone());
    comment
}

/// Dismisses a review, so that it no longer counts.
///
/// # Errors
/// It does not count anyway.
pub(crate) fn dismiss(engine: &SharedEngine, id: u64) -> Result<Review, ApiError> {
    let review = engine.change(|inner| {
        let mut reviews = inner.talk.reviews.iter_mut();
        let review = reviews.find(|one| one.id == id).ok_or_else(ApiError::not_found)?;
        if matches!(review.verdict, Verdict::Commented | Verdict::Dismissed) {
            return Err(refused("Can not dismiss a commented or dismissed pull request review"));
        }
        review.verdict = Verdict::Dismissed;
        Ok(review.clone())
    })?;
    told::review(engine, &review, "dismissed");
    Ok(review)
}
