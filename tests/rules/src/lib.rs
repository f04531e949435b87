//! For tests: whether a request is one that a platform takes.
//!
//! It shares no code with what it judges. The published descriptions are read from the folder that `BOBBIN_SPECS` names;
//! without it only the rules that are written here are applied, and that is said loudly.

pub mod discord;
pub mod slack;

use std::path::PathBuf;

/// A file of the folder that `BOBBIN_SPECS` names; says so loudly where there is none.
#[must_use]
pub fn specification(name: &str) -> Option<PathBuf> {
    found(name).or_else(|| {
        eprintln!(
            "SKIPPED: BOBBIN_SPECS names no folder with {name}, so it is not checked against"
        );
        None
    })
}

/// A file of the reference folder beside that folder; says so loudly where there is none.
#[must_use]
pub fn outside(path: &str) -> Option<PathBuf> {
    specification(&format!("../reference/{path}"))
}

fn found(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("BOBBIN_SPECS")?);
    Some(folder.join(name)).filter(|path| path.exists())
}
