//! What the agent does, in the words of a person: present tense while it runs, past tense after.
//!
//! Promised: bounded in number and length; nothing that a tool answered; nothing that looks like a secret.

use serde_json::Value;

use crate::card::{CardStep, StepState};

use super::types::{Message, PartKind, Role, ToolState, ToolStatus};

/// Steps on a card; earlier ones fall away.
pub const STEPS_MAX: usize = 12;
/// Characters of a command, path or pattern within a step.
const SUBJECT_CHARS_MAX: usize = 80;

/// The last steps of a turn.
#[must_use]
pub fn steps_of(turn: &[Message]) -> Vec<CardStep> {
    let mut steps: Vec<CardStep> = Vec::new();
    for message in turn {
        if message.info.is_summary() {
            let done = message.info.time.completed.is_some();
            steps.push(step(
                "Summarising the conversation",
                "Summarised the conversation",
                done,
                message.info.error.is_some(),
            ));
            continue;
        }
        if message.info.role != Role::Assistant {
            continue;
        }
        // A message that ended took its calls with it, whatever their last update said.
        let over = message.info.time.completed.is_some();
        for part in &message.parts {
            if let PartKind::Tool { tool, state, .. } = &part.kind {
                steps.push(tool_step(tool, state, &message.info.path.cwd, over));
            }
        }
    }
    steps.split_off(steps.len().saturating_sub(STEPS_MAX))
}

fn tool_step(tool: &str, state: &ToolState, cwd: &str, over: bool) -> CardStep {
    let (present, past) = words(tool, &state.input, cwd);
    let exit = state.metadata.exit.filter(|code| *code != 0);
    let past = exit.map_or(past.clone(), |code| format!("{past} (exit {code})"));
    let done = over || matches!(state.status, ToolStatus::Completed | ToolStatus::Error);
    let failed = state.status == ToolStatus::Error || tool == "invalid" || exit.is_some();
    step(&present, &past, done, failed)
}

fn step(present: &str, past: &str, done: bool, failed: bool) -> CardStep {
    let (text, state) = match (done, failed) {
        (false, _) => (present, StepState::Running),
        (true, false) => (past, StepState::Done),
        (true, true) => (past, StepState::Failed),
    };
    CardStep {
        text: text.to_owned(),
        state,
    }
}

/// Present and past of a tool call.
fn words(tool: &str, input: &Value, cwd: &str) -> (String, String) {
    let text = |name: &str| {
        input
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    };
    let path = || {
        text("filePath")
            .or_else(|| text("path"))
            .map(|path| shorten(&relative(path, cwd)))
    };
    let code = |name: &str| {
        text(name).map(|text| format!("`{}`", shorten(&redact(text)).replace('`', "'")))
    };
    let plain = |name: &str| text(name).map(|text| shorten(&redact(text)));
    let phrase = |present: &str, past: &str, subject: Option<String>, nothing: &str| {
        let subject = subject.unwrap_or_else(|| nothing.to_owned());
        (format!("{present} {subject}"), format!("{past} {subject}"))
    };
    match tool {
        "bash" | "shell" => phrase("Running", "Ran", code("command"), "a command"),
        "write" => phrase("Writing", "Wrote", path(), "a file"),
        "edit" | "multiedit" | "patch" | "apply_patch" => {
            phrase("Editing", "Edited", path(), "files")
        }
        "read" => phrase("Reading", "Read", path(), "a file"),
        "list" | "ls" => phrase("Listing", "Listed", path(), "files"),
        "glob" => phrase("Looking for", "Looked for", code("pattern"), "files"),
        "grep" => phrase("Searching for", "Searched for", code("pattern"), "text"),
        // Only the host: the rest of an address can hold anything.
        "webfetch" => phrase(
            "Fetching from",
            "Fetched from",
            text("url").and_then(host_of),
            "the web",
        ),
        "websearch" | "codesearch" => phrase(
            "Searching the web for",
            "Searched the web for",
            plain("query"),
            "something",
        ),
        "task" => phrase(
            "Delegating:",
            "Delegated:",
            plain("description"),
            "a part of the work",
        ),
        "todowrite" | "todoread" => (
            "Planning the work".to_owned(),
            "Planned the work".to_owned(),
        ),
        "question" => {
            let first = input
                .pointer("/questions/0/question")
                .and_then(Value::as_str)
                .map(|text| shorten(&redact(text)));
            phrase("Asking:", "Asked:", first, "a question")
        }
        "skill" => phrase(
            "Using the skill",
            "Used the skill",
            plain("name"),
            "it needs",
        ),
        "invalid" => (
            "Calling a tool in a way it does not know".to_owned(),
            "Called a tool in a way it does not know".to_owned(),
        ),
        other => phrase("Using", "Used", Some(shorten(other)), "a tool"),
    }
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

/// The first line that says something, cut to so many characters, with an ellipsis where something was cut.
#[must_use]
pub fn first_line(text: &str, chars_max: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or("").trim();
    let cut: String = line.chars().take(chars_max).collect();
    if cut.len() < text.len() {
        format!("{}…", cut.trim_end())
    } else {
        cut
    }
}

/// Masks what looks like a secret: known key prefixes, `Bearer` and `Basic` credentials, values of variables and
/// options named like one, and passwords in addresses. Best effort: a secret that looks like a word stays.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut next_is_secret = false;
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let gap = &piece[word.len()..];
        if word.is_empty() {
            masked.push_str(gap);
            continue;
        }
        let bare = word.trim_matches(['"', '\'', ',', ';']);
        if std::mem::take(&mut next_is_secret) || has_key_prefix(bare) {
            masked.push_str("***");
        } else {
            masked.push_str(&mask_inside(word));
        }
        let lower = bare.to_ascii_lowercase();
        let after = lower.rsplit([':', '=', '"', '\'']).next().unwrap_or("");
        next_is_secret = matches!(after, "bearer" | "basic")
            || (lower.starts_with("--") && !lower.contains('=') && names_secret(&lower));
        masked.push_str(gap);
    }
    masked
}

