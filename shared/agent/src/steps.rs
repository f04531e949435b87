//! The agent's steps in words for people: present tense while they run, past tense after.
//!
//! Promised: bounded in number and length; no output of a tool; nothing that looks like a secret.

use bobbin_core::base::credentials::redact;
use bobbin_core::records::card::{CardStep, StepState};
use serde_json::Value;

/// Most lines of a plan; later ones are dropped. A card shows those around the present one, and counts the others.
pub const PLAN_MAX: usize = 100;
/// Longest line of a plan, in characters.
pub const PLAN_CHARS_MAX: usize = 120;
/// Most steps on a card; earlier ones are dropped.
pub const STEPS_MAX: usize = 12;
/// Longest command, path or pattern within a step, in characters.
const SUBJECT_CHARS_MAX: usize = 80;

/// The last steps, and the number of earlier ones.
#[must_use]
pub fn last_of(mut steps: Vec<CardStep>) -> (Vec<CardStep>, usize) {
    let earlier = steps.len().saturating_sub(STEPS_MAX);
    (steps.split_off(earlier), earlier)
}

/// The step in which the agent summarises its conversation.
#[must_use]
pub fn summary(is_over: bool, has_failed: bool) -> CardStep {
    step("Summarising the conversation", "Summarised the conversation", is_over, has_failed)
}

/// A tool call of any agent: their tools have much the same names.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The agent's name for the tool.
    pub tool: &'a str,
    /// The tool's input.
    pub input: &'a Value,
    /// Working directory of the agent: paths below it are shown relative to it.
    pub cwd: &'a str,
    /// Exit status of a command, if reported.
    pub exit: Option<i64>,
    /// Whether it has ended.
    pub is_over: bool,
    /// Whether it ended with an error.
    pub has_failed: bool,
}

impl ToolCall<'_> {
    /// The step for a card.
    #[must_use]
    pub fn step(&self) -> CardStep {
        let (present, past) = words(&self.tool.to_ascii_lowercase(), self.input, self.cwd);
        let exit = self.exit.filter(|code| *code != 0);
        let past = exit.map_or(past.clone(), |code| format!("{past} (exit {code})"));
        let failed = self.has_failed || self.tool == "invalid" || exit.is_some();
        step(&present, &past, self.is_over, failed)
    }
}

fn step(present: &str, past: &str, done: bool, failed: bool) -> CardStep {
    let (text, state) = match (done, failed) {
        (false, _) => (present, StepState::Running),
        (true, false) => (past, StepState::Done),
        (true, true) => (past, StepState::Failed),
    };
    CardStep { text: text.to_owned(), state }
}

/// Prefix of the sandbox tools' names.
const OF_SANDBOX: &str = "sandbox_";

/// The part of a tool's input that a card may show.
struct Subject<'a> {
    input: &'a Value,
    cwd: &'a str,
}

impl Subject<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.input.get(name).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty())
    }

    fn path(&self) -> Option<String> {
        let names = ["filePath", "file_path", "path"];
        let changed = || self.input.pointer("/changes/0/path")?.as_str();
        let path = names.into_iter().find_map(|name| self.text(name));
        Some(shorten(&relative(path.or_else(changed)?, self.cwd)))
    }

    fn plain(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| shorten(&redact(text)))
    }

    fn code(&self, name: &str) -> Option<String> {
        let plain = self.plain(name)?;
        Some(format!("`{}`", plain.replace('`', "'")))
    }

    /// Only the host: the rest of an address can contain anything.
    fn host(&self) -> Option<String> {
        self.text("url").and_then(host_of)
    }

    fn question(&self) -> Option<String> {
        let first = self.input.pointer("/questions/0/question");
        let first = first.and_then(Value::as_str);
        first.map(|text| shorten(&redact(text)))
    }
}

/// A tool call in present and past tense.
fn words(tool: &str, input: &Value, cwd: &str) -> (String, String) {
    let call = Subject { input, cwd };
    // Over MCP the tool's name is prefixed with its server's.
    let tool = tool.strip_prefix(OF_SANDBOX).unwrap_or(tool);
    let (present, past, subject, otherwise) = match tool {
        "bash" | "shell" | "commandexecution" | "execute" => {
            ("Running", "Ran", call.code("command"), "a command")
        }
        "run_command" => {
            ("Running", "Ran", call.code("cmd").or_else(|| call.code("command")), "a command")
        }
        "write" | "write_file" | "upload_file" => ("Writing", "Wrote", call.path(), "a file"),
        "edit" | "edit_file" | "multiedit" | "patch" | "apply_patch" | "filechange" => {
            ("Editing", "Edited", call.path(), "files")
        }
        "read" | "read_file" => ("Reading", "Read", call.path(), "a file"),
        "list" | "ls" | "list_files" => ("Listing", "Listed", call.path(), "files"),
        "glob" => ("Looking for", "Looked for", call.code("pattern"), "files"),
        "grep" | "search" => ("Searching for", "Searched for", call.code("pattern"), "text"),
        "webfetch" => ("Fetching from", "Fetched from", call.host(), "the web"),
        "websearch" | "codesearch" => {
            ("Searching the web for", "Searched the web for", call.plain("query"), "something")
        }
        "task" => ("Delegating:", "Delegated:", call.plain("description"), "a part of the work"),
        "todowrite" => ("Planning", "Planned", None, "the work"),
        "todoread" => ("Looking at", "Looked at", None, "the plan"),
        "lsp" => ("Asking the compiler about", "Asked the compiler about", call.path(), "the code"),
        "question" | "askuserquestion" => ("Asking:", "Asked:", call.question(), "a question"),
        "skill" => ("Using the skill", "Used the skill", call.plain("name"), "it needs"),
        "invalid" => ("Calling", "Called", None, "a tool in a wrong way"),
        other => ("Using", "Used", Some(shorten(other)), "a tool"),
    };
    let subject = subject.unwrap_or_else(|| otherwise.to_owned());
    (format!("{present} {subject}"), format!("{past} {subject}"))
}

fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| shorten(host))
}

fn relative(path: &str, cwd: &str) -> String {
    let inside = (!cwd.is_empty())
        .then(|| path.strip_prefix(cwd))
        .flatten()
        .and_then(|rest| rest.strip_prefix('/'));
    inside.unwrap_or(path).to_owned()
}

fn shorten(text: &str) -> String {
    first_line(text, SUBJECT_CHARS_MAX)
}

/// The first line that is not empty, cut to `chars_max` characters, with an ellipsis if cut.
#[must_use]
pub fn first_line(text: &str, chars_max: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or("").trim();
    let cut: String = line.chars().take(chars_max).collect();
    if cut.len() < text.len() { format!("{}…", cut.trim_end()) } else { cut }
}

#[cfg(test)]
mod tests;
