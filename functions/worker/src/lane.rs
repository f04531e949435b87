//! From a queue record to a verdict: the lane of the message, its heartbeat, and whether it is acknowledged or retried.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use bobbin_app::announce::announce;
use bobbin_app::control::Lane;
use bobbin_app::parts::{self, Keyless, WorldParts};
use bobbin_app::sandboxes::Sandboxes;
use bobbin_app::visibility::Visibility;
use bobbin_app::world::Live;
use bobbin_app::{forge_hints, opening, overview, runtimes};
use bobbin_chat::Chats;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::breaker::Breakers;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::dead_letters::DeadLetterQueues;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::secrets::{CachedSecret, WorkerKeys, WorkerSecrets};
use bobbin_cloud::spans::Spans;
use bobbin_cloud::startup;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_cloud::wake::Wakes;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::{HOLD_MS_MAX, SECRETS_AGES};
use bobbin_core::base::person::Outside;
use bobbin_core::protocol::drive::{Delivery, Verdict, drive};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::protocol::signals::Alarm;
use bobbin_core::records::message::{Body, Message};
use bobbin_core::schema::Unreadable;
use bobbin_core::tenant::repositories::BoundForge;
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use tokio::time::timeout;
use tracing::{Instrument as _, Span};

use crate::receipt::{Receipt, delivery_id};

/// Time of the function that is kept for saving and retrying after a slice.
const WIND_UP_MS: u64 = 60_000;

/// Longest wait of a Stop for the platform's word on who stops: it waits for nothing but the table.
const STOP_ASKS_MS_MAX: u64 = 1_000;

/// Longest time for reading one secret.
const SECRET_READ_MS_MAX: u64 = 5_000;

/// Everything the worker needs, created once per process. Clients that hold keys are rebuilt when a key has been
/// replaced.
pub struct Worker {
    pub(crate) config: Config,
    aws: Aws,
    store: Store,
    queues: Queues,
    wakes: Wakes,
    breakers: Breakers,
    spans: Spans,
    pub(crate) dead_letters: DeadLetterQueues,
    secrets: WorkerSecrets,
    /// Runtime mode when nobody chose one.
    runtime: RuntimeMode,
    pub(crate) metrics: Metrics,
    /// The keys in use and the clients that hold them; `None` until keys have been read.
    present: Mutex<Option<(WorkerKeys, WorldParts)>>,
}

/// What is found out about a message before it is worked on.
struct Begun {
    /// The data of its first step, if it is known which.
    found: Option<Result<Loaded, Failure>>,
    /// Why the requester does not count as a full member.
    outside: Result<Option<Outside>, Failure>,
    /// Whether it belongs to its thread: another thread may have taken a direct message that was accepted twice.
    is_here: Result<bool, Failure>,
}

/// Fields on every log line about a message: the turn's id and the group.
pub(crate) fn within(correlation_id: &str, group: &str) -> Span {
    tracing::error_span!("message", correlation_id, group)
}

/// Logs that a message has arrived and how long it waited.
fn log_age(receipt: &Receipt<'_>) {
    let sent_ms = receipt.sent_ms;
    let age_ms = sent_ms.map(|sent_ms| now_ms().saturating_sub(sent_ms));
    let receive = receipt.receive;
    tracing::info!(event = "message.taken", receive, age_ms, "a message was received");
}

