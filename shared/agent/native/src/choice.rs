//! The agent that a turn wants, and its mode.

use bobbin_agent::models::{ModelRoute, Models};
use bobbin_core::base::failure::Failure;

/// The default agent. Its modes are named without a prefix, as they are without a daemon.
pub(crate) const DEFAULT: &str = "opencode";
/// Prefix of the ids of its own sessions, as they are begun without a daemon.
pub(crate) const DEFAULT_SESSION: &str = "ses_";
/// Further agents that can be chosen by name: each has its own driver in the daemon.
pub(crate) use bobbin_core::tenant::runtime_mode::AGENTS as OTHERS;
/// Agents that the daemon can install.
pub(crate) const FETCHED: [&str; 2] = ["claude", "codex"];
/// Agents that can be told to plan only.
pub(crate) const PLANNERS: [&str; 2] = ["claude", "codex"];
/// The plan mode.
pub(crate) const PLAN: &str = "plan";

/// A parsed choice: `claude`, `claude:plan`, `opencode`, or one of OpenCode's own modes such as `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentChoice<'a> {
    pub(crate) agent: &'a str,
    pub(crate) mode: Option<&'a str>,
}

impl<'a> AgentChoice<'a> {
    pub(crate) fn read(chosen: Option<&'a str>) -> Self {
        let Some(chosen) = chosen else {
            return Self { agent: DEFAULT, mode: None };
        };
        let (name, mode) = match chosen.split_once(':') {
            Some((name, mode)) => (name, Some(mode)),
            None => (chosen, None),
        };
        if name == DEFAULT || OTHERS.contains(&name) {
            return Self { agent: name, mode };
        }
        Self { agent: DEFAULT, mode: Some(chosen) }
    }

    /// The mode with which a session of the agent is created. OpenCode's mode is set for each turn.
    pub(crate) fn of_session(self) -> Option<&'a str> {
        self.mode.filter(|_| self.agent != DEFAULT)
    }

    /// The mode of a turn in its session.
    pub(crate) fn of_turn(self) -> Option<&'a str> {
        self.mode.filter(|_| self.agent == DEFAULT)
    }

    /// The agent's own name of a model; `None` if the agent chooses.
    ///
    /// # Errors
    /// It does not run such a model.
    pub(crate) fn model(
        self,
        models: &Models,
        route: &ModelRoute,
    ) -> Result<Option<String>, Failure> {
        let maker = match self.agent {
            DEFAULT => return Ok(Some(route.at_server.clone())),
            "claude" => "anthropic",
            "codex" => "openai",
            // It has only its vendor's own models.
            _ => return Ok(None),
        };
        if models.reaches(maker, route) {
            return Ok(Some(route.model.clone()));
        }
        Err(Failure::TurnFailed {
            reason: format!(
                "{} cannot use {}/{} here: it reaches only models of {maker}. Choose one of those.",
                self.agent, route.provider, route.model
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_agent::models::{ModelKeys, ModelSettings};

    use super::*;

    #[test]
    fn choice_separates_agent_from_mode() {
        for (chosen, agent, mode) in [
            (None, "opencode", None),
            (Some("opencode"), "opencode", None),
            (Some("plan"), "opencode", Some("plan")),
            (Some("opencode:plan"), "opencode", Some("plan")),
            (Some("my-reviewer"), "opencode", Some("my-reviewer")),
            (Some("claude"), "claude", None),
            (Some("codex:plan"), "codex", Some("plan")),
        ] {
            assert_eq!(AgentChoice::read(chosen), AgentChoice { agent, mode }, "{chosen:?}");
        }
        assert_eq!(AgentChoice::read(Some("plan")).of_session(), None);
        assert_eq!(AgentChoice::read(Some("claude:plan")).of_session(), Some("plan"));
        assert_eq!(AgentChoice::read(Some("claude:plan")).of_turn(), None);
    }

    #[test]
    fn agents_get_only_reachable_models() {
        let of = |base_url: Option<&str>, keys: ModelKeys| {
            let settings = ModelSettings {
                model: "anthropic/a".to_owned(),
                models: Vec::new(),
                model_base_url: base_url.map(str::to_owned),
                keys,
                prices: Default::default(),
            };
            Models::new(&settings).unwrap()
        };
        let keys = |anthropic: &str| ModelKeys {
            anthropic: anthropic.to_owned(),
            openai: "o".to_owned(),
            ..ModelKeys::default()
        };
        let model = |models: &Models, agent: &str, name: &str| {
            let route = models.route(name).unwrap();
            AgentChoice::read(Some(agent)).model(models, &route)
        };
        let some = |name: &str| Ok(Some(name.to_owned()));
        let makers = of(None, keys("a"));
        assert_eq!(model(&makers, "plan", "anthropic/a"), some("anthropic/a"));
        assert_eq!(model(&makers, "claude", "anthropic/a"), some("a"));
        assert_eq!(model(&makers, "codex", "openai/b"), some("b"));
        assert_eq!(model(&makers, "amp", "anthropic/a"), Ok(None));
        assert_eq!(
            model(&makers, "codex", "anthropic/a"),
            Err(Failure::TurnFailed {
                reason: "codex cannot use anthropic/a here: it reaches only models of openai. Choose one of those."
                    .to_owned()
            })
        );
        // A custom endpoint replaces a vendor without a key, and always openai.
        let own = of(Some("https://models.example.com/v1"), keys(""));
        assert_eq!(model(&own, "claude", "anthropic/a"), some("a"));
        assert_eq!(model(&own, "codex", "anthropic/a"), some("a"));
    }
}
