//! Events about pull requests, and about commits that may be the head of one. Only what says which pull request it may
//! be is read: neither the action nor who did it, for a poll sees what is true.
//!
//! `pull_requests` of checks is not read: it is empty for forks, and often otherwise.

use bobbin_core::records::publication::BRANCHES;
use serde::Deserialize;

use super::{Event, HookedBy, HookedPullRequest, UnreadableHook};
use crate::forge::RepositoryId;

/// The events, each with its name for the log.
pub const NAMES: [(&str, &str); 9] = [
    ("check_run", "github: check run"),
    ("check_suite", "github: check suite"),
    ("issue_comment", "github: comment"),
    ("pull_request", "github: pull request"),
    ("pull_request_review", "github: review"),
    ("pull_request_review_comment", "github: review comment"),
    ("pull_request_review_thread", "github: review thread"),
    ("status", "github: commit status"),
    ("workflow_run", "github: workflow run"),
];

#[derive(Deserialize)]
struct HintBody {
    repository: HintId,
    pull_request: Option<HintPull>,
    issue: Option<IssueBody>,
    check_run: Option<CheckRunBody>,
    check_suite: Option<HintHead>,
    workflow_run: Option<HintHead>,
    sha: Option<String>,
    #[serde(default)]
    branches: Vec<HintBranch>,
}

#[derive(Deserialize)]
struct HintId {
    id: u64,
}

#[derive(Deserialize)]
struct HintPull {
    head: PullHeadBody,
}

#[derive(Deserialize)]
struct PullHeadBody {
    #[serde(rename = "ref")]
    name: String,
    /// Absent if the fork is deleted.
    repo: Option<HintId>,
}

#[derive(Deserialize)]
struct IssueBody {
    number: u64,
    /// Present if it is a pull request.
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct CheckRunBody {
    check_suite: HintHead,
}

#[derive(Deserialize)]
struct HintHead {
    head_branch: Option<String>,
}

#[derive(Deserialize)]
struct HintBranch {
    name: String,
    commit: HintCommit,
}

#[derive(Deserialize)]
struct HintCommit {
    sha: String,
}

/// The event; [`Event::Other`] if it is about none of Bobbin's branches.
pub(super) fn parse(
    (name, event): (&str, &'static str),
    raw: &[u8],
) -> Result<Event, UnreadableHook> {
    let body: HintBody = serde_json::from_slice(raw).map_err(|_| UnreadableHook)?;
    let repository = body.repository.id;
    let by = match name {
        "issue_comment" => {
            let issue = body.issue.ok_or(UnreadableHook)?;
            issue.pull_request.is_some().then_some(HookedBy::Number(issue.number))
        }
        "check_run" => of_branch(body.check_run.ok_or(UnreadableHook)?.check_suite.head_branch),
        "check_suite" => of_branch(body.check_suite.ok_or(UnreadableHook)?.head_branch),
        "workflow_run" => of_branch(body.workflow_run.ok_or(UnreadableHook)?.head_branch),
        "status" => {
            let sha = body.sha.ok_or(UnreadableHook)?;
            let mut heads = body.branches.into_iter().filter(|branch| branch.commit.sha == sha);
            heads.find_map(|branch| of_branch(Some(branch.name)))
        }
        _ => {
            let head = body.pull_request.ok_or(UnreadableHook)?.head;
            // A fork's branch may have any name.
            let is_here = head.repo.is_some_and(|repo| repo.id == repository);
            of_branch(is_here.then_some(head.name))
        }
    };
    let repository = RepositoryId(repository);
    let hooked = |by| Event::PullRequest(HookedPullRequest { event, repository, by });
    Ok(by.map_or(Event::Other, hooked))
}

fn of_branch(name: Option<String>) -> Option<HookedBy> {
    name.filter(|name| name.starts_with(BRANCHES)).map(HookedBy::Branch)
}
