//! The real world: table, provider, agent and chats behind the core's ports.

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::spans::{Span, Trace};
use bobbin_cloud::store::{Left, StoreError, Written};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::protocol::effect::{AgentEffect, Effect};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::ports::{Loaded, Performed, RecordsWrite, Saved, World};
use bobbin_core::protocol::signals::{USED, signals};
use bobbin_core::protocol::target::Addressed;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::message::Body;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::session::Session;
use bobbin_core::records::tool_sandbox;
use bobbin_core::records::usage::Usage;
use bobbin_core::shown::sandboxes::Listed;

use crate::catalogue;
use crate::parts::{WorldParts, counted};
use crate::performing::Performing;
use crate::sandboxes::WorkTarget;
use crate::visibility::Visibility;

/// The world of one delivery. It keeps nothing that it read or did.
pub struct Live {
    parts: WorldParts,
    visibility: Visibility,
    /// Receipt handle of the message in hand; empty: it cannot be brought forward.
    receipt: String,
    /// Trace of the invocation.
    trace: Option<Trace>,
}

impl Live {
    /// The world of one delivery.
    #[must_use]
    pub fn new(parts: WorldParts, visibility: Visibility) -> Self {
        Self { trace: parts.spans.present(), parts, visibility, receipt: String::new() }
    }

    /// For the message with this receipt.
    #[must_use]
    pub fn holding(self, receipt: &str) -> Self {
        Self { receipt: receipt.to_owned(), ..self }
    }

    fn counted(&self, error: &StoreError) -> Failure {
        counted(&self.parts.metrics, error)
    }

    /// Logs for the operator what this write says has happened.
    fn log_signals(&self, RecordsWrite { session, before, entries, .. }: RecordsWrite<'_>) {
        let signals = signals(before, session, now_ms());
        for signal in &signals {
            let (event, thread, took_ms) = (signal.kind.name(), &session.thread, signal.took_ms);
            let generation = session.sandbox.generation;
            match signal.turn.as_deref() {
                // Also if it happened during another turn's delivery.
                Some(turn) => {
                    tracing::info!(event, %thread, correlation_id = turn, turn, took_ms, generation, "{event}");
                }
                None => tracing::info!(event, %thread, took_ms, generation, "{event}"),
            }
            if let Some(alarm) = signal.kind.alarm() {
                self.parts.metrics.count(alarm, now_ms());
            }
        }
        for entry in entries {
            let (turn, thread, took_ms) = (&*entry.turn, &session.thread, entry.took_ms());
            let (tenant, model) = (thread.tenant(), entry.selection.model.as_deref());
            let Usage { tokens, cost_micro_usd, files, added, removed, files_unknown: _ } =
                entry.usage;
            tracing::info!(event = USED, %thread, %tenant, correlation_id = turn, model, took_ms, tokens, cost_micro_usd, files, added, removed, "resources that a turn used");
        }
    }

    /// Hands the effect to the client that performs it.
    async fn event(&self, performing: &Performing<'_>) -> Event {
        let at = &performing.asked.at;
        let (thread, target) = (&at.thread, WorkTarget::from(at));
        match performing.asked.effect {
            Effect::Chat(effect) => performing.in_chat(target, effect).await,
            Effect::FindName { name } => {
                match self.parts.store.name(&thread.tenant(), name).await {
                    Ok(whose) => Event::NameFound(whose),
                    Err(error) => Event::Failed(counted(&self.parts.metrics, &error)),
                }
            }
            Effect::Recall { turns } => match self.parts.store.entries(thread, turns).await {
                Ok(entries) => Event::Recalled(entries),
                Err(error) => Event::Failed(error.failure()),
            },
            Effect::ListOptions { used } => {
                Event::OptionsListed(performing.list_options(target, used).await)
            }
            Effect::Queue { messages } => {
                for message in messages {
                    let sent = self.parts.queues.send(&Body::Message(message.clone())).await;
                    if let Err(error) = sent {
                        let seen = error.to_string();
                        return Event::Failed(Failure::Outage { after_ms: 0, seen });
                    }
                }
                Event::Queued
            }
            Effect::EndTools => match performing.end_tools(target.sandbox, at.generation).await {
                Ok(()) => Event::ToolsEnded,
                Err(failure) => Event::Failed(failure),
            },
            Effect::FindAgent { of } => match performing.record(of).await {
                Ok(agent) => Event::AgentFound(tool_sandbox::seen(agent.as_ref())),
                Err(failure) => Event::Failed(failure),
            },
            Effect::FindPrebuild { builder } => match performing.prebuild(builder).await {
                Ok(found) => Event::PrebuildFound(found),
                Err(failure) => Event::Failed(failure),
            },
            Effect::Wake { at_ms } => {
                let group = at.sandbox.group();
                if let Err(error) = self.parts.wakes.set(&group, *at_ms).await {
                    tracing::warn!(event = "wake.failed", %thread, %error, "no wake-up was set; the sweeper will find the thread");
                }
                Event::Woken
            }
            Effect::Forge(effect) => {
                performing.at_forge(target, effect).await.unwrap_or_else(Event::Failed)
            }
            Effect::Sandbox(effect) => performing.guarded(target, effect).await,
            Effect::Agent(
                effect @ (AgentEffect::ListArtifacts | AgentEffect::ReadChanges { .. }),
            ) => performing.left(target, effect).await,
            Effect::Agent(effect) => match performing.sandboxes().await {
                Ok(sandboxes) => sandboxes.perform_agent(performing, target, effect).await,
                Err(failure) => Event::Failed(failure),
            },
        }
    }

