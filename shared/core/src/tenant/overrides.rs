//! Settings that hardly anybody changes: bounds, addresses of outside services, the operator's own endpoint for models.
//!
//! The template has one parameter for all of them, a JSON object with these names. `sam deploy --guided` asks for every
//! parameter, and a question for each of these would come before the few that everybody must answer. Also, a new bound
//! needs no new parameter. What is lost is CloudFormation's check of each value; instead, an unknown name or a value of
//! the wrong type is one line when a function starts.

use serde::de::MapAccess;
use serde::{Deserialize, Deserializer, Serialize};

use crate::base::flat::{self, Flat, FlatEntry};
use crate::base::limits::Limits;
use crate::tenant::prices::ModelPrices;
use crate::tenant::runtime_mode::TOOLS;

/// The parameter `Overrides` of the template; fields that it leaves out have their defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overrides {
    /// Bounds that differ from the built-in ones.
    pub limits: Limits,
    /// Agents and their models.
    #[serde(flatten)]
    pub agents: AgentOverrides,
    /// Chats and the pages that they link to.
    #[serde(flatten)]
    pub chats: ChatOverrides,
    /// Providers of sandboxes.
    #[serde(flatten)]
    pub providers: ProviderOverrides,
    /// The forge.
    #[serde(flatten)]
    pub forge: ForgeOverrides,
}

/// Overrides for agents and their models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOverrides {
    /// Address of an OpenAI-compatible endpoint that serves the models; empty uses the provider's own.
    pub model_base_url: String,
    /// More models of that endpoint that can be chosen, as provider/model.
    pub models: Vec<String>,
    /// Prices of models, for those of which the agent knows none: such a model may not be used where a budget is set.
    pub prices: ModelPrices,
    /// Put model keys into the environment of each sandbox's server, even if the provider could keep them outside.
    pub model_keys_inside: bool,
    /// Tenants (`discord:GUILD`, `slack:TEAM`) whose repositories are trusted: files in them configure the agent, and
    /// its plugins, commands and MCP servers run beside the model keys. By default no tenant's are.
    pub project_config_of: Vec<String>,
    /// Tools that need a person's permission for each use, if the agent works in a sandbox other than its own.
    pub tools_ask: Vec<String>,
    /// Base of `OpenRouter`'s API, at which capped model keys are made.
    pub openrouter_api: String,
}

/// Overrides for chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatOverrides {
    /// Base of Discord's HTTP API.
    pub discord_api: String,
    /// Base of Slack's Web API.
    pub slack_api: String,
    /// Show short answers on Slack while they are being written, if the workspace accepts streams.
    pub slack_stream_answers: bool,
    /// Enter tenants' own keys in a Discord form, which Discord sees, and not on a page of ingress.
    pub keys_by_form: bool,
    /// Show managers, and the operator in a terminal, what each person has spent.
    pub usage_by_person: bool,
    /// Address of the page for keys, for ingress behind a domain; empty means the function's own address.
    pub page_url: String,
}

/// Overrides for the providers of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderOverrides {
    /// The provider that runs the sandboxes, by its name (`daytona`, `vercel`, `ssh`).
    pub provider: String,
    /// Base of Daytona's control API.
    pub daytona_api: String,
    /// Base of Vercel's API.
    pub vercel_api: String,
    /// The team at Vercel whose token is stored, by id.
    pub vercel_team_id: String,
    /// The project at Vercel in which sandboxes are created, by id.
    pub vercel_project_id: String,
    /// Image in Vercel's registry from which sandboxes are created; empty means Vercel's own.
    pub vercel_image: String,
    /// The hosts that run sandboxes over SSH, as their provider reads them.
    pub ssh_hosts: Vec<serde_json::Value>,
    /// Address to which daemons in sandboxes send nudges, as reachable from there; empty means the path `/nudge` at the
    /// function's own address.
    pub nudge_url: String,
}

/// Overrides for the forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgeOverrides {
    /// Base of GitHub's REST API.
    pub github_api: String,
    /// Base of its pages and clone addresses; empty means the one that belongs to the API.
    pub github_git: String,
    /// Name of the app in GitHub's addresses, for links to its installations.
    pub github_app: String,
}

impl Default for AgentOverrides {
    fn default() -> Self {
        Self {
            model_base_url: String::new(),
            models: Vec::new(),
            prices: ModelPrices::new(),
            model_keys_inside: false,
            project_config_of: Vec::new(),
            tools_ask: Vec::new(),
            openrouter_api: "https://openrouter.ai/api/v1".to_owned(),
        }
    }
}

impl Default for ForgeOverrides {
    fn default() -> Self {
        Self {
            github_api: "https://api.github.com".to_owned(),
            github_git: String::new(),
            github_app: "bobbin".to_owned(),
        }
    }
}

impl Default for ChatOverrides {
    fn default() -> Self {
        Self {
            discord_api: "https://discord.com/api/v10".to_owned(),
            slack_api: "https://slack.com/api".to_owned(),
            slack_stream_answers: false,
            keys_by_form: false,
            usage_by_person: false,
            page_url: String::new(),
        }
    }
}

