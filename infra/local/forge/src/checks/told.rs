//! Webhooks of checks: one for each run, one for each app's suite, and those of workflow runs and statuses.

use serde_json::json;

use super::{ACTIONS, CheckRun, CheckStatus, CheckSuite, CommitStatus};
use crate::api_error::ApiError;
use crate::git::Git;
use crate::permission::{Level, level};
use crate::state::{ForgeState, SharedEngine};
use crate::webhooks::{tell_all, tell_some};

/// How far a check run and its suite were before a change.
pub(crate) struct PreviousState {
    /// None of a run that the change makes.
    run: Option<CheckStatus>,
    suite: CheckStatus,
    /// The change makes its workflow run, or a new attempt.
    pub(crate) begins_workflow: bool,
}

impl PreviousState {
    pub(crate) fn of(inner: &ForgeState, suite: u64, run: Option<u64>) -> Self {
        let run = run.and_then(|id| inner.checks.run(id).ok());
        let suite = inner.checks.state_of(suite).0;
        Self { run: run.map(|one| one.status), suite, begins_workflow: false }
    }
}

/// Tells apps what followed from a change of a check run.
///
/// # Errors
/// Git failed.
pub(crate) async fn changed(
    engine: &SharedEngine,
    run: u64,
    sender: u64,
    was: &PreviousState,
) -> Result<(), ApiError> {
    let (run, suite, workflow, state) = {
        let inner = engine.lock();
        let run = inner.checks.run(run)?.clone();
        let suite = inner.checks.suite(run.suite)?.clone();
        let workflow = inner.checks.workflow_of(suite.id).cloned();
        let state = inner.checks.state_of(suite.id).0;
        (run, suite, workflow, state)
    };
    let repository = run.repository;
    let commit = Git::new(engine, repository).one(&run.sha).await?;
    let about = |name: &'static str, action: &'static str| match name {
        "check_run" => tell_all(
            engine,
            repository,
            Some(sender),
            name,
            |show, _| json!({ "action": action, name: show.check_run_told(&run) }),
        ),
        "check_suite" => tell_all(
            engine,
            repository,
            Some(sender),
            name,
            |show, _| json!({ "action": action, name: show.check_suite(&suite, &commit) }),
        ),
        _ => {
            let Some(workflow) = &workflow else { return };
            tell_all(engine, repository, Some(sender), name, |show, _| {
                let (base, page) = show.bases(repository);
                let told = show.workflow_run(workflow, &commit);
                let its = json!({
                    "id": workflow.workflow, "node_id": show.node("Workflow", workflow.workflow),
                    "name": workflow.name, "path": told["path"], "state": "active",
                    "created_at": show.time(workflow.created_at), "updated_at": show.time(workflow.created_at),
                    "url": format!("{base}/actions/workflows/{}", workflow.workflow),
                    "html_url": format!("{page}/blob/main/{}", told["path"].as_str().unwrap_or_default()),
                    "badge_url": format!("{page}/workflows/{}/badge.svg", workflow.name),
                });
                json!({ "action": action, "workflow_run": told, "workflow": its })
            });
        }
    };
    if was.begins_workflow {
        about("workflow_run", "requested");
    }
    if was.run.is_none() {
        about("check_run", "created");
    }
    let is_done = |status: CheckStatus| status == CheckStatus::Completed;
    if is_done(run.status) && was.run != Some(CheckStatus::Completed) {
        about("check_run", "completed");
    }
    let is_new = was.run.is_none() || !is_done(was.suite);
    if is_done(state) && is_new {
        about("check_suite", "completed");
        about("workflow_run", "completed");
    } else if state == CheckStatus::InProgress && was.suite != CheckStatus::InProgress {
        about("workflow_run", "in_progress");
    }
    Ok(())
}

/// Gives each app that may write checks a suite for a pushed commit, and tells that app alone.
///
/// # Errors
/// Git or the state failed.
pub(crate) async fn pushed(
    engine: &SharedEngine,
    repository: u64,
    sender: u64,
    branch: &str,
    (old, new): (&str, &str),
) -> Result<(), ApiError> {
    let now = engine.clock.now_ms();
    let suites = engine.change(|inner| {
        let record = inner.repository(repository)?.clone();
        let holding = inner.installations.values().filter(|one| one.holds(&record));
        let writes = holding.filter(|one| level(&one.permissions, "checks") >= Level::Write);
        let apps: Vec<u64> = writes.map(|one| one.app).collect();
        let mut made = Vec::new();
        for app in apps {
            // Actions has one for each workflow run.
            if inner.app(app)?.slug == ACTIONS {
                continue;
            }
            let branch = Some(branch.to_owned());
            let id = super::report::suite_of(inner, repository, app, new, branch, now);
            let suite = inner.checks.suites.iter_mut().find(|one| one.id == id);
            let suite = suite.ok_or_else(ApiError::not_found)?;
            suite.before = Some(old.to_owned());
            made.push(suite.clone());
        }
        Ok(made)
    })?;
    let commit = Git::new(engine, repository).one(new).await?;
    for suite in suites {
        let is_its = |app: u64| app == suite.app;
        tell_some(
            engine,
            repository,
            Some(sender),
            "check_suite",
            is_its,
            |show, _| json!({ "action": "requested", "check_suite": show.check_suite(&suite, &commit) }),
        );
    }
    Ok(())
}

/// Tells of a status; it names branches, and no pull request.
///
/// # Errors
/// Git failed.
pub(crate) async fn status(engine: &SharedEngine, status: &CommitStatus) -> Result<(), ApiError> {
    let git = Git::new(engine, status.repository);
    let commit = git.one(&status.sha).await?;
    let heads = git.references("refs/heads/").await?.into_iter();
    let heads = heads.filter(|one| one.sha == status.sha);
    let names = heads.map(|one| one.name.trim_start_matches("refs/heads/").to_owned());
    let names: Vec<String> = names.collect();
    tell_all(engine, status.repository, Some(status.creator), "status", |show, record| {
        show.status_told(status, record, &commit, &names)
    });
    Ok(())
}

/// Asks an app for another run of a check.
///
/// # Errors
/// The suite is gone.
pub(crate) async fn rerequested(
    engine: &SharedEngine,
    run: &CheckRun,
    sender: u64,
) -> Result<(), ApiError> {
    let app = engine.lock().checks.suite(run.suite)?.app;
    tell_some(
        engine,
        run.repository,
        Some(sender),
        "check_run",
        |one| one == app,
        |show, _| json!({ "action": "rerequested", "check_run": show.check_run_told(run) }),
    );
    Ok(())
}

/// Asks an app for another run of all its checks.
///
/// # Errors
/// Git failed.
pub(crate) async fn suite_rerequested(
    engine: &SharedEngine,
    suite: &CheckSuite,
    sender: u64,
) -> Result<(), ApiError> {
    let commit = Git::new(engine, suite.repository).one(&suite.sha).await?;
    let is_its = |one: u64| one == suite.app;
    tell_some(
        engine,
        suite.repository,
        Some(sender),
        "check_suite",
        is_its,
        |show, _| json!({ "action": "rerequested", "check_suite": show.check_suite(suite, &commit) }),
    );
    Ok(())
}