impl Worker {
    /// From the function's environment and the secrets that it names.
    ///
    /// # Errors
    /// A sentence that names the missing or wrong setting.
    pub async fn from_environment() -> Result<Self, String> {
        startup::in_lambda()?;
        let config = Config::from_environment()?;
        let aws = Aws::from_environment()?;
        let secrets = WorkerSecrets::new(
            CachedSecret::named_by("WORKER_SECRET_ID", &aws, &config, SECRET_READ_MS_MAX)?,
            CachedSecret::named_by("PROVIDER_SECRET_ID", &aws, &config, SECRET_READ_MS_MAX)?,
            CachedSecret::named_by("STACK_KEY_ID", &aws, &config, SECRET_READ_MS_MAX)?,
        );
        let worker = Self {
            store: Store::new(&aws, &config.table),
            queues: Queues::new(&aws, &config),
            wakes: Wakes::new(&aws, &config),
            breakers: Breakers::new(&aws, &config.table, &config.limits),
            spans: Spans::from_environment(),
            dead_letters: DeadLetterQueues::of(&aws, &config),
            runtime: runtimes::configured(&config.runtime_mode)?,
            metrics: Metrics::new(&config.stack),
            aws,
            secrets,
            present: Mutex::new(None),
            config,
        };
        // A process that exits here would leave its message hidden for the queue's own visibility timeout. One that has
        // claimed it can retry it within seconds.
        let keys = match worker.secrets.aged(now_ms(), 1).await {
            Ok(keys) => keys,
            Err(why) => {
                tracing::error!(
                    event = "start.without_keys",
                    "{why}; they are read again with the next message"
                );
                return Ok(worker);
            }
        };
        let parts = worker.made_of(&keys)?;
        Ok(Self { present: Mutex::new(Some((keys, parts))), ..worker })
    }

    /// The clients, with keys no older than the bound. A delivery keeps the clients that it started with.
    ///
    /// # Errors
    /// What to check, when no keys have been read yet.
    async fn parts(&self, receipt: &Receipt<'_>) -> Result<WorldParts, String> {
        let ages = if receipt.receive == 1 { 1 } else { SECRETS_AGES };
        let keys = self.secrets.aged(now_ms(), ages).await;
        let (parts, is_new) = self.with(keys)?;
        if is_new {
            parts.sandboxes.renew_keys().await;
        }
        Ok(parts)
    }

