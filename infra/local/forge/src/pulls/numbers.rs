//! Computed facts about a pull request: counts, and whether it can be merged.

use super::allowed::{blocked, is_strict};
use crate::api_error::ApiError;
use crate::git::Git;
use crate::record::{Pull, PullState};
use crate::state::SharedEngine;

/// What is computed of a pull request.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) commits: usize,
    pub(crate) files: usize,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    /// `None`: not computed yet.
    pub(crate) mergeable: Option<bool>,
    /// Commit of the base's branch.
    pub(crate) target: Option<String>,
    /// A rule wants what the base has since got.
    pub(crate) is_behind: bool,
    /// A rule of the base forbids it for now.
    pub(crate) is_blocked: bool,
    /// A check of the head has not passed.
    pub(crate) is_unstable: bool,
}

/// Both ends of what a pull request changes.
pub(crate) async fn range(git: &Git, pull: &Pull) -> Result<(String, String), ApiError> {
    let base = match pull.state {
        PullState::Open => git.branch(&pull.base).await?.unwrap_or_else(|| pull.base_sha.clone()),
        _ => pull.base_sha.clone(),
    };
    let common = git.merge_base(&base, &pull.head_sha).await?;
    Ok((common.unwrap_or(base), pull.head_sha.clone()))
}

/// Counts, and tries the merge.
pub(crate) async fn numbers(engine: &SharedEngine, pull: &Pull) -> Result<Numbers, ApiError> {
    let git = Git::new(engine, pull.repository);
    let (base, head) = range(&git, pull).await?;
    let changes = git.changes(&base, &head).await?;
    let (commits, _) = git.ahead_behind(&base, &head).await?;
    let target = git.branch(&pull.base).await?;
    let target = target.filter(|_| pull.state == PullState::Open);
    let (mergeable, has_base) = match &target {
        Some(target) => (
            Some(git.merged_tree(target, &head).await?.is_some()),
            git.is_ancestor(target, &head).await?,
        ),
        None => (None, true),
    };
    let inner = engine.lock();
    Ok(Numbers {
        commits,
        files: changes.len(),
        additions: changes.iter().map(|one| one.additions).sum(),
        deletions: changes.iter().map(|one| one.deletions).sum(),
        mergeable,
        target,
        is_behind: !has_base && is_strict(&inner, pull),
        is_blocked: blocked(&inner, pull, true).is_some(),
        is_unstable: inner.checks.has_other(pull.repository, &pull.head_sha),
    })
}

/// The same for a caller: the first looks find that the merge has not been tried yet.
pub(crate) async fn looked_at(engine: &SharedEngine, pull: &Pull) -> Result<Numbers, ApiError> {
    let numbers = numbers(engine, pull).await?;
    let Some(target) = numbers.target.clone() else { return Ok(numbers) };
    let unknown = engine.lock().repository(pull.repository)?.unknown_looks;
    let before = engine.look(pull.id, format!("{target} {}", pull.head_sha));
    Ok(Numbers { mergeable: numbers.mergeable.filter(|_| before >= unknown), ..numbers })
}
