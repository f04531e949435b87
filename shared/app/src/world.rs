//! The world for real: table, provider, agent and chats behind the core's one door.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bobbin_chat::Chats;
use bobbin_cloud::breaker::Breakers;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::spans::{Span, Spans, Trace};
use bobbin_cloud::store::{Left, Store, StoreError, Written};
use bobbin_cloud::wake::Wakes;
use bobbin_core::base::breaker::Admission;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, PostKind, PostRef, SandboxKey, ThreadKey, TurnId};
use bobbin_core::protocol::effect::{AgentEffect, ChatEffect, Effect, SandboxEffect};
use bobbin_core::protocol::event::Event;
use bobbin_core::protocol::ports::{Loaded, Saved, Versions, World};
use bobbin_core::protocol::signals::{ACCOUNT_OTHER, Alarm, TABLE_FAILED, USED, signals};
use bobbin_core::records::account::of_another_account;
use bobbin_core::records::artifacts::Artifact;
use bobbin_core::records::card::{Card, Post, ShownFile};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::Entry;
use bobbin_core::records::outside;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::records::usage::Usage;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::shown::sandboxes::Listed;
use bobbin_core::tenant::selection::Selection;
use bobbin_core::tenant::settings::{AgentOptions, Settings};
use tokio::time::timeout;

use crate::accounts::{Accounts, NotCompared};
use crate::catalogue;
use crate::providers;
use crate::sandboxes::{RunContext, Sandboxes, Target};
use crate::tenants::Tenants;

/// Until when the message in hand stays invisible, as its heartbeat last heard.
#[derive(Debug, Clone, Default)]
pub struct Visibility(Arc<AtomicU64>);

impl Visibility {
    /// The message was made invisible until then.
    pub fn set(&self, until_ms: Ms) {
        self.0.store(until_ms, Ordering::Relaxed);
    }

    /// Until when the message in hand is invisible to others.
    #[must_use]
    pub fn get(&self) -> Ms {
        self.0.load(Ordering::Relaxed)
    }
}

/// The world of one delivery.
pub struct Live {
    parts: Parts,
    visibility: Visibility,
    /// Control flags that stand beside the record: removed with the write that makes them superfluous.
    flags: Mutex<ControlFlags>,
    /// The settings of the thread's tenant, as they were last read.
    settings: Mutex<Settings>,
    /// The record as it was last read or written: what a write has changed is what has happened.
    recorded: Mutex<Option<Session>>,
    /// The first read, where it was begun before anybody asked for it.
    ahead: Mutex<Option<Result<Loaded, Failure>>>,
    /// What the queue knows the message in hand by; empty: it cannot be brought forward.
    receipt: String,
    /// Something was written.
    has_written: AtomicBool,
    /// The trace of the invocation that delivers.
    trace: Option<Trace>,
}

/// What a world is made of: the clients of one process, which every delivery shares.
#[derive(Clone)]
pub struct Parts {
    /// Where records, flags and ledger are.
    pub store: Store,
    /// Where messages go that another group works on.
    pub queues: Queues,
    /// Where turns are shown.
    pub chat: Arc<Chats>,
    /// Where sandboxes and their agents are reached with the stack's own keys.
    pub sandboxes: Arc<Sandboxes>,
    /// The same of every tenant, with its own where it has stored some.
    pub tenants: Arc<Tenants>,
    /// Where a thread asks to be looked at later.
    pub wakes: Wakes,
    /// Breakers of the providers.
    pub breakers: Breakers,
    /// In which accounts the stack's own keys have been seen to be.
    pub accounts: Accounts,
    /// Where the counts of what happened go.
    pub metrics: Metrics,
    /// Where the parts of a turn's time go.
    pub spans: Spans,
    /// How long the ledger keeps a turn.
    pub ledger_ms: u64,
    /// How long an account is believed to be the one on record: as long as a key that may have been replaced.
    pub account_ms: u64,
}

impl Live {
    /// The world of one delivery.
    #[must_use]
    pub fn new(parts: Parts, visibility: Visibility) -> Self {
        Self {
            trace: parts.spans.present(),
            parts,
            visibility,
            flags: Mutex::default(),
            settings: Mutex::default(),
            recorded: Mutex::default(),
            ahead: Mutex::default(),
            receipt: String::new(),
            has_written: AtomicBool::new(false),
        }
    }

    /// The same, for the message with this receipt.
    #[must_use]
    pub fn holding(self, receipt: &str) -> Self {
        Self { receipt: receipt.to_owned(), ..self }
    }