impl Default for ProviderOverrides {
    fn default() -> Self {
        Self {
            provider: "daytona".to_owned(),
            daytona_api: "https://app.daytona.io/api".to_owned(),
            vercel_api: "https://vercel.com/api".to_owned(),
            vercel_team_id: String::new(),
            vercel_project_id: String::new(),
            vercel_image: String::new(),
            ssh_hosts: Vec::new(),
            nudge_url: String::new(),
        }
    }
}

impl Flat for Overrides {
    const EXPECTED: &'static str = "struct Overrides";

    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        entry: &mut FlatEntry<'_, A>,
    ) -> Result<bool, A::Error> {
        Ok(entry.into_field("limits", &mut self.limits)?
            || entry.into_group(&mut self.agents)?
            || entry.into_group(&mut self.chats)?
            || entry.into_group(&mut self.providers)?
            || entry.into_group(&mut self.forge)?)
    }
}

impl<'de> Deserialize<'de> for Overrides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        flat::deserialize(deserializer)
    }
}

impl Overrides {
    /// Reads the parameter; an empty one changes nothing.
    ///
    /// # Errors
    /// One line that names the unknown name or wrong value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("The parameter Overrides cannot be used: {why}");
        let read: Self = match text.trim() {
            "" => Self::default(),
            list if list.starts_with('[') => {
                return Err(wrong("it is a list, not a JSON object".to_owned()));
            }
            text => serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?,
        };
        read.limits.check().map_err(wrong)?;
        if let Some(unknown) =
            read.agents.tools_ask.iter().find(|one| !TOOLS.contains(&one.as_str()))
        {
            return Err(wrong(format!(
                "tools_ask names {unknown:?}; the tools are {}",
                TOOLS.join(", ")
            )));
        }
        let is_model = |name: &str| {
            name.split_once('/')
                .is_some_and(|(vendor, model)| !vendor.is_empty() && !model.is_empty())
        };
        if let Some(odd) = read.agents.prices.keys().find(|name| !is_model(name)) {
            return Err(wrong(format!(
                "prices names {odd:?}; a model is named vendor/model, such as openai/gpt-x"
            )));
        }
        let default = Self::default();
        for ((name, address), (_, own)) in read.addresses().into_iter().zip(default.addresses()) {
            if address.is_empty() && !own.is_empty() {
                return Err(wrong(format!(
                    "{name} is empty; leave it out for the service's own address"
                )));
            }
        }
        Ok(read)
    }

    /// The addresses among them, by name.
    #[must_use]
    pub fn addresses(&self) -> [(&'static str, &str); 10] {
        [
            ("discord_api", &self.chats.discord_api),
            ("slack_api", &self.chats.slack_api),
            ("daytona_api", &self.providers.daytona_api),
            ("vercel_api", &self.providers.vercel_api),
            ("model_base_url", &self.agents.model_base_url),
            ("openrouter_api", &self.agents.openrouter_api),
            ("page_url", &self.chats.page_url),
            ("nudge_url", &self.providers.nudge_url),
            ("github_api", &self.forge.github_api),
            ("github_git", &self.forge.github_git),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_overrides_have_defaults() {
        assert_eq!(Overrides::parse(""), Ok(Overrides::default()));
        assert_eq!(Overrides::parse("{}"), Ok(Overrides::default()));
        let read = Overrides::parse(
            r#"{"limits": {"idle_pause_ms": 1000}, "slack_stream_answers": true}"#,
        )
        .expect("valid");
        assert_eq!(read.limits.sandbox.idle_pause_ms, 1_000);
        assert!(read.chats.slack_stream_answers);
        assert_eq!(read.providers.daytona_api, "https://app.daytona.io/api");
    }

    #[test]
    fn bad_override_gives_one_line_error() {
        let refused = Overrides::parse(r#"{"slack_apis": "https://x"}"#).expect_err("unknown");
        assert!(
            refused.starts_with(
                "The parameter Overrides cannot be used: unknown field `slack_apis`, expected one of `limits`, `model_base_url`"
            ),
            "{refused}"
        );
        assert!(!refused.contains('\n'));
        let refused =
            Overrides::parse(r#"{"limits": {"idle_pause": 1}}"#).expect_err("unknown bound");
        assert!(refused.contains("unknown field `idle_pause`"), "{refused}");
        let refused = Overrides::parse(r#"{"limits": {"attempts": 0}}"#).expect_err("no attempt");
        assert_eq!(
            refused,
            "The parameter Overrides cannot be used: limits: attempts must be at least 1"
        );
        let refused = Overrides::parse(r#"{"slack_api": ""}"#).expect_err("empty");
        assert!(refused.contains("slack_api is empty"), "{refused}");
        let refused = Overrides::parse(r#"{"tools_ask": ["bash"]}"#).expect_err("no such tool");
        assert!(
            refused.ends_with("tools_ask names \"bash\"; the tools are run_command, read_file, write_file, edit_file, list_files, search, get_url, upload_file"),
            "{refused}"
        );
        let refused = Overrides::parse(r#"{"prices": {"gpt-x": {"input": 1, "output": 2}}}"#)
            .expect_err("no vendor");
        assert!(
            refused.contains("prices names \"gpt-x\"; a model is named vendor/model"),
            "{refused}"
        );
        for list in ["[1", "[]"] {
            let refused = Overrides::parse(list).expect_err("a list");
            assert!(refused.ends_with("it is a list, not a JSON object"));
        }
    }
}
