//! The steps of a set-up that has run in a builder.

use bobbin_core::records::recipe::RecipeSource;
use bobbin_core::records::set_up::{RanStep, SetUp, StepEnd};
use serde::Serialize;

use crate::columns::{one_line, visible};
use crate::time::span;

/// A step in JSON.
#[derive(Debug, Serialize)]
pub struct StepLine {
    name: String,
    /// `passed`, `failed`, `too long`, `interrupted`, `not run` or `refused`.
    end: &'static str,
    /// Its exit code, if it failed with one.
    exit: Option<i32>,
    took_ms: Option<u64>,
    /// The end of the output of the first step that failed.
    said: Option<String>,
}

/// Those that have ended; the last one may have been interrupted, or no time was left for the others.
pub fn all(set_up: &SetUp) -> Vec<StepLine> {
    let ran = set_up.ran.iter().map(line);
    let others = set_up.failed.iter().filter(|one| one.is_unrun || one.end == StepEnd::Interrupted);
    ran.chain(others.map(|one| StepLine {
        name: one.name.clone(),
        end: if one.is_unrun { "not run" } else { "interrupted" },
        exit: None,
        took_ms: None,
        said: None,
    }))
    .collect()
}

fn line(step: &RanStep) -> StepLine {
    let (end, exit) = match step.end {
        StepEnd::Done => ("passed", None),
        StepEnd::Failed(code) => ("failed", Some(code)),
        StepEnd::TooLong => ("too long", None),
        StepEnd::Interrupted => ("interrupted", None),
        StepEnd::Refused => ("refused", None),
    };
    StepLine {
        name: step.name.clone(),
        end,
        exit,
        took_ms: step.took_s.map(|seconds| seconds * 1_000),
        said: Some(step.said.clone()).filter(|said| !said.is_empty()),
    }
}

/// The same for people, a line each, below a failed one what it has said.
pub fn words(set_up: &SetUp) -> Vec<String> {
    let mut lines = Vec::new();
    for step in all(set_up) {
        let exit = step.exit.map(|code| format!("exit code {code}"));
        let facts: Vec<String> = exit.into_iter().chain(step.took_ms.map(span)).collect();
        let facts = match facts.join(", ") {
            none if none.is_empty() => none,
            facts => format!(" ({facts})"),
        };
        lines.push(format!("  {:<11} {}{facts}", step.end, one_line(&step.name)));
        let said = step.said.as_deref().unwrap_or_default().lines();
        lines.extend(said.map(|line| format!("      {}", visible(line))));
    }
    let is_cut = !set_up.failed.is_empty() && !set_up.recipe.is_derived;
    if is_cut {
        lines.push("  Steps after the failed one were not run.".to_owned());
    }
    lines.extend(not_done(&set_up.recipe.refused));
    lines
}

/// What a recipe asks for and does not get.
pub fn not_done(refused: &[String]) -> Vec<String> {
    let each = refused.iter().map(|one| format!("- {}", one_line(one)));
    let head = (!refused.is_empty()).then(|| "Not done:".to_owned());
    head.into_iter().chain(each).collect()
}

/// Where its recipe stands.
pub fn source(from: &RecipeSource) -> &str {
    match from {
        RecipeSource::Settings | RecipeSource::Nothing => "the settings",
        RecipeSource::File(path) => path,
    }
}
