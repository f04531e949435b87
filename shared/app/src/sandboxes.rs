//! The sandbox side of the `World`: performs every effect of a provider or an agent, and returns its event.
//!
//! Promised: an effect that was done before is found and not done twice; every failure comes back as a classified
//! event; a person's words, a tool's output and a key never reach a log. Deliberately absent: posts (the platforms do
//! them), the record and its control flags (see [`RunContext`]), and any decision.

mod agent;
mod attach;
mod capped;
mod carry;
mod changes;
mod clone;
mod follow;
mod lifecycle;
mod move_checkout;
mod outgoing;
mod outside_keys;
mod probe_secrets;
mod project;
mod project_secrets;
mod results;
mod review;
mod server;
mod snapshots;
mod workspace;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bobbin_agent::{Agent, Runtime, server_http};
use bobbin_chat::FileSource;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostRef, SandboxKey, Tenant, ThreadKey, TurnId};
use bobbin_core::base::limits::Limits;
use bobbin_core::base::names::{PostKind, sandbox_name, sandbox_password};
use bobbin_core::protocol::effect::{SandboxEffect, Watched};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::target;
use bobbin_core::records::card::Card;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::catalogue::AgentOptions;
use bobbin_core::tokens::nudge::{Nudge, mark_of};
use bobbin_http::{Http, HttpError};
use bobbin_sandbox::{Provider, Sandbox};
use tokio::time::{sleep, timeout};

use attach::FileSources;
use capped::ServerCap;
pub use carry::Wanted;
pub(crate) use carry::{at, told};
pub use outgoing::Moving;
use outside_keys::OutsideKeys;
pub use project_secrets::OpenedSecrets;
use server::Starting;
pub use workspace::{NoWorkspace, Workplace};

use crate::agents;
use crate::capped::CappedKeys;

/// Longest time for which preparing an effect delays the write of its intent.
const PREPARE_MS_MAX: u64 = 3_000;
/// Interval of checks for a Stop while waiting for a sandbox.
const CANCEL_LOOK_MS: u64 = 1_000;
/// Clients kept in memory; more are dropped, and rebuilt when needed.
const CLIENTS_MAX: usize = 1_000;

/// Target of an effect: a thread's work, in its own or a shared sandbox, in a workspace of it.
#[derive(Debug, Clone, Copy)]
pub struct WorkTarget<'a> {
    /// The thread of the turn: its agent session, control flags and card.
    pub thread: &'a ThreadKey,
    /// The sandbox: its name, labels, password and tenant follow from this.
    pub sandbox: &'a SandboxKey,
    /// Sandbox generation.
    pub generation: u32,
    /// Where in the sandbox the thread's turns work.
    pub workspace: &'a Workspace,
}

impl<'a> From<&'a target::EffectTarget> for WorkTarget<'a> {
    fn from(at: &'a target::EffectTarget) -> Self {
        Self {
            thread: &at.thread,
            sandbox: &at.sandbox,
            generation: at.generation,
            workspace: &at.workspace,
        }
    }
}

/// What following a run needs besides the sandbox: the record's control flags, the platform, the queue, the clock.
pub trait RunContext: Sync {
    /// The worker's clock, in milliseconds since 1970.
    fn now_ms(&self) -> Ms;
    /// Until when the message in hand stays invisible to others.
    fn visible_until_ms(&self) -> Ms;
    /// The control flags from the last read or write of the record, if at hand: this costs no call.
    fn known(&self) -> Option<ControlFlags> {
        None
    }
    /// Approximate number of thread messages that wait in the queue, including those behind a running turn. 0 if the
    /// count failed.
    fn waiting(&self) -> impl Future<Output = u64> + Send;
    /// The control flags beside the record; `None` if the read failed: they are read again soon.
    fn flags(&self, thread: &ThreadKey) -> impl Future<Output = Option<ControlFlags>> + Send;
    /// The secrets of the project that is worked on, opened.
    fn project_secrets(&self) -> impl Future<Output = Result<OpenedSecrets, Failure>> + Send {
        async { Ok(OpenedSecrets::default()) }
    }
    /// Whether the tenant has secrets of projects.
    fn wants_secrets(&self) -> bool {
        false
    }
    /// Whether the sandbox was given secrets of its project, or may have been.
    fn has_project_secrets(&self) -> bool {
        false
    }
    /// Whether the network of the sandbox is on record as limited.
    fn is_limited(&self) -> bool {
        false
    }
    /// Shows the live card. Best effort: the next update replaces it. Returns the new post if the card moved.
    fn show(
        &self,
        thread: &ThreadKey,
        kind: &PostKind,
        at: &PostRef,
        card: Card,
    ) -> impl Future<Output = Option<PostRef>> + Send;
}

