//! Virtual environments of Python for tools that tests compare with, installed by hash into the project's cache.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binaries::workspace;
use crate::limits::INSTALL_MS_MAX;
use crate::stack::tail;
use crate::wait::within_blocking;

/// Installs what a file of requirements pins, unless it is there already, and returns the folder of its programs. The
/// environment is named after `package`, which has to be among the requirements, and its version.
///
/// # Errors
/// What pip said.
pub fn install(package: &str, requirements: &str) -> Result<PathBuf, String> {
    let requirements_file = workspace().join(requirements);
    let wanted = std::fs::read_to_string(&requirements_file)
        .map_err(|error| format!("{requirements}: {error}"))?;
    let pinned = format!("{package}==");
    let version = wanted
        .lines()
        .find_map(|line| line.strip_prefix(&pinned))
        .ok_or_else(|| format!("{package} is not among the requirements"))?;
    let version = version.trim_end_matches(['\\', ' ']);
    let cache = workspace().join(".bobbin/cache");
    std::fs::create_dir_all(&cache).map_err(|error| error.to_string())?;
    let folder = cache.join(format!("{package}-{version}"));
    let lock = File::create(cache.join(format!("{package}-{version}.lock")))
        .map_err(|error| error.to_string())?;
    // Two test runs may want it at once; the second waits for the first.
    lock.lock().map_err(|error| error.to_string())?;
    let done = folder.join("installed-requirements.txt");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(folder.join("bin"));
    }
    let log = cache.join(format!("{package}-{version}.log"));
    let _ = std::fs::remove_file(&log);
    run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
        &log,
    )?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
    ];
    run(
        Command::new(folder.join("bin/python"))
            .args(pip)
            .arg(&requirements_file),
        &log,
    )?;
    std::fs::write(&done, wanted).map_err(|error| error.to_string())?;
    Ok(folder.join("bin"))
}

/// Runs a step of the installation, its output into the log.
fn run(command: &mut Command, log: &Path) -> Result<(), String> {
    let open = || File::options().create(true).append(true).open(log);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(open().map_err(|error| error.to_string())?)
        .stderr(open().map_err(|error| error.to_string())?)
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let status = within_blocking(INSTALL_MS_MAX, || {
        child
            .try_wait()
            .map_err(|error| error.to_string())?
            .ok_or_else(|| "it still runs".to_owned())
    });
    match status {
        Ok(status) if status.success() => Ok(()),
        other => {
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("{command:?}: {other:?}\n{}", tail(log)))
        }
    }
}
