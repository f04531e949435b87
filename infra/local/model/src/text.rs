//! Generated texts: long answers, tool reports, the help.

use crate::limits::{REPORT_CHARS_MAX, bounded};
use crate::script::USAGES;

const WORDS: &str =
    "the thread asks and the sandbox answers while the person reads every line of this long text ";

/// Exactly `chars` characters: numbered paragraphs, with a closed code fence after every second one. An answer under
/// 400 characters is words only.
pub(crate) fn long(chars: usize) -> String {
    let mut text = String::with_capacity(chars);
    let mut paragraph = 1;
    while chars - text.len() > 400 {
        let room = chars - text.len();
        if paragraph % 3 == 0 {
            push_fence(&mut text, paragraph, (room - 200).min(1_500));
        } else {
            let length = (room / 3).clamp(100, 500);
            text.push_str(&words(&format!("Paragraph {paragraph}: "), length));
            text.push_str("\n\n");
        }
        paragraph += 1;
    }
    let rest = chars - text.len();
    text.push_str(&words("", rest));
    text
}

/// Plain words of exactly `chars` characters, ending in a full stop.
fn words(start: &str, chars: usize) -> String {
    let mut text: String =
        start.chars().chain(WORDS.chars().cycle()).take(chars.saturating_sub(1)).collect();
    text.push('.');
    text
}

/// A closed fence of numbered lines, no longer than `chars_max` (at least 200).
fn push_fence(text: &mut String, number: usize, chars_max: usize) {
    const OPEN: &str = "```text\n";
    const CLOSE: &str = "```\n\n";
    let end = text.len() + chars_max - CLOSE.len();
    text.push_str(OPEN);
    for line in 1.. {
        let line = format!("{number}.{line:03} a line of code that must stay inside its fence\n");
        if text.len() + line.len() > end {
            break;
        }
        text.push_str(&line);
    }
    text.push_str(CLOSE);
}

/// Text about a tool: the call and its result.
pub(crate) fn report(call: &str, result: &str) -> String {
    let result = result.trim_end();
    if let Some(refusal) = refusal(result) {
        return format!("{call} {refusal}");
    }
    // OpenCode's result of a command that printed nothing.
    if result.is_empty() || result == "(no output)" {
        return format!("{call} finished without output.");
    }
    let shown = bounded(result, REPORT_CHARS_MAX);
    let fence = "`".repeat(longest_run_of_backticks(&shown).max(2) + 1);
    format!("{call} finished:\n\n{fence}\n{shown}\n{fence}")
}

/// Rewords OpenCode's messages for a refused permission, a denying rule and a dismissed question.
fn refusal(result: &str) -> Option<String> {
    if result.contains("user rejected permission") {
        let feedback = result.split_once("feedback: ").map(|(_, feedback)| feedback.trim());
        return Some(match feedback {
            Some(feedback) => format!("was not permitted: {}", bounded(feedback, REPORT_CHARS_MAX)),
            None => "was not permitted.".to_owned(),
        });
    }
    if result.contains("specified a rule which prevents") {
        return Some("is forbidden by a permission rule.".to_owned());
    }
    result.contains("user dismissed this question").then(|| "was dismissed.".to_owned())
}

/// Text about questions: the answer to each, or the tool's own text.
pub(crate) fn question_report(questions: &[&str], result: &str) -> String {
    let start = |question: &str| format!("\"{question}\"=\"");
    let answered = questions.iter().enumerate().map(|(at, question)| {
        let (_, rest) = result.split_once(&start(question))?;
        let end = match questions.get(at + 1) {
            Some(next) => format!("\", {}", start(next)),
            None => "\". You can now".to_owned(),
        };
        let (answer, _) = rest.split_once(&end)?;
        Some(format!("The question “{question}” was answered: {answer}"))
    });
    match answered.collect::<Option<Vec<String>>>() {
        Some(told) => told.join("\n\n"),
        None => {
            let quoted: Vec<String> = questions.iter().map(|text| format!("“{text}”")).collect();
            let call = if questions.len() == 1 { "The question" } else { "The questions" };
            report(&format!("{call} {}", quoted.join(", ")), result)
        }
    }
}

/// A code span around text that may contain backticks.
pub(crate) fn code(text: &str) -> String {
    let text = bounded(text, 200);
    match longest_run_of_backticks(&text) {
        0 => format!("`{text}`"),
        run => {
            let fence = "`".repeat(run + 1);
            format!("{fence} {text} {fence}")
        }
    }
}

fn longest_run_of_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// The reply to a message without any action.
pub(crate) fn help() -> String {
    let mut text =
        "I am a scripted model: I do what your message says, one action per line.\n".to_owned();
    for usage in USAGES {
        let (form, example) = usage.split_once(", ").unwrap_or((usage, ""));
        text.push_str(&format!("\n- `{form}`, {example}"));
    }
    text
}

/// Names the images in the message.
pub(crate) fn images(media_types: &[String]) -> String {
    match media_types {
        [] => "I see no images.".to_owned(),
        [one] => format!("I see 1 image: {one}."),
        many => format!("I see {} images: {}.", many.len(), many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_has_its_exact_length() {
        for chars in (1..3_000).chain([4_000, 12_345, 200_000]) {
            let text = long(chars);
            assert_eq!(text.chars().count(), chars);
            assert!(text.ends_with('.'), "nothing that a client could trim: {chars}");
            assert_eq!(text.matches("```").count() % 2, 0, "{chars}");
        }
        let text = long(5_000);
        assert!(text.contains("\n\nParagraph 2: ") && text.contains("```text\n"));
    }

    #[test]
    fn report_output_cannot_close_its_fence() {
        assert_eq!(report("`ls`", "a\n```\nb\n"), "`ls` finished:\n\n````\na\n```\nb\n````");
        for nothing in ["\n", "(no output)"] {
            assert_eq!(report("`true`", nothing), "`true` finished without output.");
        }
        let long = report("`cat`", &"x".repeat(REPORT_CHARS_MAX * 2));
        assert!(long.chars().count() < REPORT_CHARS_MAX + 50 && long.contains('…'));
    }

    #[test]
    fn refusals_and_answers_read_as_sentences() {
        let refused = "The user rejected permission to use this specific tool call.";
        assert_eq!(report("`date`", refused), "`date` was not permitted.");
        let feedback = "The user rejected permission to use this specific tool call with the following feedback: no";
        assert_eq!(report("`date`", feedback), "`date` was not permitted: no");
        assert_eq!(
            question_report(
                &["Why?"],
                "User has answered your questions: \"Why?\"=\"So, so\". You can now continue."
            ),
            "The question “Why?” was answered: So, so"
        );
        assert_eq!(
            question_report(
                &["A?", "B?"],
                "User has answered your questions: \"A?\"=\"x, y\", \"B?\"=\"Unanswered\". You can now continue."
            ),
            "The question “A?” was answered: x, y\n\nThe question “B?” was answered: Unanswered"
        );
        let dismissed = "The user dismissed this question";
        assert_eq!(question_report(&["Why?"], dismissed), "The question “Why?” was dismissed.");
    }

    #[test]
    fn the_help_names_every_action() {
        for keyword in
            ["echo:", "slow:", "run:", "write:", "ask:", "question:", "long:", "fail:", "`cut`"]
        {
            assert!(help().contains(keyword), "{keyword}");
        }
    }
}
