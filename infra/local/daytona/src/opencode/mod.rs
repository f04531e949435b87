//! Installs what sandboxes need on PATH: OpenCode at a pinned version, and ripgrep.
//!
//! Both are npm packages with a binary. They are fetched with `npm pack`, which runs no script, checked against the
//! hash pinned here, and unpacked atomically into the project's own cache folder.

mod error;
mod package;
mod platform;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::confine::{SYSTEM_PATH, find_on_path};
use package::{OPENCODE_HASHES, RIPGREP_HASHES, RIPGREP_VERSION, Staging, pinned, run};
use platform::platform;

pub use error::OpenCodeInstallError;
pub use package::VERSION;

/// Result of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledOpenCode {
    /// Folder with `opencode` and, if the system has none, `rg`.
    pub bin_dir: PathBuf,
    /// Version printed by OpenCode itself.
    pub version: String,
    /// Warnings about what works less well than it should.
    pub warnings: Vec<String>,
}

/// Installs OpenCode and ripgrep below `cache_dir`, or finds them there. `progress` receives each step in words.
///
/// # Errors
/// See [`OpenCodeInstallError`]. Without ripgrep the installation succeeds with a warning.
pub async fn install(
    cache_dir: &Path,
    mut progress: impl FnMut(&str),
) -> Result<InstalledOpenCode, OpenCodeInstallError> {
    let platform = platform()?;
    let target = cache_dir.join(format!("opencode-{VERSION}-{platform}"));
    let at = |source| OpenCodeInstallError::Cache { path: cache_dir.to_owned(), source };
    std::fs::create_dir_all(cache_dir).map_err(at)?;
    // Programs inside sandboxes are found by absolute paths.
    let bin_dir = target.canonicalize().unwrap_or(target.clone()).join("bin");
    if let Some(installed) = present(&bin_dir) {
        return Ok(installed);
    }
    let node = find_on_path("node").is_some();
    let npm = find_on_path("npm").filter(|_| node).ok_or(OpenCodeInstallError::Missing {
        program: "npm",
        advice: "install Node.js 20 or newer with npm (Debian and Ubuntu: `apt install nodejs npm`; macOS: `brew install node`)",
    })?;
    let staging =
        Staging { npm, folder: cache_dir.join(format!("staging-{}", std::process::id())) };
    let result = build(&staging, &platform, &mut progress).await;
    let result = result.and_then(|built| {
        if target.exists() {
            std::fs::remove_dir_all(&target).map_err(at)?;
        }
        std::fs::rename(staging.folder.join("ready"), &target).map_err(at)?;
        let bin_dir = target.canonicalize().map_err(at)?.join("bin");
        Ok(InstalledOpenCode { bin_dir, ..built })
    });
    // Left over from a failed or finished installation; the next one stages anew.
    let _ = std::fs::remove_dir_all(&staging.folder);
    result
}

/// An earlier installation, if complete: the stamp is written last and contains the sizes.
fn present(bin_dir: &Path) -> Option<InstalledOpenCode> {
    let stamp = std::fs::read(stamp_file(bin_dir)).ok()?;
    let stamp: Stamp = serde_json::from_slice(&stamp).ok()?;
    let whole = |(name, size): (&String, &u64)| {
        std::fs::metadata(bin_dir.join(name)).is_ok_and(|meta| meta.len() == *size)
    };
    stamp.files.iter().all(whole).then(|| InstalledOpenCode {
        bin_dir: bin_dir.to_owned(),
        version: stamp.version,
        warnings: stamp.warnings,
    })
}

/// Written last, to mark an installation as complete.
#[derive(serde::Serialize, serde::Deserialize)]
struct Stamp {
    version: String,
    warnings: Vec<String>,
    /// Size in bytes by file in `bin`.
    files: BTreeMap<String, u64>,
}

