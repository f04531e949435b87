//! The merge queue: pull requests wait in it until a test says how it went.

use serde_json::json;

use super::{Merge, merge, rules_for, tell};
use crate::api_error::ApiError;
use crate::git::merge::Method;
use crate::record::{BranchRule, Pull, PullState};
use crate::state::SharedEngine;

/// Puts a pull request into the queue of its base, and answers its place.
///
/// # Errors
/// Its base has no queue, its head has moved, or it is closed or a draft.
pub(crate) async fn enqueue(
    engine: &SharedEngine,
    pull: &Pull,
    actor: u64,
    seen: Option<&str>,
) -> Result<usize, ApiError> {
    let now = engine.clock.now_ms();
    let (pull, position, is_new) = engine.change(|inner| {
        let has_queue = rules_for(inner, pull).contains(&BranchRule::MergeQueue {});
        if !has_queue {
            return Err(ApiError::unprocessable("Merge queue is not enabled for the base branch"));
        }
        let pull = inner.pull_mut(pull.repository, pull.number)?;
        if seen.is_some_and(|sha| sha != pull.head_sha) {
            return Err(ApiError::unprocessable("Head branch was modified. Review and try again."));
        }
        if pull.state != PullState::Open || pull.is_draft {
            return Err(ApiError::unprocessable("Pull request is not mergeable"));
        }
        let is_new = pull.queued_at.is_none();
        pull.queued_at = pull.queued_at.or(Some(now));
        let pull = pull.clone();
        let queued = inner.open_pulls(pull.repository).filter(|one| one.base == pull.base);
        let position = queued.filter(|one| one.queued_at.is_some()).count();
        Ok((pull, position, is_new))
    })?;
    if is_new {
        tell(engine, &pull, actor, "enqueued", &[]).await;
    }
    Ok(position)
}

/// Takes a pull request out of the queue: merged, or put back.
///
/// # Errors
/// It is not in the queue, or cannot be merged.
pub(crate) async fn leave(
    engine: &SharedEngine,
    repository: u64,
    number: u64,
    is_merged: bool,
) -> Result<(), ApiError> {
    let pull = engine.lock().pull(repository, number)?.clone();
    if pull.queued_at.is_none() {
        return Err(ApiError::bad("The pull request is not in the merge queue"));
    }
    if is_merged {
        let (sha, method) = (Some(pull.head_sha), Method::Merge);
        let how = Merge { sha, method, title: None, message: None, by_queue: true };
        return merge(engine, repository, number, pull.author, how).await.map(drop);
    }
    let pull = engine.change(|inner| {
        let pull = inner.pull_mut(repository, number)?;
        pull.queued_at = None;
        Ok(pull.clone())
    })?;
    let more = [("reason", json!("CI_FAILURE"))];
    tell(engine, &pull, pull.author, "dequeued", &more).await;
    Ok(())
}
