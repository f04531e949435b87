//! The installer of what sandboxes need on PATH: OpenCode at a pinned version, and ripgrep.
//!
//! Both come as npm packages that ship a binary. They are fetched with `npm pack`, which runs no script, checked
//! against the hash that is pinned here, and unpacked into the project's own cache folder, whole or not at all.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha512};
use tokio::process::Command;

use crate::confine::find_on_path;
use crate::limits::INSTALL_STEP_MS_MAX;

/// The only version that Bobbin is written for.
pub const VERSION: &str = "1.18.33";
const RIPGREP_VERSION: &str = "1.18.0";

/// Platform to the hash of its package, in npm's notation. A platform that is not listed takes the hash that the
/// registry itself announces, which is said at install.
const OPENCODE_HASHES: [(&str, &str); 2] = [
    (
        "linux-x64",
        "sha512-q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiKQjiAWw==",
    ),
    (
        "linux-x64-baseline",
        "sha512-1KQGBiiDDeL/VHHbHkOvvFo8Jr97WT5+C1tear+p7IcDTnXgVHXqIjU4O4jM4mHQzykTP2i884FCnW5LDa+zCA==",
    ),
];
const RIPGREP_HASHES: [(&str, &str); 4] = [
    (
        "linux-x64",
        "sha512-mQ3bVrUpnD2vs7QT0vX90Lt0cnUq467uFtEktIdsJJmW296RoSULRGqWgzG1AKxyBpNDD6l4ZO4qKf6SgyC23Q==",
    ),
    (
        "linux-arm64",
        "sha512-lQ/5zTG++U0E3IhVgS4EPTTn/U4okncaRMM5GOFfOYZywS4nuD31GhkHbNYlDk5CuDC68+hYJ0/eQeyCKJDA+g==",
    ),
    (
        "darwin-x64",
        "sha512-25b4gWbL138dGuQU244ebCKKc0q05ULBMoFSz9oAEUHNeqK/lOJViDS7DRvbDazzAzSEdan391Znks/R5mkaTQ==",
    ),
    (
        "darwin-arm64",
        "sha512-r3ktHSvbFycQNF6sl7sNDPocpsI7J+mEzh1IaZFkY0spm3k2Z9t8hPAeOK7+p0l6p6/swkQC14XWX01low+94Q==",
    ),
];

/// Folders of PATH that a sandbox sees too: a program found there needs no copy.
const SEEN_INSIDE: [&str; 7] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/homebrew/bin",
];

/// What is there after an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The folder with `opencode` and, where the system has none, `rg`.
    pub bin_dir: PathBuf,
    /// What `opencode --version` printed.
    pub version: String,
    /// Plain sentences about what works less well than it should.
    pub warnings: Vec<String>,
}

