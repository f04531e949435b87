//! A private repository on the laptop stack: from a message to the agent at work, beside the same without a repository
//! and a plain `git clone` from the same forge; from the press to the pull request; and the most memory that a worker
//! holds while it carries a large one. Agents are the stand-in.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use bobbin_tests::chat::{ChatMessage, Platform};
use bobbin_tests::forge::{TestForge, TestRepository, git};
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::world::World;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::figures::{Report, Sample};
use crate::process::{peak_bytes_of, runtime};
use crate::programs;

/// One run in this many is made: it takes some seconds.
const SHARE: u64 = 4;
/// Incompressible bytes of each file.
const FILE_BYTES: usize = 1024 * 1024;
const MEASURED_FILES: usize = 20;
/// With its commit, still below the most that one pack carries.
const LARGE_FILES: usize = 95;
/// Time between two polls of the forge.
const POLL: Duration = Duration::from_millis(5);
/// The limits: our part beside a plain clone, from the press to the pull request, and the worker's memory.
const SHARE_MS_GOAL: f64 = 2_000.0;
const PRESS_MS_GOAL: f64 = 3_000.0;
const PEAK_MIB_GOAL: f64 = 64.0;
const MIB: f64 = 1024.0 * 1024.0;

/// All of it.
///
/// # Errors
/// What a program did instead.
pub fn repository(report: &mut Report, runs: u64) -> Result<(), String> {
    let options = Options {
        binaries: Some(programs::folder()?.to_owned()),
        stand_in_agent: true,
        ..Options::default()
    };
    let stack = Stack::start(&options);
    let measured = runtime().block_on(measure(report, &stack, runs.div_ceil(SHARE)));
    stack.end().and(measured)
}

async fn measure(report: &mut Report, stack: &Stack, runs: u64) -> Result<(), String> {
    let world = World::of(stack);
    let forge = TestForge::of(&world.ready);
    let small = filled(&forge, "measured", MEASURED_FILES).await.map_err(|e| e.to_string())?;
    let mut taken = [const { Vec::new() }; 4];
    // The first one reads everything from the disk, and does not count.
    for run in 0..=runs {
        let without = begun(&world, &[]).await;
        let cloned = clone(&small).map_err(|e| e.to_string())?;
        let with = begun(&world, &[("repo", &small.name)]).await;
        if run > 0 {
            let figures = [without, cloned, with, with - without - cloned];
            taken.iter_mut().zip(figures).for_each(|(all, one)| all.push(one));
        }
    }
    let words = [
        "message to agent at work",
        "git clone",
        "message to agent at work, 20 MB",
        "ours beside a clone",
    ];
    for (word, values) in words.iter().zip(taken) {
        add(report, word, "ms", values);
    }
    report.at_most("laptop stack", SHARE_MS_GOAL);

    let mut presses = Vec::new();
    for run in 0..runs {
        presses.push(pressed(&world, &forge, run).await);
    }
    add(report, "press to pull request", "ms", presses);
    report.at_most("laptop stack", PRESS_MS_GOAL);

    let large = filled(&forge, "large", LARGE_FILES).await.map_err(|e| e.to_string())?;
    begun(&world, &[("repo", &large.name)]).await;
    let peak = workers(&stack.state_dir()).map_err(|e| e.to_string())?;
    add(report, "worker's peak memory with 95 MB", "MiB", vec![peak as f64 / MIB]);
    report.at_most("laptop stack", PEAK_MIB_GOAL);
    Ok(())
}

fn add(report: &mut Report, figure: &str, unit: &'static str, values: Vec<f64>) {
    let sample = Sample { program: "laptop stack".to_owned(), values };
    report.add(&format!("repository: {figure}"), unit, &[sample], "", &[]);
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// A private repository with this many files.
async fn filled<'f>(
    forge: &'f TestForge,
    name: &str,
    files: usize,
) -> io::Result<TestRepository<'f>> {
    let made = forge.private(name, &[]).await;
    let folder = TempDir::new()?;
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for file in 0..files {
        let content: Vec<u8> = (0..FILE_BYTES / 8)
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            })
            .collect();
        fs::write(folder.path().join(format!("{file}.bin")), content)?;
    }
    git(folder.path(), &["add", "--all"]);
    git(folder.path(), &["commit", "--quiet", "--message", "Begin"]);
    git(folder.path(), &["push", "--quiet", &made.address(), "main"]);
    Ok(made)
}

fn clone(repository: &TestRepository<'_>) -> io::Result<f64> {
    let folder = TempDir::new()?;
    let since = Instant::now();
    git(folder.path(), &["clone", "--quiet", &repository.address(), "there"]);
    Ok(ms(since))
}

/// Time from the first message of a thread until its agent works.
async fn begun(world: &World, choices: &[(&str, &str)]) -> f64 {
    let since = Instant::now();
    let (talk, turn) =
        world.begin_with(Platform::Discord, choices, "run: sleep 2\necho: there").await;
    talk.running(&turn).await;
    let taken = ms(since);
    talk.ended(&turn).await;
    talk.finish().await;
    taken
}

/// Time from the press until the forge has the pull request.
async fn pressed(world: &World, forge: &TestForge, run: u64) -> f64 {
    let repository = forge.private(&format!("pressed-{run}"), &[("README.md", "begin\n")]).await;
    let choices = [("repo", &*repository.name)];
    let lines = "write: page.txt hello";
    let (talk, turn) = world.begin_with(Platform::Discord, &choices, lines).await;
    talk.ended(&turn).await;
    let has = |label: &'static str| move |one: &ChatMessage| one.button(label).is_some();
    let (open, draft) = ("Open pull request", "Open draft pull request");
    let card = talk.see(ANSWER_MS_MAX, open, has(open)).await;
    talk.press(&card, open).await;
    let shown = talk.see(ANSWER_MS_MAX, draft, has(draft)).await;
    let since = Instant::now();
    talk.press(&shown, draft).await;
    while repository.pulls().await.is_empty() {
        sleep(POLL).await;
    }
    let taken = ms(since);
    talk.finish().await;
    taken
}

/// The peak memory of any of the stack's workers, in bytes.
fn workers(state: &Path) -> io::Result<u64> {
    let worker = state.join("aws/functions/Worker/bootstrap");
    let mut most = None;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let program = fs::read_link(entry.path().join("exe")).unwrap_or_default();
        if let Some(id) = id.filter(|_| program == worker) {
            most = most.max(Some(peak_bytes_of(id)?));
        }
    }
    most.ok_or_else(|| io::Error::other("no worker runs"))
}
