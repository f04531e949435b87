//! Check runs, their suites and annotations over REST.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, created, ok};
use crate::access::Caller;
use crate::api_error::{Answer, ApiError};
use crate::checks::report::{self, Report};
use crate::checks::told::{self, PreviousState};
use crate::checks::{CheckRun, CheckStatus, CheckSuite};
use crate::git::Git;
use crate::permission::Level;
use crate::record::RepositoryRecord;

/// The app that calls for an installation: nobody else reports checks.
fn reporter(call: &Call) -> Result<u64, ApiError> {
    match call.caller {
        Caller::Installation { id, .. } => Ok(call.engine.lock().installation(id)?.app),
        _ => Err(ApiError::forbidden("You must authenticate via a GitHub App.")),
    }
}

/// A commit that somebody names.
pub(super) async fn commit_of(
    call: &Call,
    repository: &RepositoryRecord,
    name: &str,
) -> Result<String, ApiError> {
    let short = name.strip_prefix("heads/").or_else(|| name.strip_prefix("tags/"));
    let found = Git::new(&call.engine, repository.id).named(short.unwrap_or(name)).await?;
    found.ok_or_else(|| ApiError::unprocessable(format!("No commit found for SHA: {name}")))
}

#[derive(Deserialize)]
struct NewRun {
    name: String,
    head_sha: String,
    #[serde(flatten)]
    report: Report,
}

pub(super) async fn create(call: &Call) -> Answer {
    let repository = call.writable("checks")?;
    let app = reporter(call)?;
    let NewRun { name, head_sha, report } = call.read()?;
    report.check()?;
    let git = Git::new(&call.engine, repository.id);
    let known = git.commit(&head_sha).await?.filter(|known| *known == head_sha);
    let sha = known
        .ok_or_else(|| ApiError::unprocessable(format!("No commit found for SHA: {head_sha}")))?;
    let branch = branch_at(&git, &sha).await?;
    let now = call.now();
    let (id, was) = call.engine.change(|inner| {
        let suite = report::suite_of(inner, repository.id, app, &sha, branch, now);
        let was = PreviousState::of(inner, suite, None);
        let id = report::new_run(inner, suite, &name, now)?;
        report.apply(inner.checks.run_mut(id)?, now)?;
        Ok((id, was))
    })?;
    told::changed(&call.engine, id, call.actor()?, &was).await?;
    let inner = call.engine.lock();
    created(call.show(&inner).check_run(inner.checks.run(id)?))
}

/// A branch that is at this commit.
pub(crate) async fn branch_at(git: &Git, sha: &str) -> Result<Option<String>, ApiError> {
    let heads = git.references("refs/heads/").await?;
    let at = heads.into_iter().find(|one| one.sha == sha);
    Ok(at.map(|one| one.name.trim_start_matches("refs/heads/").to_owned()))
}

/// The check run of the path.
fn run_of(call: &Call, repository: &RepositoryRecord) -> Result<CheckRun, ApiError> {
    let id = call.number("check_run_id")?;
    let found = call.engine.lock().checks.run(id)?.clone();
    if found.repository == repository.id { Ok(found) } else { Err(ApiError::not_found()) }
}

/// The suite of the path.
fn suite_of(call: &Call, repository: &RepositoryRecord) -> Result<CheckSuite, ApiError> {
    let id = call.number("check_suite_id")?;
    let found = call.engine.lock().checks.suite(id)?.clone();
    if found.repository == repository.id { Ok(found) } else { Err(ApiError::not_found()) }
}