/// Settings of sandboxes.
#[derive(Clone)]
pub struct SandboxSettings {
    /// Name of the stack: part of every sandbox's name.
    pub stack: String,
    /// Id of the stack: part of every snapshot's name.
    pub stack_id: String,
    /// Tenants whose repositories may configure the agent that works in them.
    pub project_config_of: Vec<String>,
    /// Model keys go into the sandboxes, even if the provider could keep them outside.
    pub model_keys_inside: bool,
    /// The tenant whose model keys these are; `None`: the stack's.
    pub keys_of: Option<Tenant>,
    /// Where daemons send nudges; empty: nowhere.
    pub nudge_url: String,
    /// Secret of the stack, from which each server's password is derived and with which nudges are signed.
    pub stack_key: String,
    /// Where the platforms keep the files of messages.
    pub files: Vec<FileSource>,
    /// The bounds of every wait, retry and size.
    pub limits: Limits,
}

/// Performs the effects of sandboxes.
pub struct Sandboxes {
    settings: SandboxSettings,
    runtime: Arc<dyn Runtime>,
    outside_keys: OutsideKeys,
    provider: Arc<dyn Provider>,
    http: Http,
    files: FileSources,
    /// Makes capped keys; `None`: the stack has no management key, or does not pay for the models here.
    capped: Option<Arc<CappedKeys>>,
    clients: Mutex<HashMap<String, Arc<dyn Agent>>>,
    /// When each sandbox is deleted, if its time could not be extended at the last attempt.
    ends: Mutex<HashMap<String, Ms>>,
}

