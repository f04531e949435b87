//! Workflow runs of Actions, their jobs, and running failed ones again.

use super::report::{new_run, new_suite};
use super::told::{self, PreviousState};
use super::{CheckStatus, Conclusion, Job, Step, WorkflowRun};
use crate::api_error::ApiError;
use crate::limits::RERUN_MS_MAX;
use crate::state::{ForgeState, SharedEngine};

/// The workflow run of this name for a commit, made with its suite if there is none.
pub(crate) fn workflow_of(
    inner: &mut ForgeState,
    repository: u64,
    app: u64,
    (sha, branch): (&str, Option<String>),
    (name, event): (&str, &str),
    actor: u64,
    now: i64,
) -> WorkflowRun {
    let is_of = |one: &&WorkflowRun| {
        let suite = inner.checks.suite(one.suite);
        one.name == name && one.event == event && suite.is_ok_and(|it| it.sha == sha)
    };
    let mut own = inner.checks.workflow_runs.iter().filter(|one| one.repository == repository);
    if let Some(known) = own.find(is_of) {
        return known.clone();
    }
    let former: Vec<&WorkflowRun> = inner
        .checks
        .workflow_runs
        .iter()
        .filter(|one| one.repository == repository && one.name == name)
        .collect();
    let number = former.last().map_or(1, |one| one.number + 1);
    let workflow = former.last().map(|one| one.workflow);
    let workflow = workflow.unwrap_or_else(|| inner.new_id());
    let run = WorkflowRun {
        id: inner.new_id(),
        repository,
        suite: new_suite(inner, repository, app, sha, branch, now),
        workflow,
        name: name.to_owned(),
        number,
        attempt: 1,
        event: event.to_owned(),
        actor,
        created_at: now,
        started_at: now,
        updated_at: now,
    };
    inner.checks.workflow_runs.push(run.clone());
    run
}

/// The steps of a job that nobody described: one of its own between those of every job.
pub(crate) fn usual_steps(conclusion: Option<Conclusion>) -> Vec<Step> {
    let ran = conclusion.map(|_| Conclusion::Success);
    [("Set up job", ran), ("Run", conclusion), ("Complete job", ran)]
        .map(|(name, conclusion)| Step { name: name.to_owned(), conclusion })
        .into()
}

/// Runs the failed jobs of a run again, or one of its jobs, in a new attempt.
///
/// # Errors
/// It still runs, is too old, or nothing in it failed.
pub(crate) async fn run_again(
    engine: &SharedEngine,
    run: u64,
    actor: u64,
    only: Option<u64>,
) -> Result<(), ApiError> {
    let now = engine.clock.now_ms();
    let made = engine.change(|inner| {
        let known = inner.checks.workflow_run(run)?.clone();
        let (status, _) = inner.checks.state_of(known.suite);
        if status != CheckStatus::Completed {
            return Err(ApiError::forbidden("This workflow is already running"));
        }
        if now - known.created_at > RERUN_MS_MAX {
            let told = "Unable to retry this workflow run because it was created over a month ago";
            return Err(ApiError::forbidden(told));
        }
        let jobs = inner.checks.runs_in(known.suite, false).into_iter();
        let is_meant = |one: &&super::CheckRun| match only {
            Some(job) => one.id == job,
            None => !one.conclusion.is_some_and(Conclusion::is_passed),
        };
        let names: Vec<String> = jobs.filter(is_meant).map(|one| one.name.clone()).collect();
        if names.is_empty() {
            let told = "This workflow run cannot be retried: it has no failed jobs";
            return Err(ApiError::forbidden(told));
        }
        let mut made = Vec::new();
        for name in names {
            let id = new_run(inner, known.suite, &name, now)?;
            let attempt = known.attempt + 1;
            let steps = usual_steps(None);
            inner.checks.run_mut(id)?.job = Some(Job { run, attempt, steps });
            let mut was = PreviousState::of(inner, known.suite, None);
            was.begins_workflow = made.is_empty();
            made.push((id, was));
        }
        let of = inner.checks.workflow_runs.iter_mut().find(|one| one.id == run);
        if let Some(of) = of {
            (of.attempt, of.actor) = (known.attempt + 1, actor);
            (of.started_at, of.updated_at) = (now, now);
        }
        Ok(made)
    })?;
    for (id, was) in made {
        told::changed(engine, id, actor, &was).await?;
    }
    Ok(())
}

/// Ends the jobs of a workflow run that still run.
///
/// # Errors
/// Nothing of it runs.
pub(crate) async fn cancel(engine: &SharedEngine, run: u64, actor: u64) -> Result<(), ApiError> {
    let now = engine.clock.now_ms();
    let ended = engine.change(|inner| {
        let suite = inner.checks.workflow_run(run)?.suite;
        let jobs = inner.checks.runs_in(suite, false).into_iter();
        let running = jobs.filter(|one| one.status != CheckStatus::Completed);
        let running: Vec<u64> = running.map(|one| one.id).collect();
        if running.is_empty() {
            return Err(ApiError::conflict("Cannot cancel a workflow run that is completed."));
        }
        let mut ended = Vec::new();
        for id in running {
            let was = PreviousState::of(inner, suite, Some(id));
            let job = inner.checks.run_mut(id)?;
            (job.status, job.conclusion) = (CheckStatus::Completed, Some(Conclusion::Cancelled));
            job.completed_at = Some(now);
            ended.push((id, was));
        }
        Ok(ended)
    })?;
    for (id, was) in ended {
        told::changed(engine, id, actor, &was).await?;
    }
    Ok(())
}
