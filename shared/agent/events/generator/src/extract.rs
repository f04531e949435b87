//! An agent's description of itself: from the installed agent, or from a file.

mod codex;
mod opencode;

use std::error::Error;
use std::path::Path;

use serde_json::Value;

/// What an agent says of itself.
pub enum SelfDescription {
    /// A description.
    Description(Value),
    /// Recorded lines; those that are not JSON are left out.
    Lines(Vec<Value>),
}

/// Asks the agent itself, if `place` is its program and it can describe itself; else reads the file.
///
/// # Errors
/// When the program does not describe itself, or the file cannot be read.
pub async fn said_by(agent: &str, place: &Path) -> Result<SelfDescription, Box<dyn Error>> {
    let is_file = place.extension().is_some_and(|it| it != "exe");
    match agent {
        "codex" if !is_file => codex::described(place).await,
        "opencode" if !is_file => opencode::described(place).await,
        _ => from_file(place),
    }
}

/// Reads a file: `.json` is a description, anything else lines, with the marks of recordings (`< `, `> `, `data: `).
///
/// # Errors
/// When the file cannot be read, or is named `.json` and is not JSON.
pub fn from_file(path: &Path) -> Result<SelfDescription, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    if path.extension().is_some_and(|it| it == "json") {
        return Ok(SelfDescription::Description(serde_json::from_str(&text)?));
    }
    let unmarked = |line: &str| {
        let marks = ["< ", "> ", "data: "];
        let bare = marks.iter().find_map(|mark| line.strip_prefix(mark));
        serde_json::from_str(bare.unwrap_or(line)).ok()
    };
    Ok(SelfDescription::Lines(text.lines().filter_map(unmarked).collect()))
}
