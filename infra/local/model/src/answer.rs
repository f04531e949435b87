//! The answer: a pure function of the request.

use std::time::Duration;

use serde_json::{Value, json};

use crate::limits::CHUNK_CHARS_MAX;
use crate::request::ModelRequest;
use crate::script::{self, ScriptAction, ScriptedQuestion, ScriptedTokens};
use crate::text;

/// Prefix of a command that needs a permission: OpenCode asks because it names a path outside the project; reading this
/// one has no other effect.
pub(crate) const ASKS: &str = "cat /dev/null; ";

/// A piece of streamed text, and the delay after it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextPiece {
    pub(crate) text: String,
    pub(crate) pause: Duration,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelToolCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// End of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerEnd {
    /// The answer is complete: `finish_reason` is `stop`.
    Stop,
    /// The client runs this tool: `finish_reason` is `tool_calls`.
    Tool(ModelToolCall),
    /// No `finish_reason`, no `[DONE]`.
    Cut,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelAnswer {
    /// A message: text, then its end.
    Message { pieces: Vec<TextPiece>, end: AnswerEnd },
    /// An HTTP error with this status.
    Fail(u16),
}

/// Decides by the last user message and the number of tool results after it.
pub(crate) fn answer(request: &ModelRequest) -> ModelAnswer {
    if request.internal {
        let text = if request.title {
            "Scripted session"
        } else {
            "Summary: the user gave the scripted model lines to follow, and it followed them."
        };
        return message(
            &[AnswerPart::new(text.to_owned(), StreamPace::Over(0.0))],
            AnswerEnd::Stop,
        );
    }
    let script = script::parse(&request.user);
    if script.is_empty() {
        return message(&[AnswerPart::new(text::help(), StreamPace::Over(0.0))], AnswerEnd::Stop);
    }
    follow(request, &script)
}

/// Follows the script to the first tool call without a result, or to its end.
fn follow(request: &ModelRequest, script: &[ScriptAction]) -> ModelAnswer {
    let mut results = request.results.iter();
    let mut parts: Vec<AnswerPart> = Vec::new();
    // Start of the current step's text: behind the last finished tool.
    let mut step = 0;
    for action in script {
        if let Some(call) = tool_call(action) {
            if !request.tools.contains(&call.name) {
                let note = format!("This request offers no `{}` tool.", call.name);
                parts.push(AnswerPart::new(note, StreamPace::Blocks));
            } else if let Some(result) = results.next() {
                // It was already streamed at its own pace in its own step.
                parts.iter_mut().for_each(|part| part.pace = StreamPace::Blocks);
                parts.push(AnswerPart::new(report(action, result), StreamPace::Blocks));
                step = parts.len();
            } else {
                return message(&parts[step..], AnswerEnd::Tool(call));
            }
            continue;
        }
        match action {
            ScriptAction::Fail(status) => return ModelAnswer::Fail(*status),
            ScriptAction::Cut => {
                if parts.len() == step {
                    parts.push(AnswerPart::new(
                        "This answer breaks off".to_owned(),
                        StreamPace::Over(0.0),
                    ));
                }
                return message(&parts[step..], AnswerEnd::Cut);
            }
            ScriptAction::Echo(text) => parts.push(AnswerPart {
                line: true,
                ..AnswerPart::new(text.clone(), StreamPace::Over(0.0))
            }),
            ScriptAction::Slow { seconds, text } => {
                parts.push(AnswerPart::new(text.clone(), StreamPace::Over(*seconds)))
            }
            ScriptAction::Long(chars) => {
                parts.push(AnswerPart::new(text::long(*chars), StreamPace::Blocks))
            }
            ScriptAction::Unreadable { line, usage } => {
                let note = format!("I cannot read {}. It is written {usage}", text::code(line));
                parts.push(AnswerPart::new(note, StreamPace::Blocks));
            }
            // These have a tool call, above.
            ScriptAction::Run(_)
            | ScriptAction::Write { .. }
            | ScriptAction::Ask(_)
            | ScriptAction::Question(_)
            | ScriptAction::Plan(_)
            | ScriptAction::Call { .. } => {}
            // Said beside the text, by `tokens`.
            ScriptAction::Tokens(_) => {}
            ScriptAction::NameImages => {
                let seen = text::images(&request.images);
                parts.push(AnswerPart::new(seen, StreamPace::Blocks));
            }
        }
    }
    message(&parts, AnswerEnd::Stop)
}

/// The tokens that the script has the present step report.
pub(crate) fn tokens(request: &ModelRequest) -> Option<ScriptedTokens> {
    let script = if request.internal { Vec::new() } else { script::parse(&request.user) };
    let (mut calls, mut said) = (0, None);
    for action in &script {
        if let ScriptAction::Tokens(tokens) = action {
            said = Some(*tokens);
        }
        calls += usize::from(tool_call(action).is_some());
        if calls > request.results.len() {
            break;
        }
    }
    said
}

