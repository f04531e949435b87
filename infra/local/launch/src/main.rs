//! The target of `cargo run`: builds the laptop stack, the functions and the sandboxes' daemon, and becomes the stack.
//!
//! One cargo builds them all, so that features are resolved once. If the functions were built after the stack, tokio,
//! serde and everything above them would be compiled twice.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use bobbin_launch::{DAEMON, FUNCTIONS, STACK};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match launch(&arguments) {
        Ok(never) => match never {},
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn launch(arguments: &[OsString]) -> Result<std::convert::Infallible, String> {
    let own = std::env::current_exe()
        .map_err(|error| format!("this program's own path is unknown: {error}"))?;
    let folder = own.parent().unwrap_or(Path::new("."));
    let is_there = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    let stack = folder.join(STACK);
    let builds = if is_there("--help") {
        // Help was requested before anything is built.
        !stack.is_file()
    } else {
        !is_there("--no-build")
    };
    if builds {
        build(folder)?;
    }
    if !stack.is_file() {
        return Err(format!("{} is missing. Run without --no-build.", stack.display()));
    }
    let error = Command::new(&stack).args(arguments).exec();
    Err(format!("{} could not be started: {error}", stack.display()))
}

fn build(folder: &Path) -> Result<(), String> {
    let workspace: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", ".."].iter().collect();
    println!("Building the stack and its functions (the first time takes minutes)");
    let mut command = bobbin_launch::cargo();
    command.current_dir(workspace).arg("build");
    command.args(["-p", STACK, "-p", DAEMON]);
    for (_, name) in FUNCTIONS {
        command.args(["-p", &format!("bobbin-{name}")]);
    }
    if folder.file_name().is_some_and(|name| name == "release") {
        command.arg("--release");
    }
    if let Some(target) = folder.parent() {
        command.arg("--target-dir").arg(target);
    }
    let status = command.status().map_err(|error| {
        format!("cargo could not be run ({error}). Install Rust with rustup, or use --no-build.")
    })?;
    if status.success() {
        Ok(())
    } else {
        Err("The stack could not be built; cargo says why above.".to_owned())
    }
}
