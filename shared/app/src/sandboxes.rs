//! The sandbox side of the `World`: every effect that a provider or an agent performs, and what happened.
//!
//! Promised: an effect that was done before is found and not done twice; every failure comes back as an event of a
//! class; a person's words, a tool's output and a key never reach a log. Deliberately absent: posts (the platforms
//! do them), the record and its marks (see [`Beside`]), and any decision.

mod attach;
mod clone;
mod follow;
mod lifecycle;
mod models;
mod results;
mod server;
mod session;
mod vault;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bobbin_agent::opencode::answer::is_minted;
use bobbin_agent::opencode::request::RunWith;
use bobbin_agent::opencode::types::{Message, Role, Status};
use bobbin_agent::opencode::{OpenCode, OpenCodeError, PORT};
use bobbin_cloud::metrics::Metrics;
use bobbin_core::ask::{About, Choice};
use bobbin_core::card::Card;
use bobbin_core::effect::{AgentEffect, SandboxEffect};
use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind, PostRef, ThreadKey, sandbox_name, sandbox_password};
use bobbin_core::limits::Limits;
use bobbin_core::session::{Marks, StrayRun};
use bobbin_core::settings::Offer;
use bobbin_http::{Http, HttpError};
use bobbin_sandbox::{Provider, Sandbox};
use tokio::time::{Instant, sleep, timeout};

use attach::FileSources;
use models::Models;
use session::{Sent, is_stored};
use vault::Vault;

/// An abort waits this long for the run to begin, looking this often.
const BEGIN_MS_MAX: u64 = 20_000;
const BEGIN_LOOK_MS: u64 = 250;
/// Getting ready for an effect holds up the write of its intent no longer than this.
const PREPARE_MS_MAX: u64 = 3_000;
/// Between two looks for a Stop while a sandbox is waited for.
const CANCEL_LOOK_MS: u64 = 1_000;
/// Clients kept in memory; more are forgotten, and made again when needed.
const CLIENTS_MAX: usize = 64;

/// What lies beside the sandbox while a run is followed: the record's marks, the platform, the queue, the clock.
pub trait Beside: Sync {
    /// The present time.
    fn now_ms(&self) -> Ms;
    /// Until when the message in hand stays invisible to others.
    fn visible_until_ms(&self) -> Ms;
    /// The marks as the last read or write of the record told them, where that is at hand: a look that costs no call.
    fn known(&self) -> Option<Marks> {
        None
    }
    /// The marks beside the record. A failed read counts as none: they are asked for again soon.
    fn marks(&self, thread: &ThreadKey) -> impl Future<Output = Marks> + Send;
    /// Shows the living card. Best effort: the next picture replaces it. Where it stands now, if that is elsewhere.
    fn show(
        &self,
        thread: &ThreadKey,
        kind: &PostKind,
        at: &PostRef,
        card: Card,
    ) -> impl Future<Output = Option<PostRef>> + Send;
}

/// Keys of the model's providers; empty ones count as absent.
#[derive(Clone, Default)]
pub struct ModelKeys {
    /// `ANTHROPIC_API_KEY`
    pub anthropic: String,
    /// `OPENAI_API_KEY`
    pub openai: String,
    /// `OPENROUTER_API_KEY`
    pub openrouter: String,
}

impl std::fmt::Debug for ModelKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelKeys(…)")
    }
}

