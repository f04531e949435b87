//! The measured programs, built as they are deployed, and the programs around them, in one folder.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Bytes of a zip archive of one file, besides its content and twice its name.
const ZIP_BYTES: u64 = 30 + 46 + 22;

/// The deployed programs, built in the release profile.
const DEPLOYED: [&str; 4] = ["ingress", "worker", "sweeper", "tools"];
/// The programs around them, by package: built to be quick in less time.
const AROUND: [(&str, &str); 5] = [
    ("bobbin-local", "bobbin-local"),
    ("bobbin-agentd", "bobbin-agentd"),
    ("bobbin-tests", "stand-in-agent"),
    ("bobbin-bench-load", "load"),
    ("bobbin-bench-table", "table"),
];

/// The folder with all programs, after building them; or the one that `BOBBIN_BINARIES` names.
///
/// # Errors
/// A sentence with what failed.
pub fn folder() -> Result<&'static Path, String> {
    static BUILT: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        if let Some(folder) = env::var_os("BOBBIN_BINARIES") {
            return Ok(folder.into());
        }
        let folder = target()?.join("speed");
        fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let deployed = build("release", &DEPLOYED.map(|name| format!("bobbin-{name}")))?;
        let around = build("around", &AROUND.map(|(package, _)| package.to_owned()))?;
        let programs = DEPLOYED.map(|name| deployed.join(name)).into_iter();
        for program in programs.chain(AROUND.map(|(_, name)| around.join(name))) {
            let name = program.file_name().unwrap_or_default();
            fs::copy(&program, folder.join(name))
                .map_err(|e| format!("{}: {e}", program.display()))?;
        }
        Ok(folder)
    });
    BUILT.as_deref().map_err(Clone::clone)
}

fn build(profile: &str, packages: &[String]) -> Result<PathBuf, String> {
    let target = target()?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--profile", profile, "--target-dir"]).arg(&target);
    for package in packages {
        command.args(["-p", package]);
    }
    // Cargo's variables about this program's own package would be new to build scripts (ring's reads them), and
    // everything would be rebuilt each time.
    for (name, _) in env::vars_os() {
        let is_of_package =
            |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.starts_with(of));
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    run(&mut command)?;
    Ok(target.join(profile))
}

/// Bundles the peer; returns its one file and Node's version. `None` without Node, which is reported.
///
/// # Errors
/// A sentence with what failed.
pub fn peer() -> Result<Option<(PathBuf, String)>, String> {
    let Ok(version) = Command::new("node").arg("--version").output() else {
        eprintln!("There is no Node here: the peer is not measured.");
        return Ok(None);
    };
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let (source, folder) = (root().join("tests/bench/peer"), target()?.join("peer"));
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let is_same = |name: &str| {
        let read = |folder: &Path| fs::read(folder.join(name)).ok();
        read(&source) == read(&folder)
    };
    let is_fetched = is_same("package-lock.json") && folder.join("node_modules").is_dir();
    for name in ["package.json", "package-lock.json", "function.mjs", "handler.mjs"] {
        fs::copy(source.join(name), folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
    }
    let npm = |arguments: &[&str]| {
        let mut command = Command::new("npm");
        run(command.current_dir(&folder).args(arguments))
    };
    if !is_fetched {
        npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    }
    npm(&["run", "--silent", "bundle", "--", "--log-level=warning"])?;
    Ok(Some((folder.join("dist/function.cjs"), version)))
}

/// The place of `name` on the path.
///
/// # Errors
/// A sentence, if it does not.
pub fn on_path(name: &str) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{name} is not on the path"))
}

/// Bytes of a file, and of a zip archive with it under `name` alone, as it is deployed.
///
/// # Errors
/// A sentence, if it cannot be read.
pub fn sizes(file: &Path, name: &str) -> Result<(u64, u64), String> {
    let content = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    let packed =
        packed.write_all(&content).and_then(|()| packed.finish()).map_err(|e| e.to_string())?;
    let zip = packed.len() as u64 + ZIP_BYTES + 2 * name.len() as u64;
    Ok((content.len() as u64, zip))
}

/// Writes a picture of the documentation.
///
/// # Errors
/// A sentence, if it cannot be written.
pub fn picture(name: &str, content: &str) -> Result<(), String> {
    let file = root().join("docs/images").join(name);
    fs::write(&file, content).map_err(|e| format!("{}: {e}", file.display()))
}

/// The folder of everything built.
///
/// # Errors
/// A sentence, if this program does not lie in one.
pub fn target() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|e| e.to_string())?;
    // It is there as `release/deps/speed-…`.
    own.ancestors().nth(3).map(Path::to_owned).ok_or_else(|| "run it with cargo bench".to_owned())
}

/// The folder of the workspace.
#[must_use]
pub fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name} failed: {status}")),
        Err(error) => Err(format!("{name} could not be run: {error}")),
    }
}
