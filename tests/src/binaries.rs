//! The programs under test, built once per run by the cargo that runs the tests, into the same folder; or those in the
//! folder that `BOBBIN_BINARIES` names, to test an existing build.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use crate::limits::BUILD_MS_MAX;
use crate::wait::within_blocking;

/// The folder of the workspace.
///
/// # Panics
/// Never: this crate lies in it.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this crate lies in the workspace's folder")
        .to_owned()
}

/// The folder with the programs of this profile, after building them.
///
/// # Panics
/// When they cannot be built; the message holds what cargo said.
pub fn folder() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("BOBBIN_BINARIES") {
        Some(folder) => folder.into(),
        None => {
            build().unwrap_or_else(|why| panic!("the programs under test cannot be built: {why}"))
        }
    })
}

fn build() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    // A test program lies in `<target>/<profile>/deps`.
    let profile_dir =
        own.ancestors().nth(2).ok_or("the test program lies in no target folder")?.to_owned();
    let target = profile_dir.parent().ok_or("the test program lies in no target folder")?;
    let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "test",
        Some(name) => name,
    };
    let mut command = bobbin_launch::cargo();
    // Everything, tests included: only then are features resolved as for the tests themselves, and nothing of the
    // dependencies is built a second time.
    command.current_dir(workspace()).args([
        "build",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--profile",
        profile,
    ]);
    command.arg("--target-dir").arg(target);
    let log = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let out = log.reopen().map_err(|error| error.to_string())?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(out)
        .spawn()
        .map_err(|error| error.to_string())?;
    let done = within_blocking(BUILD_MS_MAX, || match child.try_wait() {
        Ok(Some(status)) => Ok(Ok(status)),
        Ok(None) => Err("cargo is still building"),
        Err(error) => Ok(Err(error.to_string())),
    });
    if done.is_err() {
        // A build that hangs is not worth waiting for; it ends with the error below.
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = std::fs::read_to_string(log.path()).unwrap_or_default();
    match done?? {
        status if status.success() => Ok(profile_dir),
        status => Err(format!("cargo ended with {status}\n{said}")),
    }
}
