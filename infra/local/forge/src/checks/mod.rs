//! Reports about a commit: check runs in their suites, statuses, and the workflow runs of Actions.

pub(crate) mod logs;
pub(crate) mod report;
mod required;
mod show;
pub(crate) mod statuses;
pub(crate) mod told;
pub(crate) mod workflows;

use serde::{Deserialize, Serialize};

pub(crate) use required::{Passed, passed};

use crate::api_error::ApiError;
use crate::record::Pull;
use crate::state::ForgeState;

/// Slug of the app that runs workflows.
pub(crate) const ACTIONS: &str = "github-actions";

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckStatus {
    Queued,
    InProgress,
    Completed,
    Waiting,
    Requested,
    Pending,
}

impl CheckStatus {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Waiting => "waiting",
            Self::Requested => "requested",
            Self::Pending => "pending",
        }
    }
}

/// How a check ended; those that count most come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Conclusion {
    StartupFailure,
    Failure,
    TimedOut,
    ActionRequired,
    Cancelled,
    Stale,
    Success,
    Neutral,
    Skipped,
}

impl Conclusion {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::StartupFailure => "startup_failure",
            Self::Failure => "failure",
            Self::TimedOut => "timed_out",
            Self::ActionRequired => "action_required",
            Self::Cancelled => "cancelled",
            Self::Stale => "stale",
            Self::Success => "success",
            Self::Neutral => "neutral",
            Self::Skipped => "skipped",
        }
    }

    pub(crate) const fn is_passed(self) -> bool {
        matches!(self, Self::Success | Self::Neutral | Self::Skipped)
    }
}

/// The check runs of one app for one commit; each workflow run has a suite of its own.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CheckSuite {
    pub(crate) id: u64,
    pub(crate) repository: u64,
    pub(crate) app: u64,
    pub(crate) sha: String,
    pub(crate) branch: Option<String>,
    /// Where the branch was before the push.
    pub(crate) before: Option<String>,
    /// Its pull requests are not told, as of a fork.
    #[serde(default)]
    pub(crate) hides_pulls: bool,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

/// A place in a file that a check names.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Annotation {
    pub(crate) path: String,
    pub(crate) start_line: u64,
    pub(crate) end_line: u64,
    pub(crate) start_column: Option<u64>,
    pub(crate) end_column: Option<u64>,
    pub(crate) annotation_level: String,
    pub(crate) message: String,
    pub(crate) title: Option<String>,
    pub(crate) raw_details: Option<String>,
}

/// A step of a job.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) conclusion: Option<Conclusion>,
}

/// What else a check run of Actions has.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The workflow run.
    pub(crate) run: u64,
    pub(crate) attempt: u64,
    pub(crate) steps: Vec<Step>,
}

/// A check run. A job of Actions has the same id.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CheckRun {
    pub(crate) id: u64,
    pub(crate) suite: u64,
    pub(crate) repository: u64,
    pub(crate) sha: String,
    pub(crate) name: String,
    pub(crate) external_id: Option<String>,
    pub(crate) details_url: Option<String>,
    pub(crate) status: CheckStatus,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) started_at: i64,
    pub(crate) completed_at: Option<i64>,
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) job: Option<Job>,
}

/// A run of a workflow, in all its attempts.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkflowRun {
    pub(crate) id: u64,
    pub(crate) repository: u64,
    pub(crate) suite: u64,
    pub(crate) workflow: u64,
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) attempt: u64,
    pub(crate) event: String,
    pub(crate) actor: u64,
    pub(crate) created_at: i64,
    /// Of this attempt.
    pub(crate) started_at: i64,
    pub(crate) updated_at: i64,
}

/// A status of a commit; of one context the newest counts.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CommitStatus {
    pub(crate) id: u64,
    pub(crate) repository: u64,
    pub(crate) sha: String,
    pub(crate) context: String,
    /// `error`, `failure`, `pending` or `success`.
    pub(crate) state: String,
    pub(crate) description: Option<String>,
    pub(crate) target_url: Option<String>,
    /// Account.
    pub(crate) creator: u64,
    pub(crate) created_at: i64,
}

/// All reports about commits, each list oldest first.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Checks {
    pub(crate) suites: Vec<CheckSuite>,
    pub(crate) runs: Vec<CheckRun>,
    pub(crate) workflow_runs: Vec<WorkflowRun>,
    pub(crate) statuses: Vec<CommitStatus>,
}

