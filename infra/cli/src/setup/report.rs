//! What a person sees while it works: numbered steps, and a line for each thing with what is right, wrong or left to do.

use crate::output::Status;

/// Counts what is told, so that the program ends with the right code.
#[derive(Debug, Default)]
pub struct Report {
    wrong: u32,
    left: u32,
    step: u32,
    steps: u32,
}

impl Report {
    /// For so many numbered steps; 0 for a step that runs alone and has no number.
    #[must_use]
    pub fn of(steps: u32) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// Numbers a step, where the report has several, and prints its title.
    pub fn step(&mut self, title: &str) {
        self.step += 1;
        match self.steps {
            0 => println!("{title}"),
            steps => println!("\n[{}/{steps}] {title}", self.step),
        }
    }

    /// Something is as it should be, or was done.
    pub fn right(&mut self, words: &str) {
        tell("ok", words);
    }

    /// Prints something worth knowing that is neither right nor wrong.
    pub fn note(&mut self, words: &str) {
        tell("note", words);
    }

    /// How far something is that takes time.
    pub fn progress(&mut self, words: &str) {
        tell("...", words);
    }

    /// Something is wrong, and what to do about it.
    pub fn wrong(&mut self, words: &str, advice: &str) {
        self.wrong += 1;
        tell("WRONG", words);
        if !advice.is_empty() {
            tell("", advice);
        }
    }

    /// Something is left to do.
    pub fn left(&mut self, words: &str) {
        self.left += 1;
        tell("to do", words);
    }

    /// Whether anything was wrong so far.
    #[must_use]
    pub const fn is_wrong(&self) -> bool {
        self.wrong > 0
    }

    /// How the command ends: what is wrong counts before what is left to do (a dry run found it, or another step has to come
    /// first).
    #[must_use]
    pub const fn status(&self) -> Status {
        match (self.wrong, self.left) {
            (0, 0) => Status::Done,
            (0, _) => Status::Notice,
            _ => Status::Failed,
        }
    }
}

/// A line with its mark; further lines stand below the words.
fn tell(mark: &str, words: &str) {
    let mut lines = words.lines();
    println!("  {mark:<6}{}", lines.next().unwrap_or_default());
    for line in lines {
        println!("        {line}");
    }
}
