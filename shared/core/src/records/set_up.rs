//! How the project of a sandbox was made ready.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;
use crate::records::prebuild::BuildKey;
use crate::records::recipe::{Recipe, RecipeSource};

/// The project of one generation of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetUp {
    /// What is done; without its set-up steps once they are over.
    pub recipe: Recipe,
    /// The commit of the default branch that the recipe was read at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Clock of the sandbox's machine before the first step, in ticks since its start: later processes are the
    /// set-up's.
    pub since_ticks: u64,
    /// When the set-up was wanted, or the look that has begun it.
    pub begun_ms: Ms,
    /// A look has begun it. That another one says so changes nothing: a step can bring that about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_begun: bool,
    /// The ends of the steps so far, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<StepEnd>,
    /// When the set-up steps were over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ms: Option<Ms>,
    /// The steps that failed. The steps after the first failure were not run, unless they are derived from lock files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedStep>,
    /// Services and start steps that failed at the last start of the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_started: Vec<FailedStep>,
    /// What decides whether a prebuild fits; `None`: there are none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<BuildKey>,
    /// The commit at which the set-up steps were done in the prebuild that the sandbox began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prebuilt_at: Option<String>,
    /// A prebuild was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_requested: bool,
    /// Identifies the secrets whose values its steps could read, as they were when these began
    /// ([`crate::tenant::project_secrets::ProjectSecrets::read_by_set_up`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// In a builder, the steps that have ended, for people: nobody can look into it afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<RanStep>,
}

/// A step that has ended, for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RanStep {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub end: StepEnd,
    /// How long it took; `None`: nothing has counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<u64>,
    /// The end of its output, if it is the first that failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// It succeeded.
    Done,
    /// It ended with this exit code.
    Failed(i32),
    /// It was ended because it took too long.
    TooLong,
    /// It vanished with the sandbox's processes.
    Interrupted,
    /// A service that was not started: the sandboxes of this provider share one loopback, so others would reach it.
    Refused,
}

impl FailedStep {
    /// The shell knows no such program: it is not in the sandbox's image.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.end == StepEnd::Failed(127)
    }
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailedStep {
    /// Its name.
    pub name: String,
    /// How it ended; why, if it was not run.
    pub end: StepEnd,
    /// It was not run at all, and has no output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unrun: bool,
    /// The file with its output, below the agent's working directory.
    pub log: String,
}

/// What a look at a set-up that runs has seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SetUpSeen {
    /// The ends of the steps so far.
    pub ended: Vec<StepEnd>,
    /// How many steps after those were not run, because the time of all was over.
    pub unrun: usize,
    /// No step runs any more, and none will.
    pub is_over: bool,
    /// Processes of the set-up are left that could not be ended.
    pub is_left: bool,
    /// This look has begun it.
    pub has_begun: bool,
    /// The seconds that these steps took.
    pub took_s: Vec<u64>,
    /// The end of the output of the first one that failed, if it was wanted.
    pub said: String,
}

impl SetUpSeen {
    /// The first step that failed.
    #[must_use]
    pub fn first_failed(&self) -> Option<usize> {
        self.ended.iter().position(|end| *end != StepEnd::Done)
    }
}

impl SetUp {
    /// A set-up that is wanted from now on.
    #[must_use]
    pub fn begin(recipe: Recipe, commit: Option<String>, since_ticks: u64, now_ms: Ms) -> Self {
        let over_ms = recipe.set_up.is_empty().then_some(now_ms);
        Self {
            recipe,
            commit,
            since_ticks,
            begun_ms: now_ms,
            has_begun: false,
            ended: Vec::new(),
            over_ms,
            failed: Vec::new(),
            not_started: Vec::new(),
            key: None,
            prebuilt_at: None,
            is_requested: false,
            secrets: BTreeMap::new(),
            ran: Vec::new(),
        }
    }

    /// The record that nothing is to be done.
    #[must_use]
    pub fn nothing(now_ms: Ms) -> Self {
        Self::begin(Recipe::empty(RecipeSource::Nothing), None, 0, now_ms)
    }

    /// Its set-up steps were done in a prebuild, at this commit.
    pub fn was_done(&mut self, commit: String, now_ms: Ms) {
        self.recipe.set_up.clear();
        (self.over_ms, self.prebuilt_at) = (Some(now_ms), Some(commit));
    }

    /// Keeps what a look has seen for people.
    pub fn tell(&mut self, seen: &SetUpSeen) {
        let (failed, steps) = (seen.first_failed(), self.recipe.set_up.iter().enumerate());
        let ran = steps.zip(&seen.ended).map(|((nth, step), end)| RanStep {
            name: step.name.clone(),
            end: *end,
            took_s: seen.took_s.get(nth).copied(),
            said: if failed == Some(nth) { seen.said.clone() } else { String::new() },
        });
        self.ran = ran.collect();
    }

    /// Folds in what a look has seen. The steps are dropped once they are over: what remains is repeated at each start.
    pub fn see(&mut self, seen: &SetUpSeen, now_ms: Ms) {
        self.ended.clone_from(&seen.ended);
        self.ended.truncate(self.recipe.set_up.len());
        if !seen.is_over {
            return;
        }
        let steps = std::mem::take(&mut self.recipe.set_up);
        let failed = |nth: &usize| self.ended.get(*nth) != Some(&StepEnd::Done);
        // The processes may have vanished between two steps.
        let known = (0..steps.len().min(self.ended.len() + seen.unrun.max(1))).filter(failed);
        let most = if self.recipe.is_derived { steps.len() } else { 1 };
        let is_unrun = seen.unrun > 0;
        let without = if is_unrun { StepEnd::TooLong } else { StepEnd::Interrupted };
        let failed = known.take(most).map(|nth| FailedStep {
            name: steps[nth].name.clone(),
            end: self.ended.get(nth).copied().unwrap_or(without),
            is_unrun: is_unrun && nth >= self.ended.len(),
            log: step_log(nth),
        });
        self.failed = failed.collect();
        self.over_ms = Some(now_ms);
    }
}

/// The file with the output of the n-th set-up step, from 0, below the agent's working directory.
#[must_use]
pub fn step_log(nth: usize) -> String {
    format!(".bobbin/set-up/{}.log", nth + 1)
}
