//! Step "snapshot": Daytona builds the image of `infra/sandbox` ahead of time, so that a sandbox starts in seconds.
//!
//! Its name is derived from its content: a repeat finds it, and a changed Dockerfile gets a new one. Daytona builds
//! from the Dockerfile's text itself; neither a Docker daemon nor a registry is needed.

use std::time::Duration;

use bobbin_sandbox::daytona::prepared::{
    CreateSnapshot, DaytonaSnapshot, Readiness, SNAPSHOT_PREFIX, snapshot_name,
};
use bobbin_sandbox::daytona::{Daytona, DaytonaError};
use clap::Args;
use tokio::time::Instant;

use super::image::{self, DaemonBinary, ImageAgent};
use super::report::Report;
use crate::target::StackTarget;

/// Interval between polls of a build.
const POLL_MS: u64 = 2_000;
/// Consecutive failed polls of a build before giving up.
const FAILED_POLLS_MAX: u32 = 5;
/// Longest line of a build log.
const LOG_LINE_CHARS_MAX: usize = 200;
/// Attempts at creating the snapshot while another one with its name is in the way.
const TRIES_MAX: u32 = 3;

/// Build and activate the snapshot that sandboxes start from, or remove it.
#[derive(Debug, Clone, Args)]
pub struct SnapshotOptions {
    /// Remove it
    #[arg(long, conflicts_with = "daemon")]
    pub remove: bool,
    /// Remove this snapshot instead of this version's
    #[arg(long, value_name = "NAME", requires = "remove")]
    pub name: Option<String>,
    /// Remove it even if the stack uses it
    #[arg(long, requires = "remove")]
    pub anyway: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub image: ImageOptions,
    /// How many minutes to wait for a build; it continues at Daytona
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    pub wait: u64,
}

/// Contents of the image besides OpenCode.
#[derive(Debug, Clone, Default, Args)]
pub struct ImageOptions {
    /// Add bobbin-agentd from this address to the image, for the runtimes compat and native
    #[arg(long, value_name = "URL", requires = "daemon_sha512")]
    pub daemon: Option<String>,
    /// Its SHA-512, as sha512sum prints it; the build accepts nothing else
    #[arg(long, value_name = "HEX", requires = "daemon")]
    pub daemon_sha512: Option<String>,
    /// Add these agents to the image, besides OpenCode; by naming them you accept their licences
    #[arg(long, value_delimiter = ',', requires = "daemon")]
    pub agents: Vec<ImageAgent>,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            remove: false,
            name: None,
            anyway: false,
            dry_run: false,
            image: ImageOptions::default(),
            wait: 30,
        }
    }
}

/// Builds or removes the snapshot. Returns its name if it is ready.
///
/// # Errors
/// What failed; with advice.
pub async fn run(
    target: &StackTarget,
    report: &mut Report,
    options: &SnapshotOptions,
) -> Result<Option<String>, String> {
    let image = &options.image;
    let named = image.daemon.as_ref().zip(image.daemon_sha512.as_ref());
    let daemon = named.map(|(url, sha512)| DaemonBinary::new(url, sha512));
    let text = image::dockerfile(daemon.transpose()?.as_ref(), &image.agents);
    let key = target.needed("daytona_api_key").await?.value;
    let daytona = target.daytona(&key)?;
    let name = options.name.clone();
    let name = name.unwrap_or_else(|| snapshot_name(&text));
    if options.remove {
        remove(target, report, &daytona, &name, options).await?;
        return Ok(None);
    }
    if !build(report, &daytona, (&name, &text), options).await? {
        return Ok(None);
    }
    deployed(target, report, &name).await;
    older(report, &daytona, &name).await;
    Ok(Some(name))
}