/// What sandboxes are made of and served by.
#[derive(Clone)]
pub struct SandboxSettings {
    /// Name of the stack: part of every sandbox's name.
    pub stack: String,
    /// Tenants whose repositories may configure the agent that works in them.
    pub project_config_of: Vec<String>,
    /// Model keys go into the sandboxes, also where the provider could keep them.
    pub model_keys_inside: bool,
    /// Secret of the stack, from which each server's password is derived.
    pub stack_key: String,
    /// Model as provider/model.
    pub model: String,
    /// Further models of the endpoint, likewise; without an endpoint a provider's own models can all be chosen.
    pub models: Vec<String>,
    /// Address of an OpenAI-compatible endpoint; `None` uses the provider's own.
    pub model_base_url: Option<String>,
    /// Keys.
    pub keys: ModelKeys,
    /// Base of Discord's API: its attachments may be loopback only if it is.
    pub discord_api: String,
    /// Base of Slack's API, likewise.
    pub slack_api: String,
    /// Bot token, sent only to Slack's hosts when a file is fetched. `None` without Slack.
    pub slack_bot_token: Option<String>,
    /// The bounds.
    pub limits: Limits,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The model's name.
    #[error("{0}")]
    Model(String),
    /// The address of the provider.
    #[error("the sandbox provider's address: {0}")]
    Address(#[from] HttpError),
}

/// Performs the effects of sandboxes.
pub struct Sandboxes {
    settings: SandboxSettings,
    models: Models,
    vault: Vault,
    provider: Arc<dyn Provider>,
    http: Http,
    files: FileSources,
    clients: Mutex<HashMap<String, OpenCode>>,
    metrics: Metrics,
}

impl std::fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandboxes")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl Sandboxes {
    /// Ready to perform.
    ///
    /// # Errors
    /// [`SettingsError`] with the setting.
    pub fn new(
        settings: SandboxSettings,
        provider: Arc<dyn Provider>,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            models: Models::new(&settings)?,
            vault: Vault::default(),
            http: OpenCode::http(provider.base())?,
            provider,
            files: FileSources::new(&settings),
            clients: Mutex::default(),
            metrics: Metrics::new(&settings.stack),
            settings,
        })
    }

    /// Providers whose models can be chosen.
    #[must_use]
    pub fn providers(&self) -> &[String] {
        self.models.providers()
    }

    /// What the agent of a sandbox offers.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn offer(&self, thread: &ThreadKey, generation: u32) -> Result<Offer, Failure> {
        let agent = self.agent(thread, generation).await?;
        let offer = agent.offer().await.map_err(|e| e.failure())?;
        let models = offer.models.iter().map(|one| self.models.for_people(one));
        Ok(Offer {
            models: models.collect(),
            agents: offer.agents,
        })
    }

    /// Gets the client of a sandbox's server ready, if it is not: what it cannot get, the next effect gets by itself.
    pub async fn prepare(&self, thread: &ThreadKey, generation: u32) {
        let got = self.agent(thread, generation);
        let _ = timeout(Duration::from_millis(PREPARE_MS_MAX), got).await;
    }

    /// Performs one effect of the provider.
    pub async fn perform_sandbox<B: Beside>(
        &self,
        beside: &B,
        thread: &ThreadKey,
        effect: &SandboxEffect,
    ) -> Event {
        let done = match effect {
            SandboxEffect::Count { older_than } => self.count(thread, *older_than).await,
            SandboxEffect::Create { generation } => self.create(thread, *generation).await,
            SandboxEffect::Observe {
                generation,
                after_ms,
                watch,
            } => {
                let look = self.observe(thread, *generation, *after_ms);
                unless_cancelled(beside, thread, watch.as_deref(), look).await
            }
            SandboxEffect::Start { generation } => self.start(thread, *generation).await,
            SandboxEffect::Stop { generation } => self.stop(beside, thread, *generation).await,
            SandboxEffect::Delete { generation } => self.delete(thread, *generation).await,
            SandboxEffect::Clone {
                generation,
                repo,
                within_ms,
                watch,
            } => {
                let clone = self.clone_repository(thread, *generation, repo, *within_ms);
                unless_cancelled(beside, thread, watch.as_deref(), clone).await
            }
            SandboxEffect::EnsureServer {
                generation,
                restart,
                within_ms,
                watch,
            } => {
                let ensure = self.ensure_server(thread, *generation, *restart, *within_ms);
                unless_cancelled(beside, thread, watch.as_deref(), ensure).await
            }
        };
        done.unwrap_or_else(Event::Failed)
    }

    /// Performs one effect of the agent.
    pub async fn perform_agent<B: Beside>(
        &self,
        beside: &B,
        thread: &ThreadKey,
        effect: &AgentEffect,
    ) -> Event {
        let done = match effect {
            AgentEffect::CheckServer {
                generation,
                within_ms,
            } => self.check_server(thread, *generation, *within_ms).await,
            AgentEffect::FindAgentSession { generation, known } => {
                self.find_session(thread, *generation, known.as_deref())
                    .await
            }
            AgentEffect::Attach {
                generation,
                turn,
                files,
            } => Ok(self.attach(thread, *generation, turn, files).await),
            AgentEffect::FindPrompt {
                generation,
                agent_session,
                message,
            } => {
                self.find_prompt(thread, *generation, agent_session, message)
                    .await
            }
            AgentEffect::SendPrompt {
                turn,
                generation,
                agent_session,
                ids,
                text,
                model,
                agent,
                images,
                sending,
            } => {
                let with = self.models.at_server(model).map(|model| RunWith {
                    model,
                    agent: agent.clone(),
                });
                match with {
                    Ok(with) => {
                        let images = self.inline(thread, *generation, images).await;
                        let prompt = Sent {
                            turn,
                            ids,
                            with: &with,
                            text,
                            images: &images,
                            sending: *sending,
                        };
                        self.send_prompt(thread, *generation, agent_session, prompt)
                            .await
                    }
                    Err(failure) => Err(failure),
                }
            }
            AgentEffect::Follow(follow) => follow::follow(self, beside, thread, follow).await,
            AgentEffect::Abort {
                generation,
                agent_session,
                message,
                messages,
            } => self
                .abort(thread, *generation, agent_session, (message, messages))
                .await
                .map(|()| Event::Aborted),
            AgentEffect::EndRun(run) => self.end_run(thread, run).await.map(|()| Event::RunEnded),
            AgentEffect::Decline {
                generation,
                ask,
                about,
            } => self.expire(beside, thread, *generation, ask, about).await,
            AgentEffect::ReadChanges {
                generation,
                agent_session,
                message,
            } => {
                self.read_changes(thread, *generation, agent_session, message)
                    .await
            }
            AgentEffect::ListArtifacts { generation } => {
                self.list_artifacts(thread, *generation).await
            }
        };
        done.unwrap_or_else(Event::Failed)
    }

    /// Ends the run of this prompt, once it has begun: an abort before that is lost, or interrupts what OpenCode prepares once for all
    /// sessions, and then nothing begins in that server any more (measured on 1.18.33).
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn abort(
        &self,
        thread: &ThreadKey,
        generation: u32,
        agent_session: &str,
        (prompt, turn): (&str, &[String]),
    ) -> Result<(), Failure> {
        let agent = self.agent(thread, generation).await?;
        let until = Instant::now() + Duration::from_millis(BEGIN_MS_MAX);
        loop {
            let newest = agent.newest(agent_session).await.map_err(|e| e.failure())?;
            // Our own prompt is the newest for as long as nothing has come of it, unless it was sent into a run.
            let begun = newest.last().is_some_and(|message| {
                message.info.role != Role::User || !is_minted(&message.info.id)
            });
            let is_late = Instant::now() >= until;
            // Of another turn: that one has the agent by now, or what was to end has never come to it.
            if !is_of(&newest, turn) && (is_answering(&newest) || is_late) {
                return Ok(());
            }
            if is_answering(&newest) || is_late {
                break;
            }
            // Accepted is not yet stored: until then the newest is of the turn before.
            let listed = newest.iter().any(|message| message.info.id == prompt);
            if begun && (listed || is_stored(&agent, agent_session, prompt).await?) {
                break;
            }
            sleep(Duration::from_millis(BEGIN_LOOK_MS)).await;
        }
        agent.abort(agent_session).await.map_err(|e| e.failure())
    }

    /// Ends a run for the control lane: only if the agent is answering a prompt of this turn (by its message ids) at this
    /// moment. A later abort could hit the next prompt, and whoever follows the run aborts it too.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn abort_answering(
        &self,
        thread: &ThreadKey,
        generation: u32,
        agent_session: &str,
        turn: &[String],
    ) -> Result<(), Failure> {
        let agent = self.agent(thread, generation).await?;
        let newest = agent.newest(agent_session).await.map_err(|e| e.failure())?;
        if is_of(&newest, turn) && is_answering(&newest) {
            agent.abort(agent_session).await.map_err(|e| e.failure())
        } else {
            Ok(())
        }
    }

    /// Ends a run that no turn follows any more, and waits until the agent has nothing to do. A server that goes on in spite
    /// of an abort is ended.
    async fn end_run(&self, thread: &ThreadKey, run: &StrayRun) -> Result<(), Failure> {
        let agent = self.agent(thread, run.generation).await?;
        let session = run.agent_session.as_str();
        let until = Instant::now() + Duration::from_millis(BEGIN_MS_MAX);
        loop {
            let mut statuses = agent.statuses().await.map_err(|e| e.failure())?;
            let is_busy = !matches!(statuses.remove(session), None | Some(Status::Idle));
            let newest = agent.newest(session).await.map_err(|e| e.failure())?;
            if !is_of(&newest, &run.messages) {
                return Ok(());
            }
            // Accepted is not yet begun: a prompt of which nothing has come yet is waited for.
            let waits = newest
                .last()
                .is_some_and(|last| run.messages.contains(&last.info.id));
            let is_over = Instant::now() >= until;
            match (is_busy, is_answering(&newest)) {
                (false, _) if !waits || is_over => return Ok(()),
                (true, _) if is_over => break,
                (true, true) => agent.abort(session).await.map_err(|e| e.failure())?,
                (true, false) | (false, _) => {}
            }
            sleep(Duration::from_millis(BEGIN_LOOK_MS)).await;
        }
        let within_ms = self.settings.limits.health_start_ms;
        self.ensure_server(thread, run.generation, true, within_ms)
            .await
            .map(drop)
    }

    /// Tells the agent how a person settled its ask; an ask that is no longer open counts as told.
    ///
    /// # Errors
    /// The class of the failure; `TurnFailed` when the choice does not fit the ask.
    pub async fn settle(
        &self,
        thread: &ThreadKey,
        generation: u32,
        ask: &str,
        about: &About,
        choice: &Choice,
    ) -> Result<(), Failure> {
        let agent = self.agent(thread, generation).await?;
        settled(match (about, choice) {
            (About::Permission { .. }, Choice::Once) => agent.reply_permission(ask, "once").await,
            (About::Permission { .. }, Choice::Always) => {
                agent.reply_permission(ask, "always").await
            }
            (_, Choice::Reject) => return self.decline(thread, generation, ask, about).await,
            (About::Question { .. }, Choice::Answers(answers)) => {
                agent.reply_question(ask, answers).await
            }
            _ => {
                return Err(Failure::TurnFailed {
                    reason: "the choice does not fit what was asked".to_owned(),
                });
            }
        })
    }

    /// The time of an ask is over: it counts as no, unless somebody decided in time and the agent was not told yet.
    async fn expire<B: Beside>(
        &self,
        beside: &B,
        thread: &ThreadKey,
        generation: u32,
        ask: &str,
        about: &About,
    ) -> Result<Event, Failure> {
        let id = ask.to_owned();
        match beside.marks(thread).await.settled.remove(ask) {
            Some(settlement) => {
                self.settle(thread, generation, ask, about, &settlement.choice)
                    .await?;
                let settlement = Some(settlement);
                Ok(Event::AskClosed { id, settlement })
            }
            None => {
                self.decline(thread, generation, ask, about).await?;
                Ok(Event::Declined { id })
            }
        }
    }

    async fn decline(
        &self,
        thread: &ThreadKey,
        generation: u32,
        ask: &str,
        about: &About,
    ) -> Result<(), Failure> {
        let agent = self.agent(thread, generation).await?;
        settled(match about {
            About::Permission { .. } => agent.reply_permission(ask, "reject").await,
            About::Question { .. } => agent.reject_question(ask).await,
        })
    }

    fn name(&self, thread: &ThreadKey, generation: u32) -> String {
        sandbox_name(&self.settings.stack, &thread.sandbox(), generation)
    }

    /// The sandbox of this generation, read anew.
    async fn find(&self, thread: &ThreadKey, generation: u32) -> Result<Sandbox, Failure> {
        let found = self.provider.find(&self.name(thread, generation)).await;
        found.map_err(|e| e.failure)
    }

    fn password(&self, name: &str) -> String {
        sandbox_password(&self.settings.stack_key, name)
    }

    /// The client of this generation's server.
    async fn agent(&self, thread: &ThreadKey, generation: u32) -> Result<OpenCode, Failure> {
        let name = self.name(thread, generation);
        let known = self
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&name)
            .cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let endpoint = self
            .provider
            .endpoint(&name, PORT)
            .await
            .map_err(|e| e.failure)?;
        let provider = Arc::clone(&self.provider);
        let again = name.clone();
        let client = OpenCode::new(self.http.clone(), endpoint, &self.password(&name))
            .refreshed_by(Arc::new(move || {
                let (provider, name) = (Arc::clone(&provider), again.clone());
                Box::pin(async move { Ok(provider.endpoint(&name, PORT).await?) })
            }));
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(name, client.clone());
        Ok(client)
    }

    /// Forgets the client of a sandbox that was started, stopped or deleted: its preview is no longer true.
    fn forget(&self, name: &str) {
        self.clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
    }
}

