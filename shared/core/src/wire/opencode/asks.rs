//! Permissions and questions as a person sees them, and a person's choice as OpenCode takes it.

use serde_json::Value;

use crate::session::About;

use super::steps::first_line;
use super::types::{Permission, Question};

/// Choices of one ask; both platforms show at most 25 buttons. Questions asked together with more combinations than
/// this have none, and can only be declined.
pub const OPTIONS_MAX: usize = 25;
/// Characters of a command, path or question that are shown.
const SUBJECT_CHARS_MAX: usize = 1_000;

impl Permission {
    /// What the person is asked. `call` is the input of the tool call behind it, where it is known: OpenCode names only
    /// the directory when a command reaches outside the project, and nobody can judge a command by that.
    #[must_use]
    pub fn about(&self, call: Option<&Value>) -> About {
        let named = |source: Option<&Value>, name: &str| {
            source
                .and_then(|value| value.get(name))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let command = named(Some(&self.metadata), "command").or_else(|| named(call, "command"));
        let path = named(Some(&self.metadata), "filepath").or_else(|| named(call, "filePath"));
        let patterns = self.patterns.join(", ");
        let subject = match command.or(path) {
            Some(subject) if self.permission == "external_directory" && !patterns.is_empty() => {
                format!("{subject} (outside the project: {patterns})")
            }
            Some(subject) => subject,
            None => patterns,
        };
        About::Permission {
            action: self.permission.clone(),
            subject: cut(&subject),
        }
    }
}

impl Question {
    /// What the person is asked. Questions asked together are one ask whose options are their combinations.
    #[must_use]
    pub fn about(&self) -> About {
        let text = match self.questions.as_slice() {
            [one] => one.question.clone(),
            several => {
                let lines = several
                    .iter()
                    .enumerate()
                    .map(|(at, item)| format!("{}. {}", at + 1, item.question));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        About::Question {
            text: cut(&text),
            options: self
                .combinations()
                .iter()
                .map(|labels| labels.join(" · "))
                .collect(),
        }
    }

    /// The answers that stand for the option with this index: one list of labels per question.
    #[must_use]
    pub fn answers(&self, option: usize) -> Option<Vec<Vec<String>>> {
        let chosen = self.combinations().into_iter().nth(option)?;
        Some(chosen.into_iter().map(|label| vec![label]).collect())
    }

    fn combinations(&self) -> Vec<Vec<String>> {
        let count = self
            .questions
            .iter()
            .try_fold(1_usize, |count, item| count.checked_mul(item.options.len()));
        let single = self.questions.len() == 1;
        if self.questions.is_empty() || (!single && count.is_none_or(|count| count > OPTIONS_MAX)) {
            return Vec::new();
        }
        let mut rows: Vec<Vec<String>> = vec![Vec::new()];
        for item in &self.questions {
            rows = rows
                .iter()
                .flat_map(|row| {
                    item.options.iter().take(OPTIONS_MAX).map(move |option| {
                        let mut row = row.clone();
                        row.push(option.label.clone());
                        row
                    })
                })
                .collect();
        }
        rows
    }
}

/// Several lines stay, up to the bound.
fn cut(text: &str) -> String {
    if text.chars().count() <= SUBJECT_CHARS_MAX {
        return text.to_owned();
    }
    first_line(&text.replace('\n', " "), SUBJECT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn question(options: &[&[&str]]) -> Question {
        let items: Vec<Value> = options
            .iter()
            .map(|labels| json!({"question": "Which?", "options": labels.iter().map(|l| json!({"label": l})).collect::<Vec<_>>()}))
            .collect();
        serde_json::from_value(json!({"id": "que_1", "sessionID": "ses_1", "questions": items}))
            .unwrap()
    }

    #[test]
    fn one_question_is_answered_by_its_label() {
        let asked = question(&[&["red", "blue"]]);
        assert_eq!(
            asked.about(),
            About::Question {
                text: "Which?".into(),
                options: vec!["red".into(), "blue".into()]
            }
        );
        assert_eq!(asked.answers(1).unwrap(), [["blue"]]);
        assert_eq!(asked.answers(2), None);
    }

    #[test]
    fn questions_asked_together_are_answered_together() {
        let asked = question(&[&["a", "b"], &["x", "y", "z"]]);
        let About::Question { text, options } = asked.about() else {
            panic!("a question")
        };
        assert_eq!(text, "1. Which?\n2. Which?");
        assert_eq!(
            options,
            ["a · x", "a · y", "a · z", "b · x", "b · y", "b · z"]
        );
        assert_eq!(asked.answers(4).unwrap(), [["b"], ["y"]]);
    }

    #[test]
    fn too_many_combinations_leave_only_no() {
        let asked = question(&[&["1", "2", "3"], &["1", "2", "3"], &["1", "2", "3"]]);
        assert_eq!(asked.answers(0), None);
    }

    #[test]
    fn a_command_that_reaches_outside_the_project_is_shown_whole() {
        let asked: Permission = serde_json::from_value(json!({
            "id": "per_1", "sessionID": "s", "permission": "external_directory", "patterns": ["/dev/*"], "metadata": {}
        }))
        .unwrap();
        let call = json!({"command": "cat /dev/null; date"});
        assert_eq!(
            asked.about(Some(&call)),
            About::Permission {
                action: "external_directory".into(),
                subject: "cat /dev/null; date (outside the project: /dev/*)".into()
            }
        );
    }
}
