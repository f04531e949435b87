//! What failed checks say: annotations first, for they have file and line, then the end of the log of the failed step.
//!
//! A log is read from the address to which GitHub leads, good for a minute: on a host that is named here, without any
//! token.

use bobbin_core::records::checks::{Check, CheckKind};
use bobbin_core::text::{one_line, shorten, visible};
use bobbin_http::{AllowedHosts, Guard, Http, HttpError, Method, is_loopback};
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::rest::{By, Call, RestClient, RestError};
use crate::forge::RepositoryName;

/// Hosts of logs: GitHub's blob store.
const LOG_HOST: &str = ".blob.core.windows.net";
/// Characters (UTF-16 units) of what all checks say.
const SAID_UNITS_MAX: usize = 40 * 1024;
/// Bytes of the end of one log.
const LOG_BYTES_MAX: usize = 16 * 1024;
/// Bytes of one log that are read for its end.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Annotations of one check.
const ANNOTATIONS: &str = "30";
/// Characters (UTF-16 units) of one annotation, and of a name.
const ANNOTATION_UNITS_MAX: usize = 500;
const NAME_UNITS_MAX: usize = 100;

#[derive(Deserialize)]
struct AnnotationBody {
    #[serde(default)]
    path: String,
    start_line: Option<u64>,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct JobBody {
    #[serde(default)]
    steps: Vec<StepBody>,
}

#[derive(Deserialize)]
struct StepBody {
    name: String,
    conclusion: Option<String>,
    started_at: Option<DateTime<Utc>>,
    completed_at: Option<DateTime<Utc>>,
}

/// The step that failed.
struct Failed {
    name: String,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
}

/// What these checks say, in their order.
pub(super) async fn read(
    rest: &RestClient,
    by: By<'_>,
    name: &RepositoryName,
    checks: &[Check],
) -> Result<String, RestError> {
    let mut said = String::new();
    for check in checks {
        let title = shorten(&one_line(&visible(&check.name)), NAME_UNITS_MAX);
        said.push_str(&format!("Check {title}\n"));
        let CheckKind::Run { id, .. } = check.kind else {
            continue;
        };
        for line in annotations(rest, by, name, id).await? {
            said.push_str(&format!("{line}\n"));
        }
        if let Some(job) = job_of(&check.page) {
            said.push_str(&log(rest, by, name, &job).await?);
        }
        said.push('\n');
    }
    Ok(shorten(&said, SAID_UNITS_MAX))
}

/// The job of a check, by the address of its page.
fn job_of(page: &str) -> Option<String> {
    let (_, job) = page.split_once("/job/")?;
    let digits: String = job.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

async fn annotations(
    rest: &RestClient,
    by: By<'_>,
    name: &RepositoryName,
    check: u64,
) -> Result<Vec<String>, RestError> {
    let id = check.to_string();
    let path = ["repos", name.owner(), name.name(), "check-runs", &id, "annotations"];
    let call = Call::get(by, &path).with(&[("per_page", ANNOTATIONS)]);
    let found: Vec<AnnotationBody> = match rest.read(call).await {
        Ok(found) => found,
        // The check is gone.
        Err(error) if error.status() == Some(404) => Vec::new(),
        Err(error) => return Err(error),
    };
    let line = |one: AnnotationBody| {
        let at = one.start_line.map(|line| format!(":{line}")).unwrap_or_default();
        shorten(&format!("{}{at}: {}", one.path, one.message), ANNOTATION_UNITS_MAX)
    };
    Ok(found.into_iter().map(line).collect())
}

/// The end of the log of a job's failed step; a sentence if there is none.
async fn log(
    rest: &RestClient,
    by: By<'_>,
    name: &RepositoryName,
    job: &str,
) -> Result<String, RestError> {
    let path = ["repos", name.owner(), name.name(), "actions", "jobs", job];
    let found: JobBody = match rest.read(Call::get(by, &path)).await {
        Ok(found) => found,
        Err(error) if error.status() == Some(404) => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let is_failed = |step: &StepBody| {
        matches!(step.conclusion.as_deref(), Some("failure" | "timed_out" | "startup_failure"))
    };
    let failed = found.steps.into_iter().find(is_failed).map(|step| Failed {
        name: step.name,
        from: step.started_at,
        to: step.completed_at,
    });
    let path = ["repos", name.owner(), name.name(), "actions", "jobs", job, "logs"];
    let Some(address) = rest.led_to(Call::get(by, &path)).await? else {
        return Ok("Its log is not there any more.\n".to_owned());
    };
    let step = failed.as_ref().map(|failed| shorten(&one_line(&failed.name), NAME_UNITS_MAX));
    let step = step.map(|step| format!("Step {step}\n")).unwrap_or_default();
    Ok(match end_of(rest, &address, failed.as_ref()).await {
        Ok(Some(end)) => format!("{step}{end}"),
        Ok(None) => format!("{step}Its log is not there any more.\n"),
        Err(HttpError::Refused { .. }) => {
            format!("{step}Its log is at an address that is not read.\n")
        }
        Err(error) => return Err(error.into()),
    })
}

/// The end of the log behind an address. GitHub's token must not go there.
async fn end_of(
    rest: &RestClient,
    address: &str,
    failed: Option<&Failed>,
) -> Result<Option<String>, HttpError> {
    let is_local = is_loopback(rest.web());
    let guard = Guard::new(AllowedHosts::Named(vec![LOG_HOST.to_owned()]), is_local);
    let http = Http::guarded(guard);
    let mut answer = http.open(http.request(Method::GET, address)?).await?;
    if !answer.status().is_success() {
        return Ok(None);
    }
    let mut end = LogEnd::new(failed);
    let mut read = 0;
    while let Some(piece) = answer.chunk().await.map_err(bobbin_http::broken)? {
        read += piece.len();
        if read > READ_BYTES_MAX {
            break;
        }
        end.take(&piece);
    }
    Ok(Some(end.text()))
}

/// The last lines of a step, by the time before each line.
struct LogEnd<'a> {
    failed: Option<&'a Failed>,
    line: Vec<u8>,
    kept: Vec<u8>,
    is_within: bool,
}

impl<'a> LogEnd<'a> {
    const fn new(failed: Option<&'a Failed>) -> Self {
        Self { failed, line: Vec::new(), kept: Vec::new(), is_within: true }
    }

    fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            // A line longer than what is kept is kept in part.
            let room = LOG_BYTES_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end().trim_start_matches('\u{feff}');
        let (time, said) = text.split_once(' ').unwrap_or((text, ""));
        let (said, at) = match DateTime::parse_from_rfc3339(time) {
            Ok(at) => (said, Some(at.with_timezone(&Utc))),
            Err(_) => (text, None),
        };
        if let (Some(failed), Some(at)) = (self.failed, at) {
            // Times of steps have whole seconds, those of lines have parts of them.
            let second = at.timestamp();
            self.is_within = failed.from.is_none_or(|from| second >= from.timestamp())
                && failed.to.is_none_or(|to| second <= to.timestamp());
        }
        if self.is_within {
            self.kept.extend_from_slice(said.as_bytes());
            self.kept.push(b'\n');
            if self.kept.len() > 2 * LOG_BYTES_MAX {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        let surplus = self.kept.len().saturating_sub(LOG_BYTES_MAX);
        self.kept.drain(..surplus);
    }

    fn text(mut self) -> String {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.cut();
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
