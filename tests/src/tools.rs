//! Other people's programs that tests need, installed by version and hash into the project's cache.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::binaries;
use crate::limits::INSTALL_MS_MAX;
use crate::stack::tail;
use crate::wait::within_blocking;

/// Installs the Python packages of a requirements file with hashes into a separate environment, unless they exist, and
/// returns the folder of its programs.
///
/// # Errors
/// What pip said.
pub fn python(name: &str, requirements: &Path) -> Result<PathBuf, String> {
    let wanted = read(requirements)?;
    let folder = install(name, &wanted, |folder, run| {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "--requirement",
        ];
        run(Command::new(folder.join("bin/python")).args(pip).arg(requirements))
    })?;
    Ok(folder.join("bin"))
}

/// Installs the npm packages of a folder's `package.json` and `package-lock.json`, unless they exist, and returns the
/// folder of `node_modules`.
///
/// # Errors
/// What npm said.
pub fn node(name: &str, package: &Path) -> Result<PathBuf, String> {
    let files = ["package.json", "package-lock.json"];
    let wanted =
        files.iter().map(|file| read(&package.join(file))).collect::<Result<String, _>>()?;
    install(name, &wanted, |folder, run| {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        for file in files {
            std::fs::copy(package.join(file), folder.join(file))
                .map_err(|error| error.to_string())?;
        }
        let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        run(Command::new("npm").args(npm).current_dir(folder))
    })
}

/// A program that runs a script with nothing of this process's environment except `PATH` and `HOME`.
pub fn script(program: impl AsRef<OsStr>) -> tokio::process::Command {
    let mut script = tokio::process::Command::new(program);
    let kept = ["PATH", "HOME"].into_iter();
    script
        .env_clear()
        .envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    script
}

/// Runs a [`script`] with this input, as JSON on its standard input, and returns its result.
///
/// # Panics
/// When it does not end well, with what it said.
pub async fn found<T: DeserializeOwned>(script: &mut tokio::process::Command, given: &Value) -> T {
    let ran = async {
        let mut child = script.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(given.to_string().as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = ran.await.unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Runs a command to its end.
type Run<'a> = dyn FnMut(&mut Command) -> Result<(), String> + 'a;

/// A folder of the cache for what `wanted` describes, filled by `fill` unless it exists.
fn install(
    name: &str,
    wanted: &str,
    fill: impl FnOnce(&Path, &mut Run<'_>) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let cache = binaries::workspace().join(".bobbin/cache");
    std::fs::create_dir_all(&cache).map_err(text)?;
    let folder = cache.join(name);
    let lock = File::create(cache.join(format!("{name}.lock"))).map_err(text)?;
    // Two test runs may need it at once; the second waits for the first.
    lock.lock().map_err(text)?;
    let done = folder.join("installed.txt");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(text)?;
    }
    let log_file = cache.join(format!("{name}.log"));
    let log = File::create(&log_file).map_err(text)?;
    fill(&folder, &mut |command| run(command, &log, &log_file))?;
    std::fs::write(&done, wanted).map_err(text)?;
    Ok(folder)
}

fn run(command: &mut Command, log: &File, log_file: &Path) -> Result<(), String> {
    let out = log.try_clone().map_err(|error| error.to_string())?;
    let err = log.try_clone().map_err(|error| error.to_string())?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
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
            Err(format!("{command:?}: {other:?}\n{}", tail(log_file)))
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}
