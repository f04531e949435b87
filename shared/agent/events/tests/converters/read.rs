//! Recordings, line by line.

use std::path::{Path, PathBuf};

use bobbin_agent_events::Converter;

/// A recording, and the agent that it is of.
pub struct Recording {
    /// The file's name.
    pub name: String,
    /// The name of the agent's converter.
    pub agent: &'static str,
    /// What goes in, a line each.
    pub lines: Vec<String>,
}

impl Recording {
    pub fn converter(&self) -> Converter {
        Converter::of(self.agent)
    }
}

/// The suite's own recordings of OpenCode.
pub fn of_opencode() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/opencode");
    recordings(&folder)
}

/// Those beside the specifications, if they are at hand.
pub fn of_the_others() -> Vec<Recording> {
    ["sandbox-agent-transcripts", "opencode-transcripts"]
        .into_iter()
        .filter_map(bobbin_rules::outside)
        .flat_map(|folder| recordings(&folder))
        .collect()
}

fn recordings(folder: &Path) -> Vec<Recording> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| recording(path)).collect()
}

fn recording(path: &Path) -> Option<Recording> {
    let name = path.file_name()?.to_str()?.to_owned();
    let agent = agent_of(&name)?;
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<String> = match path.extension()?.to_str()? {
        "sse" => text.lines().filter_map(data).map(str::to_owned).collect(),
        "jsonl" => text.lines().map(|line| said(line).to_owned()).collect(),
        "http" => text.lines().map(|line| said(line).to_owned()).collect(),
        "json" => {
            let messages: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            messages.iter().map(ToString::to_string).collect()
        }
        _ => return None,
    };
    assert!(!lines.is_empty(), "{name} has no line");
    Some(Recording { name, agent, lines })
}

/// Whose words a recording has; none of what is no recording.
fn agent_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "README.md" => return None,
        _ if name.starts_with("claude-") => "claude",
        _ if name.starts_with("codex-") => "codex",
        _ if name.starts_with("native-") || name == "sandbox-agent-acp.sse" => "acp",
        _ => "opencode",
    })
}

/// The data of a server-sent event: in the recordings each is one line.
fn data(line: &str) -> Option<&str> {
    line.strip_prefix("data:").map(str::trim_start)
}

/// A line without the mark of who said it: what we said goes in too, for a converter must bear anything.
fn said(line: &str) -> &str {
    line.strip_prefix("< ").or_else(|| line.strip_prefix("> ")).unwrap_or(line)
}