/// The tool call of an action, if it has one.
fn tool_call(action: &ScriptAction) -> Option<ModelToolCall> {
    let (name, arguments) = match action {
        ScriptAction::Run(command) => {
            ("bash", json!({ "command": command, "description": "Run the command of the script" }))
        }
        ScriptAction::Ask(command) => {
            let command = format!("{ASKS}{command}");
            (
                "bash",
                json!({ "command": command, "description": "Run a command that needs a permission" }),
            )
        }
        ScriptAction::Write { path, content } => {
            ("write", json!({ "filePath": path, "content": content }))
        }
        ScriptAction::Question(questions) => {
            let questions: Vec<Value> = questions.iter().map(question_arguments).collect();
            ("question", json!({ "questions": questions }))
        }
        ScriptAction::Plan(todos) => {
            let todo = |(content, status): &(String, &str)| json!({ "content": content, "status": status, "priority": "medium" });
            let todos: Vec<Value> = todos.iter().map(todo).collect();
            ("todowrite", json!({ "todos": todos }))
        }
        ScriptAction::Call { tool, arguments } => (tool.as_str(), arguments.clone()),
        _ => return None,
    };
    Some(ModelToolCall { name: name.to_owned(), arguments })
}

fn question_arguments(question: &ScriptedQuestion) -> Value {
    let options: Vec<Value> = question
        .options
        .iter()
        .map(|(label, description)| json!({ "label": label, "description": description }))
        .collect();
    json!({ "question": question.text, "header": question.header, "options": options, "multiple": question.multiple })
}

/// Text of the final answer about a finished tool.
fn report(action: &ScriptAction, result: &str) -> String {
    match action {
        ScriptAction::Write { path, .. } => {
            text::report(&format!("Writing {}", text::code(path)), result)
        }
        ScriptAction::Question(questions) => {
            let texts: Vec<&str> = questions.iter().map(|one| one.text.as_str()).collect();
            text::question_report(&texts, result)
        }
        ScriptAction::Plan(todos) => format!("The plan has {} lines.", todos.len()),
        ScriptAction::Call { tool, .. } => text::report(&text::code(tool), result),
        ScriptAction::Run(command) | ScriptAction::Ask(command) => {
            text::report(&text::code(command), result)
        }
        _ => result.to_owned(),
    }
}

/// Pace of streaming.
#[derive(Debug, Clone, Copy)]
enum StreamPace {
    /// Word by word over this many seconds.
    Over(f64),
    /// In large chunks, at once.
    Blocks,
}

/// One text of an answer.
#[derive(Debug)]
struct AnswerPart {
    text: String,
    pace: StreamPace,
    /// Neighbouring lines stay together; everything else is a paragraph.
    line: bool,
}

impl AnswerPart {
    fn new(text: String, pace: StreamPace) -> Self {
        Self { text, pace, line: false }
    }
}

fn message(parts: &[AnswerPart], end: AnswerEnd) -> ModelAnswer {
    let mut pieces = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            let joint = if part.line && parts[index - 1].line { "\n" } else { "\n\n" };
            pieces.push(TextPiece { text: joint.to_owned(), pause: Duration::ZERO });
        }
        match part.pace {
            StreamPace::Over(seconds) => pieces.extend(words(&part.text, seconds)),
            StreamPace::Blocks => pieces.extend(blocks(&part.text)),
        }
    }
    ModelAnswer::Message { pieces, end }
}

/// The first word is sent at once; the time is spread over the delays after the words, including the last.
fn words(text: &str, seconds: f64) -> Vec<TextPiece> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let pause = Duration::from_secs_f64(seconds / words.len().max(1) as f64);
    words.into_iter().map(|word| TextPiece { text: word.to_owned(), pause }).collect()
}

