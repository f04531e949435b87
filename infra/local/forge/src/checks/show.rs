//! Checks as GitHub's JSON.

use serde_json::{Value, json};

use super::{Annotation, CheckRun, CheckStatus, CheckSuite, CommitStatus, Job, WorkflowRun};
use crate::git::commits::CommitShown;
use crate::record::{Pull, RepositoryRecord};
use crate::rest::show::Show;

impl Show<'_> {
    /// Base of a repository's addresses, and of its pages.
    pub(crate) fn bases(&self, repository: u64) -> (String, String) {
        let name = self.inner.repositories.get(&repository);
        let name = name.map_or_else(String::new, |one| self.inner.full_name(one));
        (format!("{}/repos/{name}", self.at.api), format!("{}/{name}", self.at.web))
    }

    fn app_of(&self, id: u64) -> Value {
        self.inner.apps.get(&id).map_or(Value::Null, |app| self.app(app))
    }

    fn whole(&self, repository: u64) -> Value {
        let record = self.inner.repositories.get(&repository);
        record.map_or(Value::Null, |one| self.repository(one, None))
    }

    /// A pull request as checks name it.
    fn pull_minimal(&self, pull: &Pull) -> Value {
        let (base, _) = self.bases(pull.repository);
        let name = self.inner.repositories.get(&pull.repository).map(|one| &one.name);
        let repository = json!({ "id": pull.repository, "url": base, "name": name });
        json!({
            "id": pull.id, "number": pull.number, "url": format!("{base}/pulls/{}", pull.number),
            "head": { "ref": pull.head, "sha": pull.head_sha, "repo": repository },
            "base": { "ref": pull.base, "sha": pull.base_sha, "repo": repository },
        })
    }

    fn pulls_minimal(&self, suite: &CheckSuite) -> Value {
        self.inner.pulls_of(suite).into_iter().map(|one| self.pull_minimal(one)).collect()
    }

    /// Where the page of a check run is; a job's ends with its id.
    pub(crate) fn check_page(&self, run: &CheckRun) -> String {
        let (_, page) = self.bases(run.repository);
        match &run.job {
            Some(Job { run: of, .. }) => format!("{page}/actions/runs/{of}/job/{}", run.id),
            None => format!("{page}/runs/{}", run.id),
        }
    }

    pub(crate) fn check_run(&self, run: &CheckRun) -> Value {
        let (base, _) = self.bases(run.repository);
        let at = format!("{base}/check-runs/{}", run.id);
        let page = self.check_page(run);
        let suite = self.inner.checks.suite(run.suite).ok();
        json!({
            "id": run.id, "name": run.name, "node_id": self.node("CheckRun", run.id), "head_sha": run.sha,
            "external_id": run.external_id.as_deref().unwrap_or_default(), "url": at, "html_url": page,
            "details_url": run.details_url.as_deref().unwrap_or(&page), "status": run.status.word(),
            "conclusion": run.conclusion.map(|one| one.word()), "started_at": self.time(run.started_at),
            "completed_at": self.time_of(run.completed_at),
            "output": {
                "title": run.title, "summary": run.summary, "text": run.text,
                "annotations_count": run.annotations.len(), "annotations_url": format!("{at}/annotations"),
            },
            "check_suite": { "id": run.suite }, "app": suite.map_or(Value::Null, |one| self.app_of(one.app)),
            "pull_requests": suite.map_or_else(|| json!([]), |one| self.pulls_minimal(one)),
        })
    }

    /// A check run as webhooks tell it, with its suite.
    pub(crate) fn check_run_told(&self, run: &CheckRun) -> Value {
        let mut told = self.check_run(run);
        if let Ok(suite) = self.inner.checks.suite(run.suite) {
            told["check_suite"] = self.check_suite_short(suite);
        }
        told
    }

    fn check_suite_short(&self, suite: &CheckSuite) -> Value {
        let (base, _) = self.bases(suite.repository);
        let (status, conclusion) = self.inner.checks.state_of(suite.id);
        json!({
            "id": suite.id, "node_id": self.node("CheckSuite", suite.id), "head_branch": suite.branch,
            "head_sha": suite.sha, "status": status.word(), "conclusion": conclusion.map(|one| one.word()),
            "url": format!("{base}/check-suites/{}", suite.id), "before": suite.before, "after": suite.sha,
            "pull_requests": self.pulls_minimal(suite), "app": self.app_of(suite.app),
            "created_at": self.time(suite.created_at), "updated_at": self.time(suite.updated_at),
        })
    }

    pub(crate) fn check_suite(&self, suite: &CheckSuite, commit: &CommitShown) -> Value {
        let mut told = self.check_suite_short(suite);
        told["repository"] = self.whole(suite.repository);
        told["head_commit"] = self.commit_short(commit);
        told["latest_check_runs_count"] = self.inner.checks.runs_in(suite.id, false).len().into();
        told["check_runs_url"] =
            format!("{}/check-runs", told["url"].as_str().unwrap_or("")).into();
        told["rerequestable"] = true.into();
        told["runs_rerequestable"] = true.into();
        told
    }

    fn commit_short(&self, commit: &CommitShown) -> Value {
        json!({
            "id": commit.sha, "tree_id": commit.tree, "message": commit.message,
            "timestamp": self.time(commit.author.at_ms),
            "author": { "name": commit.author.name, "email": commit.author.mail },
            "committer": { "name": commit.committer.name, "email": commit.committer.mail },
        })
    }

    pub(crate) fn annotation(&self, run: &CheckRun, one: &Annotation) -> Value {
        let (_, page) = self.bases(run.repository);
        let path = crate::rest::encoded(&one.path);
        json!({
            "path": one.path, "start_line": one.start_line, "end_line": one.end_line,
            "start_column": one.start_column, "end_column": one.end_column,
            "annotation_level": one.annotation_level, "title": one.title, "message": one.message,
            "raw_details": one.raw_details, "blob_href": format!("{page}/blob/{}/{path}", run.sha),
        })
    }

    pub(crate) fn commit_status(&self, status: &CommitStatus) -> Value {
        let mut told = self.commit_status_simple(status);
        told["creator"] = self.user_of(status.creator);
        told
    }

    pub(crate) fn commit_status_simple(&self, status: &CommitStatus) -> Value {
        let (base, _) = self.bases(status.repository);
        json!({
            "url": format!("{base}/statuses/{}", status.sha), "id": status.id,
            "avatar_url": self.user_of(status.creator)["avatar_url"],
            "node_id": self.node("StatusContext", status.id), "state": status.state,
            "description": status.description, "target_url": status.target_url, "context": status.context,
            "created_at": self.time(status.created_at), "updated_at": self.time(status.created_at),
        })
    }

    pub(crate) fn workflow_run(&self, run: &WorkflowRun, commit: &CommitShown) -> Value {
        let (base, page) = self.bases(run.repository);
        let at = format!("{base}/actions/runs/{}", run.id);
        let suite = self.inner.checks.suite(run.suite).ok();
        let (status, conclusion) = self.inner.checks.state_of(run.suite);
        let whole = self.whole(run.repository);
        let former = (run.attempt > 1).then(|| format!("{at}/attempts/{}", run.attempt - 1));
        let title = commit.message.lines().next().unwrap_or_default();
        json!({
            "id": run.id, "name": run.name, "node_id": self.node("WorkflowRun", run.id),
            "check_suite_id": run.suite, "check_suite_node_id": self.node("CheckSuite", run.suite),
            "head_branch": suite.map(|one| &one.branch), "head_sha": suite.map(|one| &one.sha),
            "path": format!(".github/workflows/{}.yml", run.name.to_lowercase().replace(' ', "-")),
            "run_number": run.number, "run_attempt": run.attempt, "referenced_workflows": [],
            "event": run.event, "status": status.word(), "conclusion": conclusion.map(|one| one.word()),
            "workflow_id": run.workflow, "url": at, "html_url": format!("{page}/actions/runs/{}", run.id),
            "pull_requests": suite.map(|one| self.pulls_minimal(one)),
            "created_at": self.time(run.created_at), "updated_at": self.time(run.updated_at),
            "run_started_at": self.time(run.started_at), "actor": self.user_of(run.actor),
            "triggering_actor": self.user_of(run.actor), "jobs_url": format!("{at}/jobs"),
            "logs_url": format!("{at}/logs"), "artifacts_url": format!("{at}/artifacts"),
            "cancel_url": format!("{at}/cancel"), "rerun_url": format!("{at}/rerun"),
            "check_suite_url": format!("{base}/check-suites/{}", run.suite), "previous_attempt_url": former,
            "workflow_url": format!("{base}/actions/workflows/{}", run.workflow),
            "head_commit": self.commit_short(commit), "repository": whole, "head_repository": whole,
            "head_repository_id": run.repository, "display_title": title,
        })
    }

    /// A check run of Actions as a job.
    pub(crate) fn job(&self, run: &CheckRun, of: &WorkflowRun, job: &Job) -> Value {
        let (base, _) = self.bases(run.repository);
        let branch = self.inner.checks.suite(run.suite).ok().map(|one| &one.branch);
        let is_run = run.status == CheckStatus::Completed;
        let steps = job.steps.iter().zip(1..).map(|(step, number)| {
            json!({
                "name": step.name, "number": number, "conclusion": step.conclusion.map(|one| one.word()),
                "status": if step.conclusion.is_some() { "completed" } else { "queued" },
                "started_at": self.time(run.started_at), "completed_at": self.time_of(run.completed_at),
            })
        });
        json!({
            "id": run.id, "run_id": of.id, "run_url": format!("{base}/actions/runs/{}", of.id),
            "run_attempt": job.attempt, "node_id": self.node("CheckRun", run.id), "head_sha": run.sha,
            "url": format!("{base}/actions/jobs/{}", run.id), "html_url": self.check_page(run),
            "status": run.status.word(), "conclusion": run.conclusion.map(|one| one.word()),
            "created_at": self.time(run.started_at), "started_at": self.time(run.started_at),
            "completed_at": self.time_of(run.completed_at), "name": run.name,
            "steps": steps.collect::<Vec<_>>(), "check_run_url": format!("{base}/check-runs/{}", run.id),
            "labels": ["ubuntu-latest"], "runner_id": is_run.then_some(1),
            "runner_name": is_run.then_some("GitHub Actions 1"), "runner_group_id": is_run.then_some(0),
            "runner_group_name": is_run.then_some("GitHub Actions"), "workflow_name": of.name,
            "head_branch": branch,
        })
    }

    /// What a status is told with in webhooks.
    pub(crate) fn status_told(
        &self,
        status: &CommitStatus,
        record: &RepositoryRecord,
        commit: &CommitShown,
        branches: &[String],
    ) -> Value {
        let full_name = self.inner.full_name(record);
        let (base, _) = self.bases(record.id);
        let branches = branches.iter().map(|name| {
            let commit = json!({ "sha": status.sha, "url": format!("{base}/commits/{}", status.sha) });
            json!({ "name": name, "commit": commit, "protected": record.protections.contains_key(name) })
        });
        json!({
            "id": status.id, "sha": status.sha, "name": full_name, "target_url": status.target_url,
            "avatar_url": self.user_of(status.creator)["avatar_url"], "context": status.context,
            "description": status.description, "state": status.state,
            "commit": self.commit(&full_name, commit), "branches": branches.collect::<Vec<_>>(),
            "created_at": self.time(status.created_at), "updated_at": self.time(status.created_at),
        })
    }
}
