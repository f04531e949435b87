//! An agent's asks, converted from universal events for the record: bounded.

use bobbin_agent_events::{PermissionRequest, QuestionInfo, QuestionRequest};
use bobbin_core::records::ask::{
    ASK_CHARS_MAX, About, DESCRIPTION_CHARS_MAX, HEADER_CHARS_MAX, LABEL_CHARS_MAX, OPTIONS_MAX,
    Opt, PATTERN_CHARS_MAX, PATTERNS_MAX, QUESTIONS_MAX, Question as Asked, SUBJECT_CHARS_MAX,
    TEXT_CHARS_MAX,
};
use bobbin_core::text::{one_line, shorten};
use serde_json::{Map, Value, json};

/// The permission that a person is asked for. `call` is the input of its tool call, if known: OpenCode names only the
/// directory when a command reaches outside the project, and nobody can judge a command by that.
///
/// The person approves the whole call: its command or path comes first, then every other argument.
#[must_use]
pub fn permission(asked: &PermissionRequest, call: Option<&Value>) -> About {
    let (metadata, call) = told(asked, call);
    let named = |source: Option<&Value>, name: &str| {
        source.and_then(|value| value.get(name)).and_then(Value::as_str).map(str::to_owned)
    };
    let call = call.as_ref();
    let command = named(Some(&metadata), "command").or_else(|| named(call, "command"));
    let path = named(Some(&metadata), "filepath").or_else(|| named(call, "filePath"));
    let path = path.or_else(|| named(call, "file_path"));
    // Name of the command in a sandbox's tools.
    let command = command.or_else(|| named(call, "cmd"));
    let path = path.or_else(|| named(call, "path"));
    let subject = command.or(path);
    let outside = asked.permission == "external_directory" && subject.is_some();
    let (head, shown) = match subject {
        Some(subject) => (subject.clone(), Some(subject)),
        None => (asked.patterns.join(", "), None),
    };
    let rest = arguments(call.unwrap_or(&metadata), shown.as_deref());
    // A catch-all pattern says less than the arguments do.
    let head = Some(head).filter(|head| shown.is_some() || rest.is_empty() || head != "*");
    let subject = head.into_iter().chain(rest).collect::<Vec<_>>().join("\n");
    let length = subject.chars().count();
    About::Permission {
        action: shorten(&asked.permission, PATTERN_CHARS_MAX),
        left_out: length.saturating_sub(SUBJECT_CHARS_MAX),
        subject: subject.chars().take(SUBJECT_CHARS_MAX).collect(),
        places: if outside { patterns(&asked.patterns) } else { Box::default() },
        always: patterns(&asked.always),
    }
}

/// The ask's own description of its call, and the call, together with facts that only the ask has.
fn told(asked: &PermissionRequest, call: Option<&Value>) -> (Value, Option<Value>) {
    let mut metadata = asked.metadata.clone();
    let whole = metadata.remove("input").filter(Value::is_object);
    let mut input = whole.or_else(|| call.cloned());
    // An ask over JSON-RPC also holds the data for the answer, and facts that the call lacks.
    if metadata.contains_key("method") {
        let told = ["cwd", "permissions", "reason"].into_iter();
        let told: Map<_, _> =
            told.filter_map(|name| Some((name.to_owned(), metadata.remove(name)?))).collect();
        if let Some(fields) = input.get_or_insert_with(|| json!({})).as_object_mut() {
            for (name, value) in told {
                fields.entry(name).or_insert(value);
            }
        }
    }
    // The rest goes back with the answer, unless nothing else is known.
    if input.is_some() {
        metadata.retain(|name, _| matches!(name.as_str(), "command" | "filepath"));
    }
    (Value::Object(metadata), input)
}

/// The folder that a command runs in, by the agents' names for it.
const FOLDERS: [&str; 2] = ["cwd", "workdir"];
/// The variables of a command's environment.
const VARIABLES: &str = "env";

