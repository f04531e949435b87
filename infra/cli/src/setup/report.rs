//! Progress output for a person: numbered steps, and a line for each thing that is right, wrong or left to do. A
//! program gets the same as one JSON object at the end.

use serde::Serialize;
use serde_json::Value;

use crate::columns::visible;
use crate::output::ExitStatus;

/// Counts findings for the exit code.
#[derive(Debug, Default)]
pub struct Report {
    wrong: u32,
    left: u32,
    step: u32,
    steps: u32,
    /// For JSON: the findings so far; nothing is printed on the way.
    kept: Option<Vec<ReportStep>>,
}

/// A step and its findings in JSON.
#[derive(Debug, Default, Serialize)]
struct ReportStep {
    /// `None` for a step that runs alone.
    title: Option<String>,
    lines: Vec<FindingLine>,
}

#[derive(Debug, Serialize)]
struct FindingLine {
    /// `ok`, `note`, `progress`, `wrong` or `to do`.
    is: &'static str,
    words: String,
    advice: Option<String>,
}

impl Report {
    /// Collects the findings for JSON.
    #[must_use]
    pub fn kept_for_json(mut self, json: bool) -> Self {
        self.kept = json.then(Vec::new);
        self
    }

    /// The JSON object; `None` if the text was printed.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        let steps = self.kept.as_ref()?;
        Some(serde_json::json!({"steps": steps, "wrong": self.wrong, "left": self.left}))
    }

    /// Total of numbered steps; 0 for a step that runs alone, without a number.
    #[must_use]
    pub fn of(steps: u32) -> Self {
        Self { steps, ..Self::default() }
    }

    /// Starts a step: prints its number, if there are several, and its title.
    pub fn step(&mut self, title: &str) {
        self.step += 1;
        if let Some(kept) = &mut self.kept {
            kept.push(ReportStep { title: Some(title.to_owned()), lines: Vec::new() });
            return;
        }
        match self.steps {
            0 => show!("{title}"),
            steps => show!("\n[{}/{steps}] {title}", self.step),
        }
    }

    /// Something is right, or was done.
    pub fn right(&mut self, words: &str) {
        self.tell("ok", "ok", words, "");
    }

    /// A note that is neither right nor wrong.
    pub fn note(&mut self, words: &str) {
        self.tell("note", "note", words, "");
    }

    /// Progress of something slow.
    pub fn progress(&mut self, words: &str) {
        self.tell("progress", "...", words, "");
    }

    /// What a person has to do while the command waits. It is always printed at once.
    pub fn call(&mut self, words: &str) {
        if self.kept.is_some() {
            tell!("{words}");
        }
        self.tell("progress", "...", words, "");
    }

    /// Something is wrong; with advice.
    pub fn wrong(&mut self, words: &str, advice: &str) {
        self.wrong += 1;
        self.tell("wrong", "WRONG", words, advice);
    }

    /// Something is left to do.
    pub fn left(&mut self, words: &str) {
        self.left += 1;
        self.tell("to do", "to do", words, "");
    }

    /// Whether anything is wrong so far.
    #[must_use]
    pub const fn is_wrong(&self) -> bool {
        self.wrong > 0
    }

    /// The exit code: wrong takes precedence over left to do (found by a dry run, or needing another step first).
    #[must_use]
    pub const fn status(&self) -> ExitStatus {
        match (self.wrong, self.left) {
            (0, 0) => ExitStatus::Done,
            (0, _) => ExitStatus::Notice,
            _ => ExitStatus::Failed,
        }
    }

    fn tell(&mut self, is: &'static str, mark: &str, words: &str, advice: &str) {
        let Some(kept) = &mut self.kept else {
            line(mark, words);
            if !advice.is_empty() {
                line("", advice);
            }
            return;
        };
        if kept.is_empty() {
            kept.push(ReportStep::default());
        }
        if let Some(step) = kept.last_mut() {
            step.lines.push(FindingLine {
                is,
                words: words.to_owned(),
                advice: (!advice.is_empty()).then(|| advice.to_owned()),
            });
        }
    }
}

/// Prints a line with its mark; further lines are indented below.
fn line(mark: &str, words: &str) {
    let words = visible(words);
    let mut lines = words.lines();
    show!("  {mark:<6}{}", lines.next().unwrap_or_default());
    for line in lines {
        show!("        {line}");
    }
}
