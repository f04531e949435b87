//! What a command works on: the stack (found on first use), the keys, and the service addresses.

use std::path::PathBuf;

use bobbin_app::model_keys::ModelProvider;
use bobbin_chat::discord::{Application, Discord, DiscordError, application};
use bobbin_chat::slack::Slack;
use bobbin_cloud::deployed::Deployed;
use bobbin_cloud::secrets::Secret;
use bobbin_core::tenant::overrides::Overrides;
use bobbin_http::{AllowedHosts, Http, HttpError};
use bobbin_sandbox::daytona::Daytona;
use clap::Args;
use tokio::sync::OnceCell;

use crate::keys::{self, KEYS, OUTPUTS, ProvidedKey};
use crate::laptop::Laptop;

/// Which stack, and where the services are. Keys are read from the environment alone: an argument could be seen by
/// others.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which stack, and where its services are")]
#[allow(rustdoc::bare_urls, reason = "the terminal shows these lines as help")]
pub struct StackOptions {
    /// Name of the CloudFormation stack; without it, set-up uses bobbin and operation asks for one
    #[arg(long, global = true, env = "BOBBIN_STACK", value_name = "NAME")]
    pub stack: Option<String>,
    /// Use the running laptop stack (`cargo run`), even if the environment names another stack
    #[arg(long, global = true)]
    pub laptop: bool,
    /// State folder of the laptop stack; by default .bobbin/state in the checkout
    #[arg(long, global = true, value_name = "DIR", requires = "laptop")]
    pub state_dir: Option<PathBuf>,
    /// Address to use instead of AWS's own, such as an emulator's
    #[arg(long, global = true, env = "AWS_ENDPOINT_URL", value_name = "URL", alias = "endpoint")]
    pub aws_endpoint: Option<String>,
    /// Base URL of Discord's API; by default the stack's, or https://discord.com/api/v10
    #[arg(long, global = true, env = "DISCORD_API", value_name = "URL", alias = "api")]
    pub discord_api: Option<String>,
    /// Base URL of Slack's API; by default the stack's, or https://slack.com/api
    #[arg(long, global = true, env = "SLACK_API", value_name = "URL")]
    pub slack_api: Option<String>,
    /// Base URL of Daytona's API; by default the stack's, or https://app.daytona.io/api
    #[arg(long, global = true, env = "DAYTONA_API", value_name = "URL")]
    pub daytona_api: Option<String>,
    /// Base URL of Anthropic's API
    #[arg(long, global = true, env = "ANTHROPIC_API", value_name = "URL", hide = true)]
    pub anthropic_api: Option<String>,
    /// Base URL of OpenAI's API
    #[arg(long, global = true, env = "OPENAI_API", value_name = "URL", hide = true)]
    pub openai_api: Option<String>,
    /// Base URL of OpenRouter's API
    #[arg(long, global = true, env = "OPENROUTER_API", value_name = "URL", hide = true)]
    pub openrouter_api: Option<String>,
}

/// Display name of the laptop stack if none runs.
const LAPTOP: &str = "local";

#[derive(Debug, Clone)]
pub struct FoundSecret {
    pub value: Secret,
    /// Where it was found, in words.
    pub source: &'static str,
}

/// Which stack.
#[derive(Debug, Clone)]
enum WhichStack {
    /// The laptop stack, with its state folder if that is not the checkout's.
    Laptop(Option<PathBuf>),
    /// A deployed stack, by name.
    Deployed(String),
}

/// The target of a command.
pub struct StackTarget {
    which: WhichStack,
    options: StackOptions,
    stack: OnceCell<Result<Deployed, String>>,
    stored: OnceCell<Result<Vec<(&'static ProvidedKey, Secret)>, String>>,
}

/// A key from the environment; `None` if unset or blank.
#[must_use]
pub fn of_environment(key: &ProvidedKey) -> Option<Secret> {
    let value = std::env::var(key.variable).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| Secret::from(value.to_owned()))
}

impl StackTarget {
    /// Does no look-up yet. `default` is the stack's name if none is given.
    ///
    /// # Errors
    /// No stack is named; with advice.
    pub fn new(options: StackOptions, default: Option<&str>) -> Result<Self, String> {
        let name = options.stack.as_deref().or(default);
        let which = match (options.laptop, name) {
            (true, _) => WhichStack::Laptop(options.state_dir.clone()),
            (false, Some(name)) => WhichStack::Deployed(name.to_owned()),
            (false, None) => {
                return Err("Which stack? Use --stack NAME for a deployed one (or set BOBBIN_STACK), or --laptop for the one that cargo run has started.".to_owned());
            }
        };
        Ok(Self::of(which, options))
    }

