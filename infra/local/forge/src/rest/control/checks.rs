//! What continuous integration says, as a test decides it.

use serde::Deserialize;
use serde_json::json;

use super::{named, ok};
use crate::api_error::{Answer, ApiError};
use crate::checks::report::{self, Output, Report};
use crate::checks::told::{self, PreviousState};
use crate::checks::workflows::{usual_steps, workflow_of};
use crate::checks::{ACTIONS, Annotation, CheckStatus, Conclusion, Job, Step, logs};
use crate::git::Git;
use crate::planting::service_app;
use crate::rest::body;
use crate::state::SharedEngine;

/// A check of a commit; one that is there already under this name is changed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckOrder {
    repository: String,
    /// Else `branch` names it.
    sha: Option<String>,
    branch: Option<String>,
    name: String,
    status: Option<CheckStatus>,
    conclusion: Option<Conclusion>,
    /// Slug of the app that says it, made if there is none; Actions unless it is told.
    app: Option<String>,
    /// Of Actions.
    workflow: Option<String>,
    /// What started the workflow.
    event: Option<String>,
    details_url: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    text: Option<String>,
    #[serde(default)]
    annotations: Vec<Annotation>,
    /// Of a job, which then can be read.
    log: Option<String>,
    steps: Option<Vec<Step>>,
    /// Its pull requests are not told, as of a fork.
    #[serde(default)]
    hides_pulls: bool,
}

pub(super) async fn say(engine: &SharedEngine, text: &[u8]) -> Answer {
    let said: CheckOrder = body::read(text)?;
    let repository = named(engine, &said.repository)?;
    let git = Git::new(engine, repository);
    let name = said.sha.as_ref().or(said.branch.as_ref());
    let name = name.ok_or_else(|| ApiError::bad("Say the sha or the branch"))?;
    let sha = git.named(name).await?.ok_or_else(ApiError::not_found)?;
    let branch = match said.branch.clone() {
        Some(branch) => Some(branch),
        None => crate::rest::branch_at(&git, &sha).await?,
    };
    let output = Output {
        title: said.title,
        summary: said.summary,
        text: said.text,
        annotations: said.annotations,
    };
    let report = Report {
        status: said.status,
        conclusion: said.conclusion,
        details_url: said.details_url,
        output: Some(output),
        ..Report::default()
    };
    report.check()?;
    let slug = said.app.as_deref().unwrap_or(ACTIONS);
    let now = engine.clock.now_ms();
    let (id, sender, was) = engine.change(|inner| {
        let owner = inner.repository(repository)?.owner;
        let app = service_app(inner, slug, owner, now)?;
        let count = inner.checks.workflow_runs.len();
        let (suite, of) = if slug == ACTIONS {
            let workflow = said.workflow.as_deref().unwrap_or("CI");
            let event = said.event.as_deref().unwrap_or("push");
            let at = (sha.as_str(), branch);
            let run = workflow_of(inner, repository, app.id, at, (workflow, event), owner, now);
            (run.suite, Some((run.id, run.attempt)))
        } else {
            (report::suite_of(inner, repository, app.id, &sha, branch, now), None)
        };
        let begins_workflow = inner.checks.workflow_runs.len() > count;
        let known = inner.checks.runs_in(suite, false).into_iter();
        let known = known.filter(|one| one.name == said.name).map(|one| one.id).next();
        let mut was = PreviousState::of(inner, suite, known);
        was.begins_workflow = begins_workflow;
        let id = match known {
            Some(id) => id,
            None => report::new_run(inner, suite, &said.name, now)?,
        };
        let run = inner.checks.run_mut(id)?;
        report.apply(run, now)?;
        // Whoever sees that the job has ended finds its log.
        if let Some(log) = &said.log {
            logs::keep(engine, id, log, now)?;
        }
        let steps = said.steps.unwrap_or_else(|| usual_steps(run.conclusion));
        run.job = of.map(|(run, attempt)| Job { run, attempt, steps });
        if let Some(suite) = inner.checks.suites.iter_mut().find(|one| one.id == suite) {
            suite.hides_pulls = said.hides_pulls;
            suite.updated_at = now;
        }
        Ok((id, app.bot, was))
    })?;
    told::changed(engine, id, sender, &was).await?;
    let inner = engine.lock();
    let run = inner.checks.run(id)?;
    ok(json!({
        "check_run": id, "check_suite": run.suite, "workflow_run": run.job.as_ref().map(|job| job.run),
        "sha": run.sha,
    }))
}
