//! What the three functions take to be ready for work, and how large they are.

use std::path::Path;

use crate::bed::Bed;
use crate::figures::{Report, Sample};
use crate::ingress::{FLOOR, PEER, ms, samples, turn};
use crate::process::Program;
use crate::programs;

const MIB: f64 = 1024.0 * 1024.0;

/// The three functions: their starts, and the sizes of all programs.
///
/// # Errors
/// What a function did instead of starting.
pub fn start(report: &mut Report, runs: u64) -> Result<(), String> {
    let bed = Bed::new()?;
    let built = programs::release(&[
        "bobbin-ingress",
        "bobbin-worker",
        "bobbin-sweeper",
        "bobbin-floor",
    ])?;
    let programs = ["ingress", "worker", "sweeper"].map(|name| bed.program(name, built.join(name)));
    functions(report, &programs, runs)?;
    for program in &programs {
        size(report, &program.name, &program.executable, "bootstrap")?;
    }
    size(report, FLOOR, &built.join("floor"), "bootstrap")?;
    if let Some(peer) = bed.peer(report)? {
        let bundle = peer.arguments.first().map_or("", String::as_str);
        size(report, PEER, Path::new(bundle), "function.cjs")?;
    }
    Ok(())
}

/// Starts each function in turn, until it asks for work.
fn functions(report: &mut Report, functions: &[Program], runs: u64) -> Result<(), String> {
    let mut times = samples(functions);
    let mut cpus = samples(functions);
    let mut peaks = samples(functions);
    for round in 0..=runs {
        for index in turn(functions.len(), round) {
            let function = &functions[index];
            let wrong = |what: String| format!("{}: {what}", function.name);
            let mut running = function
                .start(Vec::new())
                .map_err(|e| wrong(e.to_string()))?;
            let asked = running.first_asked().map_err(wrong)?;
            let took = asked.duration_since(running.started);
            let peak = running.peak_bytes().map_err(|e| wrong(e.to_string()))?;
            let cpu = running.end().map_err(|e| wrong(e.to_string()))?;
            if round > 0 {
                times[index].values.push(ms(took));
                cpus[index].values.push(ms(cpu));
                peaks[index].values.push(peak as f64 / MIB);
            }
        }
    }
    let figure = "start: process start to asking for work";
    report.add(figure, "ms", &times, "", &[]);
    report.add("start: CPU until then", "ms", &cpus, "", &[]);
    report.add("start: peak memory until then", "MiB", &peaks, "", &[]);
    Ok(())
}

/// How large a program is, by itself and as a zip archive with the name that it is deployed under.
fn size(report: &mut Report, name: &str, file: &Path, deployed: &str) -> Result<(), String> {
    let (bytes, zip) = programs::sizes(file, deployed)?;
    for (figure, bytes) in [("size: program", bytes), ("size: zip", zip)] {
        let sample = Sample {
            program: name.to_owned(),
            values: vec![bytes as f64 / 1e6],
        };
        report.add(figure, "MB", &[sample], "", &[]);
    }
    Ok(())
}
