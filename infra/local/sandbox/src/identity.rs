//! What a sandbox that runs as a user of its own finds about users under `/etc`: programs such as databases and ssh ask there
//! who they are.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Git reads what belongs to the provider (tools, a mirror) as this user, and is told that it may.
const GIT: &str = "[safe]\n\tdirectory = *\n";
const GIT_FILE: &str = "/etc/gitconfig";

/// Variable and value: a git that was built for another prefix looks for its system file elsewhere.
pub(crate) const GIT_SYSTEM_CONFIG: (&str, &str) = ("GIT_CONFIG_SYSTEM", GIT_FILE);

/// Writes them beside the sandbox's home. Answers each file with the path that it stands for inside.
///
/// # Errors
/// What the system says.
pub(crate) fn write(
    folder: &Path,
    name: &str,
    user: u32,
    home: &Path,
) -> io::Result<Vec<(PathBuf, &'static str)>> {
    let of_machine = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let home = home.display();
    // The first line that names somebody counts.
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
        // The folder around it is closed to others.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))?;
        placed.push((file, inside));
    }
    Ok(placed)
}
