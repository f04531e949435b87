//! `completions`: what bash, zsh and fish are told of this command line, written by the argument parser's own library.

use clap_complete::{Shell as Generator, generate};

use crate::arguments::{self, Shell};
use crate::output::{CommandError, Status};

/// Prints the script of a shell.
///
/// # Errors
/// That the parser's library writes no text.
pub fn print(shell: Shell) -> Result<Status, CommandError> {
    let mut script = Vec::new();
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    generate(generator, &mut arguments::command(), "bobbin", &mut script);
    let script = String::from_utf8(script).map_err(|e| format!("The script is no text: {e}"))?;
    // Whoever reads has gone: that is no failure of the command.
    let _ = crate::output::print(&script);
    Ok(Status::Done)
}
