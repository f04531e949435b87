//! Which agent a turn wants, and in which of its modes.

use bobbin_agent::opencode::models::{ModelRoute, Models};
use bobbin_core::base::failure::Failure;

/// The agent of turns that choose none, and the one whose modes go by their bare names, as they do without a daemon.
pub(crate) const DEFAULT: &str = "opencode";
/// Agents that can be chosen by name, besides: each with a driver of its own in the daemon.
pub(crate) use bobbin_core::tenant::runtime_mode::AGENTS as OTHERS;
/// Those that the daemon can fetch.
pub(crate) const FETCHED: [&str; 2] = ["claude", "codex"];
/// Those that can be told to plan only.
pub(crate) const PLANNERS: [&str; 2] = ["claude", "codex"];
/// That mode.
pub(crate) const PLAN: &str = "plan";

/// What was chosen, read: `claude`, `claude:plan`, `opencode`, or a mode of OpenCode's own such as `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice<'a> {
    pub(crate) agent: &'a str,
    pub(crate) mode: Option<&'a str>,
}

impl<'a> Choice<'a> {
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

    /// The mode that a session of the agent is made with. OpenCode's is of each turn.
    pub(crate) fn of_session(self) -> Option<&'a str> {
        self.mode.filter(|_| self.agent != DEFAULT)
    }

    /// The mode of a turn in its session.
    pub(crate) fn of_turn(self) -> Option<&'a str> {
        self.mode.filter(|_| self.agent == DEFAULT)
    }

    /// The agent's own name of a model; none where it is left to the agent.
    ///
    /// # Errors
    /// It runs no such model.
    pub(crate) fn model(
        self,
        models: &Models,
        route: &ModelRoute,
    ) -> Result<Option<String>, Failure> {
        let maker = match self.agent {
            DEFAULT => return Ok(Some(route.at_server.clone())),
            "claude" => "anthropic",
            "codex" => "openai",
            // It has no other models than its maker gives it.
            _ => return Ok(None),
        };
        if models.reaches(maker, route) {
            return Ok(Some(route.model.clone()));
        }
        Err(Failure::TurnFailed {
            reason: format!(
                "{} cannot use {}/{} here: it reaches models of {maker} alone. Choose one of those with it.",
                self.agent, route.provider, route.model
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_agent::opencode::models::{ModelKeys, ModelSettings};

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
            assert_eq!(Choice::read(chosen), Choice { agent, mode }, "{chosen:?}");
        }
        assert_eq!(Choice::read(Some("plan")).of_session(), None);
        assert_eq!(Choice::read(Some("claude:plan")).of_session(), Some("plan"));
        assert_eq!(Choice::read(Some("claude:plan")).of_turn(), None);
    }

    #[test]
    fn agents_get_only_reachable_models() {
        let of = |base_url: Option<&str>, keys: ModelKeys| {
            let settings = ModelSettings {
                model: "anthropic/a".to_owned(),
                models: Vec::new(),
                model_base_url: base_url.map(str::to_owned),
                keys,
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
            Choice::read(Some(agent)).model(models, &route)
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
                reason: "codex cannot use anthropic/a here: it reaches models of openai alone. Choose one of those with it."
                    .to_owned()
            })
        );
        // An endpoint of one's own stands in for a maker without a key of its own, and always for openai.
        let own = of(Some("https://models.example.com/v1"), keys(""));
        assert_eq!(model(&own, "claude", "anthropic/a"), some("a"));
        assert_eq!(model(&own, "codex", "anthropic/a"), some("a"));
    }
}