impl std::fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandboxes").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl Sandboxes {
    /// Ready to perform effects.
    ///
    /// # Errors
    /// [`HttpError::Refused`] if the provider's address is not allowed.
    pub fn new(
        settings: SandboxSettings,
        provider: Arc<dyn Provider>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            outside_keys: OutsideKeys::default(),
            http: server_http(provider.facts().base)?,
            provider,
            runtime,
            files: FileSources::new(&settings),
            capped: None,
            clients: Mutex::default(),
            ends: Mutex::default(),
            settings,
        })
    }

    /// Vendors whose models can be chosen.
    #[must_use]
    pub fn providers(&self) -> &[String] {
        self.runtime.facts().providers
    }

    /// What the agent of a sandbox offers.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn options(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> Result<AgentOptions, Failure> {
        let agent = self.agent(sandbox, generation).await?;
        agent.options().await.map_err(|e| e.failure)
    }

    /// Prepares the client of a sandbox's server if necessary; after a failure the next effect prepares it itself.
    pub async fn prepare(&self, sandbox: &SandboxKey, generation: u32) {
        let got = self.agent(sandbox, generation);
        let _ = timeout(Duration::from_millis(PREPARE_MS_MAX), got).await;
    }

    /// Performs one effect of the provider.
    pub async fn perform_sandbox<B: RunContext>(
        &self,
        context: &B,
        target: WorkTarget<'_>,
        effect: &SandboxEffect,
    ) -> Event {
        let WorkTarget { thread, sandbox, generation, .. } = target;
        let done = match effect {
            SandboxEffect::Count { older_than } => self.count(sandbox, *older_than).await,
            SandboxEffect::Create { snapshot, prebuild } => {
                let from = (snapshot.as_deref(), prebuild.as_deref());
                let what = (from, context.wants_secrets());
                self.create(sandbox, generation, what).await
            }
            SandboxEffect::Observe { after_ms, watch } => {
                let look = self.observe(sandbox, generation, *after_ms);
                unless_cancelled(context, thread, watch.as_ref(), look).await
            }
            SandboxEffect::Confirm { after_ms } => {
                self.confirm(sandbox, generation, *after_ms).await
            }
            SandboxEffect::Start => self.start(sandbox, generation).await,
            SandboxEffect::Stop => self.stop(context, sandbox, generation).await,
            SandboxEffect::Delete => {
                let has_secrets = context.has_project_secrets();
                self.delete((sandbox, generation), has_secrets).await
            }
            SandboxEffect::Clone { repo, within_ms, watch } => {
                let clone = self.clone_repository(sandbox, generation, repo, *within_ms);
                unless_cancelled(context, thread, watch.as_ref(), clone).await
            }
            SandboxEffect::ReadRecipe { at, said } => {
                self.read_recipe(sandbox, generation, (at, said.as_deref())).await
            }
            SandboxEffect::SetUp { work, since_ticks, after_ms, bounds, watch } => {
                let (at, what) = ((sandbox, generation), (&*work.services, &*work.steps));
                let left_ms = || context.visible_until_ms().saturating_sub(context.now_ms());
                // It begins with the first look of a delivery, or did with one before.
                let is_first = *after_ms == 0;
                let look = async {
                    let secrets = if is_first {
                        context.project_secrets().await?
                    } else {
                        OpenedSecrets::default()
                    };
                    let variables = self.set_up_variables(at, secrets, &work.variables).await?;
                    let of_steps = (&variables, *since_ticks);
                    self.set_up(at, what, of_steps, (*after_ms, *bounds), left_ms).await
                };
                unless_cancelled(context, thread, watch.as_ref(), look).await
            }
            SandboxEffect::StartProject { work, within_ms } => {
                let (at, what) = ((sandbox, generation), (&*work.steps, &work.variables));
                let start = async {
                    // One that begins with a prebuild has had no set-up that limited it.
                    let secrets = context.project_secrets().await?;
                    self.limit_project(at, &secrets).await?;
                    self.start_project(at, &work.services, what, *within_ms).await
                };
                start.await
            }
            SandboxEffect::MakeWorkspace { within_ms } => {
                let made = self.make_workspace(sandbox, generation, thread, *within_ms).await;
                made.map(workspace::event)
            }
            SandboxEffect::Snapshot { at_ms, after_ms, services, share } => {
                let (of, when) = ((sandbox, generation), (*at_ms, *after_ms));
                self.snapshot(of, when, services, share.as_ref()).await
            }
            SandboxEffect::DeleteSnapshot { name } => self.delete_snapshot(name).await,
            SandboxEffect::EnsureServer { is_new, restart, cap, within_ms, watch } => {
                let cap = ServerCap::Given(*cap);
                let how = Starting { is_new: *is_new, restart: *restart, cap };
                let ensure = self.ensure_server(context, (sandbox, generation), how, *within_ms);
                unless_cancelled(context, thread, watch.as_ref(), ensure).await
            }
        };
        done.unwrap_or_else(Event::Failed)
    }

    /// Digest that identifies this turn's nudge token; empty if daemons get none.
    pub(crate) fn nudge_mark(&self, thread: &ThreadKey, turn: &TurnId) -> String {
        let (url, key) = (&self.settings.nudge_url, &self.settings.stack_key);
        let nudge = Nudge::of(url, key, thread, turn);
        nudge.map_or_else(String::new, |nudge| mark_of(nudge.token.expose()))
    }

    fn name(&self, sandbox: &SandboxKey, generation: u32) -> String {
        sandbox_name(&self.settings.stack, sandbox, generation)
    }

    /// The sandbox of this generation, read again.
    async fn find(&self, sandbox: &SandboxKey, generation: u32) -> Result<Sandbox, Failure> {
        Ok(self.provider.observe(&self.name(sandbox, generation)).await?)
    }

    /// The sandbox, if it runs; [`Failure::SandboxDown`] if it does not.
    async fn find_running(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> Result<Sandbox, Failure> {
        let found = self.find(sandbox, generation).await?;
        server::running(&found)?;
        Ok(found)
    }

    fn password(&self, name: &str) -> String {
        sandbox_password(&self.settings.stack_key, name)
    }

    /// The client of this generation's server, for a workspace.
    async fn agent_in(&self, target: WorkTarget<'_>) -> Result<Arc<dyn Agent>, Failure> {
        let agent = self.agent(target.sandbox, target.generation).await?;
        Ok(agent.in_workspace(target.workspace))
    }

    /// The client of this generation's server, for any workspace.
    async fn agent(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
    ) -> Result<Arc<dyn Agent>, Failure> {
        let name = self.name(sandbox, generation);
        let known = self.clients.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let client = agents::connect_over(
            self.http.clone(),
            &self.provider,
            &*self.runtime,
            &name,
            &self.settings.stack_key,
        )
        .await?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(name, Arc::clone(&client));
        Ok(client)
    }

    /// Drops the client of a sandbox that was started, stopped or deleted: its preview is no longer valid.
    fn forget(&self, name: &str) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Waits, unless the turn is cancelled meanwhile: what was begun at the provider goes on, and the next observation
/// finds it.
pub(crate) async fn unless_cancelled<B: RunContext>(
    context: &B,
    thread: &ThreadKey,
    watched: Option<&Watched>,
    waiting: impl Future<Output = Result<Event, Failure>>,
) -> Result<Event, Failure> {
    let Some(watched) = watched else {
        return waiting.await;
    };
    let cancelled = async {
        loop {
            if let Some(flags) = context.flags(thread).await
                && let Some(by) = watched.cancelled_by(&flags)
            {
                return by.clone();
            }
            sleep(Duration::from_millis(CANCEL_LOOK_MS)).await;
        }
    };
    tokio::select! {
        done = waiting => done,
        by = cancelled => Ok(Event::CancelSeen { by }),
    }
}
