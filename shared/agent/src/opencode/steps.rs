//! What the agent does, in the words of a person: present tense while it runs, past tense after.
//!
//! Promised: bounded in number and length; nothing that a tool answered; nothing that looks like a secret. The plan is
//! what the agent last wrote down in this very turn: OpenCode's list lives on with the session, and what an earlier turn
//! had planned is not this one's.

use bobbin_core::card::{CardStep, PlanItem, PlanState, StepState};
use bobbin_core::credentials::redact;
use serde_json::Value;

use super::types::{Message, PartKind, Role, ToolState, ToolStatus};

/// Lines of a plan; those after them fall away.
pub const PLAN_MAX: usize = 12;
/// Characters of a line of a plan.
const PLAN_CHARS_MAX: usize = 120;
/// Steps on a card; earlier ones fall away.
pub const STEPS_MAX: usize = 12;
/// Characters of a command, path or pattern within a step.
const SUBJECT_CHARS_MAX: usize = 80;

/// The plan of a turn, as the agent last wrote it down; empty without one.
#[must_use]
pub fn plan_of(turn: &[Message]) -> Vec<PlanItem> {
    let written = |message: &Message| {
        message
            .parts
            .iter()
            .rev()
            .find_map(|part| match &part.kind {
                PartKind::Tool { tool, state, .. } if tool == "todowrite" => {
                    state.input.get("todos")?.as_array().cloned()
                }
                _ => None,
            })
    };
    let own = turn.iter().rev().filter(|m| m.info.role == Role::Assistant);
    let todos = own.filter_map(written).next().unwrap_or_default();
    todos.iter().filter_map(plan_item).take(PLAN_MAX).collect()
}

fn plan_item(todo: &Value) -> Option<PlanItem> {
    let text = todo.get("content")?.as_str()?;
    let text = first_line(&redact(text), PLAN_CHARS_MAX);
    let state = match todo.get("status").and_then(Value::as_str) {
        Some("completed") => PlanState::Done,
        Some("in_progress") => PlanState::Now,
        Some("cancelled") => PlanState::Dropped,
        _ => PlanState::Next,
    };
    (!text.is_empty()).then_some(PlanItem { text, state })
}

/// The last steps of a turn, and how many came before them.
#[must_use]
pub fn steps_of(turn: &[Message]) -> (Vec<CardStep>, usize) {
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
    last_of(steps)
}

/// The last steps, and how many came before them.
pub(super) fn last_of(mut steps: Vec<CardStep>) -> (Vec<CardStep>, usize) {
    let earlier = steps.len().saturating_sub(STEPS_MAX);
    (steps.split_off(earlier), earlier)
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

/// What a tool was called with, as far as a card may show it.
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
        let path = self.text("filePath").or_else(|| self.text("path"))?;
        Some(shorten(&relative(path, self.cwd)))
    }

    fn plain(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| shorten(&redact(text)))
    }

    fn code(&self, name: &str) -> Option<String> {
        let plain = self.plain(name)?;
        Some(format!("`{}`", plain.replace('`', "'")))
    }

    /// Only the host: the rest of an address can hold anything.
    fn host(&self) -> Option<String> {
        self.text("url").and_then(host_of)
    }

    fn question(&self) -> Option<String> {
        let first = self.input.pointer("/questions/0/question");
        let first = first.and_then(Value::as_str);
        first.map(|text| shorten(&redact(text)))
    }
}

