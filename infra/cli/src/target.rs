//! What is being set up: the stack, looked for when it is first needed, the keys, and the addresses of the services.

use std::path::PathBuf;

use bobbin_adapters::daytona::Daytona;
use bobbin_adapters::deployed::Deployed;
use bobbin_adapters::discord::{Application, Discord, DiscordError, application};
use bobbin_adapters::http::{Hosts, Http};
use bobbin_adapters::laptop::Laptop;
use bobbin_adapters::model_keys::ModelProvider;
use bobbin_adapters::secrets::Secret;
use bobbin_adapters::slack::Slack;
use bobbin_core::overrides::Overrides;
use clap::Args;
use tokio::sync::OnceCell;

use crate::keys::{self, KEYS, Key, OUTPUTS};

/// Which stack, and where the services are. Keys are read from the environment alone: an argument could be seen by others.
#[derive(Debug, Clone, Args)]
pub struct Around {
    /// Name of the CloudFormation stack
    #[arg(
        long,
        global = true,
        env = "BOBBIN_STACK",
        default_value = "bobbin",
        value_name = "NAME"
    )]
    pub stack: String,
    /// The laptop stack that runs beside this (`cargo run`), whatever else is said of a stack
    #[arg(long, global = true)]
    pub laptop: bool,
    /// State folder of the laptop stack, if it is not .bobbin/state of the checkout
    #[arg(long, global = true, value_name = "DIR", requires = "laptop")]
    pub state_dir: Option<PathBuf>,
    /// Address of AWS, where it is not Amazon's: an emulator's
    #[arg(long, global = true, env = "AWS_ENDPOINT_URL", value_name = "URL")]
    pub aws_endpoint: Option<String>,
    /// Base of Discord's API; without it the stack's, or https://discord.com/api/v10
    #[arg(
        long,
        global = true,
        env = "DISCORD_API",
        value_name = "URL",
        alias = "api"
    )]
    pub discord_api: Option<String>,
    /// Base of Slack's API; without it the stack's, or https://slack.com/api
    #[arg(long, global = true, env = "SLACK_API", value_name = "URL")]
    pub slack_api: Option<String>,
    /// Base of Daytona's API; without it the stack's, or https://app.daytona.io/api
    #[arg(long, global = true, env = "DAYTONA_API", value_name = "URL")]
    pub daytona_api: Option<String>,
    /// Base of Anthropic's API
    #[arg(
        long,
        global = true,
        env = "ANTHROPIC_API",
        value_name = "URL",
        hide = true
    )]
    pub anthropic_api: Option<String>,
    /// Base of OpenAI's API
    #[arg(
        long,
        global = true,
        env = "OPENAI_API",
        value_name = "URL",
        hide = true
    )]
    pub openai_api: Option<String>,
    /// Base of OpenRouter's API
    #[arg(
        long,
        global = true,
        env = "OPENROUTER_API",
        value_name = "URL",
        hide = true
    )]
    pub openrouter_api: Option<String>,
}

/// A key that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The key.
    pub value: Secret,
    /// Where it was found, in words.
    pub source: &'static str,
}

/// What is being set up.
pub struct Place {
    around: Around,
    stack: OnceCell<Result<Deployed, String>>,
    stored: OnceCell<Result<Vec<(&'static Key, Secret)>, String>>,
}

/// A key of the environment; nothing if it is not set or blank.
#[must_use]
pub fn of_environment(key: &Key) -> Option<Secret> {
    let value = std::env::var(key.variable).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| Secret::from(value.to_owned()))
}

impl Place {
    /// Nothing is looked for yet.
    #[must_use]
    pub fn new(around: Around) -> Self {
        Self {
            around,
            stack: OnceCell::new(),
            stored: OnceCell::new(),
        }
    }

    /// The same, with everything to be looked for anew.
    #[must_use]
    pub fn again(&self) -> Self {
        Self::new(self.around.clone())
    }

    /// The stack.
    ///
    /// # Errors
    /// Why it is not found, and what to do.
    pub async fn stack(&self) -> Result<&Deployed, String> {
        let find = || async {
            match self.laptop()? {
                Some(laptop) => laptop.deployed().await,
                None => {
                    let endpoint = self.around.aws_endpoint.as_deref();
                    Deployed::find(&self.around.stack, endpoint).await
                }
            }
        };
        let found = self.stack.get_or_init(find).await;
        found.as_ref().map_err(Clone::clone)
    }

    /// The laptop stack, if it is the one that is meant.
    ///
    /// # Errors
    /// That it does not run, and how to start it.
    pub fn laptop(&self) -> Result<Option<Laptop>, String> {
        let find = || Laptop::find(self.around.state_dir.as_deref());
        self.around.laptop.then(find).transpose()
    }