/// Why OpenCode could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A program is missing.
    #[error("`{program}` is not installed; {advice}")]
    Missing {
        /// Its name.
        program: &'static str,
        /// How to get it.
        advice: &'static str,
    },
    /// There is no OpenCode for this machine.
    #[error("there is no OpenCode package for {0}")]
    Platform(String),
    /// A step failed.
    #[error("{step} failed: {said}")]
    Step {
        /// What was done.
        step: String,
        /// What the program said.
        said: String,
    },
    /// The package is not the one that was pinned.
    #[error(
        "{package} does not have the pinned hash (expected {expected}, got {found}); the download was discarded"
    )]
    Integrity {
        /// Name and version.
        package: String,
        /// The pinned hash.
        expected: String,
        /// The hash of what came.
        found: String,
    },
    /// The cache folder cannot be used.
    #[error("the cache folder {path} cannot be used: {source}")]
    Cache {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Installs OpenCode and ripgrep below `cache_dir`, or finds them there. `progress` is told each step in words.
///
/// # Errors
/// See [`InstallError`]. Without ripgrep the installation succeeds with a warning.
pub async fn install(
    cache_dir: &Path,
    mut progress: impl FnMut(&str),
) -> Result<Installed, InstallError> {
    let platform = platform()?;
    let place = cache_dir.join(format!("opencode-{VERSION}-{platform}"));
    let at = |source| InstallError::Cache {
        path: cache_dir.to_owned(),
        source,
    };
    std::fs::create_dir_all(cache_dir).map_err(at)?;
    // Programs inside sandboxes are found by absolute paths.
    let bin_dir = place.canonicalize().unwrap_or(place.clone()).join("bin");
    if let Some(installed) = present(&bin_dir) {
        return Ok(installed);
    }
    let node = find_on_path("node").is_some();
    let npm = find_on_path("npm").filter(|_| node).ok_or(InstallError::Missing {
        program: "npm",
        advice: "install Node.js 20 or newer with npm (Debian and Ubuntu: `apt install nodejs npm`; macOS: `brew install node`)",
    })?;
    let staging = cache_dir.join(format!("staging-{}", std::process::id()));
    let result = build(&npm, &staging, &platform, &mut progress).await;
    let result = result.and_then(|built| {
        if place.exists() {
            std::fs::remove_dir_all(&place).map_err(at)?;
        }
        std::fs::rename(staging.join("ready"), &place).map_err(at)?;
        let bin_dir = place.canonicalize().map_err(at)?.join("bin");
        Ok(Installed { bin_dir, ..built })
    });
    // What remains of a failed or finished installation; a next one stages anew.
    let _ = std::fs::remove_dir_all(&staging);
    result
}

/// What an earlier installation left, if it is whole: the stamp is written last and knows the sizes.
fn present(bin_dir: &Path) -> Option<Installed> {
    let stamp = std::fs::read(bin_dir.with_file_name("installed.json")).ok()?;
    let stamp: Stamp = serde_json::from_slice(&stamp).ok()?;
    let whole = |(name, size): (&String, &u64)| {
        std::fs::metadata(bin_dir.join(name)).is_ok_and(|meta| meta.len() == *size)
    };
    stamp.files.iter().all(whole).then(|| Installed {
        bin_dir: bin_dir.to_owned(),
        version: stamp.version,
        warnings: stamp.warnings,
    })
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Stamp {
    version: String,
    warnings: Vec<String>,
    /// File in `bin` to its bytes.
    files: std::collections::BTreeMap<String, u64>,
}

async fn build(
    npm: &Path,
    staging: &Path,
    platform: &str,
    progress: &mut impl FnMut(&str),
) -> Result<Installed, InstallError> {
    let at = |source| InstallError::Cache {
        path: staging.to_owned(),
        source,
    };
    let (ready, bin) = (staging.join("ready"), staging.join("ready/bin"));
    std::fs::create_dir_all(&bin).map_err(at)?;
    let mut warnings = Vec::new();

    let package = format!("opencode-{platform}");
    progress(&format!("fetching {package} {VERSION} (about 60 MB)"));
    if let Some(warning) = fetch(
        npm,
        staging,
        &package,
        VERSION,
        pinned(&OPENCODE_HASHES, platform),
    )
    .await?
    {
        progress(&warning);
        warnings.push(warning);
    }
    take(staging, "bin/opencode", &bin.join("opencode")).map_err(at)?;
    progress("trying OpenCode");
    let mut trial = Command::new(bin.join("opencode"));
    trial
        .arg("--version")
        .env("HOME", staging)
        .env("XDG_DATA_HOME", staging.join("data"));
    let version = run(trial, "opencode --version").await?.trim().to_owned();
    if version != VERSION {
        let said = format!("it printed {version:?} instead of {VERSION}");
        return Err(InstallError::Step {
            step: "opencode --version".to_owned(),
            said,
        });
    }

    if let Err(error) = ripgrep(npm, staging, platform, &bin, progress).await {
        let warning = format!(
            "ripgrep is not there, so searches inside sandboxes fail ({error}); install the package `ripgrep`"
        );
        progress(&warning);
        warnings.push(warning);
    } else {
        let mut files = std::collections::BTreeMap::new();
        for entry in std::fs::read_dir(&bin).map_err(at)?.flatten() {
            let size = entry.metadata().map_err(at)?.len();
            files.insert(entry.file_name().to_string_lossy().into_owned(), size);
        }
        // Without ripgrep there is no stamp: the next call tries again.
        let stamp = Stamp {
            version: version.clone(),
            warnings: warnings.clone(),
            files,
        };
        let text = serde_json::to_vec_pretty(&stamp).map_err(|error| at(error.into()))?;
        std::fs::write(ready.join("installed.json"), text).map_err(at)?;
    }
    Ok(Installed {
        bin_dir: bin,
        version,
        warnings,
    })
}

/// The system's ripgrep where sandboxes see it, a copy of it where they do not, else the npm package.
async fn ripgrep(
    npm: &Path,
    staging: &Path,
    platform: &str,
    bin: &Path,
    progress: &mut impl FnMut(&str),
) -> Result<(), InstallError> {
    let at = |source| InstallError::Cache {
        path: staging.to_owned(),
        source,
    };
    if let Some(system) = find_on_path("rg") {
        let seen = system
            .parent()
            .is_some_and(|folder| SEEN_INSIDE.iter().any(|one| folder == Path::new(one)));
        if !seen {
            std::fs::copy(system, bin.join("rg")).map_err(at)?;
        }
        return Ok(());
    }
    let platform = platform
        .trim_end_matches("-musl")
        .trim_end_matches("-baseline");
    let package = format!("@vscode/ripgrep-{platform}");
    progress(&format!("fetching {package} {RIPGREP_VERSION}"));
    if let Some(warning) = fetch(
        npm,
        staging,
        &package,
        RIPGREP_VERSION,
        pinned(&RIPGREP_HASHES, platform),
    )
    .await?
    {
        progress(&warning);
    }
    take(staging, "bin/rg", &bin.join("rg")).map_err(at)?;
    let mut trial = Command::new(bin.join("rg"));
    trial.arg("--version");
    run(trial, "rg --version").await.map(drop)
}

fn pinned(table: &[(&str, &'static str)], platform: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(name, _)| *name == platform)
        .map(|(_, hash)| *hash)
}

/// Downloads, checks and unpacks a package into `staging/package`. Answers a warning when no hash was pinned for it.
async fn fetch(
    npm: &Path,
    staging: &Path,
    package: &str,
    version: &str,
    pinned: Option<&str>,
) -> Result<Option<String>, InstallError> {
    let at = |source| InstallError::Cache {
        path: staging.to_owned(),
        source,
    };
    let named = format!("{package}@{version}");
    let mut pack = Command::new(npm);
    pack.args([
        "pack",
        &named,
        "--ignore-scripts",
        "--silent",
        "--pack-destination",
    ])
    .arg(staging)
    .current_dir(staging);
    let printed = run(pack, &format!("npm pack {named}")).await?;
    let file = staging.join(printed.lines().last().unwrap_or_default().trim());
    let bytes = tokio::fs::read(&file).await.map_err(at)?;
    let found = tokio::task::spawn_blocking(move || integrity(&bytes))
        .await
        .unwrap_or_default();
    match pinned {
        Some(expected) if expected != found => {
            return Err(InstallError::Integrity {
                package: named,
                expected: expected.to_owned(),
                found,
            });
        }
        _ => {}
    }
    let unpacked = staging.join("package");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked).map_err(at)?;
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&file).arg("-C").arg(staging);
    run(tar, &format!("unpacking {named}")).await?;
    std::fs::remove_file(&file).map_err(at)?;
    Ok(pinned.is_none().then(|| {
        format!("no hash is pinned for {named}; npm checked it against the registry only ({found})")
    }))
}

/// npm's notation of a file's hash.
fn integrity(bytes: &[u8]) -> String {
    format!("sha512-{}", STANDARD.encode(Sha512::digest(bytes)))
}

/// Moves a file of the unpacked package to where it belongs, executable.
fn take(staging: &Path, from: &str, to: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::rename(staging.join("package").join(from), to)?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755))
}

