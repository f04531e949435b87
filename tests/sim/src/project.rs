//! The project of a sandbox, and its set-up.

use std::collections::BTreeMap;

use bobbin_core::base::ids::Ms;
use bobbin_core::records::recipe::{FoundRecipe, ProjectService, Recipe, RecipeSource, RecipeStep};
use bobbin_core::records::set_up::{SetUpSeen, StepEnd};

/// The project in one sandbox.
#[derive(Debug, Clone, Copy, Default)]
pub struct Project {
    /// When its set-up began.
    begun_ms: Option<Ms>,
    /// Processes of the set-up may run until somebody has seen that it is over.
    pub runs: bool,
    /// Its services were started after the sandbox's last start.
    pub is_started: bool,
    /// The set-up was cut off.
    is_cut: bool,
    /// The prebuild that the sandbox began with already had it.
    pub is_prebuilt: bool,
}

/// How long a set-up takes, in milliseconds.
pub const SET_UP_MS: u64 = 25_000;

/// The recipe in the repository of every second sandbox.
pub fn recipe(nth: usize) -> FoundRecipe {
    let step = |name: &str| RecipeStep { name: name.to_owned(), run: name.to_owned() };
    let from = RecipeSource::File(".bobbin/environment.yaml".to_owned());
    let recipe = Recipe {
        set_up: vec![step("install"), step("migrate")],
        services: vec![ProjectService::Postgres],
        variables: BTreeMap::from([("CI".to_owned(), "true".to_owned())]),
        ..Recipe::empty(from)
    };
    let recipe = (!nth.is_multiple_of(2)).then(|| Box::new(recipe));
    let (locks, image) = ("locks".to_owned(), Some("image".to_owned()));
    FoundRecipe { recipe, commit: Some("a".repeat(40)), ticks: 7, locks, image }
}

/// A repository without a recipe.
pub const fn nothing() -> FoundRecipe {
    FoundRecipe { recipe: None, commit: None, ticks: 0, locks: String::new(), image: None }
}

impl Project {
    /// Its set-up has begun.
    pub const fn has_begun(&self) -> bool {
        self.begun_ms.is_some()
    }

    /// A poll, which begins the set-up unless it has begun.
    pub fn look(&mut self, steps: usize, takes_ms: u64, now_ms: Ms) -> SetUpSeen {
        let has_begun = !self.has_begun();
        let begun_ms = *self.begun_ms.get_or_insert(now_ms);
        let each_ms = (takes_ms / steps.max(1) as u64).max(1);
        let done = usize::try_from((now_ms - begun_ms) / each_ms).unwrap_or(steps).min(steps);
        let done = if self.is_cut { done.min(steps.saturating_sub(1)) } else { done };
        let is_over = self.is_cut || done == steps;
        self.runs = !is_over;
        let ended = vec![StepEnd::Done; done];
        SetUpSeen { ended, is_over, has_begun, ..SetUpSeen::default() }
    }

    /// The sandbox stopped, and with it every process.
    pub fn stops(&mut self) {
        self.is_cut |= self.runs;
        (self.runs, self.is_started) = (false, false);
    }
}