    /// The address that stands for AWS's own, where one does.
    ///
    /// # Errors
    /// As [`Place::laptop`].
    pub fn aws_endpoint(&self) -> Result<Option<String>, String> {
        Ok(match self.laptop()? {
            Some(laptop) => Some(laptop.whereabouts.aws_endpoint),
            None => self.around.aws_endpoint.clone(),
        })
    }

    /// How the stack is named on a command line of this program.
    #[must_use]
    pub fn said(&self) -> String {
        match self.laptop() {
            Ok(Some(laptop)) => laptop.said,
            _ => format!("--stack {}", self.around.stack),
        }
    }

    /// The stack's name, whether it is there or not.
    #[must_use]
    pub fn stack_name(&self) -> &str {
        &self.around.stack
    }

    /// The keys that the stack holds.
    ///
    /// # Errors
    /// Why they cannot be read, and what to do.
    pub async fn stored(&self) -> Result<&[(&'static Key, Secret)], String> {
        let read = || async {
            let stack = self.stack().await?;
            let mut stored = Vec::new();
            for output in OUTPUTS {
                let ring = stack.keyring(output).await?;
                let here = KEYS.iter().filter(|key| key.output() == output);
                stored.extend(here.filter_map(|key| Some((key, ring.get(key.name())?))));
            }
            Ok(stored)
        };
        let stored = self.stored.get_or_init(read).await;
        stored.as_deref().map_err(Clone::clone)
    }

    /// A key of the environment, or else of the stack, if there is one.
    pub async fn key(&self, name: &str) -> Option<Found> {
        let key = keys::named(name).ok()?;
        if let Some(value) = of_environment(key) {
            let source = key.variable;
            return Some(Found { value, source });
        }
        let stored = self.stored().await.ok()?;
        let (_, value) = stored.iter().find(|(one, _)| *one == key)?;
        Some(Found {
            value: value.clone(),
            source: "the stack",
        })
    }

    /// The same, where nothing can be done without it.
    ///
    /// # Errors
    /// That it is not set, and where it is found.
    pub async fn needed(&self, name: &str) -> Result<Found, String> {
        let key = keys::named(name)?;
        if let Some(found) = self.key(name).await {
            return Ok(found);
        }
        let stack = match self.stored().await {
            Ok(_) => format!("The stack {} has none either.", self.around.stack),
            Err(why) => format!("Nor was it taken from a stack: {why}"),
        };
        Err(format!(
            "{} is not set. Put the {} into that environment variable: {}. {stack}",
            key.variable, key.title, key.found
        ))
    }

    /// A parameter of the stack, if it has been looked for and found.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let stack = self.stack.get()?.as_ref().ok()?;
        stack.parameter(name).filter(|value| !value.is_empty())
    }

    /// What the stack overrides, if it has been looked for and found; the defaults where it cannot be read, which its
    /// functions say at their start.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        let text = self.parameter("Overrides").unwrap_or_default();
        Overrides::parse(text).unwrap_or_default()
    }

    /// Base of Discord's API.
    #[must_use]
    pub fn discord_api(&self) -> String {
        let given = self.around.discord_api.clone();
        let base = given.unwrap_or_else(|| self.overrides().discord_api);
        base.trim_end_matches('/').to_owned()
    }

    /// Whose the bot token is.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn discord_application(&self, token: &Secret) -> Result<Application, DiscordError> {
        let base = self.discord_api();
        let http = Http::new(&base, Hosts::Named(Vec::new()))?;
        application(http, &base, token.expose()).await
    }

    /// A client of Discord for an application.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn discord(&self, application: &str, token: &Secret) -> Result<Discord, String> {
        let base = self.discord_api();
        let http = Http::new(&base, Hosts::Named(Vec::new()))
            .map_err(|e| format!("--discord-api: {e}"))?;
        Ok(Discord::new(http, &base, application, token.expose()))
    }

    /// A client of Slack.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn slack(&self, token: &Secret) -> Result<Slack, String> {
        let given = self.around.slack_api.clone();
        let base = given.unwrap_or_else(|| self.overrides().slack_api);
        Slack::new(&base, token.expose()).map_err(|e| format!("--slack-api: {e}"))
    }

    /// A client of Daytona.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn daytona(&self, key: &Secret) -> Result<Daytona, String> {
        let given = self.around.daytona_api.clone();
        let base = given.unwrap_or_else(|| self.overrides().daytona_api);
        Daytona::new(&base, key.expose()).map_err(|e| format!("--daytona-api: {e}"))
    }

    /// Base of a model provider's API.
    #[must_use]
    pub fn model_api(&self, provider: ModelProvider) -> String {
        let given = match provider {
            ModelProvider::Anthropic => &self.around.anthropic_api,
            ModelProvider::OpenAi => &self.around.openai_api,
            ModelProvider::OpenRouter => &self.around.openrouter_api,
        };
        given.clone().unwrap_or_else(|| provider.base().to_owned())
    }
}
