//! Control messages: stop, status, decisions. Never waits behind a run, and writes nothing but control flags,
//! conditionally.

use std::sync::Arc;

use bobbin_chat::{Chats, Say};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::forward::bring_forward;
use bobbin_cloud::metrics::Metrics;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::Store;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{PostRef, SandboxKey, ThreadKey, TurnId};
use bobbin_core::base::limits::Limits;
use bobbin_core::base::names::PostKind;
use bobbin_core::base::person::Person;
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::protocol::signals::{Alarm, CONTROL_DROPPED};
use bobbin_core::records::card::{Card, Post};
use bobbin_core::records::control::Control;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_core::records::workspace::Workspace;

use crate::arrival::Arrival;
use crate::forge::StackForge;
use crate::sandboxes::Sandboxes;
use crate::tenants::Tenants;

/// The clients that control messages need.
pub struct Lane<'a> {
    /// Thread records and their flags.
    pub store: &'a Store,
    /// Receives prompts that are run again.
    pub queues: &'a Queues,
    /// Answers people.
    pub chat: &'a Chats,
    /// Ends runs and answers asks.
    pub tenants: &'a Tenants,
    /// The forge, if one is set up.
    pub forge: Option<&'a StackForge>,
    /// The bounds of every wait, retry and size.
    pub limits: &'a Limits,
    /// The agent's model, shown on cards.
    pub model: &'a str,
    /// Managers see what each person has spent.
    pub usage_by_person: bool,
    /// Counts control messages that were given up.
    pub metrics: &'a Metrics,
}

/// Counts a control message that was given up.
pub(crate) fn dropped(metrics: &Metrics) {
    tracing::error!(event = CONTROL_DROPPED, "a control message was given up");
    metrics.count(Alarm::WorkDropped, now_ms());
}

/// Logs that the answer to a request that was carried out is missing.
pub(crate) fn log_unsaid(control: &Control, failure: &Failure) {
    tracing::warn!(event = "control.answer.failed", thread = %control.thread, control.id = %control.id, ?failure, "a request was carried out, but its answer could not be posted");
}

