//! Whether the sandbox runs, by its record. If not, its own group is asked to resume or create it, as the operator
//! would ask.

use std::sync::Arc;

use async_trait::async_trait;
use bobbin_app::keyed::KeyedProviders;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::Queues;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::{Body, Message};
use bobbin_core::records::sandbox::{SandboxRecord, SandboxState};
use bobbin_core::records::tool_sandbox;
use bobbin_core::records::workspace::{ATTACHMENTS_FOLDER, COMMON_FOLDER};
use bobbin_core::shown::tools::{SandboxStanding, ToolSandbox, WISH_MS};
use bobbin_mcp::{OpenedSandbox, ToolPlace};
use bobbin_sandbox::{ErrorKind, Provider, ProviderError};

const AGAIN: &str = "Wait 20 s and call this again";
/// A stack with the same name may share the account.
const FOREIGN: &str = "Another stack created a sandbox of this name. Calling again does not help: tell the person you work for.";

/// A sandbox and its record when the request arrived.
pub struct RecordedSandbox<'a> {
    pub config: &'a Config,
    pub queues: &'a Queues,
    pub providers: &'a KeyedProviders,
    pub key: SandboxKey,
    pub record: SandboxRecord,
    /// The agent's sandbox that this tool sandbox was made for, if any: then it is created and recreated automatically.
    pub agent: Option<(SandboxKey, SandboxRecord)>,
}

#[async_trait]
impl ToolPlace for RecordedSandbox<'_> {
    async fn open(&self) -> Result<OpenedSandbox, String> {
        match self.site().standing() {
            SandboxStanding::Up => {}
            SandboxStanding::Stopped => {
                return Err(self.brought_back("The sandbox was stopped").await);
            }
            SandboxStanding::BeingMade => {
                return Err(format!("The sandbox is still being created. {AGAIN}."));
            }
            SandboxStanding::Gone(how) => return Err(self.gone(how).await),
        }
        let (provider, name) = self.provider_of(&self.key, &self.record).await?;
        match provider.observe(&name).await {
            Ok(sandbox) if sandbox.is_foreign(&self.config.stack_id) => Err(FOREIGN.to_owned()),
            Ok(sandbox) if sandbox.state == SandboxState::Running => {
                self.used(&name, &*provider).await;
                Ok(OpenedSandbox {
                    provider,
                    sandbox,
                    left_out: self.record.project.left_out.clone(),
                })
            }
            // The provider has stopped or lost it: the resume finds out.
            Ok(_) => Err(self.brought_back("The sandbox is not running").await),
            Err(error) if error.kind == ErrorKind::NotFound => {
                Err(self.brought_back("The sandbox was not found").await)
            }
            Err(error) => Err(away(&error)),
        }
    }

    async fn expect(&self) {
        let wished = match self.site().expected(now_ms()) {
            Some(message) => self.send(message).await,
            None => Ok(()),
        };
        if let Err(why) = wished {
            tracing::warn!(
                event = "tools.unprepared",
                "the sandbox of a connected agent could not be requested: {why}"
            );
        }
    }

    async fn attachment(&self, path: &str) -> Result<Vec<u8>, String> {
        let Some((key, record)) = &self.agent else {
            return Err("No files come with messages here: send the bytes as `data`.".to_owned());
        };
        let is_one = path
            .strip_prefix(ATTACHMENTS_FOLDER)
            .is_some_and(|rest| rest.starts_with('/') && !rest.split('/').any(|part| part == ".."));
        if !is_one {
            return Err(format!(
                "Name an attachment as its message does: the path begins with {ATTACHMENTS_FOLDER}/."
            ));
        }
        let (provider, name) = self.provider_of(key, record).await?;
        let sandbox = provider.observe(&name).await.map_err(|error| away(&error))?;
        if sandbox.is_foreign(&self.config.stack_id) {
            return Err(FOREIGN.to_owned());
        }
        let path = format!("{COMMON_FOLDER}/{path}");
        let read = provider.get_file(&sandbox, &path).await;
        read.map_err(|error| match error.kind {
            ErrorKind::NotFound => "No such file came with a message.".to_owned(),
            _ => away(&error),
        })
    }
}

