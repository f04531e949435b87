//! A project that has to be made ready, on the laptop stack with the real agent: 200 packages from a registry, a
//! database and a test suite. From a message to the agent at work: of the first thread, which sets it up; of later
//! ones, which begin with its prebuild; and beside those the same without a repository. At two providers' doubles.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::time::Instant;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_tests::chat::Platform;
use bobbin_tests::forge::{TestForge, TestRepository};
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use tempfile::TempDir;

use crate::figures::{Report, Sample};
use crate::process::runtime;
use crate::programs;
use crate::stand_in::stand_ins;

/// One run in this many is made: it takes some seconds.
const SHARE: u64 = 8;
const PACKAGES: usize = 200;
/// The limits: until the agent works, and the project's part of that.
const AT_WORK_MS_GOAL: f64 = 10_000.0;
const OURS_MS_GOAL: f64 = 3_000.0;
const REGISTRY: &str = "registry.example.com";
/// Overrides the machine's own configuration; Node does not trust the sandbox's authority.
const NPMRC: &str = "registry=https://registry.example.com/
omit-lockfile-registry-resolved=false
strict-ssl=false
";
const RECIPE: &str = "set-up:\n  - npm ci --no-audit --no-fund\nservices: [postgres]\n";
/// Needs every package, and the database.
const TEST: &str = "const all = Object.keys(require('./package.json').dependencies);
const sum = all.reduce((sum, name) => sum + require(name).number, 0);
const rows = require('child_process').execSync(\"psql -h 127.0.0.1 -U postgres -tAc 'select 1'\").toString().trim();
console.log(rows === '1' ? `all ${all.length} packages, sum ${sum}` : 'no database');
";
/// Its output when all is there.
const GREEN: &str = "all 200 packages, sum 19900";

/// A package as its registry has it, always the same.
fn package(number: usize) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let files = [
        ("package/package.json", json!({"name": name(number), "version": "1.0.0"}).to_string()),
        ("package/index.js", format!("exports.number = {number};\n// {}\n", "x".repeat(4_000))),
    ];
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, path, content.as_bytes())?;
    }
    tar.into_inner()?.finish()
}

fn name(number: usize) -> String {
    format!("measured-{number}")
}

/// The part of a registry that `npm ci` uses: the lock file names each package's file.
fn registry() -> Router {
    let file = async |Path(file): Path<String>| {
        let number = file.strip_suffix(".tgz").and_then(|number| number.parse().ok());
        let number = number.filter(|number| *number < PACKAGES).ok_or(StatusCode::NOT_FOUND)?;
        package(number).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    };
    Router::new().route("/{file}", get(file))
}

fn lock_file() -> io::Result<(Value, Value)> {
    let all: serde_json::Map<String, Value> =
        (0..PACKAGES).map(|number| (name(number), json!("1.0.0"))).collect();
    let own = json!({"name": "project", "version": "1.0.0", "dependencies": all});
    let mut packages = serde_json::Map::from_iter([(String::new(), own.clone())]);
    for number in 0..PACKAGES {
        let integrity = format!("sha512-{}", STANDARD.encode(Sha512::digest(package(number)?)));
        let resolved = format!("https://{REGISTRY}/{number}.tgz");
        let entry = json!({"version": "1.0.0", "resolved": resolved, "integrity": integrity});
        packages.insert(format!("node_modules/{}", name(number)), entry);
    }
    let lock = json!({
        "name": "project", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": packages,
    });
    Ok((own, lock))
}