/// Present and past of a tool call.
fn words(tool: &str, input: &Value, cwd: &str) -> (String, String) {
    let call = Subject { input, cwd };
    let (present, past, subject, otherwise) = match tool {
        "bash" | "shell" => ("Running", "Ran", call.code("command"), "a command"),
        "write" => ("Writing", "Wrote", call.path(), "a file"),
        "edit" | "multiedit" | "patch" | "apply_patch" => {
            ("Editing", "Edited", call.path(), "files")
        }
        "read" => ("Reading", "Read", call.path(), "a file"),
        "list" | "ls" => ("Listing", "Listed", call.path(), "files"),
        "glob" => ("Looking for", "Looked for", call.code("pattern"), "files"),
        "grep" => (
            "Searching for",
            "Searched for",
            call.code("pattern"),
            "text",
        ),
        "webfetch" => ("Fetching from", "Fetched from", call.host(), "the web"),
        "websearch" | "codesearch" => (
            "Searching the web for",
            "Searched the web for",
            call.plain("query"),
            "something",
        ),
        "task" => (
            "Delegating:",
            "Delegated:",
            call.plain("description"),
            "a part of the work",
        ),
        "todowrite" => ("Planning", "Planned", None, "the work"),
        "todoread" => ("Looking at", "Looked at", None, "the plan"),
        "lsp" => (
            "Asking the compiler about",
            "Asked the compiler about",
            call.path(),
            "the code",
        ),
        "question" => ("Asking:", "Asked:", call.question(), "a question"),
        "skill" => (
            "Using the skill",
            "Used the skill",
            call.plain("name"),
            "it needs",
        ),
        "invalid" => (
            "Calling",
            "Called",
            None,
            "a tool in a way it does not know",
        ),
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
    fn every_tool_has_words_for_now_and_for_then() {
        let table = [
            (
                "bash",
                serde_json::json!({"command": "cargo test"}),
                "Running `cargo test`",
                "Ran `cargo test`",
            ),
            (
                "edit",
                serde_json::json!({"filePath": "/w/src/a.rs"}),
                "Editing src/a.rs",
                "Edited src/a.rs",
            ),
            (
                "write",
                serde_json::json!({"filePath": "/w/b.md"}),
                "Writing b.md",
                "Wrote b.md",
            ),
            (
                "read",
                serde_json::json!({"filePath": "/etc/hosts"}),
                "Reading /etc/hosts",
                "Read /etc/hosts",
            ),
            (
                "grep",
                serde_json::json!({"pattern": "fn .*"}),
                "Searching for `fn .*`",
                "Searched for `fn .*`",
            ),
            (
                "glob",
                serde_json::json!({"pattern": "*.rs"}),
                "Looking for `*.rs`",
                "Looked for `*.rs`",
            ),
            (
                "list",
                serde_json::json!({"path": "/w/src"}),
                "Listing src",
                "Listed src",
            ),
            (
                "webfetch",
                serde_json::json!({"url": "https://a.test/x?k=1"}),
                "Fetching from a.test",
                "Fetched from a.test",
            ),
            (
                "websearch",
                serde_json::json!({"query": "rust"}),
                "Searching the web for rust",
                "Searched the web for rust",
            ),
            (
                "task",
                serde_json::json!({"description": "find it"}),
                "Delegating: find it",
                "Delegated: find it",
            ),
            (
                "todowrite",
                serde_json::json!({}),
                "Planning the work",
                "Planned the work",
            ),
            (
                "question",
                serde_json::json!({"questions": [{"question": "Why?"}]}),
                "Asking: Why?",
                "Asked: Why?",
            ),
            (
                "skill",
                serde_json::json!({"name": "pdf"}),
                "Using the skill pdf",
                "Used the skill pdf",
            ),
            (
                "github_create_issue",
                serde_json::json!({}),
                "Using github_create_issue",
                "Used github_create_issue",
            ),
        ];
        for (tool, input, present, past) in table {
            assert_eq!(
                words(tool, &input, "/w"),
                (present.to_owned(), past.to_owned())
            );
        }
    }

    fn planned(messages: serde_json::Value) -> Vec<(String, PlanState)> {
        let turn: Vec<Message> = serde_json::from_value(messages).expect("messages");
        let plan = plan_of(&turn).into_iter();
        plan.map(|item| (item.text, item.state)).collect()
    }

    #[test]
    fn the_plan_is_what_was_last_written_down_in_the_turn() {
        let todo = |content: &str, status: &str| serde_json::json!({"content": content, "status": status, "priority": "high"});
        let wrote = |id: &str, todos: serde_json::Value| {
            serde_json::json!({"info": {"id": id, "role": "assistant"},
            "parts": [{"id": "p", "type": "tool", "tool": "todowrite", "state": {"status": "completed", "input": {"todos": todos}}}]})
        };
        let turn = serde_json::json!([
            wrote("a", serde_json::json!([todo("old", "pending")])),
            wrote("b", serde_json::json!([
                todo("read it", "completed"), todo("fix it\nwith care", "in_progress"), todo("test it", "pending"),
                todo("ship it with GITHUB_TOKEN=abc", "cancelled"), todo("  ", "pending"), {"status": "pending"},
            ])),
            {"info": {"id": "c", "role": "assistant"}, "parts": []},
        ]);
        assert_eq!(
            planned(turn),
            [
                ("read it".to_owned(), PlanState::Done),
                ("fix it…".to_owned(), PlanState::Now),
                ("test it".to_owned(), PlanState::Next),
                (
                    "ship it with GITHUB_TOKEN=***".to_owned(),
                    PlanState::Dropped
                ),
            ]
        );
        let many: Vec<serde_json::Value> = (0..50)
            .map(|n| todo(&format!("step {n}"), "pending"))
            .collect();
        assert_eq!(
            planned(serde_json::json!([wrote("a", many.into())])).len(),
            PLAN_MAX
        );
        assert_eq!(planned(serde_json::json!([])), []);
    }

    #[test]
    fn only_the_host_of_an_address_is_told() {
        assert_eq!(
            host_of("https://user:pw@api.test/secret?key=1").as_deref(),
            Some("api.test")
        );
    }
}