/// Makes sure that the snapshot exists and is ready. False: a dry run left it undone.
async fn build(
    report: &mut Report,
    daytona: &Daytona,
    (name, text): (&str, &str),
    options: &SnapshotOptions,
) -> Result<bool, String> {
    for _ in 0..TRIES_MAX {
        let found = daytona.observe_snapshot(name).await.map_err(|e| told(&e))?;
        let readiness = found.as_ref().map(DaytonaSnapshot::readiness);
        if readiness == Some(Readiness::Ready) {
            report.right(&format!("Snapshot {name} is ready"));
            return Ok(true);
        }
        if options.dry_run {
            let what = what_would_be_done(readiness.as_ref());
            report.left(&format!("Snapshot {name} {what}"));
            return Ok(false);
        }
        match (readiness, found) {
            (Some(Readiness::Asleep), Some(found)) => {
                report.progress(&format!("Snapshot {name} is inactive and is being activated"));
                daytona.activate_snapshot(&found.id).await.map_err(|e| told(&e))?;
            }
            (Some(Readiness::Failed(reason)), Some(found)) => {
                report.progress(&format!(
                    "Snapshot {name} had failed ({reason}) and is being rebuilt"
                ));
                gone(daytona, &found, options.wait).await?;
                continue;
            }
            (Some(Readiness::Going), Some(found)) => {
                gone(daytona, &found, options.wait).await?;
                continue;
            }
            (None, _) => {
                report.progress(&format!("Daytona is building the snapshot {name} from infra/sandbox/Dockerfile; that takes some minutes"));
                match daytona.create_snapshot(&CreateSnapshot::new(name, text)).await {
                    // Another run was faster; its snapshot is the same.
                    Ok(_) | Err(DaytonaError::Conflict { .. }) => {}
                    Err(error) => return Err(told(&error)),
                }
            }
            _ => report.progress(&format!("Snapshot {name} is already being built")),
        }
        follow(report, daytona, name, options.wait).await?;
    }
    Err(format!(
        "Snapshot {name} is still not ready after {TRIES_MAX} tries. The dashboard shows it: https://app.daytona.io/dashboard/snapshots."
    ))
}

/// State of a snapshot that is not ready, and what a run without `--dry-run` would do.
const fn what_would_be_done(readiness: Option<&Readiness>) -> &'static str {
    match readiness {
        Some(Readiness::Ready) => "is ready",
        Some(Readiness::Asleep) => "exists and would be activated",
        Some(Readiness::Failed(_)) => "has failed and would be rebuilt",
        Some(Readiness::Going) => "is being removed and would be rebuilt",
        Some(Readiness::Underway) => "is being built",
        None => "would be built",
    }
}

/// Waits until it is ready, and prints states and log.
async fn follow(
    report: &mut Report,
    daytona: &Daytona,
    name: &str,
    minutes: u64,
) -> Result<(), String> {
    let began = Instant::now();
    let (mut state, mut lines, mut failed_polls) = (String::new(), 0, 0);
    while began.elapsed() < Duration::from_secs(minutes * 60) {
        let found = match daytona.observe_snapshot(name).await {
            Ok(Some(found)) => found,
            Ok(None) => return Err(format!("Snapshot {name} was removed while it was built.")),
            Err(error) => {
                failed_polls += 1;
                if failed_polls >= FAILED_POLLS_MAX {
                    return Err(told(&error));
                }
                tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
                continue;
            }
        };
        failed_polls = 0;
        // An unreadable log does not fail the build.
        if let Ok(log) = daytona.build_log(&found.id).await {
            lines = show(report, &log, lines);
        }
        if found.state != state {
            let seconds = began.elapsed().as_secs();
            report.progress(&format!("{seconds:>4} s  {}", found.state));
            state.clone_from(&found.state);
        }
        match found.readiness() {
            Readiness::Ready | Readiness::Asleep => return Ok(()),
            Readiness::Failed(reason) => {
                return Err(format!(
                    "The build of {name} failed: {reason}. The last lines of its log are above; bobbin snapshot tries again, bobbin snapshot --remove removes it."
                ));
            }
            Readiness::Underway | Readiness::Going => {}
        }
        tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
    }
    Err(format!(
        "Snapshot {name} is not ready after {minutes} minutes; Daytona continues. Run bobbin snapshot to check again."
    ))
}

