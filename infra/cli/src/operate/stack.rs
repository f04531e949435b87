//! The operated stack and its clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use bobbin_app::providers::{self, PROVIDERS};
use bobbin_chat::discord::Discord;
use bobbin_chat::slack::Slack;
use bobbin_cloud::dead_letters::{DeadLetterQueues, QueuePair};
use bobbin_cloud::deployed::{Deployed, Keyring};
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::Secret;
use bobbin_cloud::store::Store;
use bobbin_core::base::ids::Tenant;
use bobbin_core::base::limits::Limits;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::tenant::access::Policy;
use bobbin_core::tenant::keys::Key;
use bobbin_sandbox::{Provider, labels};

use crate::output::CommandError;
use crate::target::StackTarget;

/// A stack, with the clients that every command needs.
pub struct Stack {
    /// Stack name; part of every sandbox's name.
    pub name: String,
    /// Stack id; a label of every sandbox.
    pub id: String,
    pub store: Store,
    /// The stack's limits.
    pub limits: Limits,
    /// The operator lets what each person has spent be shown.
    pub usage_by_person: bool,
    /// How to name it in commands: `--laptop` or `--stack NAME`.
    pub said: String,
    target: StackTarget,
    deployed: Deployed,
    page_url: String,
}

impl Stack {
    /// Finds the stack.
    ///
    /// # Errors
    /// It was not found or has another version; with advice.
    pub async fn open(target: StackTarget) -> Result<Self, CommandError> {
        let deployed = target.stack().await?.clone();
        let overrides = target
            .read_overrides()
            .map_err(|why| format!("{why}. Use the bobbin of the deployed commit."))?;
        Ok(Self {
            name: deployed.name().to_owned(),
            id: deployed.id().to_owned(),
            store: deployed.store()?,
            limits: overrides.limits,
            usage_by_person: overrides.chats.usage_by_person,
            page_url: overrides.chats.page_url,
            said: target.said(),
            target,
            deployed,
        })
    }

    /// A provider by its name in a sandbox's record, with the key from the stack's secret.
    ///
    /// # Errors
    /// As [`Stack::provider`].
    pub async fn provider_of(
        &self,
        sandbox: &SandboxRecord,
    ) -> Result<Arc<dyn Provider>, CommandError> {
        self.provider_named(sandbox.spec.provider.as_deref()).await
    }

    /// The configured sandbox provider, with the key from the stack's secret.
    ///
    /// # Errors
    /// There is no key or no valid address; with advice.
    pub async fn provider(&self) -> Result<Arc<dyn Provider>, CommandError> {
        self.provider_named(None).await
    }

    /// All providers with keys, the configured one first.
    ///
    /// # Errors
    /// As [`Stack::provider`].
    pub async fn providers(&self) -> Result<Vec<Arc<dyn Provider>>, CommandError> {
        let mut all = Vec::new();
        for name in self.provider_names().await? {
            all.push(self.provider_named(Some(&name)).await?);
        }
        Ok(all)
    }