    /// The same, with what its first read has found already: of the delivery's thread and message. A read that was begun
    /// before the message was claimed is as good as any, because a write that rests on an older one fails.
    #[must_use]
    pub fn having_read(self, found: Result<Loaded, Failure>) -> Self {
        Self { ahead: Mutex::new(Some(found)), ..self }
    }

    fn counted(&self, error: &StoreError) -> Failure {
        count_failure(&self.parts.metrics, error);
        error.failure()
    }

    /// Tells the operator what this write says has happened.
    fn tell(&self, session: &Session, entries: &[Entry]) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let signals = signals(recorded.as_ref(), session, now_ms());
        *recorded = Some(session.clone());
        drop(recorded);
        for signal in &signals {
            let (event, thread, took_ms) = (signal.kind.name(), &session.thread, signal.took_ms);
            let generation = session.sandbox.generation;
            match signal.turn.as_deref() {
                // Also where it happened during another one's delivery.
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
            tracing::info!(event = USED, %thread, %tenant, correlation_id = turn, model, took_ms, tokens, cost_micro_usd, files, added, removed, "what a turn took");
        }
    }

    /// Notes for suggestions how the sandbox stands at the end of the delivery, where it has a name.
    pub async fn note_sandbox(&self) {
        // A look that found nothing new has nothing to note.
        if !self.has_written.load(Ordering::Relaxed) {
            return;
        }
        let recorded = {
            let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.as_ref().and_then(|session| {
                let (key, sandbox) = (session.sandbox_key(), &session.sandbox);
                let glance = Listed::of(&key, sandbox).glance();
                Some((key.tenant(), sandbox.name.clone()?, glance))
            })
        };
        if let Some((tenant, name, glance)) = recorded {
            catalogue::note_sandbox(&self.parts.store, &tenant, &name, glance).await;
        }
    }

    /// The turn that is under way, as the record has it; empty between turns.
    fn turn(&self) -> String {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = recorded.as_ref().and_then(|session| session.turn.as_ref());
        turn.map(|turn| turn.id.to_string()).unwrap_or_default()
    }