    /// Records the status of a named sandbox for suggestions, as last written at the end of the delivery.
    pub async fn note_sandbox(&self, written: &Session) {
        let (key, sandbox) = (written.sandbox_key(), &written.sandbox);
        if let Some(name) = &sandbox.sharing.name {
            let glance = Listed::of(&key, sandbox).glance();
            catalogue::note_sandbox(&self.parts.store, &key.tenant(), name, glance).await;
        }
    }
}

impl World for Live {
    fn now_ms(&self) -> Ms {
        now_ms()
    }

    fn visible_until_ms(&self) -> Ms {
        self.visibility.get()
    }

    async fn load(&self, thread: &ThreadKey, turn: &TurnId) -> Result<Loaded, Failure> {
        let found = self.parts.store.load(thread, turn).await.map_err(|e| self.counted(&e))?;
        self.parts.learn(thread, &found);
        Ok(found)
    }

    async fn save(&self, write: RecordsWrite<'_>) -> Result<Saved, Failure> {
        let RecordsWrite { session, expected, entries, flags, .. } = write;
        let stale = flags.spent(session);
        let expires_at_ms = now_ms() + self.parts.ledger_ms;
        let saved = self.parts.store.save(session, expected, &stale, entries, expires_at_ms).await;
        Ok(match saved.map_err(|e| self.counted(&e))? {
            Written::Yes(stand) => {
                self.log_signals(write);
                Saved::Written(stand.unwrap_or_else(|| flags.clone().without(&stale)))
            }
            Written::Conflict => Saved::Conflict,
            Written::OverBudget { scope, used } => Saved::OverBudget { scope, used },
        })
    }

    async fn swept(&self, thread: &ThreadKey, sweep: &TurnId) -> Result<(), Failure> {
        let done = self.parts.store.sweep_is_done(thread, sweep).await;
        done.map_err(|e| self.counted(&e))
    }

    async fn park(&self, thread: &ThreadKey, parked: &Parked) -> Option<ControlFlags> {
        let mark = self.parts.sandboxes.nudge_mark(thread, &parked.turn);
        let left = self.parts.store.park(thread, parked, (&self.receipt, &mark)).await;
        match left {
            // Anything wanted was already there for this delivery's own read.
            Ok(Left::Quiet | Left::Overtaken) => return None,
            Ok(Left::Wanted) => {}
            Err(error) => {
                tracing::warn!(event = "poll.not_parked", %thread, %error, "the next poll starts without the state of this one");
                return None;
            }
        }
        match self.parts.store.flags(thread).await {
            Ok(flags) => Some(flags),
            Err(error) => {
                tracing::warn!(event = "flags.unread", %thread, %error, "the flags could not be read");
                None
            }
        }
    }

    async fn prepare(&self, asked: &Addressed<'_>) {
        if let Effect::Agent(
            AgentEffect::SendPrompt { .. }
            | AgentEffect::FindPrompt { .. }
            | AgentEffect::CheckServer { .. }
            | AgentEffect::FindAgentSession { .. },
        ) = asked.effect
        {
            // A key that does not open now fails again in the effect.
            let performing = Performing::new(&self.parts, asked, &self.visibility);
            if let Ok(sandboxes) = performing.sandboxes().await {
                sandboxes.prepare(&asked.at.sandbox, asked.at.generation).await;
            }
        }
    }

    async fn perform(&self, asked: &Addressed<'_>) -> Performed {
        let began_ms = now_ms();
        let performing = Performing::new(&self.parts, asked, &self.visibility);
        let event = self.event(&performing).await;
        let flags = performing.read();
        let ended_ms = now_ms();
        let took_ms = ended_ms.saturating_sub(began_ms);
        let (thread, effect) = (&asked.at.thread, asked.effect);
        self.parts.spans.put(
            self.trace.as_ref(),
            &Span {
                name: effect.name(),
                began_ms,
                ended_ms,
                failed: matches!(event, Event::Failed(_) | Event::NotSent(_)),
                thread: &thread.to_string(),
                turn: asked.at.turn.as_deref().unwrap_or_default(),
            },
        );
        match &event {
            Event::Failed(failure) | Event::NotSent(failure) => {
                tracing::warn!(event = "effect.failed", %thread, effect = effect.name(), took_ms, ?failure, "an effect failed")
            }
            _ => {
                tracing::debug!(event = "effect.done", %thread, effect = effect.name(), took_ms, "an effect is done")
            }
        }
        Performed { event, flags }
    }
}