/// Waits, unless the turn is cancelled meanwhile: what was begun at the provider goes on, and the next look finds it.
async fn unless_cancelled<B: Beside>(
    beside: &B,
    thread: &ThreadKey,
    turn: Option<&str>,
    waiting: impl Future<Output = Result<Event, Failure>>,
) -> Result<Event, Failure> {
    let Some(turn) = turn else {
        return waiting.await;
    };
    let cancelled = async {
        loop {
            if let Some(by) = beside.marks(thread).await.cancelled.remove(turn) {
                return by;
            }
            sleep(Duration::from_millis(CANCEL_LOOK_MS)).await;
        }
    };
    tokio::select! {
        done = waiting => done,
        by = cancelled => Ok(Event::CancelSeen { by }),
    }
}

/// Whether the newest of our prompts is one of these; so it is, too, where that lies further back than was read.
fn is_of(newest: &[Message], turn: &[String]) -> bool {
    let ours = newest
        .iter()
        .rfind(|message| message.info.role == Role::User && is_minted(&message.info.id));
    ours.is_none_or(|message| turn.contains(&message.info.id))
}

/// Whether the agent is writing an answer: the newest one is not complete. One that a dead server left behind is older than
/// what came after it.
fn is_answering(newest: &[Message]) -> bool {
    let last = newest
        .iter()
        .rfind(|message| message.info.role == Role::Assistant);
    last.is_some_and(|message| message.info.time.completed.is_none())
}

fn settled(told: Result<(), OpenCodeError>) -> Result<(), Failure> {
    match told {
        Ok(()) | Err(OpenCodeError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.failure()),
    }
}