async fn build(
    staging: &Staging,
    platform: &str,
    progress: &mut impl FnMut(&str),
) -> Result<InstalledOpenCode, OpenCodeInstallError> {
    let bin_dir = staging.folder.join("ready/bin");
    std::fs::create_dir_all(&bin_dir).map_err(|source| staging.unusable(source))?;
    let mut warnings = Vec::new();

    let package = format!("opencode-{platform}");
    progress(&format!("fetching {package} {VERSION} (about 60 MB)"));
    let hash = pinned(&OPENCODE_HASHES, platform);
    if let Some(warning) = staging.fetch(&package, VERSION, hash).await? {
        progress(&warning);
        warnings.push(warning);
    }
    staging.move_executable("bin/opencode", &bin_dir.join("opencode"))?;
    progress("trying OpenCode");
    let mut trial = Command::new(bin_dir.join("opencode"));
    trial
        .arg("--version")
        .env("HOME", &staging.folder)
        .env("XDG_DATA_HOME", staging.folder.join("data"));
    let version = run(trial, "opencode --version").await?.trim().to_owned();
    if version != VERSION {
        let said = format!("it printed {version:?} instead of {VERSION}");
        return Err(OpenCodeInstallError::Step { step: "opencode --version".to_owned(), said });
    }

    let ripgrep = install_ripgrep(staging, platform, &bin_dir, progress).await;
    if let Err(error) = &ripgrep {
        let warning = format!(
            "ripgrep is not there, so searches inside sandboxes fail ({error}); install the package `ripgrep`"
        );
        progress(&warning);
        warnings.push(warning);
    }
    let installed = InstalledOpenCode { bin_dir, version, warnings };
    // Without ripgrep there is no stamp: the next call tries again.
    if ripgrep.is_ok() {
        write_stamp(&installed).map_err(|source| staging.unusable(source))?;
    }
    Ok(installed)
}

fn write_stamp(installed: &InstalledOpenCode) -> std::io::Result<()> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(&installed.bin_dir)?.flatten() {
        let size = entry.metadata()?.len();
        files.insert(entry.file_name().to_string_lossy().into_owned(), size);
    }
    let stamp =
        Stamp { version: installed.version.clone(), warnings: installed.warnings.clone(), files };
    let text = serde_json::to_vec_pretty(&stamp)?;
    std::fs::write(stamp_file(&installed.bin_dir), text)
}

fn stamp_file(bin_dir: &Path) -> PathBuf {
    bin_dir.with_file_name("installed.json")
}

/// The system's ripgrep if sandboxes can see it, else a copy of it, else the npm package.
async fn install_ripgrep(
    staging: &Staging,
    platform: &str,
    bin_dir: &Path,
    progress: &mut impl FnMut(&str),
) -> Result<(), OpenCodeInstallError> {
    let target = bin_dir.join("rg");
    if let Some(system) = find_on_path("rg") {
        let visible_inside = system
            .parent()
            .is_some_and(|folder| SYSTEM_PATH.iter().any(|one| folder == Path::new(one)));
        if !visible_inside {
            std::fs::copy(system, target).map_err(|source| staging.unusable(source))?;
        }
        return Ok(());
    }
    let platform = platform.trim_end_matches("-musl").trim_end_matches("-baseline");
    let package = format!("@vscode/ripgrep-{platform}");
    progress(&format!("fetching {package} {RIPGREP_VERSION}"));
    let hash = pinned(&RIPGREP_HASHES, platform);
    if let Some(warning) = staging.fetch(&package, RIPGREP_VERSION, hash).await? {
        progress(&warning);
    }
    staging.move_executable("bin/rg", &target)?;
    let mut trial = Command::new(target);
    trial.arg("--version");
    run(trial, "rg --version").await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_installation_counts_as_none() {
        let folder = std::env::temp_dir().join(format!("bobbin-present-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).expect("a temporary folder");
        std::fs::write(folder.join("bin/opencode"), "12345").expect("a file");
        let stamp = |size: u64| {
            let files = BTreeMap::from([("opencode".to_owned(), size)]);
            let stamp = Stamp { version: VERSION.to_owned(), warnings: Vec::new(), files };
            std::fs::write(
                folder.join("installed.json"),
                serde_json::to_vec(&stamp).expect("a stamp"),
            )
            .expect("a file");
        };
        assert_eq!(present(&folder.join("bin")), None, "no stamp");
        stamp(6);
        assert_eq!(present(&folder.join("bin")), None, "a file cut short");
        stamp(5);
        assert!(present(&folder.join("bin")).is_some());
        std::fs::remove_dir_all(&folder).expect("the temporary folder");
    }
}
