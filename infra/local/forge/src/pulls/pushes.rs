//! What follows from branches that moved.

use serde_json::json;

use super::{Changed, tell, update};
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::checks;
use crate::git::rules::Move;
use crate::git::{Git, ZEROS};
use crate::record::{Pull, PullState};
use crate::reviews::threads;
use crate::state::SharedEngine;
use crate::webhooks;

pub(super) async fn told_push(engine: &SharedEngine, repository: u64, actor: u64, one: &Move) {
    let is_kept = one.old == ZEROS || one.new == ZEROS;
    let git = Git::new(engine, repository);
    let is_forced = !is_kept && !git.is_ancestor(&one.old, &one.new).await.unwrap_or(true);
    webhooks::tell_all(engine, repository, Some(actor), "push", |show, record| {
        let login = show.user_of(actor)["login"].clone();
        let compare = format!(
            "{}/{}/compare/{}...{}",
            show.at.web,
            show.inner.full_name(record),
            one.old,
            one.new
        );
        json!({
            "ref": one.name, "before": one.old, "after": one.new, "created": one.old == ZEROS,
            "deleted": one.new == ZEROS, "forced": is_forced, "base_ref": null, "compare": compare, "commits": [],
            "head_commit": null, "pusher": { "name": login },
        })
    });
}

/// What follows from a push: sizes, the first default branch, pull requests, webhooks.
///
/// # Errors
/// Git or the state failed.
pub(crate) async fn after_push(
    engine: &SharedEngine,
    repository: u64,
    caller: &Caller,
    moves: &[Move],
) -> Result<(), ApiError> {
    if moves.is_empty() {
        return Ok(());
    }
    let git = Git::new(engine, repository);
    let size_kb = git.size_kb().await?;
    let default_branch = engine.lock().repository(repository)?.default_branch.clone();
    let first = moves.iter().filter(|one| one.new != ZEROS);
    let first = first.filter_map(|one| one.name.strip_prefix("refs/heads/")).next();
    let first = match first {
        Some(first) if git.branch(&default_branch).await?.is_none() => {
            git.point(first).await?;
            Some(first.to_owned())
        }
        _ => None,
    };
    let now = engine.clock.now_ms();
    let actor = engine.change(|inner| {
        let record = inner.repository_mut(repository)?;
        (record.size_kb, record.pushed_at, record.updated_at) = (size_kb, now, now);
        if let Some(first) = first {
            record.default_branch = first;
        }
        Ok(caller.account(inner).unwrap_or_default())
    })?;
    follow_all(engine, repository, actor, moves).await
}

/// What follows from branches that moved.
pub(super) async fn follow_all(
    engine: &SharedEngine,
    repository: u64,
    actor: u64,
    moves: &[Move],
) -> Result<(), ApiError> {
    let git = Git::new(engine, repository);
    for one in moves {
        if let Some(branch) = one.name.strip_prefix("refs/heads/") {
            follow(engine, &git, repository, actor, branch, one).await?;
        }
        told_push(engine, repository, actor, one).await;
        let branch = one.name.strip_prefix("refs/heads/").filter(|_| one.new != ZEROS);
        if let Some(branch) = branch {
            checks::told::pushed(engine, repository, actor, branch, (&one.old, &one.new)).await?;
        }
    }
    Ok(())
}

/// Moves the open pull requests that have this branch as head or base.
async fn follow(
    engine: &SharedEngine,
    git: &Git,
    repository: u64,
    actor: u64,
    branch: &str,
    one: &Move,
) -> Result<(), ApiError> {
    let open: Vec<Pull> = engine.lock().open_pulls(repository).cloned().collect();
    let now = engine.clock.now_ms();
    for pull in open {
        let is_gone = one.new == ZEROS;
        if is_gone && (pull.head == branch || pull.base == branch) {
            let changed = Changed { is_open: Some(false), ..Changed::default() };
            update(engine, repository, pull.number, actor, changed).await?;
        } else if pull.head == branch {
            let moved = engine.change(|inner| {
                let pull = inner.pull_mut(repository, pull.number)?;
                pull.head_sha.clone_from(&one.new);
                pull.updated_at = now;
                Ok(pull.clone())
            })?;
            git.set(&format!("refs/pull/{}/head", pull.number), &one.new).await?;
            threads::follow(engine, &moved, (&one.old, &one.new)).await?;
            let more = [("before", one.old.as_str().into()), ("after", one.new.as_str().into())];
            tell(engine, &moved, actor, "synchronize", &more).await;
        } else if pull.base == branch && git.is_ancestor(&pull.head_sha, &one.new).await? {
            let merged = engine.change(|inner| {
                let pull = inner.pull_mut(repository, pull.number)?;
                (pull.state, pull.closed_at, pull.updated_at) = (PullState::Merged, Some(now), now);
                (pull.merge_sha, pull.merged_by) = (Some(one.new.clone()), Some(actor));
                if one.old != ZEROS {
                    pull.base_sha.clone_from(&one.old);
                }
                Ok(pull.clone())
            })?;
            tell(engine, &merged, actor, "closed", &[]).await;
        }
    }
    Ok(())
}
