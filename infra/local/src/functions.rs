//! The three functions' binaries: built by cargo beside this program, the same profile, nothing twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// Logical id in the template, and the binary that it runs.
const FUNCTIONS: [(&str, &str); 3] = [
    ("Ingress", "ingress"),
    ("Worker", "worker"),
    ("Sweeper", "sweeper"),
];

/// Builds them (unless told not to) and says where they are.
///
/// # Errors
/// A sentence with what to do.
pub async fn binaries(root: &Path, no_build: bool) -> Result<BTreeMap<String, PathBuf>, String> {
    let exe = std::env::current_exe()
        .map_err(|e| format!("this program's own path is not known: {e}"))?;
    let folder = exe.parent().unwrap_or(root);
    if !no_build {
        build(root, folder).await?;
    }
    let mut found = BTreeMap::new();
    for (id, name) in FUNCTIONS {
        let path = folder.join(name);
        if !path.is_file() {
            return Err(format!(
                "{} is missing. Run without --no-build, or build it with: cargo build -p bobbin-{name}",
                path.display()
            ));
        }
        found.insert(id.to_owned(), path);
    }
    Ok(found)
}

async fn build(root: &Path, folder: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.current_dir(root).args(["build", "--quiet"]);
    for (_, name) in FUNCTIONS {
        command.args(["-p", &format!("bobbin-{name}")]);
    }
    if folder.file_name().is_some_and(|name| name == "release") {
        command.arg("--release");
    }
    if let Some(target) = folder.parent() {
        command.arg("--target-dir").arg(target);
    }
    let status = command.status().await.map_err(|e| {
        format!("cargo could not be run ({e}). Install Rust with rustup, or use --no-build.")
    })?;
    if status.success() {
        Ok(())
    } else {
        Err("The functions could not be built; cargo says why above.".to_owned())
    }
}
