//! Recipes: how a repository's project is made ready in a sandbox.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Steps of a kind.
pub const STEPS_MAX: usize = 20;
/// Maximum bytes of one step's commands.
pub const STEP_BYTES_MAX: usize = 4_096;
/// Maximum bytes of a whole recipe: it is stored in its sandbox's record.
pub const RECIPE_BYTES_MAX: usize = 8_192;
/// Bytes of a step's name.
pub const NAME_BYTES_MAX: usize = 80;

/// Names that would change programs outside of the project: what is run, what it loads, where it sends things.
const REFUSED: [&str; 4] = ["PATH", "BASH_ENV", "ENV", "NODE_OPTIONS"];
const REFUSED_BEGINNINGS: [&str; 10] = [
    "LD_",
    "PYTHON",
    "GIT_",
    "GH_",
    "GITHUB_",
    "OPENCODE",
    "ANTHROPIC",
    "OPENAI",
    "OPENROUTER",
    "BOBBIN",
];

/// Whether neither a repository's file nor a project's secret may set this variable, though a recipe of the tenant's
/// settings may.
#[must_use]
pub fn is_refused_variable(name: &str) -> bool {
    REFUSED.contains(&name)
        || REFUSED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.ends_with("_BASE_URL")
        // Programs read `http_proxy` as well as `HTTP_PROXY`.
        || name.to_ascii_uppercase().ends_with("_PROXY")
}

/// What a project needs before somebody can work in it. Its texts are a repository's, unless a manager wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recipe {
    /// Where it was found.
    pub from: RecipeSource,
    /// Its steps are derived from lock files: nobody wrote them, and they do not depend on each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_derived: bool,
    /// Steps of each new sandbox, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_up: Vec<RecipeStep>,
    /// Steps of each start of the sandbox, in this order, once the services run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<RecipeStep>,
    /// Services that run beside the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ProjectService>,
    /// Ports on which the project listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Versions of tools that the project names: `("node", "22.4.0")`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<(String, String)>,
    /// Variables of the steps. The agent's own process does not get them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// What the file asks for and does not get: sentences for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// Where a recipe was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipeSource {
    /// In the tenant's settings.
    Settings,
    /// In this file of the repository's default branch.
    File(String),
    /// Nowhere, or nothing is to be run.
    Nothing,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecipeStep {
    /// Its name on the card: the recipe's own, or the first line of what it runs.
    pub name: String,
    /// A script for `bash`, or `sh` where there is none.
    pub run: String,
}

/// A service that Bobbin can start without Docker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectService {
    /// PostgreSQL on 127.0.0.1:5432, database and user `postgres`, without a password.
    Postgres,
    /// Redis on 127.0.0.1:6379.
    Redis,
}

impl ProjectService {
    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Redis => "Redis",
        }
    }

    /// Where an agent finds it.
    #[must_use]
    pub const fn where_it_is(self) -> &'static str {
        match self {
            Self::Postgres => {
                "PostgreSQL listens on 127.0.0.1:5432 (user and database postgres, no password)."
            }
            Self::Redis => "Redis listens on 127.0.0.1:6379.",
        }
    }
}

impl Recipe {
    /// The recipe as text: equal recipes have equal texts.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("every field has a JSON form")
    }

    /// A recipe without anything in it.
    #[must_use]
    pub const fn empty(from: RecipeSource) -> Self {
        Self {
            from,
            is_derived: false,
            set_up: Vec::new(),
            start: Vec::new(),
            services: Vec::new(),
            ports: Vec::new(),
            tools: Vec::new(),
            variables: BTreeMap::new(),
            refused: Vec::new(),
        }
    }
}

/// What a repository says about how it is made ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FoundRecipe {
    /// The recipe; `None`: it has none.
    pub recipe: Option<Box<Recipe>>,
    /// The commit of the default branch.
    pub commit: Option<String>,
    /// Clock of the sandbox's machine, in ticks since its start.
    pub ticks: u64,
    /// The lock files of that commit, as a hash; empty: it has none.
    pub locks: String,
    /// What a sandbox without a snapshot begins with, as a hash; `None`: no snapshots can be made here.
    pub image: Option<String>,
}