/// The arguments of a call as lines, without the one that is already `shown`: the folder first, then the variables,
/// then the others.
fn arguments(call: &Value, shown: Option<&str>) -> Vec<String> {
    let Some(fields) = call.as_object() else {
        return Vec::new();
    };
    let mut lines: Vec<(u8, String)> = Vec::new();
    for (name, value) in fields {
        if shown.is_some() && value.as_str() == shown {
            continue;
        }
        match value {
            Value::String(folder) if FOLDERS.contains(&name.as_str()) => {
                lines.push((0, argument("in", folder)));
            }
            Value::Object(variables) if name == VARIABLES => {
                for (name, value) in variables {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    lines.push((1, argument("with", &format!("{name}={value}"))));
                }
            }
            Value::String(words) => lines.push((2, argument(name, words))),
            other => lines.push((2, argument(name, &other.to_string()))),
        }
    }
    lines.sort_by_key(|(rank, _)| *rank);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// One argument. Further lines of a value are indented, so that none of them looks like a separate argument.
fn argument(name: &str, value: &str) -> String {
    format!("{}: {}", one_line(name), value.replace('\n', "\n  "))
}

fn patterns(all: &[String]) -> Box<[String]> {
    let shown = all.iter().filter(|one| !one.trim().is_empty());
    let mut kept: Vec<String> =
        shown.map(|one| shorten(one, PATTERN_CHARS_MAX)).take(PATTERNS_MAX).collect();
    if all.len() > PATTERNS_MAX {
        kept.push(format!("… and {} more", all.len() - PATTERNS_MAX));
    }
    kept.into()
}

/// The questions that a person is asked.
#[must_use]
pub fn question(asked: &QuestionRequest) -> About {
    let mut room = ASK_CHARS_MAX;
    let items = asked.questions.iter().take(QUESTIONS_MAX);
    // Every question's text first: options may be left out.
    let mut questions: Vec<Asked> = items
        .clone()
        .map(|item| Asked {
            header: within(item.header.as_deref().unwrap_or(""), HEADER_CHARS_MAX, &mut room),
            text: within(&item.question, TEXT_CHARS_MAX.min(room / 2), &mut room),
            options: Vec::new(),
            multiple: item.multi_select.unwrap_or(false),
            free: item.custom.unwrap_or(true),
        })
        .collect();
    for (left, (question, item)) in questions.iter_mut().zip(items).enumerate().rev() {
        let mut share = room / (left + 1);
        let before = share;
        question.options = options(item, &mut share);
        room -= before - share;
    }
    About::Question { questions }
}

/// The options that fit.
fn options(item: &QuestionInfo, room: &mut usize) -> Vec<Opt> {
    let mut kept = Vec::new();
    for option in item.options.iter().take(OPTIONS_MAX) {
        let label = option.label.trim();
        if label.chars().count().min(LABEL_CHARS_MAX) > *room {
            break;
        }
        // A description that repeats the label is left out.
        let description =
            option.description.as_deref().map(str::trim).filter(|text| *text != label);
        kept.push(Opt {
            label: within(label, LABEL_CHARS_MAX, room),
            description: within(description.unwrap_or_default(), DESCRIPTION_CHARS_MAX, room),
        });
    }
    kept
}

fn within(text: &str, chars_max: usize, room: &mut usize) -> String {
    let kept = shorten(text.trim(), chars_max.min(*room));
    *room -= kept.chars().count();
    kept
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn asked(items: Value) -> Vec<Asked> {
        let request: QuestionRequest = serde_json::from_value(
            json!({"id": "que_1", "sessionId": "ses_1", "questions": items}),
        )
        .unwrap();
        match question(&request) {
            About::Question { questions } => questions,
            About::Permission { .. } => panic!("a question"),
        }
    }

    #[test]
    fn question_keeps_opencodes_fields() {
        let questions = asked(json!([
            {"question": "Which?", "header": "DB", "multiSelect": true, "custom": false,
             "options": [{"label": "Postgres", "description": "Relational"}, {"label": "same", "description": "same"}]},
            {"question": "Why?", "header": "Why", "options": []},
        ]));
        let option = |label: &str, description: &str| Opt {
            label: label.to_owned(),
            description: description.to_owned(),
        };
        assert_eq!(
            questions[0],
            Asked {
                header: "DB".to_owned(),
                text: "Which?".to_owned(),
                options: vec![option("Postgres", "Relational"), option("same", "")],
                multiple: true,
                free: false,
            }
        );
        assert!(questions[1].free && !questions[1].multiple && questions[1].options.is_empty());
    }

    #[test]
    fn recorded_questions_are_bounded() {
        let option = json!({"label": "l".repeat(500), "description": "d".repeat(500)});
        let item = json!({"question": "q".repeat(5_000), "header": "h".repeat(500), "options": vec![option; 300]});
        let questions = asked(json!(vec![item; 30]));
        assert_eq!(questions.len(), QUESTIONS_MAX);
        let chars = |question: &Asked| {
            let options = question.options.iter();
            let options = options.map(|o| o.label.chars().count() + o.description.chars().count());
            question.text.chars().count() + question.header.chars().count() + options.sum::<usize>()
        };
        assert!(questions.iter().map(chars).sum::<usize>() <= ASK_CHARS_MAX);
        assert!(questions.iter().all(|question| !question.text.is_empty()));
        assert!(asked(json!([])).is_empty());
    }

    #[test]
    fn permission_keeps_exact_command_and_scope() {
        let asked: PermissionRequest = serde_json::from_value(json!({
            "id": "per_1", "sessionId": "s", "permission": "external_directory", "patterns": ["/dev/*"], "metadata": {},
            "always": ["/dev/*"],
        }))
        .unwrap();
        let call = json!({"command": "cat /dev/null;\n  date"});
        assert_eq!(
            permission(&asked, Some(&call)),
            About::Permission {
                action: "external_directory".into(),
                subject: "cat /dev/null;\n  date".into(),
                left_out: 0,
                places: ["/dev/*".into()].into(),
                always: ["/dev/*".into()].into(),
            }
        );
    }

    #[test]
    fn tool_sandbox_ask_shows_call() {
        // OpenCode 1.18.33's ask for a tool over MCP: neither pattern nor metadata.
        let asked: PermissionRequest = serde_json::from_value(json!({
            "id": "per_1", "sessionId": "s", "permission": "sandbox_run_command", "patterns": ["*"], "metadata": {},
            "always": ["*"],
        }))
        .unwrap();
        let subject = |call: Value| match permission(&asked, Some(&call)) {
            About::Permission { subject, .. } => subject,
            About::Question { .. } => panic!("a permission"),
        };
        assert_eq!(subject(json!({"cmd": "rm -rf build"})), "rm -rf build");
        assert_eq!(
            subject(
                json!({"cmd": "echo harmless", "cwd": "/x", "env": {"A": "evil.sh", "B": "1"}, "wait_ms": 5})
            ),
            "echo harmless\nin: /x\nwith: A=evil.sh\nwith: B=1\nwait_ms: 5"
        );
        assert_eq!(
            subject(json!({"path": "notes.txt", "content": "x\nin: /y"})),
            "notes.txt\ncontent: x\n  in: /y"
        );
        assert_eq!(subject(json!({"pattern": "*.rs"})), "pattern: *.rs");
        assert_eq!(subject(json!({})), "*");
    }

    /// Inputs of a call, of any shape.
    fn input() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z=/ \n]{0,80}".prop_map(Value::from),
            "[a-z\n]{3000,5000}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(2, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                    .prop_map(|fields| Value::from(serde_json::Map::from_iter(fields))),
            ]
        });
        let name = "(cmd|command|cwd|workdir|env|path|filePath|content|[a-z]{1,6})";
        prop::collection::btree_map(name, value, 0..6)
            .prop_map(|fields| Value::from(serde_json::Map::from_iter(fields)))
    }

    /// Every nested value, and every name of a variable.
    fn leaves(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| leaves(item, into)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    into.push(name.clone());
                    leaves(value, into);
                }
            }
            Value::String(words) => into.push(words.clone()),
            other => into.push(other.to_string()),
        }
    }

    proptest! {
        #[test]
        fn no_argument_is_silently_omitted(call in input(), action in "(bash|edit|sandbox_run_command|external_directory)") {
            let asked: PermissionRequest = serde_json::from_value(json!({
                "id": "per_1", "sessionId": "s", "permission": action, "patterns": ["*"], "always": [],
            }))
            .unwrap();
            let About::Permission { subject, left_out, .. } = permission(&asked, Some(&call)) else { panic!("a permission") };
            prop_assert!(subject.chars().count() <= SUBJECT_CHARS_MAX);
            let mut all = Vec::new();
            for value in call.as_object().unwrap().values() {
                leaves(value, &mut all);
            }
            // A value may be the head and occur again under another name: it is shown once.
            let apart: BTreeSet<&String> = all.iter().collect();
            let whole: usize = apart.iter().map(|leaf| leaf.chars().count()).sum();
            prop_assert!(subject.chars().count() + left_out >= whole, "{left_out} of {subject:?}");
            if left_out == 0 {
                // Ignores white space and the escaping of line breaks.
                let plain = |text: &str| text.replace("\\n", "").split_whitespace().collect::<String>();
                for leaf in all {
                    prop_assert!(plain(&subject).contains(&plain(&leaf)), "{leaf:?} is not in {subject:?}");
                }
            }
        }
    }

    #[test]
    fn long_command_counts_omitted_characters() {
        let asked: PermissionRequest = serde_json::from_value(json!({
            "id": "per_1", "sessionId": "s", "permission": "bash", "patterns": [], "metadata": {"command": "é\n".repeat(5_000)}, "always": [],
        }))
        .unwrap();
        let About::Permission { subject, left_out, always, .. } = permission(&asked, None) else {
            panic!("a permission")
        };
        assert_eq!(
            (subject.chars().count(), left_out),
            (SUBJECT_CHARS_MAX, 10_000 - SUBJECT_CHARS_MAX)
        );
        assert!(subject.starts_with("é\né\n") && always.is_empty());
    }
}