async fn run(mut command: Command, step: &str) -> Result<String, InstallError> {
    let failed = |said: String| InstallError::Step {
        step: step.to_owned(),
        said,
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output =
        tokio::time::timeout(Duration::from_millis(INSTALL_STEP_MS_MAX), command.output()).await;
    let output = output
        .map_err(|_| failed("it took too long".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    Err(failed(
        last.into_iter().rev().collect::<Vec<_>>().join("; "),
    ))
}

/// The name of this machine's package, as OpenCode names its platforms.
fn platform() -> Result<String, InstallError> {
    let unknown = || {
        InstallError::Platform(format!(
            "{} on {}",
            std::env::consts::OS,
            std::env::consts::ARCH
        ))
    };
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        _ => return Err(unknown()),
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => return Err(unknown()),
    };
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let musl = std::fs::read_dir("/lib").is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("ld-musl-"))
    });
    Ok(name(system, processor, &flags, musl))
}

/// A processor that lists its flags without AVX2 needs the baseline build.
fn name(system: &str, processor: &str, flags: &str, musl: bool) -> String {
    let old = processor == "x64"
        && !flags.is_empty()
        && !flags.split_whitespace().any(|flag| flag == "avx2");
    let baseline = if old { "-baseline" } else { "" };
    let libc = if musl { "-musl" } else { "" };
    format!("{system}-{processor}{baseline}{libc}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_fits_the_processor() {
        assert_eq!(
            name("linux", "x64", "flags : sse avx2 bmi", false),
            "linux-x64"
        );
        assert_eq!(
            name("linux", "x64", "flags : sse avx bmi", false),
            "linux-x64-baseline"
        );
        assert_eq!(
            name("linux", "arm64", "Features : fp", true),
            "linux-arm64-musl"
        );
        assert_eq!(name("darwin", "x64", "", false), "darwin-x64");
    }

    #[test]
    fn a_hash_is_written_as_npm_writes_it() {
        let empty = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
        assert_eq!(integrity(b""), empty);
    }

    /// The image that Daytona builds has the same OpenCode, and runs nobody's script on the way.
    #[test]
    fn the_image_takes_the_pinned_package_by_its_hash_and_runs_no_script() {
        let image = include_str!("../../../sandbox/Dockerfile");
        let named: Vec<(&str, &str)> = image
            .lines()
            .filter_map(|line| line.trim().strip_prefix("package="))
            .zip(
                image
                    .lines()
                    .filter_map(|line| line.trim().strip_prefix("hash=")),
            )
            .collect();
        let pinned = OPENCODE_HASHES.map(|(platform, hash)| {
            let bytes = STANDARD.decode(&hash["sha512-".len()..]).expect("base64");
            let package = format!("opencode-{platform}; \\");
            (package, format!("{}; \\", hex::encode(bytes)))
        });
        let pinned: Vec<(&str, &str)> = pinned.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(named, pinned);
        let steps: Vec<&str> = image.lines().filter(|line| line.contains("npm ")).collect();
        assert_eq!(
            steps,
            [format!(
                "    npm pack --ignore-scripts --silent \"$package@{VERSION}\"; \\"
            )]
        );
        assert!(image.contains("sha512sum --check"), "{image}");
    }

    #[test]
    fn half_an_installation_is_none() {
        let folder = std::env::temp_dir().join(format!("bobbin-present-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).expect("a temporary folder");
        std::fs::write(folder.join("bin/opencode"), "12345").expect("a file");
        let stamp = |size: u64| {
            let files = std::collections::BTreeMap::from([("opencode".to_owned(), size)]);
            let stamp = Stamp {
                version: VERSION.to_owned(),
                warnings: Vec::new(),
                files,
            };
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
