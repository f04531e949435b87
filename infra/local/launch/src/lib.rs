//! The programs of a laptop stack, and cargo, run from a program that cargo itself has started.

use std::process::Command;

/// The stack.
pub const STACK: &str = "bobbin-local";
/// The functions: logical id in the template, and binary. A package is named `bobbin-` and the binary.
pub const FUNCTIONS: [(&str, &str); 4] =
    [("Ingress", "ingress"), ("Worker", "worker"), ("Sweeper", "sweeper"), ("Tools", "tools")];
/// The daemon that runs agents in a sandbox: package and binary.
pub const DAEMON: &str = "bobbin-agentd";

/// Cargo tells a program that it runs which package it is of. Build scripts look at these variables, so a cargo that
/// inherits them builds `ring` and everything above it anew, and the next cargo of the shell does it once more.
const OF_A_PACKAGE: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
const OF_A_CRATE: [&str; 3] = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];

/// The cargo that runs this program, else the one of the path, without what it said of this program's package.
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
