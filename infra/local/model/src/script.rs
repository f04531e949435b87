//! The script: actions parsed from the lines of a message.

use crate::limits::{ACTIONS_MAX, LONG_CHARS_MAX, OPTIONS_MAX, QUESTIONS_MAX, SLOW_SECONDS_MAX};

/// An action of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScriptAction {
    /// Answer with this text.
    Echo(String),
    /// Stream the text over this many seconds.
    Slow { seconds: f64, text: String },
    /// Run a command with the `bash` tool.
    Run(String),
    /// Write a file with the `write` tool.
    Write { path: String, content: String },
    /// Run a command that needs a permission first.
    Ask(String),
    /// Ask the person one or several questions at once.
    Question(Vec<ScriptedQuestion>),
    /// Answer exactly this many characters.
    Long(usize),
    /// Answer with this HTTP status.
    Fail(u16),
    /// Write the plan with the `todowrite` tool: items and their states.
    Plan(Vec<(String, &'static str)>),
    /// Call this tool with these arguments.
    Call { tool: String, arguments: serde_json::Value },
    /// Name the images in the message.
    NameImages,
    /// Report these tokens from this step on.
    Tokens(ScriptedTokens),
    /// End the stream without a finish reason.
    Cut,
    /// A keyword with invalid arguments, and its usage.
    Unreadable { line: String, usage: &'static str },
}

/// Tokens of one request, as a model reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptedTokens {
    /// All that were read, from a cache or not.
    pub(crate) read: usize,
    /// Those of them that came from a cache.
    pub(crate) cached: usize,
    /// Those of them that were put into one.
    pub(crate) stored: usize,
    pub(crate) written: usize,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ScriptedQuestion {
    pub(crate) header: String,
    pub(crate) text: String,
    /// Options: label and description of each.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) multiple: bool,
}

/// Syntax of each action, with an example, for people.
pub(crate) const USAGES: [&str; 13] = [
    "echo: TEXT, for example `echo: hello`",
    "slow: SECONDS TEXT, for example `slow: 5 one two three`",
    "run: COMMAND, for example `run: ls -la`",
    "write: PATH TEXT, for example `write: notes.txt first\\nsecond`",
    "ask: COMMAND, for example `ask: date`",
    "question: TEXT | OPTION | OPTION, for example `question: Which colour? | red | blue`, or several together: \
     `question: [DB] Which? | Postgres = relational | SQLite // [Extras, several] What else? | a | b // Why?`",
    "long: CHARACTERS, for example `long: 5000`",
    "fail: STATUS, for example `fail: 500`",
    "cut, alone on its line",
    "plan: TASK | TASK, for example `plan: [x] read it | [>] fix it | test it`",
    "look, alone on its line",
    "call: TOOL ARGUMENTS, for example `call: sandbox_read_file {\"path\": \"notes.txt\"}`",
    "tokens: READ CACHED STORED WRITTEN, for example `tokens: 250000 200000 10000 500`",
];

/// Parses a message's actions; empty if no line is one.
pub(crate) fn parse(message: &str) -> Vec<ScriptAction> {
    message.lines().filter_map(parse_line).take(ACTIONS_MAX).collect()
}

fn parse_line(line: &str) -> Option<ScriptAction> {
    let line = line.trim();
    if line.eq_ignore_ascii_case("cut") {
        return Some(ScriptAction::Cut);
    }
    if line.eq_ignore_ascii_case("look") {
        return Some(ScriptAction::NameImages);
    }
    let (keyword, rest) = line.split_once(':')?;
    let rest = rest.trim();
    let (action, usage) = match keyword.to_ascii_lowercase().as_str() {
        "echo" => (Some(ScriptAction::Echo(rest.to_owned())), USAGES[0]),
        "slow" => (slow(rest), USAGES[1]),
        "run" => (command(rest).map(ScriptAction::Run), USAGES[2]),
        "write" => (write(rest), USAGES[3]),
        "ask" => (command(rest).map(ScriptAction::Ask), USAGES[4]),
        "question" => (question(rest), USAGES[5]),
        "long" => (long(rest), USAGES[6]),
        "fail" => (fail(rest), USAGES[7]),
        "plan" => (plan(rest), USAGES[9]),
        "call" => (call(rest), USAGES[11]),
        "tokens" => (tokens(rest).map(ScriptAction::Tokens), USAGES[12]),
        _ => return None,
    };
    Some(action.unwrap_or_else(|| ScriptAction::Unreadable { line: line.to_owned(), usage }))
}

fn command(rest: &str) -> Option<String> {
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn slow(rest: &str) -> Option<ScriptAction> {
    let (seconds, text) = rest.split_once(char::is_whitespace)?;
    let seconds: f64 = seconds.parse().ok()?;
    (0.0..=SLOW_SECONDS_MAX)
        .contains(&seconds)
        .then(|| ScriptAction::Slow { seconds, text: text.trim().to_owned() })
}

fn write(rest: &str) -> Option<ScriptAction> {
    let (path, content) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (!path.is_empty()).then(|| ScriptAction::Write {
        path: path.to_owned(),
        content: content.trim().replace("\\n", "\n"),
    })
}

fn question(rest: &str) -> Option<ScriptAction> {
    let questions: Option<Vec<ScriptedQuestion>> =
        rest.split(" // ").take(QUESTIONS_MAX).map(asked).collect();
    questions.map(ScriptAction::Question)
}

/// `[HEADER, several] TEXT | LABEL = DESCRIPTION | LABEL`; only the text is required.
fn asked(text: &str) -> Option<ScriptedQuestion> {
    let mut parts = text.split('|').map(str::trim);
    let first = parts.next()?;
    let named = first.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (header, text) = named.unwrap_or(("Question", first));
    let (header, kind) = header.split_once(',').unwrap_or((header, ""));
    let option = |part: &str| {
        let (label, description) = part.split_once(" = ").unwrap_or((part, part));
        (label.trim().to_owned(), description.trim().to_owned())
    };
    let options = parts.filter(|option| !option.is_empty());
    let text = text.trim().to_owned();
    (!text.is_empty()).then(|| ScriptedQuestion {
        header: header.trim().to_owned(),
        text,
        options: options.take(OPTIONS_MAX).map(option).collect(),
        multiple: kind.trim() == "several",
    })
}

fn long(rest: &str) -> Option<ScriptAction> {
    let chars: usize = rest.parse().ok()?;
    (1..=LONG_CHARS_MAX).contains(&chars).then_some(ScriptAction::Long(chars))
}

/// `[x]` is done, `[>]` is in progress, everything else is pending.
fn plan(rest: &str) -> Option<ScriptAction> {
    let todo = |task: &str| {
        let task = task.trim();
        let (text, status) = match (task.strip_prefix("[x]"), task.strip_prefix("[>]")) {
            (Some(text), _) => (text, "completed"),
            (None, Some(text)) => (text, "in_progress"),
            (None, None) => (task, "pending"),
        };
        (!text.trim().is_empty()).then(|| (text.trim().to_owned(), status))
    };
    let todos: Option<Vec<_>> = rest.split('|').take(OPTIONS_MAX).map(todo).collect();
    todos.map(ScriptAction::Plan)
}

fn call(rest: &str) -> Option<ScriptAction> {
    let (tool, arguments) = rest.split_once(char::is_whitespace)?;
    let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
    arguments.is_object().then(|| ScriptAction::Call { tool: tool.to_owned(), arguments })
}

fn tokens(rest: &str) -> Option<ScriptedTokens> {
    let said: Option<Vec<usize>> = rest.split_whitespace().map(|one| one.parse().ok()).collect();
    let [read, cached, stored, written] = said?[..] else { return None };
    let is_part = cached.checked_add(stored).is_some_and(|of_caches| of_caches <= read);
    is_part.then_some(ScriptedTokens { read, cached, stored, written })
}

fn fail(rest: &str) -> Option<ScriptAction> {
    let status: u16 = rest.parse().ok()?;
    (400..=599).contains(&status).then_some(ScriptAction::Fail(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_line_is_parsed() {
        let script = parse(
            "echo: hi: there\nslow: 0.5 one two\nrun: ls | wc -l\nwrite: a/b.txt x\\ny\nask: date\n\
             question: Which? | red | dark blue\nlong: 5000\nfail: 503\nplan: [x] a | [>] b | c\n\
             call: x_y {\"a\": 1}\ntokens: 9 4 2 1\nLook\ncut",
        );
        assert_eq!(
            script,
            [
                ScriptAction::Echo("hi: there".into()),
                ScriptAction::Slow { seconds: 0.5, text: "one two".into() },
                ScriptAction::Run("ls | wc -l".into()),
                ScriptAction::Write { path: "a/b.txt".into(), content: "x\ny".into() },
                ScriptAction::Ask("date".into()),
                ScriptAction::Question(vec![ScriptedQuestion {
                    header: "Question".into(),
                    text: "Which?".into(),
                    options: vec![
                        ("red".into(), "red".into()),
                        ("dark blue".into(), "dark blue".into())
                    ],
                    multiple: false,
                }]),
                ScriptAction::Long(5000),
                ScriptAction::Fail(503),
                ScriptAction::Plan(vec![
                    ("a".into(), "completed"),
                    ("b".into(), "in_progress"),
                    ("c".into(), "pending")
                ]),
                ScriptAction::Call { tool: "x_y".into(), arguments: serde_json::json!({"a": 1}) },
                ScriptAction::Tokens(ScriptedTokens { read: 9, cached: 4, stored: 2, written: 1 }),
                ScriptAction::NameImages,
                ScriptAction::Cut,
            ]
        );
    }

    #[test]
    fn one_line_can_ask_several_questions() {
        let script = parse(
            "question: [DB] Which? | Postgres = relational // [Extras, several] More? | a // Why?",
        );
        let [ScriptAction::Question(asked)] = script.as_slice() else { panic!("{script:?}") };
        let told: Vec<_> = asked
            .iter()
            .map(|one| (one.header.as_str(), one.multiple, one.options.len()))
            .collect();
        assert_eq!(told, [("DB", false, 1), ("Extras", true, 1), ("Question", false, 0)]);
        assert_eq!(asked[0].options[0], ("Postgres".to_owned(), "relational".to_owned()));
    }

    #[test]
    fn action_parsing_ignores_surrounding_lines() {
        let script = parse(
            "From Ada in #build:\r\n  \tRun: ls\r\n\r\n<file>\n1: run: no\n</file>\nthanks: a lot",
        );
        assert_eq!(script, [ScriptAction::Run("ls".into())]);
    }

    #[test]
    fn quoted_lines_are_never_actions() {
        assert_eq!(parse("> run: rm -rf x\n  > echo: old\n>cut\n>> fail: 500\nplease cut it"), []);
    }

    #[test]
    fn malformed_action_shows_its_usage() {
        for line in [
            "slow: five words",
            "slow: 5",
            "slow: -1 x",
            "slow: NaN x",
            "slow: 99999 x",
            "run:",
            "ask: ",
            "write:",
            "question: | a",
            "question: Why? // | a",
            "long: 0",
            "long: 200001",
            "long: many",
            "fail: 200",
            "fail: 600",
            "plan:",
            "plan: a | | b",
        ] {
            let keyword = line.split(':').next().unwrap_or_default();
            match parse(line).as_slice() {
                [ScriptAction::Unreadable { line: seen, usage }] => {
                    assert_eq!(seen, line.trim());
                    assert!(usage.starts_with(keyword), "{line}: {usage}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn actions_per_message_are_bounded() {
        assert_eq!(parse(&"echo: x\n".repeat(ACTIONS_MAX + 1)).len(), ACTIONS_MAX);
    }
}