/// Prints new whole lines of a log; returns the number printed so far.
fn show(report: &mut Report, log: &str, shown: usize) -> usize {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    let all: Vec<&str> = whole.lines().collect();
    for line in all.iter().skip(shown) {
        let line: String =
            line.chars().filter(|c| !c.is_control()).take(LOG_LINE_CHARS_MAX).collect();
        report.progress(&format!("| {line}"));
    }
    all.len().max(shown)
}

/// Removes a snapshot and waits until it is gone.
async fn gone(daytona: &Daytona, snapshot: &DaytonaSnapshot, minutes: u64) -> Result<(), String> {
    if snapshot.readiness() != Readiness::Going {
        match daytona.delete_snapshot(&snapshot.id).await {
            Ok(()) | Err(DaytonaError::NotFound) => {}
            Err(error) => return Err(told(&error)),
        }
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(minutes * 60) {
        match daytona.observe_snapshot(&snapshot.id).await {
            Ok(None) => return Ok(()),
            Ok(Some(_)) => tokio::time::sleep(Duration::from_millis(POLL_MS)).await,
            Err(error) => return Err(told(&error)),
        }
    }
    Err(format!(
        "Snapshot {} still exists after {minutes} minutes; Daytona continues to remove it.",
        snapshot.name
    ))
}

async fn remove(
    target: &StackTarget,
    report: &mut Report,
    daytona: &Daytona,
    name: &str,
    options: &SnapshotOptions,
) -> Result<(), String> {
    let Some(found) = daytona.observe_snapshot(name).await.map_err(|e| told(&e))? else {
        report.right(&format!("Snapshot {name} does not exist"));
        return Ok(());
    };
    // Without a readable stack, the snapshot counts as unused.
    let _ = target.stack().await;
    if target.parameter("DaytonaSnapshot") == Some(name) && !options.anyway {
        return Err(format!(
            "The stack {} creates its sandboxes from {name}. Deploy without it first ({}), or add --anyway.",
            target.stack_name(),
            // SAM takes an empty value in quotes alone.
            target.sam_deploy("'DaytonaSnapshot=\"\"'")
        ));
    }
    if options.dry_run {
        report.left(&format!("Snapshot {name} would be removed"));
        return Ok(());
    }
    gone(daytona, &found, options.wait).await?;
    report.right(&format!("Snapshot {name} is removed"));
    Ok(())
}

/// Reports whether and how the stack uses it.
async fn deployed(target: &StackTarget, report: &mut Report, name: &str) {
    let parameter = format!("DaytonaSnapshot={name}");
    match target.stack().await {
        Ok(_) if target.parameter("DaytonaSnapshot") == Some(name) => {
            report.right("The stack creates its sandboxes from it");
        }
        Ok(_) => report
            .left(&format!("The stack does not use it yet: {}", target.sam_deploy(&parameter))),
        Err(_) => report.note(&format!("For sam deploy: {parameter}")),
    }
}

/// Reports snapshots of earlier versions: each counts towards the organisation's quota.
async fn older(report: &mut Report, daytona: &Daytona, name: &str) {
    for old in daytona.list_snapshots(SNAPSHOT_PREFIX).await.unwrap_or_default() {
        if old.name != name && old.name.starts_with(SNAPSHOT_PREFIX) {
            report.note(&format!("{} belongs to another version; when nothing uses it: bobbin snapshot --remove --name {}", old.name, old.name));
        }
    }
}

fn told(error: &DaytonaError) -> String {
    match error {
        DaytonaError::BadKey => "Daytona refused the API key: create a new one at https://app.daytona.io/dashboard/keys and set DAYTONA_API_KEY to it.".to_owned(),
        DaytonaError::Forbidden { message } => format!("Daytona does not allow this: {message}. The API key needs write:snapshots, and delete:snapshots to remove one; bobbin check shows what it has."),
        DaytonaError::RateLimited { after_ms } => format!("Daytona accepts no more calls right now. Try again in {} s.", after_ms.div_ceil(1000).max(1)),
        other => format!("The snapshot step failed: {other}"),
    }
}