    /// The clients, and whether they have just replaced clients with other keys.
    fn with(&self, keys: Result<WorkerKeys, String>) -> Result<(WorldParts, bool), String> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((known, parts)) = &*present else {
            let keys = keys?;
            let parts = self.made_of(&keys)?;
            *present = Some((keys, parts.clone()));
            return Ok((parts, false));
        };
        let made = keys.and_then(|keys| {
            let is_new = keys != *known;
            let made = is_new.then(|| self.made_of(&keys));
            Ok(made.transpose()?.map(|parts| (keys, parts)))
        });
        match made {
            Ok(Some((keys, parts))) => {
                *present = Some((keys, parts.clone()));
                Ok((parts, true))
            }
            Ok(None) => Ok((parts.clone(), false)),
            Err(why) => {
                tracing::error!(event = "secret.unused", "{why}; the earlier keys stay in use");
                Ok((parts.clone(), false))
            }
        }
    }

    /// Builds the clients with these keys.
    fn made_of(&self, keys: &WorkerKeys) -> Result<WorldParts, String> {
        let keyless = Keyless {
            store: self.store.clone(),
            queues: self.queues.clone(),
            wakes: self.wakes.clone(),
            breakers: self.breakers.clone(),
            metrics: self.metrics.clone(),
            spans: self.spans.clone(),
        };
        WorldParts::new(keyless, &self.aws, &self.config, keys)
    }

    /// The current clients; `None` until keys have been read.
    fn present(&self) -> Option<WorldParts> {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.as_ref().map(|(_, parts)| parts.clone())
    }

    /// If no keys could be read at the start: claims the message and reads them. `Some`: they still cannot be read, and
    /// the message is retried in seconds.
    async fn without_keys(&self, receipt: &Receipt<'_>) -> Option<Verdict> {
        if self.present().is_some() {
            return None;
        }
        let visibility = Visibility::default();
        let hidden_ms = self.config.limits.poll.visibility_ms;
        let claimed = receipt.claim(&visibility, hidden_ms).await;
        let seen = self.parts(receipt).await.err()?;
        tracing::error!(event = "start.without_keys", claimed, "{seen}");
        Some(self.held_without_keys(receipt, seen))
    }

    fn held_without_keys(&self, receipt: &Receipt<'_>, seen: String) -> Verdict {
        self.metrics.count(Alarm::ServiceAway, now_ms());
        let failure = Failure::Outage { after_ms: 0, seen };
        let (arrival, limits) = (receipt.arrival(), &self.config.limits);
        let held = arrival.given_back(&failure, &limits.retry);
        held.within(limits.retry.within_age(arrival.age_ms()))
    }

    /// Works on one record. True: it may be deleted.
    pub async fn take(&self, mut record: SqsMessage, deadline_ms: Ms) -> bool {
        let text = record.body.take().unwrap_or_default();
        let Some(receipt) = Receipt::of(&record, &self.queues, &self.config.limits) else {
            tracing::error!(
                event = "message.strange",
                "a record has no receipt or comes from another queue; it stays there"
            );
            return false;
        };
        let body = match Body::decode(&text) {
            Ok(body) => body,
            Err(newer @ Unreadable::Newer { .. }) => {
                let id = record.message_id.as_deref().unwrap_or_default();
                let verdict =
                    Verdict::newer(newer.to_string(), receipt.receive, &self.config.limits.retry);
                return receipt.conclude(verdict).instrument(within(id, "")).await;
            }
            // A retry cannot make it readable: its receive count moves it to the dead letters.
            Err(error) => {
                tracing::error!(event = "message.unreadable", message.id = record.message_id.as_deref().unwrap_or_default(), %error, "a queue body cannot be read");
                receipt.hasten().await;
                return false;
            }
        };
        let around = within(body.correlation(), &body.group());
        let work = async {
            if let Some(held) = self.without_keys(&receipt).await {
                return receipt.conclude(held).await;
            }
            self.work_on(body, &receipt, deadline_ms).await
        };
        work.instrument(around).await
    }

    /// Claims the message, reads its first step's data meanwhile, and works on it.
    async fn work_on(&self, mut body: Body, receipt: &Receipt<'_>, deadline_ms: Ms) -> bool {
        log_age(receipt);
        let visibility = Visibility::default();
        let hidden_ms = match &body {
            Body::Message(message) => receipt.hidden_ms(message.accepted_at_ms),
            _ => self.config.limits.poll.visibility_ms,
        };
        // A read has no effect, so it need not wait for the claim, and taking a direct message can be repeated. If the
        // claim fails, the read is dropped. If somebody else writes meanwhile, a decision based on this read cannot be
        // written.
        let (claimed, parts, begun) = tokio::join!(
            receipt.claim(&visibility, hidden_ms),
            self.parts(receipt),
            self.begin(&body, receipt)
        );
        let Begun { found, outside, is_here } = begun;
        let parts = match parts {
            Ok(parts) => parts,
            Err(why) => {
                let held = self.held_without_keys(receipt, why);
                return receipt.conclude(held).await;
            }
        };
        let is_short = hidden_ms < self.config.limits.poll.visibility_ms;
        if !claimed
            || is_short
                && !self.is_polled(&body, found.as_ref())
                && !receipt.renew(&visibility).await
        {
            return false;
        }
        match is_here {
            Ok(true) => {}
            Ok(false) => {
                tracing::info!(event = "message.elsewhere", "another thread has the message");
                return receipt.conclude(Verdict::Done).await;
            }
            // Its own calls meet the same outage, and are given up in time. At worst it is answered in both threads.
            Err(_) if matches!(body, Body::Control(_)) => {}
            Err(failure) => {
                let (arrival, limits) = (receipt.arrival(), &self.config.limits.retry);
                let held = arrival.given_back(&failure, limits);
                // Earlier deliveries may have been polls of a run.
                return receipt.conclude(held.within(limits.within_age(arrival.age_ms()))).await;
            }
        }
        match outside {
            Ok(outside) => {
                if let Some(membership) = body.membership_mut() {
                    membership.outside = outside;
                }
            }
            // Nobody is let in because their membership could not be checked.
            Err(failure) => {
                let limits = &self.config.limits.retry;
                let is_control = matches!(body, Body::Control(_));
                let within_ms = if is_control { limits.control_ms } else { limits.telling_ms };
                if let Some(held) = receipt.arrival().held(&failure, within_ms, limits) {
                    return receipt.conclude(held).await;
                }
                if let Some(membership) = body.membership_mut() {
                    membership.outside = Some(Outside::Unread);
                }
            }
        }
        let work = self.work(&parts, &body, receipt, found, &visibility, deadline_ms);
        let verdict = tokio::select! {
            verdict = work => verdict,
            never = receipt.heartbeat(&visibility) => match never {},
        };
        receipt.conclude(verdict).await
    }

    /// Reads the first step's data, checks whether the requester is a full member, and takes a direct message. The
    /// first delivery does all at the same time; later deliveries check and take only for a turn that has not begun.
    /// A turn that has begun was admitted then, in this thread, and is polled many times.
    async fn begin(&self, body: &Body, receipt: &Receipt<'_>) -> Begun {
        let (read, asked) = (self.read_ahead(body, receipt), self.outside(body));
        let taken = self.take_direct(body);
        if receipt.receive == 1 {
            let (found, outside, is_here) = tokio::join!(read, asked, taken);
            return Begun { found, outside, is_here };
        }
        let found = read.await;
        let has_begun = matches!((&found, body), (Some(Ok(found)), Body::Message(message))
            if found.session.as_ref().and_then(|it| it.turn.as_ref()).is_some_and(|turn| turn.id == message.id));
        let (outside, is_here) =
            if has_begun { (Ok(None), Ok(true)) } else { tokio::join!(asked, taken) };
        Begun { found, outside, is_here }
    }

    /// Takes a direct message for the thread that ingress chose; false if another thread has it.
    async fn take_direct(&self, body: &Body) -> Result<bool, Failure> {
        let Some(thread) = body.said_in().filter(|thread| Chats::is_direct(thread)) else {
            return Ok(true);
        };
        let expires_at_ms = now_ms() + self.config.limits.record.ledger_ms;
        let begun_by = Chats::begun_by(thread);
        let taken = self.store.take_direct(thread, body.id(), begun_by.as_ref(), expires_at_ms);
        taken.await.map_err(|error| self.counted(&error))
    }

    /// Counts a failed call to the table; returns what to do about it.
    fn counted(&self, error: &StoreError) -> Failure {
        parts::count_failure(&self.metrics, error);
        error.failure()
    }

    /// Whether the message belongs to a run that is only polled.
    fn is_polled(&self, body: &Body, found: Option<&Result<Loaded, Failure>>) -> bool {
        let (Body::Message(message), Some(Ok(found))) = (body, found) else {
            return false;
        };
        let turn = found.session.as_ref().and_then(|it| it.turn.as_ref());
        turn.is_some_and(|turn| {
            turn.id == message.id && turn.is_only_polled(&self.config.limits.poll, now_ms())
        })
    }

    /// Why the requester does not count as a full member; `None` if they do.
    async fn outside(&self, body: &Body) -> Result<Option<Outside>, Failure> {
        let Some((thread, by)) = body.asker() else {
            return Ok(None);
        };
        let without = || Failure::Outage { after_ms: 0, seen: "there are no keys yet".to_owned() };
        let WorldParts { chat, .. } = self.present().ok_or_else(without)?;
        let asked = async { chat.of(thread)?.membership(thread, &by.id, None).await };
        if body.is_stop() {
            // At worst somebody who may not work here ends a run, which can be run again.
            let asked = timeout(Duration::from_millis(STOP_ASKS_MS_MAX), asked).await;
            return Ok(asked.ok().and_then(Result::ok).and_then(|found| found.outside));
        }
        match asked.await {
            // Slack is not set up: the work on the message runs into that and reports it.
            Err(Failure::NonRecoverable { .. }) => Ok(None),
            found => found.map(|membership| membership.outside),
        }
    }

    /// Reads the first step's data for a message of a thread.
    async fn read_ahead(
        &self,
        body: &Body,
        receipt: &Receipt<'_>,
    ) -> Option<Result<Loaded, Failure>> {
        let Body::Message(message) = body else {
            return None;
        };
        let (thread, turn) = (&message.thread, message.about());
        let found = match receipt.receive {
            1 => self.store.load(thread, turn).await,
            _ => self.store.load_again(thread, turn).await,
        };
        Some(found.map_err(|error| self.counted(&error)))
    }

    async fn work(
        &self,
        parts: &WorldParts,
        body: &Body,
        receipt: &Receipt<'_>,
        found: Option<Result<Loaded, Failure>>,
        visibility: &Visibility,
        deadline_ms: Ms,
    ) -> Verdict {
        match body {
            Body::Message(message) => {
                let world = Live::new(parts.clone(), visibility.clone()).holding(&receipt.handle);
                let sandboxes = self.sandboxes_of(parts, message, found.as_ref()).await;
                if let Some(Ok(found)) = &found {
                    parts.learn(&message.thread, found);
                }
                let forge = parts.forge.as_deref().and_then(|forge| {
                    let settings = found.as_ref().and_then(|found| found.as_ref().ok());
                    let bindings = settings.map(|found| &found.settings.bindings);
                    forge.bound(&message.thread.tenant(), bindings)
                });
                let with = (&*sandboxes, forge.as_ref());
                self.drive(&world, with, (message, found), receipt, deadline_ms).await
            }
            Body::Open(open) => opening::open(&self.lane(parts), open, receipt.arrival()).await,
            Body::Control(control) => self.lane(parts).run(control, receipt.arrival()).await,
            Body::Overview(wanted) => {
                overview::show(&self.lane(parts), wanted, receipt.arrival()).await
            }
            Body::Announce(waiting) => {
                announce(&self.lane(parts), waiting, receipt.arrival()).await
            }
            Body::DeadLetters(_) => self.give_up_dead_letters(parts, deadline_ms).await,
            Body::Forge(hint) => {
                forge_hints::look(&self.lane(parts), hint, receipt.arrival()).await
            }
        }
    }

    pub(crate) fn lane<'a>(&'a self, parts: &'a WorldParts) -> Lane<'a> {
        Lane {
            store: &parts.store,
            queues: &self.queues,
            chat: &parts.chat,
            tenants: &parts.tenants,
            forge: parts.forge.as_deref(),
            limits: &self.config.limits,
            model: &self.config.model,
            usage_by_person: self.config.chats.usage_by_person,
            metrics: &self.metrics,
        }
    }

    /// The clients for the vendors whose models the thread can choose. A tenant key that does not open is reported by
    /// the effect that needs it.
    async fn sandboxes_of(
        &self,
        parts: &WorldParts,
        message: &Message,
        found: Option<&Result<Loaded, Failure>>,
    ) -> Arc<Sandboxes> {
        if let Some(Ok(found)) = found {
            let tenant = message.thread.tenant();
            let (session, settings) = (found.session.as_ref(), &found.settings);
            let own = parts.tenants.of_record(&tenant, session, settings).await;
            if let Ok(own) = own {
                return own;
            }
        }
        Arc::clone(&parts.sandboxes)
    }

    async fn drive(
        &self,
        world: &Live,
        (sandboxes, forge): (&Sandboxes, Option<&BoundForge>),
        (message, found): (&Message, Option<Result<Loaded, Failure>>),
        receipt: &Receipt<'_>,
        deadline_ms: Ms,
    ) -> Verdict {
        let limits = &self.config.limits;
        let delivery = Delivery {
            message,
            id: delivery_id(&message.id, receipt.receive),
            receive: receipt.receive,
            follow_until_ms: (now_ms() + HOLD_MS_MAX).min(deadline_ms.saturating_sub(WIND_UP_MS)),
            model: &self.config.model,
            providers: sandboxes.providers(),
            runtime: self.runtime,
            forge,
            limits,
            split: Chats::split(&message.thread),
        };
        let ended = drive(world, &delivery, found).await;
        if let Some(written) = &ended.written {
            world.note_sandbox(written).await;
        }
        ended.verdict
    }
}