pub(super) async fn update(call: &Call) -> Answer {
    let repository = call.writable("checks")?;
    let app = reporter(call)?;
    let run = run_of(call, &repository)?;
    let report: Report = call.read()?;
    report.check()?;
    let now = call.now();
    let was = call.engine.change(|inner| {
        if inner.checks.suite(run.suite)?.app != app {
            return Err(ApiError::forbidden(format!(
                "Invalid app_id `{app}` - check run can only be modified by the GitHub App that created it."
            )));
        }
        let was = PreviousState::of(inner, run.suite, Some(run.id));
        report.apply(inner.checks.run_mut(run.id)?, now)?;
        Ok(was)
    })?;
    told::changed(&call.engine, run.id, call.actor()?, &was).await?;
    let inner = call.engine.lock();
    ok(call.show(&inner).check_run(inner.checks.run(run.id)?))
}

pub(super) async fn get(call: &Call) -> Answer {
    let repository = call.repository("checks", Level::Read)?;
    let run = run_of(call, &repository)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).check_run(&run))
}

pub(super) async fn annotations(call: &Call) -> Answer {
    let repository = call.repository("checks", Level::Read)?;
    let run = run_of(call, &repository)?;
    let inner = call.engine.lock();
    let show = call.show(&inner);
    call.list(run.annotations.iter().map(|one| show.annotation(&run, one)).collect())
}

/// Whether the query asks for this check run.
fn is_wanted(call: &Call, run: &CheckRun, app: Option<u64>) -> bool {
    let is = |name: &str, value: &str| call.asked(name).is_none_or(|wanted| wanted == value);
    let app = app.map(|id| id.to_string()).unwrap_or_default();
    is("check_name", &run.name) && is("status", run.status.word()) && is("app_id", &app)
}

pub(super) async fn of_commit(call: &Call) -> Answer {
    let repository = call.repository("checks", Level::Read)?;
    let sha = commit_of(call, &repository, call.part("ref")).await?;
    let inner = call.engine.lock();
    let all = call.asked("filter") == Some("all");
    let runs = inner.checks.runs_of(repository.id, &sha, all).into_iter();
    let app = |run: &CheckRun| inner.checks.suite(run.suite).ok().map(|one| one.app);
    let told = runs.rev().filter(|one| is_wanted(call, one, app(one)));
    call.counted_list("check_runs", told.map(|one| call.show(&inner).check_run(one)).collect())
}

pub(super) async fn of_suite(call: &Call) -> Answer {
    let repository = call.repository("checks", Level::Read)?;
    let suite = suite_of(call, &repository)?;
    let inner = call.engine.lock();
    let all = call.asked("filter") == Some("all");
    let runs = inner.checks.runs_in(suite.id, all).into_iter();
    let told = runs.rev().filter(|one| is_wanted(call, one, Some(suite.app)));
    call.counted_list("check_runs", told.map(|one| call.show(&inner).check_run(one)).collect())
}

pub(super) async fn suites(call: &Call) -> Answer {
    let repository = call.repository("checks", Level::Read)?;
    let sha = commit_of(call, &repository, call.part("ref")).await?;
    let commit = Git::new(&call.engine, repository.id).one(&sha).await?;
    let inner = call.engine.lock();
    let wanted = call.asked("app_id");
    let suites = inner.checks.suites_of(repository.id, &sha);
    let told = suites.filter(|one| wanted.is_none_or(|wanted| wanted == one.app.to_string()));
    let told: Vec<Value> = told.map(|one| call.show(&inner).check_suite(one, &commit)).collect();
    call.counted_list("check_suites", told)
}

/// Asks the app that made a check run for another one.
pub(super) async fn rerequest(call: &Call) -> Answer {
    let repository = call.writable("checks")?;
    let run = run_of(call, &repository)?;
    if run.status != CheckStatus::Completed {
        return Err(ApiError::unprocessable("This check run is not rerequestable"));
    }
    told::rerequested(&call.engine, &run, call.actor()?).await?;
    created(json!({}))
}

/// The same of a whole suite.
pub(super) async fn rerequest_suite(call: &Call) -> Answer {
    let repository = call.writable("checks")?;
    let suite = suite_of(call, &repository)?;
    told::suite_rerequested(&call.engine, &suite, call.actor()?).await?;
    created(json!({}))
}