impl RecordedSandbox<'_> {
    fn site(&self) -> ToolSandbox<'_> {
        let agent = self.agent.as_ref();
        ToolSandbox {
            key: &self.key,
            record: &self.record,
            agent: agent.map(|(key, record)| (key, record)),
        }
    }

    /// The provider of a sandbox, and the sandbox's name there.
    async fn provider_of(
        &self,
        key: &SandboxKey,
        record: &SandboxRecord,
    ) -> Result<(Arc<dyn Provider>, String), String> {
        if record.spec.credentials.is_some() {
            return Err("This sandbox is in its server's or workspace's own account, and the tools do not have the key of that account. They cannot be used there.".to_owned());
        }
        let config = self.config;
        let name = record.spec.provider.as_deref().unwrap_or(&config.providers.provider);
        let providers = self.providers.get(now_ms()).await?;
        let provider = providers.into_iter().find(|(of, _)| *of == name);
        let (_, provider) =
            provider.ok_or_else(|| format!("The stack has no key for the provider {name}."))?;
        let own = sandbox_name(&config.stack, key, record.generation);
        Ok((provider, own))
    }

    /// The error of the last try, if it failed a moment ago.
    fn failed(&self, want: Operation, now_ms: u64) -> Option<&str> {
        let last = self.record.history.operated.iter().rfind(|one| one.want == want)?;
        let is_recent = now_ms.saturating_sub(last.at_ms) < 2 * WISH_MS;
        last.trouble.as_deref().filter(|_| is_recent)
    }

    /// Requests a resume, and says so.
    async fn brought_back(&self, why: &str) -> String {
        let now_ms = now_ms();
        let failed = self.failed(Operation::Resume, now_ms);
        match (self.send(self.site().brought_back(now_ms)).await, failed) {
            (Err(error), _) => {
                format!("{why}, and starting it could not be requested: {error}. {AGAIN}.")
            }
            (Ok(()), Some(trouble)) => format!(
                "{why}, and the last try to start it failed: {trouble}. Bobbin is trying again. {AGAIN}, and if that does not help tell the person you work for."
            ),
            (Ok(()), None) => format!(
                "{why}. It is being started again with its files; what ran in it has ended. {AGAIN}."
            ),
        }
    }

    /// Recreates the sandbox if it was made for an agent; otherwise tells the person how to.
    async fn gone(&self, how: &str) -> String {
        match &self.agent {
            Some(agent) => self.made_anew(how, agent).await,
            None => {
                let from = match self.record.snapshots.last() {
                    Some(kept) => format!(
                        "from its newest snapshot, by: bobbin sandbox create NAME --snapshot {}",
                        kept.name
                    ),
                    None => "by: bobbin sandbox create NAME".to_owned(),
                };
                format!(
                    "The sandbox {how}. Calling again does not help. Tell the person you work for: another sandbox is created {from}; its tools have their own bearer."
                )
            }
        }
    }

    async fn made_anew(&self, how: &str, agent: &(SandboxKey, SandboxRecord)) -> String {
        let now_ms = now_ms();
        let failed = self.failed(Operation::Create, now_ms);
        let Some(message) = self.site().made(now_ms) else {
            return format!(
                "The sandbox {how}, and its agent's sandbox is ending too. Calling again does not help."
            );
        };
        if let Err(error) = self.send(message).await {
            return format!(
                "There is no sandbox yet, and starting it could not be requested: {error}. {AGAIN}."
            );
        }
        if let Some(trouble) = failed {
            return format!(
                "There is no sandbox: the last try to create one failed: {trouble}. Bobbin is trying again. {AGAIN}, and if that does not help tell the person you work for."
            );
        }
        if self.record.generation == 0 {
            return format!("The sandbox is being created. {AGAIN}.");
        }
        let with = match (tool_sandbox::newest(&self.record), &agent.1.project.repo) {
            (Some(kept), _) => format!("from its newest snapshot {kept}"),
            (None, Some(repo)) => format!("with a fresh clone of {repo}"),
            (None, None) => "empty".to_owned(),
        };
        format!("The sandbox {how}. Another one is being created {with}. {AGAIN}.")
    }

    /// Resets the idle time now and then: otherwise the sandbox would be stopped while its tools are in use.
    async fn used(&self, name: &str, provider: &dyn Provider) {
        let idle_pause_ms = self.config.limits.sandbox.idle_pause_ms;
        let Some(message) = self.site().used(now_ms(), idle_pause_ms) else {
            return;
        };
        let (wished, kept) = tokio::join!(self.send(message), provider.keep_alive(name));
        let trouble = wished.err().or(kept.err().map(|error| error.to_string()));
        if let Some(why) = trouble {
            tracing::warn!(
                event = "tools.unkept",
                sandbox.name = name,
                "the use of the sandbox could not be reported: {why}"
            );
        }
    }

    async fn send(&self, message: Message) -> Result<(), String> {
        let sent = self.queues.send(&Body::Message(message)).await;
        sent.map_err(|error| error.to_string())
    }
}

/// The provider failed: nothing was done.
fn away(error: &ProviderError) -> String {
    if error.kind == ErrorKind::Foreign {
        return FOREIGN.to_owned();
    }
    format!("The sandbox cannot be reached: {error}. Nothing was done. {AGAIN}.")
}
