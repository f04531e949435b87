//! Merges: of a pull request into its base, and of the base into its head.

use super::allowed::blocked;
use super::pushes::{after_push, follow_all, told_push};
use super::tell;
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::checks;
use crate::git::commits::Signer;
use crate::git::merge::Method;
use crate::git::rules::Move;
use crate::git::{Git, ZEROS};
use crate::record::{Pull, PullState};
use crate::state::SharedEngine;

/// How a pull request is merged.
pub(crate) struct Merge {
    /// The head that was seen.
    pub(crate) sha: Option<String>,
    pub(crate) method: Method,
    pub(crate) title: Option<String>,
    pub(crate) message: Option<String>,
    /// The queue merges.
    pub(crate) by_queue: bool,
}

/// Merges a pull request, and answers the merge's commit.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn merge(
    engine: &SharedEngine,
    repository: u64,
    number: u64,
    actor: u64,
    how: Merge,
) -> Result<String, ApiError> {
    let writer = engine.writer(repository);
    let held = writer.lock().await;
    let (record, pull, login, full_name) = {
        let inner = engine.lock();
        let record = inner.repository(repository)?.clone();
        let full_name = inner.full_name(&record);
        let login = inner.account(actor)?.login.clone();
        (record, inner.pull(repository, number)?.clone(), login, full_name)
    };
    if record.is_archived {
        return Err(ApiError::archived());
    }
    if pull.state != PullState::Open {
        return Err(ApiError::not_allowed("Pull Request is not mergeable"));
    }
    if pull.is_draft {
        return Err(ApiError::not_allowed("Pull Request is still a draft"));
    }
    if how.sha.as_ref().is_some_and(|sha| *sha != pull.head_sha) {
        return Err(ApiError::conflict(
            "Head branch was modified. Review and try the merge again.",
        ));
    }
    if let Some(told) = blocked(&engine.lock(), &pull, how.by_queue) {
        return Err(ApiError::not_allowed(told));
    }
    let git = Git::new(engine, repository);
    let base = git.branch(&pull.base).await?;
    let base = base.ok_or_else(|| ApiError::not_allowed("Pull Request is not mergeable"))?;
    let now = engine.clock.now_ms();
    let owner = full_name.split('/').next().unwrap_or_default();
    let title = how.title.unwrap_or_else(|| match how.method {
        Method::Squash => format!("{} (#{number})", pull.title),
        _ => format!("Merge pull request #{number} from {owner}/{}", pull.head),
    });
    let message = how.message.unwrap_or_else(|| match how.method {
        Method::Squash => String::new(),
        _ => pull.title.clone(),
    });
    let text = format!("{title}\n\n{message}");
    let mail = format!("{actor}+{login}@users.noreply.github.com");
    let author = Signer { name: login, mail, at_ms: now };
    let made = git.merge(&base, &pull.head_sha, how.method, &author, text.trim_end()).await?;
    let made = made.ok_or_else(|| ApiError::not_allowed("Pull Request is not mergeable"))?;
    let branch = format!("refs/heads/{}", pull.base);
    if !git.update(&branch, &made, &base).await? {
        let told = "Base branch was modified. Review and try the merge again.";
        return Err(ApiError::not_allowed(told));
    }
    let merged = engine.change(|inner| {
        let pull = inner.pull_mut(repository, number)?;
        (pull.state, pull.closed_at, pull.updated_at) = (PullState::Merged, Some(now), now);
        (pull.merge_sha, pull.merged_by) = (Some(made.clone()), Some(actor));
        pull.queued_at = None;
        pull.base_sha.clone_from(&base);
        let pull = pull.clone();
        inner.repository_mut(repository)?.pushed_at = now;
        Ok(pull)
    })?;
    drop(held);
    tell(engine, &merged, actor, "closed", &[]).await;
    let onto = Move { old: base, new: made.clone(), name: branch };
    told_push(engine, repository, actor, &onto).await;
    checks::told::pushed(engine, repository, actor, &merged.base, (&onto.old, &onto.new)).await?;
    if record.deletes_heads && merged.head != record.default_branch {
        let name = format!("refs/heads/{}", merged.head);
        if git.update(&name, ZEROS, &merged.head_sha).await? {
            let gone = Move { old: merged.head_sha.clone(), new: ZEROS.to_owned(), name };
            follow_all(engine, repository, actor, &[gone]).await?;
        }
    }
    Ok(made)
}

/// Merges the base into the head of a pull request, if the head is still the one that was seen.
///
/// # Errors
/// As GitHub refuses it.
pub(crate) async fn update_branch(
    engine: &SharedEngine,
    pull: &Pull,
    caller: &Caller,
    seen: Option<String>,
) -> Result<(), ApiError> {
    let writer = engine.writer(pull.repository);
    let held = writer.lock().await;
    let (pull, actor, login) = {
        let inner = engine.lock();
        let actor = caller.account(&inner).unwrap_or_default();
        let login = inner.account(actor)?.login.clone();
        (inner.pull(pull.repository, pull.number)?.clone(), actor, login)
    };
    if seen.is_some_and(|sha| sha != pull.head_sha) {
        return Err(ApiError::unprocessable("expected head sha didn’t match current head ref."));
    }
    let git = Git::new(engine, pull.repository);
    let base = git.branch(&pull.base).await?.filter(|_| pull.state == PullState::Open);
    let base = base.ok_or_else(|| ApiError::unprocessable("The pull request is closed."))?;
    if git.is_ancestor(&base, &pull.head_sha).await? {
        let told = "There are no new commits on the base branch.";
        return Err(ApiError::unprocessable(told));
    }
    let mail = format!("{actor}+{login}@users.noreply.github.com");
    let author = Signer { name: login, mail, at_ms: engine.clock.now_ms() };
    let text = format!("Merge branch '{}' into {}", pull.base, pull.head);
    let made = git.merge(&pull.head_sha, &base, Method::Merge, &author, &text).await?;
    let made =
        made.ok_or_else(|| ApiError::unprocessable("merge conflict between base and head"))?;
    let name = format!("refs/heads/{}", pull.head);
    if !git.update(&name, &made, &pull.head_sha).await? {
        return Err(ApiError::unprocessable("expected head sha didn’t match current head ref."));
    }
    drop(held);
    let moves = [Move { old: pull.head_sha, new: made, name }];
    after_push(engine, pull.repository, caller, &moves).await
}
