//! The catalogue of a tenant: what the agents of its sandboxes offer and what was used recently, for suggestions only.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::ids::SandboxName;
use crate::schema::UnknownFields;
use crate::tenant::repositories;
use crate::tenant::sandbox_hint::SandboxHint;
use crate::tenant::selection::Selection;
use crate::tenant::settings::DefaultKind;

/// Entries of each list of the catalogue.
const CATALOGUE_MAX: usize = 200;
/// Entries of each list of recent use.
const RECENT_MAX: usize = 25;

/// What the agents of a tenant's sandboxes offer, and what was used recently. Only for suggestions: people may type
/// anything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Catalogue {
    /// Models of the agents' configured providers, as provider/model.
    pub models: Vec<String>,
    /// Agents that a prompt can be given to.
    pub agents: Vec<String>,
    /// Providers of sandboxes that are set up, the configured one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// Recent choices of turns, newest first.
    pub recent: RecentChoices,
    /// Cached status of named sandboxes, by their last write. The owners of the names are stored elsewhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sandboxes: BTreeMap<SandboxName, SandboxHint>,
    /// Stored fields that this build does not know; written back unchanged.
    #[serde(skip)]
    pub unknown: UnknownFields,
}

/// Models and agents that one sandbox's agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AgentOptions {
    /// The models, each as `provider/model`.
    pub models: Vec<String>,
    /// Agents that a prompt can be given to.
    pub agents: Vec<String>,
    /// The models without a known price: their cost counts as nothing.
    pub unpriced: Vec<String>,
}

/// Recent choices of turns, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentChoices {
    /// The repositories used, newest first.
    pub repos: Vec<String>,
    /// The models used, newest first.
    pub models: Vec<String>,
    /// The agents used, newest first.
    pub agents: Vec<String>,
}

impl RecentChoices {
    /// Notes what a turn uses. Returns whether that changed anything.
    pub fn note(&mut self, used: &Selection) -> bool {
        let before = self.clone();
        // A pull request is nobody's next one.
        let repo = used.repo.as_deref().map(|repo| repositories::numbered(repo).0.to_owned());
        for (list, value) in [
            (&mut self.repos, &repo),
            (&mut self.models, &used.model),
            (&mut self.agents, &used.agent),
        ] {
            if let Some(value) = value {
                list.retain(|known| known != value);
                list.insert(0, value.clone());
                list.truncate(RECENT_MAX);
            }
        }
        *self != before
    }
}

impl Catalogue {
    /// Adds what a sandbox's agent offers. Returns whether that changed anything. Agents of other sandboxes stay,
    /// because projects bring their own; an offer that is missing removes nothing.
    pub fn learn(&mut self, offer: &AgentOptions) -> bool {
        let before = (self.models.clone(), self.agents.clone());
        if !offer.models.is_empty() {
            self.models.clone_from(&offer.models);
            self.models.truncate(CATALOGUE_MAX);
        }
        for agent in &offer.agents {
            if !self.agents.contains(agent) {
                self.agents.push(agent.clone());
            }
        }
        let surplus = self.agents.len().saturating_sub(CATALOGUE_MAX);
        self.agents.drain(..surplus);
        (&self.models, &self.agents) != (&before.0, &before.1)
    }

    /// Notes a sandbox's status. Returns whether that changed anything. If there are too many, the longest unused one
    /// is forgotten.
    pub fn note_sandbox(&mut self, name: &SandboxName, glance: SandboxHint) -> bool {
        if self.sandboxes.get(name) == Some(&glance) {
            return false;
        }
        self.sandboxes.insert(name.clone(), glance);
        if self.sandboxes.len() > CATALOGUE_MAX {
            let longest = self.sandboxes.iter().min_by_key(|(_, one)| one.last_used_ms);
            let longest = longest.map(|(name, _)| name.clone());
            longest.and_then(|name| self.sandboxes.remove(&name));
        }
        true
    }

    /// Up to `most` suggestions that contain the typed text, ignoring case; recently used ones come first.
    #[must_use]
    pub fn suggest(&self, kind: DefaultKind, typed: &str, most: usize) -> Vec<&str> {
        let (recent, offered): (&[String], &[String]) = match kind {
            DefaultKind::Repo => (&self.recent.repos, &[]),
            DefaultKind::Model => (&self.recent.models, &self.models),
            DefaultKind::Agent => (&self.recent.agents, &self.agents),
            DefaultKind::Provider => (&[], &self.providers),
            _ => (&[], &[]),
        };
        let typed = typed.trim().to_lowercase();
        let mut seen = BTreeSet::new();
        recent
            .iter()
            .chain(offered)
            .map(String::as_str)
            .chain(kind.choices().iter().copied())
            .filter(|one| one.to_lowercase().contains(&typed) && seen.insert(*one))
            .take(most)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_forgets_longest_unused_sandbox() {
        let mut catalogue = Catalogue::default();
        let name = |n: usize| format!("box-{n}").parse::<SandboxName>().expect("a name");
        let glance = |last_used_ms: u64| SandboxHint {
            state: "running".to_owned(),
            last_used_ms,
            in_use: 0,
        };
        for n in 0..=CATALOGUE_MAX {
            let at_ms = 1_000 + u64::try_from(n).expect("small");
            assert!(catalogue.note_sandbox(&name(n), glance(at_ms)));
        }
        assert_eq!(catalogue.sandboxes.len(), CATALOGUE_MAX);
        assert!(!catalogue.sandboxes.contains_key(&name(0)));
        assert!(!catalogue.note_sandbox(&name(1), glance(1_001)), "no news");
    }

    #[test]
    fn catalogue_replaces_models_keeps_agents() {
        let mut catalogue = Catalogue::default();
        let offer = |models: &[&str], agents: &[&str]| AgentOptions {
            models: models.iter().map(ToString::to_string).collect(),
            agents: agents.iter().map(ToString::to_string).collect(),
            unpriced: Vec::new(),
        };
        assert!(catalogue.learn(&offer(&["a/1", "a/2"], &["build", "own"])));
        assert!(!catalogue.learn(&offer(&["a/1", "a/2"], &["build"])));
        assert!(catalogue.learn(&offer(&["a/2"], &["build", "plan"])));
        assert!(!catalogue.learn(&AgentOptions::default()));
        assert_eq!(catalogue.models, ["a/2"]);
        assert_eq!(catalogue.agents, ["build", "own", "plan"]);
    }

    #[test]
    fn recent_values_are_suggested_first() {
        let mut catalogue = Catalogue {
            models: vec!["anthropic/a".to_owned(), "openai/b".to_owned()],
            ..Catalogue::default()
        };
        let used = Selection { model: Some("openai/b".to_owned()), ..Selection::default() };
        assert!(catalogue.recent.note(&used));
        assert!(!catalogue.recent.note(&used));
        assert_eq!(catalogue.suggest(DefaultKind::Model, "", 25), ["openai/b", "anthropic/a"]);
        assert_eq!(catalogue.suggest(DefaultKind::Model, "ANTH", 25), ["anthropic/a"]);
        assert_eq!(catalogue.suggest(DefaultKind::Model, "", 1), ["openai/b"]);
    }
}
