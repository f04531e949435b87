//! The control lane: stop, status, decisions. Never waits behind a run, and writes nothing but marks, by condition.

use std::sync::Arc;

use bobbin_core::asks::{self, Ruling};
use bobbin_core::card::{Card, CardState, Post};
use bobbin_core::drive::Verdict;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, PostKind, ThreadKey};
use bobbin_core::limits::Limits;
use bobbin_core::message::{Choice, Control, Want};
use bobbin_core::session::{Ask, EndedTurn, Session};
use bobbin_core::status;

use crate::chat::Chat;
use crate::sandbox::Sandboxes;
use crate::store::Store;

/// What the control lane works with.
pub struct Lane<'a> {
    /// The records.
    pub store: &'a Store,
    /// The chats.
    pub chat: &'a Chat,
    /// The sandboxes.
    pub sandboxes: &'a Arc<Sandboxes>,
    /// The bounds.
    pub limits: &'a Limits,
    /// Model of the agent, for cards.
    pub model: &'a str,
}

impl Lane<'_> {
    /// Does what is wanted. `receive` counts the deliveries of this word, from 1.
    pub async fn run(&self, control: &Control, receive: u32, now_ms: Ms) -> Verdict {
        let done = match &control.want {
            Want::Say { text } => self.chat.tell(&control.reply, text).await,
            Want::Help { text } => self.answer(control, text).await,
            Want::Status => self.status(control, now_ms).await,
            Want::Stop { turn } => self.stop(control, turn.as_deref()).await,
            Want::Settle { ask, choice } => {
                self.settle(control, ask, choice, receive, now_ms).await
            }
        };
        match done {
            Ok(()) => Verdict::Done,
            Err(Failure::Wait { after_ms, seen }) if receive <= self.limits.attempts => {
                Verdict::Hold {
                    delay_ms: self.limits.backoff(receive).max(after_ms),
                    why: seen,
                }
            }
            Err(failure) => {
                tracing::warn!(thread = %control.thread, control.id = %control.id, ?failure, "a control word could not be carried out");
                Verdict::Done
            }
        }
    }

    async fn session(&self, thread: &ThreadKey) -> Result<Option<Session>, Failure> {
        let found = self.store.load(thread).await.map_err(|e| e.failure())?;
        Ok(found.map(|(session, _)| session))
    }

    async fn status(&self, control: &Control, now_ms: Ms) -> Result<(), Failure> {
        let session = self.session(&control.thread).await?;
        self.answer(control, &status::words(session.as_ref(), now_ms))
            .await
    }

    /// On Discord only the person who asked sees it; in Slack, where the question stands in the thread, so does the answer.
    async fn answer(&self, control: &Control, words: &str) -> Result<(), Failure> {
        match &control.thread {
            ThreadKey::Discord { .. } => self.chat.tell(&control.reply, words).await,
            ThreadKey::Slack { .. } => {
                let notice = Post::Notice(words.to_owned());
                self.chat
                    .post(
                        &control.thread,
                        &control.id,
                        &PostKind::Notice,
                        None,
                        &notice,
                    )
                    .await
                    .map(|_| ())
            }
        }
    }

    /// The mark first: whoever follows the run sees it, even if the abort does not get through.
    async fn stop(&self, control: &Control, wanted: Option<&str>) -> Result<(), Failure> {
        let session = self.session(&control.thread).await?;
        let running = session.as_ref().and_then(|session| session.turn.as_ref());
        let turn = match (wanted, running) {
            (Some(id), running) if running.is_none_or(|turn| turn.id != id) => {
                let ended = session
                    .as_ref()
                    .and_then(|session| session.ended.iter().find(|turn| turn.id == id));
                return match ended {
                    Some(turn) => self.show_ended(&control.thread, turn).await,
                    // It still waits in the queue, and sees the mark when it begins.
                    None => self.mark(&control.thread, id, control).await,
                };
            }
            (_, Some(turn)) => turn,
            (_, None) => {
                return self
                    .chat
                    .tell(&control.reply, "Nothing is running here.")
                    .await;
            }
        };
        self.mark(&control.thread, &turn.id, control).await?;
        if let (Some(session), Some(generation)) = (&session, turn.prompted_generation)
            && let Some(agent_session) = &session.agent_session
            && let Err(failure) = self
                .sandboxes
                .abort_answering(&control.thread, generation, agent_session)
                .await
        {
            tracing::info!(thread = %control.thread, ?failure, "the abort did not get through; the worker will see the mark");
        }
        match wanted {
            Some(_) => Ok(()),
            None => self.chat.tell(&control.reply, "Stopping…").await,
        }
    }

    /// The click's own answer showed "stopping" on the card after its last words: they are put back.
    async fn show_ended(&self, thread: &ThreadKey, turn: &EndedTurn) -> Result<(), Failure> {
        let Some(at) = &turn.card else { return Ok(()) };
        let card = Card {
            turn: turn.id.clone(),
            state: CardState::Ended {
                outcome: turn.outcome.clone(),
                usage: turn.usage,
            },
            steps: Vec::new(),
            since_ms: turn.at_ms.saturating_sub(turn.took_ms),
            now_ms: turn.at_ms,
            model: self.model.to_owned(),
        };
        self.chat
            .post(
                thread,
                &turn.id,
                &PostKind::Card,
                Some(at),
                &Post::Card(card),
            )
            .await
            .map(|_| ())
    }

    async fn mark(&self, thread: &ThreadKey, turn: &str, control: &Control) -> Result<(), Failure> {
        self.store
            .mark_cancelled(thread, turn, &control.by)
            .await
            .map_err(|e| e.failure())
    }

    /// The first decision settles the ask; who comes later, or with something that does not fit, is told so.
    async fn settle(
        &self,
        control: &Control,
        ask: &str,
        choice: &Choice,
        receive: u32,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let found = self
            .store
            .load(&control.thread)
            .await
            .map_err(|e| e.failure())?;
        let ruling = asks::rule(found.as_ref(), (ask, choice), &control.by, receive, now_ms);
        let (generation, ask, settlement) = match ruling {
            Ruling::Mark {
                generation,
                ask,
                settlement,
            } => (generation, ask, settlement),
            Ruling::TellAgent {
                generation,
                ask,
                choice,
            } => return self.carry_out(control, generation, ask, &choice).await,
            Ruling::TellPerson(words) => return self.chat.tell(&control.reply, &words).await,
        };
        let first = self
            .store
            .mark_settled(&control.thread, &ask.id, &settlement)
            .await
            .map_err(|e| e.failure())?;
        if first {
            return self
                .carry_out(control, generation, ask, &settlement.choice)
                .await;
        }
        let found = self
            .store
            .load(&control.thread)
            .await
            .map_err(|e| e.failure())?;
        let first = found.and_then(|(_, marks)| marks.settled.get(&ask.id).cloned());
        let words = first.map_or_else(
            || asks::OVER.to_owned(),
            |first| asks::too_late(ask, &first),
        );
        self.chat.tell(&control.reply, &words).await
    }

    async fn carry_out(
        &self,
        control: &Control,
        generation: u32,
        ask: &Ask,
        decision: &Choice,
    ) -> Result<(), Failure> {
        self.sandboxes
            .settle(&control.thread, generation, &ask.id, &ask.about, decision)
            .await
    }
}
