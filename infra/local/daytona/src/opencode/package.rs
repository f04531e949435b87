//! npm packages with a binary: fetched, checked against the hash pinned here, and unpacked.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha512};
use tokio::process::Command;

use super::error::OpenCodeInstallError;
use crate::limits::INSTALL_STEP_MS_MAX;

/// The only supported version.
pub const VERSION: &str = "1.18.33";
pub(super) const RIPGREP_VERSION: &str = "1.18.0";

/// Package hash by platform, in npm's notation. An unlisted platform uses the hash that the registry announces, with a
/// warning at install.
pub(super) const OPENCODE_HASHES: [(&str, &str); 2] = [
    (
        "linux-x64",
        "sha512-q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiKQjiAWw==",
    ),
    (
        "linux-x64-baseline",
        "sha512-1KQGBiiDDeL/VHHbHkOvvFo8Jr97WT5+C1tear+p7IcDTnXgVHXqIjU4O4jM4mHQzykTP2i884FCnW5LDa+zCA==",
    ),
];
pub(super) const RIPGREP_HASHES: [(&str, &str); 4] = [
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

/// The pinned hash of a platform, if there is one.
pub(super) fn pinned(table: &[(&str, &'static str)], platform: &str) -> Option<&'static str> {
    table.iter().find(|(name, _)| *name == platform).map(|(_, hash)| *hash)
}

/// Folder for fetching and unpacking packages, one after another.
pub(super) struct Staging {
    pub(super) npm: PathBuf,
    pub(super) folder: PathBuf,
}

impl Staging {
    /// The error for a file that cannot be written or read here.
    pub(super) fn unusable(&self, source: std::io::Error) -> OpenCodeInstallError {
        OpenCodeInstallError::Cache { path: self.folder.clone(), source }
    }

    /// Downloads, checks and unpacks a package. Returns a warning if no hash was pinned for it.
    pub(super) async fn fetch(
        &self,
        package: &str,
        version: &str,
        pinned: Option<&str>,
    ) -> Result<Option<String>, OpenCodeInstallError> {
        let unusable = |source| self.unusable(source);
        let named = format!("{package}@{version}");
        let mut pack = Command::new(&self.npm);
        pack.args(["pack", &named, "--ignore-scripts", "--silent", "--pack-destination"])
            .arg(&self.folder)
            .current_dir(&self.folder);
        let printed = run(pack, &format!("npm pack {named}")).await?;
        let printed = printed.lines().last().unwrap_or_default();
        let file = self.folder.join(printed.trim());
        let bytes = tokio::fs::read(&file).await.map_err(unusable)?;
        let found =
            tokio::task::spawn_blocking(move || integrity(&bytes)).await.unwrap_or_default();
        if let Some(expected) = pinned.filter(|expected| *expected != found) {
            return Err(OpenCodeInstallError::Integrity {
                package: named,
                expected: expected.to_owned(),
                found,
            });
        }
        let unpacked = self.folder.join("package");
        if unpacked.exists() {
            std::fs::remove_dir_all(&unpacked).map_err(unusable)?;
        }
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&file).arg("-C").arg(&self.folder);
        run(tar, &format!("unpacking {named}")).await?;
        std::fs::remove_file(&file).map_err(unusable)?;
        Ok(pinned.is_none().then(|| {
            format!(
                "no hash is pinned for {named}; npm checked it against the registry only ({found})"
            )
        }))
    }

    /// Moves a file of the unpacked package to its target, executable.
    pub(super) fn move_executable(
        &self,
        from: &str,
        to: &Path,
    ) -> Result<(), OpenCodeInstallError> {
        use std::os::unix::fs::PermissionsExt;
        std::fs::rename(self.folder.join("package").join(from), to)
            .and_then(|()| std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755)))
            .map_err(|source| self.unusable(source))
    }
}

/// A file's hash in npm's notation.
fn integrity(bytes: &[u8]) -> String {
    format!("sha512-{}", STANDARD.encode(Sha512::digest(bytes)))
}

/// Runs a program and returns its output.
pub(super) async fn run(mut command: Command, step: &str) -> Result<String, OpenCodeInstallError> {
    let failed = |said: String| OpenCodeInstallError::Step { step: step.to_owned(), said };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
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
    Err(failed(last.into_iter().rev().collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_hash_matches_npms_form() {
        let empty = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
        assert_eq!(integrity(b""), empty);
    }

    /// Daytona's image has the same OpenCode, and its build runs no package scripts.
    #[test]
    fn image_installs_only_pinned_package() {
        let image = include_str!("../../../../sandbox/Dockerfile");
        let named: Vec<(&str, &str)> = image
            .lines()
            .filter_map(|line| line.trim().strip_prefix("package="))
            .zip(image.lines().filter_map(|line| line.trim().strip_prefix("hash=")))
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
            [format!("    npm pack --ignore-scripts --silent \"$package@{VERSION}\"; \\")]
        );
        assert!(image.contains("sha512sum --check"), "{image}");
    }
}