fn blocks(text: &str) -> Vec<TextPiece> {
    let chars: Vec<char> = text.chars().collect();
    let blocks = chars.chunks(CHUNK_CHARS_MAX);
    blocks.map(|block| TextPiece { text: block.iter().collect(), pause: Duration::ZERO }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(user: &str, results: &[&str]) -> ModelRequest {
        ModelRequest {
            system: String::new(),
            model: "m".into(),
            stream: true,
            include_usage: true,
            tools: ["bash", "write", "question"].map(String::from).to_vec(),
            user: user.into(),
            images: Vec::new(),
            results: results.iter().map(|result| (*result).to_owned()).collect(),
            internal: false,
            title: false,
            chars: user.len(),
        }
    }

    fn told(answer: ModelAnswer) -> (String, AnswerEnd, Duration) {
        match answer {
            ModelAnswer::Message { pieces, end } => {
                let pause = pieces.iter().map(|piece| piece.pause).sum();
                (pieces.into_iter().map(|piece| piece.text).collect(), end, pause)
            }
            ModelAnswer::Fail(status) => panic!("failed with {status}"),
        }
    }

    #[test]
    fn final_answer_reports_actions_in_order() {
        let script = "slow: 2 first words\nrun: ls\nwrite: a.txt x\necho: last";
        let (text, end, pause) = told(answer(&request(script, &[])));
        assert_eq!((text.as_str(), pause), ("first words", Duration::from_secs(2)));
        assert!(
            matches!(end, AnswerEnd::Tool(call) if call.name == "bash" && call.arguments["command"] == "ls")
        );

        let (text, end, _) = told(answer(&request(script, &["b.txt\n"])));
        assert_eq!(text, "");
        assert!(
            matches!(end, AnswerEnd::Tool(call) if call.name == "write" && call.arguments["filePath"] == "a.txt")
        );

        let (text, end, pause) =
            told(answer(&request(script, &["b.txt\n", "Wrote file successfully."])));
        assert_eq!(
            text,
            "first words\n\n`ls` finished:\n\n```\nb.txt\n```\n\n\
             Writing `a.txt` finished:\n\n```\nWrote file successfully.\n```\n\nlast"
        );
        assert_eq!((end, pause), (AnswerEnd::Stop, Duration::ZERO));
    }

    #[test]
    fn ask_action_reaches_outside_project() {
        let (_, end, _) = told(answer(&request("ask: date", &[])));
        assert!(
            matches!(end, AnswerEnd::Tool(call) if call.arguments["command"] == "cat /dev/null; date")
        );
    }

    #[test]
    fn plan_and_images_are_reported() {
        let todo = ModelRequest {
            tools: vec!["todowrite".into()],
            images: vec!["image/png".into(), "image/jpeg".into()],
            ..request("plan: [x] a | b\nlook", &[])
        };
        let (_, end, _) = told(answer(&todo));
        let AnswerEnd::Tool(call) = end else { panic!("no tool call") };
        assert_eq!(call.arguments["todos"][0]["status"], "completed");
        assert_eq!(call.arguments["todos"][1]["content"], "b");
        let (text, ..) = told(answer(&ModelRequest { results: vec!["[]".into()], ..todo }));
        assert_eq!(text, "The plan has 2 lines.\n\nI see 2 images: image/png, image/jpeg.");
        let (text, ..) = told(answer(&request("look", &[])));
        assert_eq!(text, "I see no images.");
    }

    #[test]
    fn a_question_offers_its_options() {
        let (_, end, _) = told(answer(&request("question: Which? | a | b", &[])));
        let AnswerEnd::Tool(call) = end else { panic!("no tool call") };
        let question = &call.arguments["questions"][0];
        assert_eq!((call.name.as_str(), &question["question"]), ("question", &json!("Which?")));
        assert_eq!(question["options"][1]["label"], "b");
    }

    #[test]
    fn fail_and_cut_happen_in_order() {
        assert_eq!(answer(&request("fail: 503", &[])), ModelAnswer::Fail(503));
        let script = "run: ls\nfail: 500";
        assert!(matches!(told(answer(&request(script, &[]))).1, AnswerEnd::Tool(_)));
        assert_eq!(answer(&request(script, &["x"])), ModelAnswer::Fail(500));
        assert_eq!(told(answer(&request("echo: so far\ncut", &[]))).0, "so far");
        assert_eq!(told(answer(&request("run: ls\ncut", &["x"]))).1, AnswerEnd::Cut);
    }

    #[test]
    fn echoed_lines_stay_together() {
        assert_eq!(told(answer(&request("echo: ```\necho:   a\necho: ```", &[]))).0, "```\na\n```");
    }

    #[test]
    fn internal_requests_run_no_actions() {
        let internal = ModelRequest { internal: true, tools: vec![], ..request("fail: 500", &[]) };
        assert!(told(answer(&internal)).0.starts_with("Summary"));
        assert_eq!(told(answer(&ModelRequest { title: true, ..internal })).0, "Scripted session");
    }

    #[test]
    fn script_continues_past_missing_tool() {
        let without = ModelRequest {
            tools: vec!["bash".into()],
            ..request("question: Q | a\nrun: ls", &["out"])
        };
        let (text, end, _) = told(answer(&without));
        assert!(
            text.starts_with("This request offers no `question` tool.\n\n`ls` finished"),
            "{text}"
        );
        assert_eq!(end, AnswerEnd::Stop);
    }

    #[test]
    fn each_step_reports_its_own_tokens() {
        let script = "tokens: 10 4 2 1\nrun: ls\ntokens: 300 200 0 5\necho: done";
        let read = |results: &[&str]| tokens(&request(script, results)).map(|one| one.read);
        assert_eq!((read(&[]), read(&["a.txt"])), (Some(10), Some(300)));
        assert_eq!(tokens(&request("echo: hi", &[])), None);
        assert_eq!(tokens(&request("tokens: 1 1 1 1", &[])), None, "more came from caches");
    }

    #[test]
    fn plain_text_and_mistakes_get_help() {
        assert!(told(answer(&request("hello there", &[]))).0.contains("`echo: TEXT`"));
        let (text, _, _) = told(answer(&request("slow: soon", &[])));
        assert!(
            text.starts_with("I cannot read `slow: soon`. It is written slow: SECONDS TEXT"),
            "{text}"
        );
    }
}
