//! User files under `/etc` for a sandbox with its own user: programs such as databases and ssh look themselves up
//! there.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Git reads files of the provider (tools, a mirror) as this user, and needs this to allow it.
const GIT: &str = "[safe]\n\tdirectory = *\n";
const GIT_FILE: &str = "/etc/gitconfig";

/// Variable and value: a git built for another prefix looks for its system file elsewhere.
pub(crate) const GIT_SYSTEM_CONFIG: (&str, &str) = ("GIT_CONFIG_SYSTEM", GIT_FILE);

/// Writes them beside the sandbox's home. Returns each file and its path inside.
///
/// # Errors
/// The system's error.
pub(crate) fn write(
    folder: &Path,
    name: &str,
    user: u32,
    home: &Path,
) -> io::Result<Vec<(PathBuf, &'static str)>> {
    let of_machine = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let home = home.display();
    // The first matching line counts.
    let users = format!("{name}:x:{user}:{user}::{home}:/bin/sh\n{}", of_machine("/etc/passwd"));
    let groups = format!("{name}:x:{user}:\n{}", of_machine("/etc/group"));
    let files = [
        ("passwd", "/etc/passwd", users),
        ("group", "/etc/group", groups),
        ("gitconfig", GIT_FILE, GIT.to_owned()),
    ];
    let mut placed = Vec::new();
    for (name, inside, text) in files {
        let file = folder.join(name);
        std::fs::write(&file, text)?;
        // The parent folder is closed to others.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
        placed.push((file, inside));
    }
    Ok(placed)
}