impl Checks {
    pub(crate) fn suite(&self, id: u64) -> Result<&CheckSuite, ApiError> {
        self.suites.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn run(&self, id: u64) -> Result<&CheckRun, ApiError> {
        self.runs.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn run_mut(&mut self, id: u64) -> Result<&mut CheckRun, ApiError> {
        self.runs.iter_mut().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn workflow_run(&self, id: u64) -> Result<&WorkflowRun, ApiError> {
        self.workflow_runs.iter().find(|one| one.id == id).ok_or_else(ApiError::not_found)
    }

    /// Drops the reports about a repository's commits.
    pub(crate) fn forget(&mut self, repository: u64) {
        self.suites.retain(|one| one.repository != repository);
        self.runs.retain(|one| one.repository != repository);
        self.workflow_runs.retain(|one| one.repository != repository);
        self.statuses.retain(|one| one.repository != repository);
    }

    /// The workflow run of a suite of Actions.
    pub(crate) fn workflow_of(&self, suite: u64) -> Option<&WorkflowRun> {
        self.workflow_runs.iter().find(|one| one.suite == suite)
    }

    /// The suites of a commit.
    pub(crate) fn suites_of<'a>(
        &'a self,
        repository: u64,
        sha: &'a str,
    ) -> impl Iterator<Item = &'a CheckSuite> {
        self.suites.iter().filter(move |one| one.repository == repository && one.sha == sha)
    }

    /// The check runs of a commit; of one name in one suite the newest only, unless all are asked for.
    pub(crate) fn runs_of(&self, repository: u64, sha: &str, all: bool) -> Vec<&CheckRun> {
        let is_of = |one: &&CheckRun| one.repository == repository && one.sha == sha;
        self.newest(self.runs.iter().filter(is_of), all)
    }

    /// The same of a suite.
    pub(crate) fn runs_in(&self, suite: u64, all: bool) -> Vec<&CheckRun> {
        self.newest(self.runs.iter().filter(|one| one.suite == suite), all)
    }

    fn newest<'a>(&self, runs: impl Iterator<Item = &'a CheckRun>, all: bool) -> Vec<&'a CheckRun> {
        let mut kept: Vec<&CheckRun> = Vec::new();
        for run in runs {
            if !all {
                kept.retain(|one| one.suite != run.suite || one.name != run.name);
            }
            kept.push(run);
        }
        kept
    }

    /// How far a suite is: "completed" when all its runs are, queued for ever without any.
    pub(crate) fn state_of(&self, suite: u64) -> (CheckStatus, Option<Conclusion>) {
        let runs = self.runs_in(suite, false);
        let is = |status: CheckStatus| move |one: &&CheckRun| one.status == status;
        if runs.iter().all(is(CheckStatus::Queued)) {
            return (CheckStatus::Queued, None);
        }
        if runs.iter().all(is(CheckStatus::Completed)) {
            let worst = runs.iter().filter_map(|one| one.conclusion).min();
            return (CheckStatus::Completed, worst);
        }
        (CheckStatus::InProgress, None)
    }

    /// The newest status of each context of a commit, newest first.
    pub(crate) fn statuses_of(&self, repository: u64, sha: &str) -> Vec<&CommitStatus> {
        let mut kept: Vec<&CommitStatus> = Vec::new();
        for status in self.statuses.iter().rev() {
            let is_of = status.repository == repository && status.sha == sha;
            if is_of && !kept.iter().any(|one| one.context == status.context) {
                kept.push(status);
            }
        }
        kept
    }
}

impl ForgeState {
    /// The open pull requests that a suite is told with.
    pub(crate) fn pulls_of(&self, suite: &CheckSuite) -> Vec<&Pull> {
        let open = self.open_pulls(suite.repository);
        let own = open.filter(|one| one.head_sha == suite.sha);
        own.filter(|_| !suite.hides_pulls).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u64, name: &str, conclusion: Option<Conclusion>) -> CheckRun {
        let status = conclusion.map_or(CheckStatus::Queued, |_| CheckStatus::Completed);
        CheckRun {
            id,
            suite: 1,
            repository: 1,
            sha: "a".to_owned(),
            name: name.to_owned(),
            external_id: None,
            details_url: None,
            status,
            conclusion,
            started_at: 0,
            completed_at: None,
            title: None,
            summary: None,
            text: None,
            annotations: Vec::new(),
            job: None,
        }
    }

    #[test]
    fn suites_are_what_their_runs_are() {
        let mut checks = Checks::default();
        assert_eq!(checks.state_of(1), (CheckStatus::Queued, None));
        checks.runs.push(run(1, "build", Some(Conclusion::Success)));
        checks.runs.push(run(2, "test", None));
        assert_eq!(checks.state_of(1), (CheckStatus::InProgress, None));
        checks.runs.push(run(3, "test", Some(Conclusion::Failure)));
        assert_eq!(checks.state_of(1), (CheckStatus::Completed, Some(Conclusion::Failure)));
        checks.runs.push(run(4, "test", Some(Conclusion::Skipped)));
        assert_eq!(checks.state_of(1), (CheckStatus::Completed, Some(Conclusion::Success)));
        assert_eq!(checks.runs_in(1, true).len(), 4);
    }
}