    fn of(which: WhichStack, options: StackOptions) -> Self {
        Self { which, options, stack: OnceCell::new(), stored: OnceCell::new() }
    }

    /// The same target without cached results.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Self::of(self.which.clone(), self.options.clone())
    }

    /// The stack.
    ///
    /// # Errors
    /// It is not found; with advice.
    pub async fn stack(&self) -> Result<&Deployed, String> {
        let find = || async {
            match &self.which {
                WhichStack::Laptop(state_dir) => {
                    Laptop::find(state_dir.as_deref())?.deployed().await
                }
                WhichStack::Deployed(name) => {
                    Deployed::find(name, self.options.aws_endpoint.as_deref()).await
                }
            }
        };
        let found = self.stack.get_or_init(find).await;
        found.as_ref().map_err(Clone::clone)
    }

    /// The laptop stack, if it is the target.
    ///
    /// # Errors
    /// It does not run; with advice.
    pub fn laptop(&self) -> Result<Option<Laptop>, String> {
        match &self.which {
            WhichStack::Laptop(state_dir) => Laptop::find(state_dir.as_deref()).map(Some),
            WhichStack::Deployed(_) => Ok(None),
        }
    }

    /// The address of the stack's ingress.
    ///
    /// # Errors
    /// The stack is not found, or has none; with advice.
    pub async fn ingress(&self) -> Result<String, String> {
        match self.laptop()? {
            Some(laptop) => Ok(laptop.whereabouts.ingress),
            None => Ok(self.stack().await?.output("IngressAddress")?.to_owned()),
        }
    }

    /// The AWS endpoint override, if there is one.
    ///
    /// # Errors
    /// As [`StackTarget::laptop`].
    pub fn aws_endpoint(&self) -> Result<Option<String>, String> {
        Ok(match self.laptop()? {
            Some(laptop) => Some(laptop.whereabouts.aws_endpoint),
            None => self.options.aws_endpoint.clone(),
        })
    }

    /// How to name the stack on a command line of this program.
    #[must_use]
    pub fn said(&self) -> String {
        match &self.which {
            WhichStack::Laptop(state_dir) => Laptop::find(state_dir.as_deref())
                .map_or_else(|_| "--laptop".to_owned(), |laptop| laptop.said),
            WhichStack::Deployed(name) => format!("--stack {name}"),
        }
    }

    /// The stack's name, whether it exists or not.
    #[must_use]
    pub fn stack_name(&self) -> String {
        match &self.which {
            WhichStack::Laptop(state_dir) => Laptop::find(state_dir.as_deref())
                .map_or_else(|_| LAPTOP.to_owned(), |laptop| laptop.whereabouts.stack),
            WhichStack::Deployed(name) => name.clone(),
        }
    }

    /// The command that deploys the stack with these parameters; SAM keeps the value of each that is not named. It
    /// names stack and region, because samconfig.toml may name others.
    #[must_use]
    pub fn sam_deploy(&self, parameters: &str) -> String {
        let region = match self.stack.get() {
            Some(Ok(stack)) => format!(" --region {}", stack.region()),
            _ => String::new(),
        };
        let overrides = match parameters {
            "" => String::new(),
            some => format!(" --parameter-overrides {some}"),
        };
        format!("sam deploy --stack-name {}{region}{overrides}", self.stack_name())
    }

    /// The command that adds an id to a list parameter. A deployed list replaces the one before, so it has every id.
    #[must_use]
    pub fn sam_deploy_listing(&self, list: &str, id: &str) -> String {
        let listed = self.parameter(list).unwrap_or_default().split(',').map(str::trim);
        let ids: Vec<&str> = listed.filter(|one| !one.is_empty()).chain([id]).collect();
        self.sam_deploy(&format!("{list}={}", ids.join(",")))
    }

    /// The keys in the stack's secrets.
    ///
    /// # Errors
    /// They cannot be read; with advice.
    pub async fn stored(&self) -> Result<&[(&'static ProvidedKey, Secret)], String> {
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

    /// A key from the environment, else from the stack.
    pub async fn key(&self, name: &str) -> Option<FoundSecret> {
        let key = keys::named(name).ok()?;
        if let Some(value) = of_environment(key) {
            let source = key.variable;
            return Some(FoundSecret { value, source });
        }
        let stored = self.stored().await.ok()?;
        let (_, value) = stored.iter().find(|(one, _)| *one == key)?;
        Some(FoundSecret { value: value.clone(), source: "the stack" })
    }

    /// A required key.
    ///
    /// # Errors
    /// It is not set; with where to find it.
    pub async fn needed(&self, name: &str) -> Result<FoundSecret, String> {
        let key = keys::named(name)?;
        if let Some(found) = self.key(name).await {
            return Ok(found);
        }
        let stack = match self.stored().await {
            Ok(_) => format!("The stack {} has none either.", self.stack_name()),
            Err(why) => format!("It could not be read from a stack either: {why}"),
        };
        Err(format!(
            "{} is not set. Put the {} into that environment variable: {}. {stack}",
            key.variable, key.title, key.found
        ))
    }

    /// A parameter of the stack, if the stack has been found.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let stack = self.stack.get()?.as_ref().ok()?;
        stack.parameter(name).filter(|value| !value.is_empty())
    }

    /// The stack's overrides, if it has been found; otherwise the defaults.
    ///
    /// # Errors
    /// An override is unknown to this version.
    pub fn read_overrides(&self) -> Result<Overrides, String> {
        Overrides::parse(self.parameter("Overrides").unwrap_or_default())
    }

    /// The stack's overrides; the defaults if they cannot be read, which the functions report at their start.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        self.read_overrides().unwrap_or_default()
    }

    /// Base of Discord's API.
    #[must_use]
    pub fn discord_api(&self) -> String {
        let given = self.options.discord_api.clone();
        let base = given.unwrap_or_else(|| self.overrides().chats.discord_api);
        base.trim_end_matches('/').to_owned()
    }

    /// The application of the bot token.
    ///
    /// # Errors
    /// [`DiscordError`].
    pub async fn discord_application(&self, token: &Secret) -> Result<Application, DiscordError> {
        let base = self.discord_api();
        let http = Http::new(&base, AllowedHosts::Named(Vec::new()))?;
        application(http, &base, token.expose()).await
    }

    /// A Discord client for an application.
    ///
    /// # Errors
    /// The address is unusable.
    pub fn discord(&self, application: &str, token: &Secret) -> Result<Discord, String> {
        let base = self.discord_api();
        let http = Http::new(&base, AllowedHosts::Named(Vec::new()))
            .map_err(|e| format!("--discord-api: {e}"))?;
        Ok(Discord::new(http, &base, application, token.expose()))
    }

    /// A Slack client.
    ///
    /// # Errors
    /// The address is unusable.
    pub fn slack(&self, token: &Secret) -> Result<Slack, String> {
        let given = self.options.slack_api.clone();
        let base = given.unwrap_or_else(|| self.overrides().chats.slack_api);
        Slack::new(&base, token.expose()).map_err(|e| format!("--slack-api: {e}"))
    }

    /// A Daytona client.
    ///
    /// # Errors
    /// The address is unusable; names its source.
    pub fn daytona(&self, key: &Secret) -> Result<Daytona, String> {
        Daytona::new(&self.daytona_api(), key.expose()).map_err(|e| self.no_daytona(&e))
    }

    /// Base of Daytona's API.
    #[must_use]
    pub fn daytona_api(&self) -> String {
        let given = self.options.daytona_api.clone();
        given.unwrap_or_else(|| self.overrides().providers.daytona_api)
    }

    /// The error for an unusable Daytona address; names its source.
    fn no_daytona(&self, error: &HttpError) -> String {
        match &self.options.daytona_api {
            Some(_) => format!("--daytona-api: {error}"),
            None => format!(
                "The daytona_api of the stack's parameter Overrides cannot be used: {error}. Deploy it with another one."
            ),
        }
    }

    /// Base of a model provider's API.
    #[must_use]
    pub fn model_api(&self, provider: ModelProvider) -> String {
        let given = match provider {
            ModelProvider::Anthropic => &self.options.anthropic_api,
            ModelProvider::OpenAi => &self.options.openai_api,
            ModelProvider::OpenRouter => &self.options.openrouter_api,
        };
        given.clone().unwrap_or_else(|| provider.base().to_owned())
    }

    /// Base of the API at which capped model keys are made.
    #[must_use]
    pub fn key_api(&self) -> String {
        let given = self.options.openrouter_api.clone();
        given.unwrap_or_else(|| self.overrides().agents.openrouter_api)
    }
}
