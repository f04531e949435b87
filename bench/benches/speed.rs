//! `cargo bench` prints a table and writes `target/speed.json`. Words after `--` choose parts: `cold`, `warm`, `start`.
//!
//! `BOBBIN_BENCH_RUNS` is the number of runs of each figure, `BOBBIN_BENCH_BESIDE` another build of ingress that is
//! measured beside this one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use bobbin_bench::cloud::Cloud;
use bobbin_bench::command::Application;
use bobbin_bench::figures::Report;
use bobbin_bench::ingress::{self, FLOOR, OURS, PEER};
use bobbin_bench::process::Program;
use bobbin_bench::{programs, start};
use serde_json::json;

/// Runs of each figure unless `BOBBIN_BENCH_RUNS` says otherwise.
const RUNS: u64 = 40;
/// Requests of one run when it is warm.
const REQUESTS: u64 = 1_000;
/// Of so many runs, one is of a warm program: it takes that much longer.
const WARM_SHARE: u64 = 4;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), String> {
    // Cargo gives `--bench`.
    let parts: Vec<String> = env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_wanted = |part: &str| parts.is_empty() || parts.iter().any(|word| word == part);
    let runs = env::var("BOBBIN_BENCH_RUNS").ok();
    let runs: u64 = match runs.map(|runs| runs.parse()) {
        None => RUNS,
        Some(Ok(runs)) if runs > 0 => runs,
        Some(_) => return Err("BOBBIN_BENCH_RUNS must be a number above 0".to_owned()),
    };

    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let secret = json!({"stack_key": "a key of the bench, as long as the template makes one"});
    let cloud = Cloud::start(folder.path(), &secret).map_err(|e| e.to_string())?;
    let application = Application::default();
    let built = programs::release(&[
        "bobbin-ingress",
        "bobbin-worker",
        "bobbin-sweeper",
        "bobbin-floor",
    ])?;
    let environment = ingress::environment(&cloud, &application);
    let program = |name: &str, executable: PathBuf| Program {
        name: name.to_owned(),
        executable,
        arguments: Vec::new(),
        environment: environment.clone(),
    };

    let mut report = Report::default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    report.conditions.push(format!("{cores} cores"));
    let mut compared = vec![
        program(OURS, built.join("ingress")),
        program(FLOOR, built.join("floor")),
    ];
    let functions: Vec<_> = ["ingress", "worker", "sweeper"]
        .map(|name| program(name, built.join(name)))
        .into();
    let bundle = programs::peer()?;
    if let Some((bundle, version)) = &bundle {
        report.conditions.push(format!("peer: Node {version}"));
        compared.push(Program {
            arguments: vec![bundle.display().to_string()],
            ..program(PEER, programs::on_path("node")?)
        });
    }
    if let Some(beside) = env::var_os("BOBBIN_BENCH_BESIDE") {
        let roots = all_roots(&cloud, folder.path())?;
        // Builds before this bench trusted the machine's roots.
        let mut beside = program("beside", beside.into());
        let roots = ("SSL_CERT_FILE".to_owned(), roots.display().to_string());
        beside.environment.push(roots);
        compared.push(beside);
    }

    if is_wanted("cold") {
        ingress::cold(&mut report, &compared, &cloud, &application, runs)?;
    }
    if is_wanted("warm") {
        let rounds = runs.div_ceil(WARM_SHARE);
        ingress::warm(
            &mut report,
            &compared,
            &cloud,
            &application,
            rounds,
            REQUESTS,
        )?;
    }
    if is_wanted("start") {
        start::functions(&mut report, &functions, runs)?;
        for program in &functions {
            start::size(&mut report, &program.name, &program.executable, "bootstrap")?;
        }
        start::size(&mut report, FLOOR, &built.join("floor"), "bootstrap")?;
        if let Some((bundle, _)) = &bundle {
            start::size(&mut report, PEER, bundle, "function.cjs")?;
        }
    }
    println!("{}", report.table());
    let file = programs::target()?.join("speed.json");
    let text = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
}

/// The machine's roots and the cloud's, in one file.
fn all_roots(cloud: &Cloud, folder: &Path) -> Result<PathBuf, String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| e.to_string());
    let roots = read(Path::new("/etc/ssl/certs/ca-certificates.crt")).unwrap_or_default();
    let file = folder.join("roots.pem");
    let text = format!("{roots}\n{}", read(cloud.authority())?);
    fs::write(&file, text).map_err(|e| e.to_string())?;
    Ok(file)
}
