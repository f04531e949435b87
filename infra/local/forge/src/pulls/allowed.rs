//! Rules that keep a pull request from being merged.

use crate::checks::{Passed, passed};
use crate::git::rules::rules_of;
use crate::record::{BranchRule, Pull, StatusCheck};
use crate::reviews::Verdict;
use crate::state::ForgeState;

/// The rules of both kinds that hold for a pull request.
pub(crate) fn rules_for(inner: &ForgeState, pull: &Pull) -> Vec<BranchRule> {
    let Ok(repository) = inner.repository(pull.repository) else { return Vec::new() };
    let protected = repository.protections.get(&pull.base).map(|it| it.rules.clone());
    protected.unwrap_or_default().into_iter().chain(rules_of(repository, &pull.base)).collect()
}

pub(super) fn is_strict(inner: &ForgeState, pull: &Pull) -> bool {
    let strict = |rule: &BranchRule| {
        matches!(
            rule,
            BranchRule::RequiredStatusChecks { strict_required_status_checks_policy: true, .. }
        )
    };
    rules_for(inner, pull).iter().any(strict)
}

/// The sentence of a rule that forbids a merge for now. The queue merges what must be merged by it.
pub(super) fn blocked(inner: &ForgeState, pull: &Pull, by_queue: bool) -> Option<String> {
    rules_for(inner, pull).into_iter().find_map(|rule| match rule {
        BranchRule::PullRequest { required_approving_review_count: count }
            if u64::try_from(inner.counting(pull, Verdict::Approved)).unwrap_or(0) < count =>
        {
            let noun = if count == 1 { "review is" } else { "reviews are" };
            Some(format!(
                "At least {count} approving {noun} required by reviewers with write access."
            ))
        }
        BranchRule::RequiredStatusChecks { required_status_checks: checks, .. } => {
            unpassed(inner, pull, &checks)
        }
        BranchRule::MergeQueue {} if !by_queue => {
            Some("Changes must be made through the merge queue".to_owned())
        }
        _ => None,
    })
}

fn unpassed(inner: &ForgeState, pull: &Pull, required: &[StatusCheck]) -> Option<String> {
    let all = required.iter().map(|one| {
        let passed = passed(&inner.checks, pull.repository, &pull.head_sha, one);
        (passed, &one.context)
    });
    let open: Vec<(Passed, &String)> = all.filter(|(passed, _)| *passed != Passed::Yes).collect();
    let word = |passed: Passed| match passed {
        Passed::Failing => "failing",
        Passed::Running => "in progress",
        _ => "expected",
    };
    match open.as_slice() {
        [] => None,
        [(passed, name)] => Some(format!("Required status check \"{name}\" is {}.", word(*passed))),
        _ => {
            let worst = open.iter().map(|(passed, _)| *passed).max().unwrap_or(Passed::Expected);
            let (open, all) = (open.len(), required.len());
            Some(format!("{open} of {all} required status checks are {}.", word(worst)))
        }
    }
}