    /// Their names, in the same order.
    ///
    /// # Errors
    /// The keys cannot be read.
    pub async fn provider_names(&self) -> Result<Vec<String>, CommandError> {
        let configured = self.target.overrides().providers.provider;
        let mut names = vec![configured.clone()];
        for name in PROVIDERS.into_iter().filter(|name| *name != configured) {
            let key = providers::key_of(name)?;
            let ring = self.keyring(key).await?;
            if ring.get(key.name()).is_some() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Refuses a provider that the stack does not have.
    ///
    /// # Errors
    /// Lists the stack's providers; or the keys cannot be read.
    pub async fn has_provider(&self, name: Option<&str>) -> Result<(), CommandError> {
        let Some(name) = name else {
            return Ok(());
        };
        let names = self.provider_names().await?;
        if names.iter().any(|one| one == name) {
            return Ok(());
        }
        Err(CommandError::not_found(format!(
            "There is no provider named {name} in this stack. Choose one of these: {}. Nothing was done.",
            names.join(", ")
        )))
    }

    /// The providers without snapshots, a line each.
    ///
    /// # Errors
    /// As [`Stack::provider`].
    pub async fn lacking(&self) -> Result<Vec<String>, CommandError> {
        let mut lines = Vec::new();
        for name in self.provider_names().await? {
            let provider = self.provider_named(Some(&name)).await?;
            lines.extend(provider.facts().snapshots().err().map(|why| format!("{name}: {why}")));
        }
        Ok(lines)
    }

    /// A provider by name; the configured one for `None`.
    ///
    /// # Errors
    /// As [`Stack::provider`].
    pub async fn provider_named(
        &self,
        name: Option<&str>,
    ) -> Result<Arc<dyn Provider>, CommandError> {
        let mut overrides = self.target.overrides();
        overrides.providers.daytona_api = self.target.daytona_api();
        overrides.limits = self.limits.clone();
        let name = name.unwrap_or(&overrides.providers.provider);
        let key = self.key(providers::key_of(name)?).await?;
        let of = (self.name.as_str(), self.id.as_str());
        let settings = providers::settings_of(of, &overrides.providers, &overrides.limits);
        Ok(providers::made(&settings, name, key.expose())?)
    }

    /// The Discord client and the application's id.
    ///
    /// # Errors
    /// Discord is not set up or has no token; with advice.
    pub async fn discord(&self) -> Result<(Discord, String), CommandError> {
        let application = self.parameter("DiscordApplicationId");
        if application.is_empty() {
            return Err("Discord is not set up in this stack: bobbin setup says how.".into());
        }
        let token = self.key(Key::DiscordBotToken).await?;
        let discord = self.target.discord(application, &token)?;
        Ok((discord, application.to_owned()))
    }

    /// The Slack client.
    ///
    /// # Errors
    /// It has no token; with advice.
    pub async fn slack(&self) -> Result<Slack, CommandError> {
        let token = self.key(Key::SlackBotToken).await?;
        Ok(self.target.slack(&token)?)
    }

    /// The stack's allowlists of tenants and channels; not of people.
    pub fn policy(&self) -> Policy {
        Policy::from_lists(
            self.parameter("AllowedGuilds"),
            self.parameter("AllowedTeams"),
            self.parameter("AllowedChannels"),
            "",
        )
    }

    /// The tenants in the stack's lists.
    pub fn tenants(&self) -> BTreeSet<Tenant> {
        let ids = |parameter: &str| -> Vec<String> {
            let ids = self.parameter(parameter).split(',').map(str::trim);
            ids.filter(|id| !id.is_empty()).map(str::to_owned).collect()
        };
        let guilds = ids("AllowedGuilds").into_iter();
        let teams = ids("AllowedTeams").into_iter();
        let guilds = guilds.map(|guild| Tenant::discord(&guild));
        guilds.chain(teams.map(|team| Tenant::slack(&team))).collect()
    }

    /// The labels of its sandboxes and snapshots.
    pub fn labels(&self) -> labels::StackIdentity<'_> {
        labels::StackIdentity { name: &self.name, id: &self.id }
    }

    /// Base address of the page for a tenant's own keys; a link appends its secret. `None` if tenants have no own keys
    /// here.
    ///
    /// # Errors
    /// The stack has no address for it.
    pub fn keys_page(&self) -> Result<Option<String>, String> {
        if self.parameter("TenantCredentials") != "yes" {
            return Ok(None);
        }
        let base = match &self.page_url {
            said if said.is_empty() => self.deployed.output("IngressAddress")?,
            said => said.as_str(),
        };
        Ok(Some(format!("{}/setup/", base.trim_end_matches('/'))))
    }

    /// Address of the tools server; `None` if there is none.
    pub fn tools(&self) -> Option<&str> {
        self.deployed.output("ToolsAddress").ok()
    }

    /// As [`StackTarget::sam_deploy`].
    pub fn sam_deploy(&self, parameters: &str) -> String {
        self.target.sam_deploy(parameters)
    }

    /// As [`StackTarget::sam_deploy_listing`].
    pub fn sam_deploy_listing(&self, list: &str, id: &str) -> String {
        self.target.sam_deploy_listing(list, id)
    }

    /// Base of Discord's API.
    pub fn discord_api(&self) -> String {
        self.target.discord_api()
    }

    /// Default runtime mode of its sandboxes.
    pub fn runtime_mode(&self) -> &str {
        self.parameter("SandboxRuntimeMode")
    }

    /// Default model.
    pub fn model(&self) -> &str {
        self.parameter("Model")
    }

    /// The key from which sandbox passwords are derived.
    ///
    /// # Errors
    /// It cannot be read; with advice.
    pub async fn stack_key(&self) -> Result<Secret, CommandError> {
        self.key(Key::StackKey).await
    }

    fn parameter(&self, name: &str) -> &str {
        self.deployed.parameter(name).unwrap_or_default()
    }

    /// A key from the stack's secrets only: one from the environment may belong to another stack.
    async fn key(&self, key: Key) -> Result<Secret, CommandError> {
        let ring = self.keyring(key).await?;
        ring.get(key.name()).ok_or_else(|| key.missing().into())
    }

    async fn keyring(&self, key: Key) -> Result<Keyring, CommandError> {
        let output = format!("{}Arn", key.secret());
        Ok(self.deployed.keyring(&output).await?)
    }

    /// Its message queues.
    pub fn queues(&self) -> Result<Queues, CommandError> {
        Ok(Queues::of(self.deployed.aws(), &self.pairs()?))
    }

    pub fn dead_letters(&self) -> Result<DeadLetterQueues, CommandError> {
        Ok(DeadLetterQueues::new(self.deployed.aws(), self.pairs()?))
    }

    fn pairs(&self) -> Result<[QueuePair; 2], CommandError> {
        let pair = |name, home: &str, dead: &str| -> Result<QueuePair, CommandError> {
            Ok(QueuePair {
                name,
                home_url: self.deployed.output(home)?.to_owned(),
                dead_url: self.deployed.output(dead)?.to_owned(),
            })
        };
        Ok([
            pair("messages", "MessagesQueueUrl", "MessagesDeadQueueUrl")?,
            pair("control", "ControlQueueUrl", "ControlDeadQueueUrl")?,
        ])
    }
}