/// All of it.
///
/// # Errors
/// What a program did instead.
pub fn project(report: &mut Report, runs: u64) -> Result<(), String> {
    let (runtime, folder) = (runtime(), TempDir::new().map_err(|error| error.to_string())?);
    let stand_ins = runtime.block_on(stand_ins(&[REGISTRY], registry()));
    let file = folder.path().join("stand-ins.json");
    let all = serde_json::to_vec(&stand_ins).map_err(|error| error.to_string())?;
    fs::write(&file, all).map_err(|error| error.to_string())?;
    for place in ["daytona", "vercel"] {
        let provider = json!({"Overrides": json!({"provider": place}).to_string()});
        let options = Options {
            binaries: Some(programs::folder()?.to_owned()),
            parameters: provider,
            environment: vec![("BOBBIN_STAND_INS".to_owned(), file.display().to_string())],
            ..Options::default()
        };
        let stack = Stack::start(&options);
        let world = if place == "vercel" { World::at_vercel(&stack) } else { World::of(&stack) };
        let measured = runtime.block_on(measure(report, place, &world, runs.div_ceil(SHARE)));
        stack.end().and(measured)?;
    }
    Ok(())
}

async fn measure(report: &mut Report, place: &str, world: &World, runs: u64) -> Result<(), String> {
    let (package, lock) = lock_file().map_err(|error| error.to_string())?;
    let (package, lock) = (package.to_string(), lock.to_string());
    let forge = TestForge::of(&world.ready);
    let files = [
        (".bobbin/environment.yaml", RECIPE),
        (".gitignore", "node_modules\n"),
        (".npmrc", NPMRC),
        ("package.json", &package),
        ("package-lock.json", &lock),
        ("test.js", TEST),
    ];
    let repository = forge.private("project", &files).await;
    let mut taken = [const { Vec::new() }; 4];
    // The first one without a repository reads the agent from the disk, and does not count.
    begun(world, None, "").await?;
    taken[0].push(begun(world, Some(&repository), "set up at").await?);
    eventually(ANSWER_MS_MAX, "a prebuild", async || {
        let made = world.provider.snapshots().await?;
        let all = world.provider.list().await?;
        let lives = all.iter().any(|one| one.live() && !made.contains(&one.name));
        (made.len() == 1 && !lives).then_some(()).ok_or_else(|| format!("{made:?}, {lives}"))
    })
    .await;
    for _ in 0..runs {
        let without = begun(world, None, "").await?;
        let with = begun(world, Some(&repository), "begun with a prebuild of").await?;
        taken[1].push(without);
        taken[2].push(with);
        taken[3].push(with - without);
    }
    let words = [
        "first thread to agent at work",
        "thread without a repository to agent at work",
        "next thread to agent at work",
        "ours beside one without a repository",
    ];
    for (word, values) in words.iter().zip(taken) {
        let sample = Sample { program: place.to_owned(), values };
        report.add(&format!("project: {word}"), "ms", &[sample], "", &[]);
        match *word {
            "next thread to agent at work" => report.at_most(place, AT_WORK_MS_GOAL),
            "ours beside one without a repository" => report.at_most(place, OURS_MS_GOAL),
            _ => {}
        }
    }
    Ok(())
}

/// Time from the first message of a thread until its agent works, in milliseconds. Then its tests are run.
async fn begun(
    world: &World,
    repository: Option<&TestRepository<'_>>,
    fact: &str,
) -> Result<f64, String> {
    let chosen: Vec<(&str, &str)> = repository.iter().map(|one| ("repo", &*one.name)).collect();
    let look = if repository.is_some() {
        "run: sleep 2; node test.js 2>&1 || tail -n 40 .bobbin/set-up/1.log | cut -c1-200"
    } else {
        "run: sleep 2"
    };
    let since = Instant::now();
    let (talk, turn) = world.begin_with(Platform::Discord, &chosen, look).await;
    talk.running(&turn).await;
    let taken = since.elapsed().as_secs_f64() * 1e3;
    talk.ended(&turn).await;
    let mut wrong = String::new();
    if repository.is_some() {
        let (seen, card) = (talk.answer(&turn).await, talk.card(&turn).await);
        if !seen.contains(GREEN) || !card.text.contains(fact) {
            let _ = write!(wrong, "not {GREEN:?} or not {fact:?}: {seen}\n{}", card.text);
        }
    }
    talk.finish().await;
    if wrong.is_empty() { Ok(taken) } else { Err(wrong) }
}
