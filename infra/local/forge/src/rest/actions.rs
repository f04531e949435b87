//! Workflow runs, jobs and logs of Actions over REST.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, created, json_answer, ok};
use crate::api_error::{Answer, ApiError};
use crate::checks::{CheckRun, Job, WorkflowRun, logs, workflows};
use crate::git::Git;
use crate::git::commits::CommitShown;
use crate::permission::Level;
use crate::record::RepositoryRecord;

/// The workflow run of the path.
fn run_of(call: &Call, repository: &RepositoryRecord) -> Result<WorkflowRun, ApiError> {
    let found = call.engine.lock().checks.workflow_run(call.number("run_id")?)?.clone();
    if found.repository == repository.id { Ok(found) } else { Err(ApiError::not_found()) }
}

/// The job of the path.
fn job_of(call: &Call, repository: &RepositoryRecord) -> Result<(CheckRun, Job), ApiError> {
    let found = call.engine.lock().checks.run(call.number("job_id")?)?.clone();
    match found.job.clone().filter(|_| found.repository == repository.id) {
        Some(job) => Ok((found, job)),
        None => Err(ApiError::not_found()),
    }
}

/// Newest first. An empty `head_sha` finds all, a short one none.
pub(super) async fn runs(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Read)?;
    let own: Vec<(WorkflowRun, String)> = {
        let inner = call.engine.lock();
        let own = inner.checks.workflow_runs.iter().rev();
        let own = own.filter(|one| one.repository == repository.id && is_wanted(call, &inner, one));
        let sha = |one: &WorkflowRun| inner.checks.suite(one.suite).map(|suite| suite.sha.clone());
        own.filter_map(|one| Some((one.clone(), sha(one).ok()?))).collect()
    };
    let git = Git::new(&call.engine, repository.id);
    let mut commits: BTreeMap<String, CommitShown> = BTreeMap::new();
    for (_, sha) in &own {
        if !commits.contains_key(sha) {
            commits.insert(sha.clone(), git.one(sha).await?);
        }
    }
    let inner = call.engine.lock();
    let told = own
        .iter()
        .filter_map(|(run, sha)| Some(call.show(&inner).workflow_run(run, commits.get(sha)?)));
    call.counted_list("workflow_runs", told.collect())
}

fn is_wanted(call: &Call, inner: &crate::state::ForgeState, run: &WorkflowRun) -> bool {
    let Ok(suite) = inner.checks.suite(run.suite) else { return false };
    let (status, conclusion) = inner.checks.state_of(run.suite);
    let is = |name: &str, value: &str| {
        call.asked(name).filter(|wanted| !wanted.is_empty()).is_none_or(|wanted| wanted == value)
    };
    let ended = conclusion.map_or("", |one| one.word());
    let suite_id = suite.id.to_string();
    is("head_sha", &suite.sha)
        && is("branch", suite.branch.as_deref().unwrap_or_default())
        && is("event", &run.event)
        && is("check_suite_id", &suite_id)
        && (is("status", status.word()) || is("status", ended))
}

pub(super) async fn run(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Read)?;
    let run = run_of(call, &repository)?;
    let sha = call.engine.lock().checks.suite(run.suite)?.sha.clone();
    let commit = Git::new(&call.engine, repository.id).one(&sha).await?;
    let inner = call.engine.lock();
    ok(call.show(&inner).workflow_run(&run, &commit))
}

fn jobs_told(
    call: &Call,
    run: &WorkflowRun,
    is_wanted: impl Fn(&Job) -> bool,
    all: bool,
) -> Answer {
    let inner = call.engine.lock();
    let jobs = inner.checks.runs_in(run.suite, all).into_iter();
    let told = jobs.filter_map(|one| {
        let job = one.job.as_ref().filter(|job| is_wanted(job))?;
        Some(call.show(&inner).job(one, run, job))
    });
    call.counted_list("jobs", told.collect::<Vec<Value>>())
}

/// Those of the newest attempt; with `filter=all` of every one.
pub(super) async fn jobs(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Read)?;
    let run = run_of(call, &repository)?;
    jobs_told(call, &run, |_| true, call.asked("filter") == Some("all"))
}

pub(super) async fn attempt_jobs(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Read)?;
    let run = run_of(call, &repository)?;
    let attempt = call.number("attempt_number")?;
    if attempt == 0 || attempt > run.attempt {
        return Err(ApiError::not_found());
    }
    jobs_told(call, &run, |job| job.attempt == attempt, true)
}

pub(super) async fn job(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Read)?;
    let (run, job) = job_of(call, &repository)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).job(&run, inner.checks.workflow_run(job.run)?, &job))
}

/// The address of the log: good for a minute, and only once the log is whole.
pub(super) async fn log(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Read)?;
    let (run, _) = job_of(call, &repository)?;
    let at = logs::link(&call.engine, run.id);
    Ok((StatusCode::FOUND, [(header::LOCATION, at)], Body::empty()).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Again {
    #[serde(default, rename = "enable_debug_logging")]
    _debug: bool,
}

pub(super) async fn rerun_failed(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Write)?;
    call.read::<Option<Again>>()?;
    let run = run_of(call, &repository)?;
    workflows::run_again(&call.engine, run.id, call.actor()?, None).await?;
    created(json!({}))
}

pub(super) async fn rerun_job(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Write)?;
    call.read::<Option<Again>>()?;
    let (run, job) = job_of(call, &repository)?;
    workflows::run_again(&call.engine, job.run, call.actor()?, Some(run.id)).await?;
    created(json!({}))
}

pub(super) async fn cancel(call: &Call) -> Answer {
    let repository = call.repository("actions", Level::Write)?;
    let run = run_of(call, &repository)?;
    workflows::cancel(&call.engine, run.id, call.actor()?).await?;
    json_answer(StatusCode::ACCEPTED, json!({}))
}
