//! The programs of a laptop stack, and cargo, called from a program that cargo itself started.

use std::process::Command;

/// The stack.
pub const STACK: &str = "bobbin-local";
/// The functions: logical id in the template, and binary. A package is named `bobbin-` and the binary.
pub const FUNCTIONS: [(&str, &str); 4] =
    [("Ingress", "ingress"), ("Worker", "worker"), ("Sweeper", "sweeper"), ("Tools", "tools")];
/// Package and binary of the daemon that runs agents in a sandbox.
pub const DAEMON: &str = "bobbin-agentd";

/// Cargo sets these variables to the package of a program it runs. Build scripts read them, so a cargo that inherits
/// them rebuilds `ring` and everything above it, and the next cargo in the shell does it again.
const OF_A_PACKAGE: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
const OF_A_CRATE: [&str; 3] = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];

/// The cargo that runs this program, else the one on the path, without this package's variables.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_of_a_package = |name: &str| {
            OF_A_PACKAGE.iter().any(|of| name.starts_with(of)) || OF_A_CRATE.contains(&name)
        };
        if name.to_str().is_some_and(is_of_a_package) {
            command.env_remove(name);
        }
    }
    command
}