impl Lane<'_> {
    /// Carries out a control message. A permanent failure, or one that lasts too long, is reported in the thread.
    pub async fn run(&self, control: &Control, arrival: Arrival) -> Verdict {
        let Err(failure) = self.carry(control, arrival).await else {
            return Verdict::Done;
        };
        if let Some(held) = arrival.held(&failure, self.limits.retry.control_ms, &self.limits.retry)
        {
            return held;
        }
        tracing::warn!(event = "control.failed", thread = %control.thread, control.id = %control.id, ?failure, "a control message failed");
        let verdict = match failure {
            Failure::Wait { seen, .. } | Failure::Outage { seen, .. } => {
                self.notify_thread(control, &seen, arrival).await
            }
            Failure::NonRecoverable { advice } => {
                self.notify_thread(control, &advice, arrival).await
            }
            // Its subject is over.
            _ => Verdict::Done,
        };
        if verdict == Verdict::Done {
            dropped(self.metrics);
        }
        verdict
    }

    /// Reports in the thread that a control message failed, if its author expects an effect.
    pub(crate) async fn notify_thread(
        &self,
        control: &Control,
        seen: &str,
        arrival: Arrival,
    ) -> Verdict {
        let Some(word) = control.want.effect() else {
            return Verdict::Done;
        };
        let words = words::not_carried_out(word, seen);
        let id = control.id.as_str().into();
        self.call(&control.thread, &id, &control.by, words, arrival).await
    }

    /// Mentions a person in the thread with this text, about the message with this id.
    pub(crate) async fn call(
        &self,
        thread: &ThreadKey,
        id: &TurnId,
        by: &Person,
        words: String,
        arrival: Arrival,
    ) -> Verdict {
        let post =
            Post::Calling { people: vec![by.id.clone()], post: Box::new(Post::Notice(words)) };
        let told =
            async { self.chat.of(thread)?.post(thread, id, &PostKind::Notice, None, &post).await };
        let Err(failure) = told.await else {
            return Verdict::Done;
        };
        let held = arrival.held(&failure, self.limits.retry.owed_ms, &self.limits.retry);
        held.unwrap_or_else(|| {
            tracing::error!(event = "control.notice.failed", %thread, control.id = %id, ?failure, "the requester could not be notified that the control message failed");
            Verdict::Done
        })
    }

    /// The sandbox clients, with the thread's credentials.
    pub(crate) async fn sandboxes(
        &self,
        thread: &ThreadKey,
        found: &Loaded,
    ) -> Result<Arc<Sandboxes>, Failure> {
        let (session, settings) = (found.session.as_ref(), &found.settings);
        let tenant = thread.tenant();
        self.tenants.of_record(&tenant, session, settings).await
    }

    /// The record, if it exists, and its control flags.
    pub(crate) async fn record(
        &self,
        thread: &ThreadKey,
    ) -> Result<(Option<Session>, ControlFlags), Failure> {
        self.store.record(thread).await.map_err(|e| e.failure())
    }

    pub(crate) async fn entries(
        &self,
        thread: &ThreadKey,
        turns: &[TurnId],
    ) -> Result<Vec<LedgerEntry>, Failure> {
        let found = self.store.entries(thread, turns).await;
        found.map_err(|e| e.failure())
    }

    /// Answers where the question was asked: to its author, or in the thread.
    pub(crate) async fn answer(&self, control: &Control, words: &str) -> Result<(), Failure> {
        let (thread, id) = (&control.thread, &control.id.as_str().into());
        let chat = self.chat.of(thread)?;
        chat.answer(&control.reply, Say::Answer { thread, id, words }).await
    }

    /// Answers somebody whose request was carried out.
    ///
    /// # Errors
    /// As [`Lane::after_done`].
    pub(crate) async fn answer_done(
        &self,
        control: &Control,
        arrival: Arrival,
        words: &str,
    ) -> Result<(), Failure> {
        let said = self.chat.answer(&control.reply, words).await;
        self.after_done(control, arrival, said)
    }

    /// What is said or shown after a request was carried out: a failure is waited out for a while, and is never told as
    /// the request's own.
    ///
    /// # Errors
    /// The failure, while the message may still be retried for it.
    pub(crate) fn after_done(
        &self,
        control: &Control,
        arrival: Arrival,
        said: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Err(failure) = said else { return Ok(()) };
        let limits = &self.limits.retry;
        if arrival.held(&failure, limits.control_ms, limits).is_some() {
            return Err(failure);
        }
        log_unsaid(control, &failure);
        Ok(())
    }

    /// Brings the next poll forward: the author of a control message does not have to wait for it.
    pub(crate) async fn poll_now(&self, control: &Control, turn: &Turn) {
        // If this fails, the poll comes at its own time.
        let thread = &control.thread;
        let _ = bring_forward(self.store, self.queues, thread, &turn.id, None).await;
    }

    pub(crate) async fn show(
        &self,
        thread: &ThreadKey,
        at: &PostRef,
        kind: &PostKind,
        card: Card,
    ) -> Result<(), Failure> {
        let turn = card.turn.clone();
        let post = Post::Card(card);
        self.chat.of(thread)?.post(thread, &turn, kind, Some(at), &post).await?;
        Ok(())
    }

    pub(crate) async fn mark(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        control: &Control,
    ) -> Result<(), Failure> {
        self.store.mark_cancelled(thread, turn, &control.by).await.map_err(|e| e.failure())
    }
}

/// The sandbox and workspace of the thread's turns.
pub(crate) fn place(thread: &ThreadKey, found: &Loaded) -> (SandboxKey, Workspace) {
    match &found.session {
        Some(session) => (session.sandbox_key(), session.workspace().unwrap_or_default()),
        None => (thread.sandbox(), Workspace::Common),
    }
}
