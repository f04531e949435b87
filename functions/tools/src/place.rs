//! Whether the sandbox runs, by its record; where it does not, that it is to be brought back is asked for in its own group,
//! as who runs the stack would ask.

use async_trait::async_trait;
use bobbin_app::keyed::KeyedProviders;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::Queues;
use bobbin_core::bearer::Bearer;
use bobbin_core::ids::{TurnId, sandbox_name};
use bobbin_core::message::{Body, Message, Operation, Work};
use bobbin_core::sandbox::{Phase, SandboxRecord, SandboxState};
use bobbin_mcp::{Opened, Place};
use bobbin_sandbox::{ErrorKind, ProviderError};

/// One wish to have it back is sent in so long, however many calls want it.
const WISH_MS: u64 = 30_000;
/// A sandbox that is used is said to be after this part of the time that it may be idle.
const USE_SHARE: u64 = 4;
const AGAIN: &str = "Wait 20 s and call this again";

/// The sandbox of a bearer, as its record stood when the request came.
pub struct Recorded<'a> {
    pub config: &'a Config,
    pub queues: &'a Queues,
    pub providers: &'a KeyedProviders,
    pub bearer: Bearer,
    pub record: SandboxRecord,
}

#[async_trait]
impl Place for Recorded<'_> {
    async fn open(&self) -> Result<Opened, String> {
        let record = &self.record;
        if record.closing.is_some() {
            return Err(self.gone("is being deleted, as somebody wants"));
        }
        match record.phase {
            Phase::Active => {}
            Phase::Paused | Phase::Pausing | Phase::Resuming => {
                return Err(self.brought_back("The sandbox was stopped").await);
            }
            Phase::Creating => {
                return Err(format!("The sandbox is still being made. {AGAIN}."));
            }
            Phase::Destroying => return Err(self.gone("is being deleted")),
            Phase::Destroyed | Phase::Error => return Err(self.gone("is gone, with its files")),
        }
        if record.credentials.is_some() {
            return Err("This sandbox is in an account of its server's or workspace's own, whose key the tools do not have. They cannot be used there.".to_owned());
        }
        let config = self.config;
        let name = record.provider.as_deref().unwrap_or(&config.provider);
        let providers = self.providers.get(now_ms()).await?;
        let provider = providers.into_iter().find(|(of, _)| *of == name);
        let (_, provider) =
            provider.ok_or_else(|| format!("The stack has no key for the provider {name}."))?;
        let own = sandbox_name(&config.stack, &self.bearer.sandbox, record.generation);
        match provider.find(&own).await {
            // A stack of the same name may share the account.
            Ok(sandbox) if sandbox.is_foreign(&config.stack_id) => {
                Err("A sandbox of this name was made by another stack. Calling again does not help: tell the person you work for.".to_owned())
            }
            Ok(sandbox) if sandbox.state == SandboxState::Running => {
                self.used(&own, &*provider).await;
                Ok(Opened { provider, sandbox })
            }
            // The provider has stopped it, or lost it: whoever brings it back finds that out.
            Ok(_) => Err(self.brought_back("The sandbox does not run").await),
            Err(error) if error.kind == ErrorKind::NotFound => {
                Err(self.brought_back("The sandbox was not found").await)
            }
            Err(error) => Err(away(&error)),
        }
    }
}

impl Recorded<'_> {
    /// Has it brought back, and says so.
    async fn brought_back(&self, why: &str) -> String {
        let now_ms = now_ms();
        let mut operated = self.record.operated.iter().rev();
        let last = operated.find(|one| one.want == Operation::Resume);
        let failed = last
            .filter(|one| now_ms.saturating_sub(one.at_ms) < 2 * WISH_MS)
            .and_then(|one| one.trouble.as_deref());
        let asked = self.wish(now_ms, WISH_MS).await;
        match (asked, failed) {
            (Err(error), _) => format!("{why}, and it could not be asked for: {error}. {AGAIN}."),
            (Ok(()), Some(trouble)) => format!(
                "{why}, and the last try to bring it back came to nothing: {trouble}. It is tried again. {AGAIN}, and if this stays so tell the person you work for."
            ),
            (Ok(()), None) => format!(
                "{why}, and is being brought back with its files; what ran in it has ended. {AGAIN}."
            ),
        }
    }

    /// Nothing here makes a sandbox: the person is told how to.
    fn gone(&self, how: &str) -> String {
        let from = match self.record.snapshots.last() {
            Some(kept) => format!(
                "from its newest snapshot, by: bobbin sandbox create NAME --snapshot {}",
                kept.name
            ),
            None => "by: bobbin sandbox create NAME".to_owned(),
        };
        format!(
            "The sandbox {how}. Calling again does not help. Tell the person you work for: another one is made {from}; its tools have a bearer of their own."
        )
    }

    /// Its idle time begins anew, now and then: else it would be stopped under whoever uses its tools.
    async fn used(&self, name: &str, provider: &dyn bobbin_sandbox::Provider) {
        let now_ms = now_ms();
        let every_ms = self.config.limits.idle_pause_ms / USE_SHARE;
        if now_ms.saturating_sub(self.record.last_activity_ms) < every_ms {
            return;
        }
        let (wished, kept) = tokio::join!(self.wish(now_ms, every_ms), provider.keep_alive(name));
        let trouble = wished.err().or(kept.err().map(|error| error.to_string()));
        if let Some(why) = trouble {
            tracing::warn!(
                event = "tools.unkept",
                sandbox.name = name,
                "that the sandbox is used could not be said: {why}"
            );
        }
    }

    /// Wants it to run, once within a time.
    async fn wish(&self, now_ms: u64, every_ms: u64) -> Result<(), String> {
        let group = self.bearer.sandbox.group();
        let turn = now_ms / every_ms.max(1);
        let message = Message {
            id: TurnId::from(format!("tools-{}-{every_ms}-{turn}", group.short_hash())),
            thread: group,
            accepted_at_ms: now_ms,
            work: Work::Operate {
                want: Operation::Resume,
                by: None,
            },
        };
        let sent = self.queues.send(&Body::Message(message)).await;
        sent.map_err(|error| error.to_string())
    }
}

/// The provider did not answer as it should: nothing was done.
fn away(error: &ProviderError) -> String {
    format!("The sandbox cannot be reached: {error}. Nothing was done. {AGAIN}.")
}