    fn note(&self, flags: &ControlFlags) {
        flags.clone_into(&mut self.flags.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn known_marks(&self) -> ControlFlags {
        self.flags.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take();
        let found = match ahead {
            Some(found) => found?,
            None => {
                let read = self.parts.store.load(thread, turn).await;
                read.map_err(|e| self.counted(&e))?
            }
        };
        self.note(&found.flags);
        if let Some(session) = &found.session {
            if let Ok(chat) = self.parts.chat.of(&session.thread) {
                chat.learn(session);
            }
        }
        found
            .settings
            .clone_into(&mut self.settings.lock().unwrap_or_else(PoisonError::into_inner));
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found.session);
        Ok(found)
    }

    async fn save(
        &self,
        session: &Session,
        expected: Versions,
        entries: &[Entry],
    ) -> Result<Saved, Failure> {
        let stale = self.known_marks().spent(session);
        let expires_at_ms = now_ms() + self.parts.ledger_ms;
        let written = self
            .parts
            .store
            .save(session, expected, &stale, entries, expires_at_ms)
            .await
            .map_err(|e| self.counted(&e))?;
        Ok(match written {
            Written::Yes(flags) => {
                self.has_written.store(true, Ordering::Relaxed);
                self.tell(session, entries);
                let flags = flags.unwrap_or_else(|| self.known_marks().without(&stale));
                self.note(&flags);
                Saved::Written(flags)
            }
            Written::Conflict => Saved::Conflict,
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
            // What there was to say was said before this delivery's own read.
            Ok(Left::Quiet) => return Some(self.known_marks()),
            Ok(Left::Wanted) => {}
            Ok(Left::Overtaken) => return None,
            Err(error) => {
                tracing::warn!(event = "look.not_parked", %thread, %error, "the next look begins without what this one saw");
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

    async fn prepare(&self, thread: &ThreadKey, effect: &Effect) {
        if let Effect::Agent(
            AgentEffect::SendPrompt { generation, .. }
            | AgentEffect::FindPrompt { generation, .. }
            | AgentEffect::CheckServer { generation, .. }
            | AgentEffect::FindAgentSession { generation, .. },
        ) = effect
        {
            // What does not open now is met again by the effect.
            if let Ok(sandboxes) = self.sandboxes(thread, false).await {
                let (sandbox, _) = self.place(thread);
                sandboxes.prepare(&sandbox, *generation).await;
            }
        }
    }

    async fn perform(&self, thread: &ThreadKey, effect: &Effect) -> Event {
        let began_ms = now_ms();
        let (sandbox, workspace) = self.place(thread);
        let target = Target { thread, sandbox: &sandbox, workspace: &workspace };
        let event = match effect {
            Effect::Chat(ChatEffect::Post { turn, kind, at, post }) => {
                self.post(thread, turn, kind, at.as_ref(), post).await
            }
            Effect::Chat(ChatEffect::PostArtifact { generation, turn, index, file }) => {
                match self.artifact(target, *generation, file).await {
                    Ok(bytes) => {
                        let post = Post::File(ShownFile { name: file.name(), bytes });
                        let kind = PostKind::Artifact(*index);
                        self.post(thread, turn, &kind, None, &post).await
                    }
                    Err(why) => Event::Unshown { why },
                }
            }
            Effect::Chat(ChatEffect::Tell { thread: told, turn, word, archive }) => {
                let chat = &self.parts.chat;
                match chat.tell_thread(told, turn, word, *archive).await {
                    // Who cannot be told is not waited for.
                    Ok(()) | Err(Failure::NonRecoverable { .. }) => {
                        Event::Told { thread: told.clone() }
                    }
                    Err(failure) => Event::Failed(failure),
                }
            }
            Effect::Chat(ChatEffect::TellBeside { turn, people, word }) => {
                let chat = &self.parts.chat;
                let told = async { chat.of(thread)?.tell_beside(thread, turn, people, word).await };
                match told.await {
                    Ok(()) => Event::Told { thread: thread.clone() },
                    Err(failure) => {
                        tracing::warn!(event = "thread.closed", %thread, turn = &**turn, %failure, "neither the thread nor who asked could be told how a turn ended; it is kept");
                        Event::Failed(failure)
                    }
                }
            }
            Effect::FindName { name } => {
                match self.parts.store.name(&thread.tenant(), name).await {
                    Ok(whose) => Event::NameFound(whose),
                    Err(error) => Event::Failed(self.counted(&error)),
                }
            }
            Effect::Recall { turns } => match self.parts.store.entries(thread, turns).await {
                Ok(entries) => Event::Recalled(entries),
                Err(error) => Event::Failed(error.failure()),
            },
            Effect::ListOptions { generation, used } => {
                Event::OptionsListed(self.list_options(target, *generation, used).await)
            }
            Effect::EndTools { generation } => {
                match self.end_tools(target.sandbox, *generation).await {
                    Ok(()) => Event::ToolsEnded,
                    Err(failure) => Event::Failed(failure),
                }
            }
            Effect::FindAgent { of } => match self.record(of).await {
                Ok(agent) => Event::AgentFound(outside::seen(agent.as_ref())),
                Err(failure) => Event::Failed(failure),
            },
            Effect::Wake { at_ms } => {
                let group = sandbox.group();
                if let Err(error) = self.parts.wakes.set(&group, *at_ms).await {
                    tracing::warn!(event = "wake.failed", %thread, %error, "no wake-up was set; the sweeper will find the thread");
                }
                Event::Woken
            }
            Effect::Sandbox(effect) => self.guarded(target, effect).await,
            Effect::Agent(
                effect @ (AgentEffect::ListArtifacts { .. } | AgentEffect::ReadChanges { .. }),
            ) if self.works_elsewhere() => self.left_outside(target, effect).await,
            Effect::Agent(effect) => match self.sandboxes(thread, false).await {
                Ok(sandboxes) => sandboxes.perform_agent(self, target, effect).await,
                Err(failure) => Event::Failed(failure),
            },
        };
        let ended_ms = now_ms();
        let took_ms = ended_ms.saturating_sub(began_ms);
        self.parts.spans.put(
            self.trace.as_ref(),
            &Span {
                name: effect.name(),
                began_ms,
                ended_ms,
                failed: matches!(event, Event::Failed(_) | Event::NotSent(_)),
                thread: &thread.to_string(),
                turn: &self.turn(),
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
        event
    }
}

/// The agent has this long to say what it offers. The first answer takes as long as its boot for the project (4 s,
/// measured on 1.18.33, and more on a busy machine), which the prompt would wait for as well.
const OFFER_MS_MAX: u64 = 20_000;
/// Counts that the table did not do what a delivery needs, unless it is well and a newer worker's item or another write is in
/// the way.
pub fn count_failure(metrics: &Metrics, error: &StoreError) {
    if !matches!(error, StoreError::Newer(_) | StoreError::Contended(_)) {
        tracing::error!(event = TABLE_FAILED, %error, "the table did not do what a delivery needs");
        metrics.count(Alarm::ServiceAway, now_ms());
    }
}

impl Live {
    pub(crate) const fn store(&self) -> &Store {
        &self.parts.store
    }

    pub(crate) const fn queues(&self) -> &Queues {
        &self.parts.queues
    }

    /// Posts into the thread, or edits what stands at `at`. With a card its turn's status is shown.
    async fn post(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        kind: &PostKind,
        at: Option<&PostRef>,
        post: &Post,
    ) -> Event {
        let chat = match self.parts.chat.of(thread) {
            Ok(chat) => chat,
            Err(failure) => return Event::Failed(failure),
        };
        let posted = chat.post(thread, turn, kind, at, post).await;
        // Also when the card could not be shown: a status that stays behind would say that it still works.
        if let Post::Card(card) = post.bare() {
            chat.set_status(thread, turn, &card.state).await;
        }
        posted.map_or_else(Event::Failed, Event::Posted)
    }

    /// Whether the thread's agent works in another sandbox than its own.
    fn works_elsewhere(&self) -> bool {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let session = recorded.as_ref();
        session.is_some_and(|session| session.sandbox.works_elsewhere())
    }

    /// The clients for another sandbox of the thread's tenant, as its record stands.
    pub(crate) async fn sandboxes_of(
        &self,
        thread: &ThreadKey,
        record: &SandboxRecord,
    ) -> Result<Arc<Sandboxes>, Failure> {
        let settings = {
            let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
            settings.clone()
        };
        let own = record.credentials.is_some();
        let at = (record.provider.as_deref(), record.runtime.as_deref());
        let tenants = &self.parts.tenants;
        tenants.of(&thread.tenant(), &settings, own, at).await
    }

    /// Where the thread's turns work, by the record as it was last read or written.
    fn place(&self, thread: &ThreadKey) -> (SandboxKey, Workspace) {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.as_ref() {
            Some(session) => (session.sandbox_key(), session.workspace().unwrap_or_default()),
            None => (thread.sandbox(), Workspace::Common),
        }
    }

    /// The sandboxes with the credentials of the thread's present one, or of the next.
    async fn sandboxes(&self, thread: &ThreadKey, is_new: bool) -> Result<Arc<Sandboxes>, Failure> {
        let settings = {
            let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
            settings.clone()
        };
        let own = if is_new {
            settings.sandbox_credentials().is_some()
        } else {
            let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.as_ref().is_some_and(|session| session.sandbox.credentials.is_some())
        };
        let provider = self.provider(is_new);
        // How agents were run in the last one says nothing of the next.
        let runtime = if is_new {
            None
        } else {
            let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.as_ref().and_then(|session| session.sandbox.runtime.clone())
        };
        let at = (provider.as_deref(), runtime.as_deref());
        self.parts.tenants.of(&thread.tenant(), &settings, own, at).await
    }

    /// The provider that the sandbox's record names; for one that is about to be made the one that was asked for, unless the
    /// record has one already. None: the stack's.
    fn provider(&self, is_new: bool) -> Option<String> {
        let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let session = recorded.as_ref()?;
        let asked = || session.turn.as_ref()?.selection.provider.clone();
        let of_record = session.sandbox.provider.clone();
        of_record.or_else(|| asked().filter(|_| is_new))
    }

    async fn artifact(
        &self,
        target: Target<'_>,
        generation: u32,
        file: &Artifact,
    ) -> Result<Vec<u8>, String> {
        if self.works_elsewhere() {
            return self.artifact_outside(target, file).await;
        }
        const NOT_REACHED: &str = "the sandbox cannot be reached";
        let sandboxes = self.sandboxes(target.thread, false).await;
        let sandboxes = sandboxes.map_err(|_| NOT_REACHED.to_owned())?;
        sandboxes.fetch_artifact(target, generation, file).await
    }

    /// Performs an effect of the provider unless its breaker is open, and lets the breaker know how it went.
    async fn guarded(&self, target: Target<'_>, effect: &SandboxEffect) -> Event {
        // What a new sandbox is counted for is where it would be made.
        let is_new = matches!(effect, SandboxEffect::Count { older_than: None });
        let named = self.provider(is_new);
        let tenants = &self.parts.tenants;
        let provider = named.as_deref().unwrap_or(tenants.configured());
        if let Admission::No { retry_in_ms } = self.parts.breakers.admit(provider, now_ms()).await {
            return Event::Failed(Failure::Outage {
                after_ms: retry_in_ms,
                seen: "the sandbox provider does not answer".to_owned(),
            });
        }
        let compared = if effect.rests_on_account() {
            self.is_same_account(named.as_deref()).await
        } else {
            Ok(true)
        };
        let event = match compared {
            Err(failure) => Event::Failed(failure),
            Ok(false) => {
                self.parts.breakers.succeeded(provider, now_ms()).await;
                self.parts.metrics.count(Alarm::ServiceAway, now_ms());
                let seen = of_another_account(provider);
                tracing::error!(event = ACCOUNT_OTHER, provider, "{seen} (docs/RUNBOOK.md)");
                return Event::Failed(Failure::Outage { after_ms: 0, seen });
            }
            Ok(true) => match self.sandboxes(target.thread, is_new).await {
                Ok(sandboxes) => sandboxes.perform_sandbox(self, target, effect).await,
                Err(failure) => return Event::Failed(failure),
            },
        };
        match &event {
            Event::Failed(Failure::Outage { seen, .. }) => {
                if self.parts.breakers.failed(provider, seen, now_ms()).await {
                    self.parts.metrics.count(Alarm::ServiceAway, now_ms());
                }
            }
            _ => self.parts.breakers.succeeded(provider, now_ms()).await,
        }
        event
    }

    /// Whether the stack's account at this provider is the one that the records speak of. One of a tenant's own is compared when
    /// its key is stored.
    async fn is_same_account(&self, named: Option<&str>) -> Result<bool, Failure> {
        let is_own = {
            let recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            let session = recorded.as_ref();
            session.is_some_and(|session| session.sandbox.credentials.is_some())
        };
        if is_own && named.is_none_or(|name| name == providers::OF_TENANTS) {
            return Ok(true);
        }
        let name = named.unwrap_or(self.parts.tenants.configured());
        let provider = self.parts.tenants.set_up().named(Some(name))?;
        let Parts { accounts, store, account_ms, .. } = &self.parts;
        let within = (now_ms(), *account_ms);
        let compared = accounts.is_same(store, (name, &*provider), within).await;
        compared.map_err(|error| {
            if let NotCompared::Store(error) = &error {
                count_failure(&self.parts.metrics, error);
            }
            error.failure()
        })
    }

    /// What the agent offers, noted in the tenant's catalogue with what the turn uses. Best effort throughout.
    async fn list_options(
        &self,
        target: Target<'_>,
        generation: u32,
        used: &Selection,
    ) -> AgentOptions {
        let thread = target.thread;
        let asked = async {
            let sandboxes = self.sandboxes(thread, false).await?;
            sandboxes.options(target.sandbox, generation).await
        };
        let offer = match timeout(Duration::from_millis(OFFER_MS_MAX), asked).await {
            Ok(Ok(offer)) => offer,
            Ok(Err(failure)) => {
                tracing::info!(event = "agent.offer.failed", %thread, ?failure, "the agent did not say what it offers");
                AgentOptions::default()
            }
            Err(_) => {
                tracing::info!(event = "agent.offer.failed", %thread, "the agent did not say in time what it offers");
                AgentOptions::default()
            }
        };
        let providers = self.parts.tenants.set_up().names();
        let providers = providers.map(str::to_owned).collect();
        catalogue::note(&self.parts.store, &thread.tenant(), &offer, used, providers).await;
        offer
    }
}

impl RunContext for Live {
    fn now_ms(&self) -> Ms {
        now_ms()
    }

    fn known(&self) -> Option<ControlFlags> {
        Some(self.known_marks())
    }

    async fn waiting(&self) -> u64 {
        match self.parts.queues.waiting_messages().await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(event = "queue.uncounted", %error, "who else waits is not known");
                0
            }
        }
    }

    async fn flags(&self, thread: &ThreadKey) -> ControlFlags {
        match self.parts.store.flags(thread).await {
            Ok(flags) => {
                self.note(&flags);
                flags
            }
            Err(error) => {
                tracing::warn!(event = "flags.unread", %thread, %error, "the flags could not be read");
                ControlFlags::default()
            }
        }
    }

    async fn show(
        &self,
        thread: &ThreadKey,
        kind: &PostKind,
        at: &PostRef,
        card: Card,
    ) -> Option<PostRef> {
        let turn = card.turn.clone();
        let shown = async {
            let chat = self.parts.chat.of(thread)?;
            chat.set_status(thread, &turn, &card.state).await;
            chat.post(thread, &turn, kind, Some(at), &Post::Card(card)).await
        };
        match shown.await {
            Ok(stands) => Some(stands).filter(|stands| stands != at),
            Err(failure) => {
                tracing::info!(event = "card.failed", %thread, ?failure, "a progress card could not be edited; the next one will be");
                None
            }
        }
    }

    fn visible_until_ms(&self) -> Ms {
        self.visibility.get()
    }
}
