//! The daemon as a [`Runtime`].

use std::sync::Arc;

use bobbin_agent::models::{ModelSettings, Models};
use bobbin_agent::opencode::{OpenCodeRuntime, Via};
use bobbin_agent::{Agent, LaunchInputs, ModelKey, Refresh, Runtime, RuntimeFacts, ServerLaunch};
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_http::Http;

use crate::daemon::Daemon;
use crate::native::NativeAgent;

/// Address of Claude Code's models; without it, the vendor's own.
const CLAUDE_BASE: &str = "ANTHROPIC_BASE_URL";
/// The variable with its key.
const CLAUDE_KEY: &str = "ANTHROPIC_API_KEY";
/// Address of Codex's models without a custom endpoint, and the variable with its key.
const CODEX: (&str, &str) = ("https://api.openai.com/v1", "OPENAI_API_KEY");
/// Disables a project's own configuration of agents.
const PROJECT_CONFIG: (&str, &str) = ("BOBBIN_AGENTD_PROJECT_CONFIG", "off");
/// The variable with Codex's configuration.
const CODEX_CONFIG: &str = "BOBBIN_CODEX_CONFIG";

/// Agents of any kind, with the models of a stack.
#[derive(Debug)]
pub struct NativeRuntime {
    /// The daemon is started as OpenCode is when reached through it.
    opencode: OpenCodeRuntime,
    models: Arc<Models>,
    instructions: Arc<str>,
}

impl NativeRuntime {
    /// With these models, and instructions for agents besides their prompts.
    ///
    /// # Errors
    /// What is wrong with a model's name.
    pub fn new(settings: &ModelSettings, instructions: &str) -> Result<Self, String> {
        Ok(Self {
            opencode: OpenCodeRuntime::new(settings)?.reached(Via::Daemon),
            models: Arc::new(Models::new(settings)?),
            instructions: instructions.into(),
        })
    }
}

impl Runtime for NativeRuntime {
    fn facts(&self) -> RuntimeFacts<'_> {
        self.opencode.facts()
    }

    fn keys(&self) -> Result<Vec<ModelKey>, Failure> {
        self.opencode.keys()
    }

    fn launch(&self, inputs: LaunchInputs<'_>) -> Result<ServerLaunch, Failure> {
        let mut launch = self.opencode.launch(inputs)?;
        if !inputs.is_trusted {
            let (name, value) = PROJECT_CONFIG;
            launch.environment.insert(name.to_owned(), value.to_owned());
        }
        let mut before = String::from("umask 077\n");
        if let Some((base, variable)) = self.models.endpoint_for("anthropic") {
            let base = base.trim_end_matches('/').trim_end_matches("/v1");
            launch.environment.insert(CLAUDE_BASE.to_owned(), base.to_owned());
            if variable != CLAUDE_KEY {
                before += &format!("{CLAUDE_KEY}=\"${variable}\"; export {CLAUDE_KEY}\n");
            }
        }
        let (base, variable) = self.models.endpoint_for("openai").unwrap_or(CODEX);
        launch.environment.insert(CODEX_CONFIG.to_owned(), codex_config(base, variable));
        before += &format!(
            "CODEX_HOME=\"$(pwd)/.bobbin/codex\"; export CODEX_HOME\nmkdir -p \"$CODEX_HOME\" && printf '%s' \"${CODEX_CONFIG}\" >\"$CODEX_HOME/config.toml\"\nunset {CODEX_CONFIG}\n"
        );
        launch.script.insert_str(0, &before);
        Ok(launch)
    }

    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent> {
        let (to, again) = (endpoint.clone(), Arc::clone(&refresh));
        let server = self.opencode.connect(http.clone(), to, password, again);
        Arc::new(NativeAgent {
            daemon: Daemon::new(http, endpoint, password, refresh),
            server,
            models: Arc::clone(&self.models),
            instructions: Arc::clone(&self.instructions),
            directory: None,
        })
    }
}

/// Codex's configuration: the address of its models, and the variable with their key. It contains no key.
fn codex_config(base: &str, variable: &str) -> String {
    format!(
        "model_provider = \"bobbin\"\ncheck_for_update_on_startup = false\n[model_providers.bobbin]\nname = \"bobbin\"\nbase_url = {}\nenv_key = \"{variable}\"\nwire_api = \"responses\"\n",
        // A basic string of TOML has the same escapes as one of JSON.
        serde_json::Value::from(base)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;

    use bobbin_agent::models::ModelKeys;

    use super::*;

    fn launch(model: &str, base_url: Option<&str>) -> ServerLaunch {
        let settings = ModelSettings {
            model: model.to_owned(),
            models: Vec::new(),
            model_base_url: base_url.map(str::to_owned),
            keys: ModelKeys { openai: "key-of-openai".to_owned(), ..ModelKeys::default() },
            prices: Default::default(),
        };
        let runtime = NativeRuntime::new(&settings, "Be kind.").unwrap();
        let inputs = LaunchInputs {
            restart: false,
            password: "secret-word",
            is_trusted: false,
            listens_on: Ipv4Addr::LOCALHOST,
            tools_bearer: "",
        };
        runtime.launch(inputs).unwrap()
    }

    #[test]
    fn launch_configures_models_without_keys() {
        let own = launch("scripted/one", Some("http://127.0.0.1:9/v1"));
        assert_eq!(own.environment["BOBBIN_AGENTD_PROJECT_CONFIG"], "off");
        for name in ["PROJECT_CONFIG", "EXTERNAL_SKILLS"] {
            let name = format!("OPENCODE_DISABLE_{name}");
            assert_eq!(own.environment[&name], "1", "{name}");
        }
        assert_eq!(own.environment[CLAUDE_BASE], "http://127.0.0.1:9");
        assert!(
            own.script
                .contains("ANTHROPIC_API_KEY=\"$BOBBIN_MODEL_KEY\"; export ANTHROPIC_API_KEY\n"),
            "{}",
            own.script
        );
        let config = &own.environment[CODEX_CONFIG];
        assert!(
            config.contains("base_url = \"http://127.0.0.1:9/v1\"\nenv_key = \"BOBBIN_MODEL_KEY\""),
            "{config}"
        );

        let theirs = launch("openai/gpt-x", None);
        assert!(!theirs.environment.contains_key(CLAUDE_BASE));
        let config = &theirs.environment[CODEX_CONFIG];
        assert!(
            config
                .contains("base_url = \"https://api.openai.com/v1\"\nenv_key = \"OPENAI_API_KEY\""),
            "{config}"
        );
        for launch in [own, theirs] {
            let password = launch.environment.get("BOBBIN_AGENTD_TOKEN");
            assert_eq!(password.map(String::as_str), Some("secret-word"));
            let all = format!("{}{:?}", launch.script, launch.environment);
            assert!(!all.contains("key-of-openai"), "{all}");
            assert!(!launch.script.contains("secret-word"));
        }
    }
}
