//! Why a check failed.

use std::time::Duration;

use bobbin_core::base::credentials::redact;
use bobbin_http::{AllowedHosts, Http, HttpError, Method, broken, host_of};
use reqwest::Url;
use serde::Deserialize;
use tokio::time::sleep;

use super::job_log::{LogCut, StepTime};
use super::rest::{Call, RestClient, RestCredential, RestError};
use super::settings::Addresses;
use crate::forge::RepositoryName;
use crate::pull_requests::{CheckAnnotation, CheckFailure};

/// Most annotations that are read.
const ANNOTATIONS: &str = "50";
/// Most bytes of a log that are read; what is kept of them is less.
const LOG_READ_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Reads of a log that is not there: a job is shown as failed before its log is stored (field reports).
const LOG_READS_MAX: u32 = 3;
/// Pause between two of them.
const LOG_PAUSE_MS: u64 = 1_000;
/// Hosts behind GitHub that keep logs (field reports; GitHub names none). Of Azure's, its own accounts alone.
const LOG_HOSTS: [&str; 2] = [".blob.core.windows.net", ".actions.githubusercontent.com"];
const LOG_ACCOUNTS: &str = "productionresultssa";
/// The name of GitHub's own continuous integration.
const ACTIONS: &str = "github-actions";

#[derive(Deserialize)]
struct RunBody {
    output: OutputBody,
    details_url: Option<String>,
    app: Option<RunAppBody>,
}

#[derive(Deserialize)]
struct RunAppBody {
    #[serde(default)]
    slug: String,
}

#[derive(Deserialize)]
struct OutputBody {
    title: Option<String>,
    summary: Option<String>,
    #[serde(default)]
    annotations_count: u64,
}

#[derive(Deserialize)]
struct AnnotationBody {
    path: String,
    start_line: u64,
    annotation_level: Option<String>,
    message: Option<String>,
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
    started_at: Option<String>,
    completed_at: Option<String>,
}

/// The client of where logs are: no token is ever sent there.
///
/// # Errors
/// [`HttpError::Refused`] when an address is not allowed.
fn log_client(addresses: &Addresses) -> Result<Http, HttpError> {
    let own = [&addresses.web, &addresses.git];
    let hosts = LOG_HOSTS.iter().map(|host| (*host).to_owned());
    let hosts = hosts.chain(own.iter().filter_map(|address| host_of(address)));
    Http::new(&addresses.api, AllowedHosts::Named(hosts.collect()))
}

/// Why a check run failed.
pub(super) async fn read(
    rest: &RestClient,
    addresses: &Addresses,
    by: RestCredential<'_>,
    name: &RepositoryName,
    check: u64,
) -> Result<CheckFailure, RestError> {
    let repository = ["repos", name.owner(), name.name()];
    let id = check.to_string();
    let path = [&repository[..], &["check-runs", &id]].concat();
    let run: RunBody = rest.read(Call::get(by, &path)).await?;
    let mut failure = CheckFailure { summary: run.output.summary(), ..CheckFailure::default() };
    if run.output.annotations_count > 0 {
        let path = [&repository[..], &["check-runs", &id, "annotations"]].concat();
        let found: Vec<AnnotationBody> =
            rest.read(Call::get(by, &path).with(&[("per_page", ANNOTATIONS)])).await?;
        failure.annotations = found.into_iter().map(CheckAnnotation::from).collect();
    }
    if let Some(job) = run.job() {
        let path = [&repository[..], &["actions", "jobs", job]].concat();
        let read: JobBody = rest.read(Call::get(by, &path)).await?;
        let failed: Vec<StepBody> = read.steps.into_iter().filter(StepBody::is_failed).collect();
        let times = failed.iter().filter_map(StepBody::time).collect();
        failure.steps = failed.into_iter().map(|step| step.name).collect();
        let path = [&repository[..], &["actions", "jobs", job, "logs"]].concat();
        failure.log = log_soon(rest, addresses, &Call::get(by, &path), times).await?;
    }
    Ok(failure)
}

/// The log of a job, waited for; empty if there is none, or none any more.
async fn log_soon(
    rest: &RestClient,
    addresses: &Addresses,
    call: &Call<'_>,
    steps: Vec<StepTime>,
) -> Result<String, RestError> {
    for _ in 1..LOG_READS_MAX {
        if let Some(log) = log(rest, addresses, call.clone(), steps.clone()).await? {
            return Ok(log);
        }
        sleep(Duration::from_millis(LOG_PAUSE_MS)).await;
    }
    Ok(log(rest, addresses, call.clone(), steps).await?.unwrap_or_default())
}

/// The log behind a redirect; `None` if it is not there.
async fn log(
    rest: &RestClient,
    addresses: &Addresses,
    call: Call<'_>,
    steps: Vec<StepTime>,
) -> Result<Option<String>, RestError> {
    let Some(address) = rest.location(call).await? else {
        return Ok(None);
    };
    let logs = log_client(addresses)?;
    // A log at another host is none.
    let request = logs.request(Method::GET, &address).ok().filter(|_| is_log_address(&address));
    let Some(request) = request else {
        return Ok(Some(String::new()));
    };
    let mut response = logs.open(request).await?;
    if !response.status().is_success() {
        return Ok(None);
    }
    let mut cut = LogCut::new(steps);
    let mut read = 0;
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        cut.feed(&piece);
        read += piece.len();
        if read > LOG_READ_BYTES_MAX {
            break;
        }
    }
    Ok(Some(redact(&cut.text())))
}

/// Whether an address does not belong to a stranger's Azure account. The client's own rules decide about its host.
fn is_log_address(address: &str) -> bool {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| !host.ends_with(LOG_HOSTS[0]) || host.starts_with(LOG_ACCOUNTS))
}

impl RunBody {
    /// The id of its job, if it is one: the end of its page's address.
    fn job(&self) -> Option<&str> {
        self.app.as_ref().filter(|app| app.slug == ACTIONS)?;
        let (_, job) = self.details_url.as_deref()?.rsplit_once("/job/")?;
        let job = job.split(['?', '#']).next()?;
        (!job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit())).then_some(job)
    }
}

impl OutputBody {
    fn summary(&self) -> String {
        let parts = [self.title.as_deref(), self.summary.as_deref()];
        let parts: Vec<&str> =
            parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        redact(&parts.join("\n"))
    }
}

impl From<AnnotationBody> for CheckAnnotation {
    fn from(body: AnnotationBody) -> Self {
        Self {
            path: body.path,
            line: body.start_line,
            level: body.annotation_level.unwrap_or_default(),
            message: redact(&body.message.unwrap_or_default()),
        }
    }
}

impl StepBody {
    fn is_failed(&self) -> bool {
        matches!(self.conclusion.as_deref(), Some("failure" | "timed_out"))
    }

    fn time(&self) -> Option<StepTime> {
        let second = |at: &Option<String>| at.as_ref()?.get(..19).map(str::to_owned);
        Some(StepTime { from: second(&self.started_at)?, to: second(&self.completed_at)? })
    }
}

#[cfg(test)]
mod tests {
    use super::is_log_address;

    #[test]
    fn strangers_accounts_keep_no_logs() {
        for (address, is_one) in [
            ("https://productionresultssa7.blob.core.windows.net/a/job-logs.txt?sig=x", true),
            ("https://stranger.blob.core.windows.net/a/job-logs.txt?sig=x", false),
            ("https://results.actions.githubusercontent.com/a", true),
            ("no address", false),
        ] {
            assert_eq!(is_log_address(address), is_one, "{address}");
        }
    }
}
