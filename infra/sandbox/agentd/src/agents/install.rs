//! Fetches agents: npm's own client downloads, and the hash pinned here decides.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bobbin_agent::opencode::VERSION as OPENCODE_VERSION;
use sha2::{Digest, Sha512};
use tokio::process::Command;

use super::{AgentKind, MissingAgent};
use crate::limits::INSTALL_MS_MAX;

/// A package with an agent's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Package {
    name: &'static str,
    version: &'static str,
    /// In npm's notation.
    hash: &'static str,
    /// Path of the program in it.
    program: &'static str,
}

/// Why an agent was not installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("{0}")]
    Unsupported(MissingAgent),
    #[error("no package for {id} is pinned for this system; install it yourself on PATH or in {}", .folder.join("bin").display())]
    NotPinned { id: String, folder: PathBuf },
    #[error("{step} failed: {said}")]
    Step { step: String, said: String },
    #[error("{package} is not the pinned package: its hash is {found}; it was not installed")]
    Integrity { package: String, found: String },
}

const OPENCODE: Package = Package {
    name: "opencode-linux-x64",
    version: OPENCODE_VERSION,
    hash: "sha512-q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiKQjiAWw==",
    program: "bin/opencode",
};
/// For processors without AVX2.
const OPENCODE_BASELINE: Package = Package {
    name: "opencode-linux-x64-baseline",
    version: OPENCODE_VERSION,
    hash: "sha512-1KQGBiiDDeL/VHHbHkOvvFo8Jr97WT5+C1tear+p7IcDTnXgVHXqIjU4O4jM4mHQzykTP2i884FCnW5LDa+zCA==",
    program: "bin/opencode",
};

const CLAUDE: Package = Package {
    name: "@anthropic-ai/claude-code-linux-x64",
    version: "2.1.332",
    hash: "sha512-f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0GrUckYxaeebC4h0DqiKzLcw==",
    program: "claude",
};
const CODEX: Package = Package {
    name: "@openai/codex",
    version: "0.169.0-linux-x64",
    hash: "sha512-o05NyAOCDygSPRo1yinzxvkRSdmsZyBD9E7mbpmjRanSfM8lypqWtQgEo4XfNkwhuCR2aFu8mlGOsQGFXVbVww==",
    program: "vendor/x86_64-unknown-linux-musl/bin/codex",
};

/// The pinned package for this system. Requesting an agent accepts its licence: Claude Code's is proprietary.
pub(super) fn package(kind: AgentKind) -> Option<Package> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return None;
    }
    match kind {
        AgentKind::OpenCode => Some(if has_avx2() { OPENCODE } else { OPENCODE_BASELINE }),
        AgentKind::Claude => Some(CLAUDE),
        AgentKind::Codex => Some(CODEX),
        AgentKind::Amp | AgentKind::Acp => None,
    }
}

fn has_avx2() -> bool {
    std::fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.split_whitespace().any(|word| word == "avx2"))
}

/// Folder of a whole package.
fn home(package: &Package, folder: &Path, program: &str) -> PathBuf {
    folder.join(format!("{program}-{}", package.version))
}

/// Whether the folder's `bin` points to exactly this version.
pub(super) fn is_there(package: &Package, folder: &Path, program: &str) -> bool {
    let own = home(package, folder, program).join(package.program);
    let named = std::fs::canonicalize(folder.join("bin").join(program));
    named.is_ok_and(|named| std::fs::canonicalize(own).is_ok_and(|own| own == named))
}

/// Downloads, checks, unpacks, and links the program in `folder/bin`. The whole package stays beside it: a program may
/// look for its parts around itself.
pub(super) async fn install(
    package: &Package,
    folder: &Path,
    program: &str,
) -> Result<(), InstallError> {
    let staging = folder.join(format!("staging-{}", uuid::Uuid::new_v4()));
    let bin = folder.join("bin");
    let unusable = |error: std::io::Error| InstallError::Step {
        step: format!("writing below {}", folder.display()),
        said: error.to_string(),
    };
    tokio::fs::create_dir_all(&staging).await.map_err(unusable)?;
    tokio::fs::create_dir_all(&bin).await.map_err(unusable)?;
    let placed = match fetch(package, &staging).await {
        Ok(()) => {
            let home = home(package, folder, program);
            let link = bin.join(program);
            place(&staging.join("package"), &home, package.program, &link).await.map_err(unusable)
        }
        Err(error) => Err(error),
    };
    // Leftovers take space but do no harm.
    let _ = tokio::fs::remove_dir_all(&staging).await;
    placed
}

/// Unpacks the pinned package into `staging/package`.
async fn fetch(package: &Package, staging: &Path) -> Result<(), InstallError> {
    let named = format!("{}@{}", package.name, package.version);
    let mut pack = Command::new("npm");
    pack.args(["pack", &named, "--ignore-scripts", "--silent"]);
    let printed = run(pack, staging, &format!("npm pack {named}")).await?;
    let file = staging.join(printed.lines().last().unwrap_or_default().trim());
    let found = {
        let file = file.clone();
        tokio::task::spawn_blocking(move || hash_of(&file)).await
    };
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            return Err(InstallError::Step {
                step: format!("reading {named}"),
                said: error.to_string(),
            });
        }
        Err(error) => {
            return Err(InstallError::Step {
                step: format!("reading {named}"),
                said: error.to_string(),
            });
        }
    };
    if found != package.hash {
        return Err(InstallError::Integrity { package: named, found });
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&file);
    run(tar, staging, &format!("unpacking {named}")).await?;
    Ok(())
}

fn hash_of(file: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(file)?;
    let mut hash = Sha512::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    Ok(format!("sha512-{}", STANDARD.encode(hash.finalize())))
}

/// Moves an unpacked package to its home and points the link to its program; until then the link is unchanged.
async fn place(unpacked: &Path, home: &Path, program: &str, link: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // An installation of the same version that is being redone, if there is one.
    let _ = tokio::fs::remove_dir_all(home).await;
    tokio::fs::rename(unpacked, home).await?;
    let executable = std::fs::Permissions::from_mode(0o755);
    tokio::fs::set_permissions(home.join(program), executable).await?;
    // Relative, so that the folder can be moved.
    let target = Path::new("..").join(home.file_name().unwrap_or_default()).join(program);
    let next = link.with_extension("next");
    let _ = tokio::fs::remove_file(&next).await;
    tokio::fs::symlink(&target, &next).await?;
    tokio::fs::rename(&next, link).await
}

async fn run(mut command: Command, folder: &Path, step: &str) -> Result<String, InstallError> {
    let failed = |said: String| InstallError::Step { step: step.to_owned(), said };
    command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let bound = Duration::from_millis(INSTALL_MS_MAX);
    let output = tokio::time::timeout(bound, command.output()).await;
    let output = output
        .map_err(|_| failed("it took too long".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.trim().chars().take(500).collect()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
