//! Check runs as apps report them.

use chrono::DateTime;
use serde::Deserialize;

use super::{Annotation, CheckRun, CheckStatus, CheckSuite, Conclusion};
use crate::api_error::ApiError;
use crate::limits::{ANNOTATIONS_MAX, CHECKS_MAX, TEXT_CHARS_MAX};
use crate::state::ForgeState;

/// An app's report about a check run; omitted fields keep their values.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Report {
    pub(crate) name: Option<String>,
    pub(crate) external_id: Option<String>,
    pub(crate) details_url: Option<String>,
    pub(crate) status: Option<CheckStatus>,
    pub(crate) conclusion: Option<Conclusion>,
    pub(crate) started_at: Option<String>,
    pub(crate) completed_at: Option<String>,
    pub(crate) output: Option<Output>,
}

/// The words of a check run. Annotations are added to those that are there.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Output {
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) annotations: Vec<Annotation>,
}

/// The suite of an app for a commit, made if there is none.
pub(crate) fn suite_of(
    inner: &mut ForgeState,
    repository: u64,
    app: u64,
    sha: &str,
    branch: Option<String>,
    now: i64,
) -> u64 {
    let known = inner.checks.suites_of(repository, sha).find(|one| one.app == app);
    match known.map(|one| one.id) {
        Some(id) => id,
        None => new_suite(inner, repository, app, sha, branch, now),
    }
}

/// A suite beside those that are there.
pub(crate) fn new_suite(
    inner: &mut ForgeState,
    repository: u64,
    app: u64,
    sha: &str,
    branch: Option<String>,
    now: i64,
) -> u64 {
    let id = inner.new_id();
    inner.checks.suites.push(CheckSuite {
        id,
        repository,
        app,
        sha: sha.to_owned(),
        branch,
        before: None,
        hides_pulls: false,
        created_at: now,
        updated_at: now,
    });
    id
}

/// A check run in a suite, with nothing reported yet.
pub(crate) fn new_run(
    inner: &mut ForgeState,
    suite: u64,
    name: &str,
    now: i64,
) -> Result<u64, ApiError> {
    if inner.checks.runs.len() >= CHECKS_MAX {
        return Err(ApiError::full("check runs"));
    }
    let id = inner.new_id();
    let CheckSuite { repository, sha, .. } = inner.checks.suite(suite)?.clone();
    inner.checks.runs.push(CheckRun {
        id,
        suite,
        repository,
        sha,
        name: name.to_owned(),
        external_id: None,
        details_url: None,
        status: CheckStatus::Queued,
        conclusion: None,
        started_at: now,
        completed_at: None,
        title: None,
        summary: None,
        text: None,
        annotations: Vec::new(),
        job: None,
    });
    Ok(id)
}

fn time(text: Option<&String>) -> Result<Option<i64>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let read = DateTime::parse_from_rfc3339(text);
    let read = read.map_err(|_| ApiError::unprocessable("Invalid request.\n\nNo date-time"))?;
    Ok(Some(read.timestamp_millis()))
}

impl Report {
    /// Whether this report of a check run is valid.
    ///
    /// # Errors
    /// In GitHub's words.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.status == Some(CheckStatus::Completed) && self.conclusion.is_none() {
            return Err(ApiError::unprocessable(
                "Invalid request.\n\n\"conclusion\" wasn't supplied.",
            ));
        }
        time(self.started_at.as_ref()).and(time(self.completed_at.as_ref()))?;
        let Some(output) = &self.output else { return Ok(()) };
        if output.annotations.len() > ANNOTATIONS_MAX {
            let told = "Invalid request.\n\nNo more than 50 items are allowed.";
            return Err(ApiError::unprocessable(told));
        }
        let texts = [&output.title, &output.summary, &output.text];
        let is_long = |text: &String| text.chars().count() > TEXT_CHARS_MAX;
        if texts.into_iter().flatten().any(is_long) {
            return Err(ApiError::unprocessable("Invalid request.\n\nOnly 65535 characters."));
        }
        Ok(())
    }

    /// Writes it down. A conclusion completes a run; a run that is taken up again has none.
    pub(crate) fn apply(self, run: &mut CheckRun, now: i64) -> Result<(), ApiError> {
        if let Some(name) = self.name {
            run.name = name;
        }
        run.external_id = self.external_id.or(run.external_id.take());
        run.details_url = self.details_url.or(run.details_url.take());
        run.started_at = time(self.started_at.as_ref())?.unwrap_or(run.started_at);
        if let Some(conclusion) = self.conclusion {
            run.status = CheckStatus::Completed;
            run.conclusion = Some(conclusion);
            run.completed_at = Some(time(self.completed_at.as_ref())?.unwrap_or(now));
        } else if let Some(status) = self.status {
            (run.status, run.conclusion, run.completed_at) = (status, None, None);
        }
        if let Some(output) = self.output {
            run.title = output.title.or(run.title.take());
            run.summary = output.summary.or(run.summary.take());
            run.text = output.text.or(run.text.take());
            run.annotations.extend(output.annotations);
        }
        Ok(())
    }
}