fn mask_inside(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let authority = rest.split('/').next().unwrap_or("");
        if let Some((_, host)) = authority.rsplit_once('@') {
            return format!("{scheme}://***@{host}{}", &rest[authority.len()..]);
        }
    }
    if let Some(at) = word.find(['=', ':']) {
        let (name, value) = (&word[..at], &word[at + 1..]);
        let value = value.trim_matches(['"', '\'']);
        if has_key_prefix(value)
            || (names_secret(&name.to_ascii_lowercase())
                && !value.is_empty()
                && !value.starts_with(['$', '/']))
        {
            return format!("{}***", &word[..=at]);
        }
    }
    word.to_owned()
}

fn has_key_prefix(word: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "sk-",
        "ghp_",
        "gho_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "dtn_",
        "AKIA",
        "ASIA",
        "npm_",
    ];
    word.len() >= 12 && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

fn names_secret(name: &str) -> bool {
    [
        "token",
        "secret",
        "password",
        "passwd",
        "api_key",
        "apikey",
        "api-key",
        "access_key",
        "private_key",
    ]
    .iter()
    .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_masked_and_the_rest_stays() {
        let table = [
            (
                "curl -H \"Authorization: Bearer abc.def\" https://x.test",
                "curl -H \"Authorization: Bearer *** https://x.test",
            ),
            ("GITHUB_TOKEN=abc gh pr list", "GITHUB_TOKEN=*** gh pr list"),
            ("echo sk-ant-0123456789abc", "echo ***"),
            (
                "git clone https://me:pw@github.com/a/b",
                "git clone https://***@github.com/a/b",
            ),
            ("login --password hunter2 now", "login --password *** now"),
            ("login --password=hunter2", "login --password=***"),
            (
                "echo $API_TOKEN && cargo test",
                "echo $API_TOKEN && cargo test",
            ),
            ("TOKEN=$OTHER make", "TOKEN=$OTHER make"),
        ];
        for (text, masked) in table {
            assert_eq!(redact(text), masked);
        }
    }

    #[test]
    fn a_step_is_one_short_line() {
        assert_eq!(first_line("one\ntwo", 80), "one…");
        assert_eq!(first_line(&"é".repeat(100), 80).chars().count(), 81);
        assert_eq!(first_line(" short ", 80), "short");
    }

    #[test]
    fn only_the_host_of_an_address_is_told() {
        assert_eq!(
            host_of("https://user:pw@api.test/secret?key=1").as_deref(),
            Some("api.test")
        );
    }
}
