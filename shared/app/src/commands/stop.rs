//! `stop` and `stop all`, their buttons, and the operator's stop for one turn.

use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::card::{Card, CardState, PublishOffer, card_kind};
use bobbin_core::records::control::Control;
use bobbin_core::records::flags::StoppedAll;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::publication::Publication;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_core::records::usage::Usage;
use bobbin_core::tenant::selection::PullRequests;
use bobbin_core::tenant::settings::Settings;

use crate::arrival::Arrival;
use crate::control::{Lane, log_unsaid, place};
use crate::sandboxes::WorkTarget;

/// Longest wait for an abort: other threads' Stops need the control queue's slots. The cancel flag stays, and the
/// worker that follows the run sees it and aborts.
const ABORT_MS_MAX: u64 = 5_000;

impl Lane<'_> {
    /// Sets the flag first: the worker that follows the run sees it, even if the abort does not get through.
    pub(super) async fn stop(
        &self,
        control: &Control,
        wanted: Option<&TurnId>,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let now_ms = arrival.now_ms;
        let Loaded { session, flags, .. } = found;
        let running = session.as_ref().and_then(|session| session.turn.as_ref());
        let turn = match (wanted, running) {
            (Some(id), Some(turn)) if turn.id != *id && turn.covers(id) => {
                return self.sent_already(control, turn, id, now_ms).await;
            }
            (Some(id), running) if running.is_none_or(|turn| turn.id != *id) => {
                let ended = self.entries(&control.thread, std::slice::from_ref(id)).await?.pop();
                return match ended {
                    Some(turn) => self.show_ended(control, found, &turn).await,
                    None => self.withdraw(control, id, flags.queued.get(id), arrival).await,
                };
            }
            (Some(_), Some(turn)) => turn,
            (None, Some(turn)) if arrival.may_mean(turn.accepted_at_ms) => turn,
            (_, _) => {
                return self.chat.answer(&control.reply, "Nothing is running here.").await;
            }
        };
        self.cancel(control, found, turn).await?;
        if wanted.is_none() {
            self.say_done(control, "Stopping…").await;
        }
        Ok(())
    }

    /// Flags the queue first, so that nothing in it begins when the run ends: one flag for prompts not announced yet,
    /// and one for each announced prompt, with which their cards are found. Nothing is said before everything is
    /// flagged and the run is ended.
    pub(super) async fn stop_all(
        &self,
        control: &Control,
        found: &Loaded,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let now_ms = arrival.now_ms;
        let Loaded { session, flags, .. } = found;
        let running = session.as_ref().and_then(|session| session.turn.as_ref());
        let running = running.filter(|turn| arrival.may_mean(turn.accepted_at_ms));
        let waiting = flags.waiting();
        let behind: Vec<_> = waiting
            .into_iter()
            .filter(|(turn, _)| !running.is_some_and(|running| running.covers(turn)))
            .filter(|(_, queued)| arrival.may_mean(queued.accepted_at_ms))
            .take(self.limits.record.thread_queue)
            .collect();
        let id = control.id.as_str().into();
        let all = StoppedAll { by: control.by.clone(), until_ms: arrival.sent_ms };
        let flagged = self.store.mark_stopped_all(&control.thread, &id, &all);
        flagged.await.map_err(|e| e.failure())?;
        for (turn, _) in &behind {
            self.mark(&control.thread, turn, control).await?;
        }
        if let Some(turn) = running {
            self.cancel(control, found, turn).await?;
        }
        let words = words::stopped_all(running.is_some(), behind.len());
        self.say_done(control, &words).await;
        let mut unshown = Ok(());
        for (turn, queued) in &behind {
            let shown = self.show_withdrawn(control, turn, queued, now_ms).await;
            unshown = unshown.and(shown);
        }
        if let Err(failure) = unshown {
            tracing::warn!(event = "control.answer.failed", thread = %control.thread, control.id = %control.id, ?failure, "a card that waits is shown as withdrawn when its message comes");
        }
        Ok(())
    }

    /// Stops exactly this turn; one that does not run any more, or never did, is left alone.
    pub(super) async fn halt(
        &self,
        control: &Control,
        id: &TurnId,
        found: &Loaded,
    ) -> Result<(), Failure> {
        match found.session.as_ref().and_then(|session| session.turn.as_ref()) {
            Some(turn) if turn.id == *id => self.cancel(control, found, turn).await,
            _ => Ok(()),
        }
    }

    /// Flags the running turn as cancelled, and ends its run.
    async fn cancel(&self, control: &Control, found: &Loaded, turn: &Turn) -> Result<(), Failure> {
        self.mark(&control.thread, &turn.id, control).await?;
        let session = found.session.as_ref();
        let agent_session = session.and_then(|session| session.conversation.session.as_ref());
        let (Some(agent_session), Some(prompted)) = (agent_session, turn.stage.prompted()) else {
            self.poll_now(control, turn).await;
            return Ok(());
        };
        let aborted = async {
            let sandboxes = self.sandboxes(&control.thread, found).await?;
            let (sandbox, workspace) = place(&control.thread, found);
            let target = WorkTarget {
                thread: &control.thread,
                sandbox: &sandbox,
                generation: prompted.generation,
                workspace: &workspace,
            };
            let messages = turn.messages();
            sandboxes.abort_answering(target, agent_session, &messages).await
        };
        let silent =
            |_| Err(Failure::SandboxDown { seen: "the agent did not answer in time".to_owned() });
        let aborted = tokio::time::timeout(Duration::from_millis(ABORT_MS_MAX), aborted);
        if let Err(failure) = aborted.await.unwrap_or_else(silent) {
            tracing::info!(event = "run.abort.failed", thread = %control.thread, ?failure, "the abort failed; the worker will read the mark");
        }
        self.poll_now(control, turn).await;
        Ok(())
    }

    /// Reports what has been done. A failed reply is no reason to do it again: the cards say it too, and by then
    /// another turn may be running.
    async fn say_done(&self, control: &Control, words: &str) {
        if let Err(failure) = self.chat.answer(&control.reply, words).await {
            log_unsaid(control, &failure);
        }
    }

    /// A prompt that was sent into the run cannot be withdrawn: its card, which may show that it is being withdrawn,
    /// gets its text back.
    async fn sent_already(
        &self,
        control: &Control,
        turn: &Turn,
        id: &TurnId,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let steered = turn.steered.iter().find(|one| one.turn == *id);
        if let Some((steered, at)) = steered.and_then(|one| Some((one, one.card.as_ref()?))) {
            let state = CardState::Ended {
                outcome: Outcome::Joined { turn: turn.id.clone() },
                usage: Usage::default(),
            };
            let card = Card::new(id, state, steered.accepted_at_ms, now_ms, self.model);
            self.show(&control.thread, at, &PostKind::Card, card).await?;
        }
        self.chat.answer(&control.reply, words::SENT_ALREADY).await
    }

    /// The click's own answer put "stopping" on the card after its final text: that text is restored, with the button
    /// that leads to a pull request.
    async fn show_ended(
        &self,
        control: &Control,
        found: &Loaded,
        turn: &LedgerEntry,
    ) -> Result<(), Failure> {
        let Some(at) = &turn.card else { return Ok(()) };
        let state = CardState::Ended { outcome: turn.outcome.clone(), usage: turn.usage };
        let (since_ms, now_ms) = (turn.accepted_at_ms, turn.ended_at_ms);
        let model = turn.selection.model.as_deref().unwrap_or(self.model);
        let channel = &control.membership.channel;
        let session = found.session.as_ref();
        let publish =
            session.and_then(|session| offer(session, &found.settings, channel, turn.usage));
        let card = Card { publish, ..Card::new(&turn.turn, state, since_ms, now_ms, model) };
        self.show(&control.thread, at, &card_kind(turn.rolls), card).await
    }
}

/// The button under an ended turn that changed files, if that work is still there. A press checks again whether it may
/// leave.
fn offer(
    session: &Session,
    settings: &Settings,
    channel: &str,
    usage: Usage,
) -> Option<PublishOffer> {
    let defaults = settings.defaults_of(channel);
    let is_off = PullRequests::named(defaults.pull_requests.as_deref()) == PullRequests::Off;
    let project = &session.sandbox.project;
    let own = project.carried.iter().filter(|_| usage.files > 0);
    let mut changed = own.chain(session.beside()).filter(|carried| carried.base.is_some());
    let may_leave =
        changed.any(|carried| settings.repositories.are_open(&carried.repository.name, channel));
    if is_off || !may_leave || !session.sandbox.is_alive() {
        return None;
    }
    Some(match session.publication() {
        Some(Publication { pull_request: Some(_), .. }) => PublishOffer::Update,
        _ => PublishOffer::Open,
    })
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::records::carried::{Carried, ForgeRepository};
    use bobbin_core::records::sandbox::Phase;

    use super::*;

    #[test]
    fn late_stop_keeps_the_way_to_a_pull_request() {
        let thread = ThreadKey::discord("1", "2").expect("a key");
        let mut session = Session::new(thread, 0);
        let mut settings = Settings::default();
        let usage = |files| Usage { files, ..Usage::default() };
        session.sandbox.phase = Phase::Paused;
        assert_eq!(offer(&session, &settings, "10", usage(1)), None, "nothing was carried");
        let repository = ForgeRepository {
            installation: 7,
            id: 42,
            name: "acme/api".to_owned(),
            address: "https://git.example.com/acme/api".to_owned(),
            is_private: false,
            branch: "main".to_owned(),
        };
        let base = Some("1".repeat(40));
        session.sandbox.project.carried =
            Some(Carried { repository, default: None, folder: None, base });
        assert_eq!(offer(&session, &settings, "10", usage(1)), None, "it is not open here");
        settings.repositories.everywhere = ["acme/api".to_owned()].into();
        assert_eq!(offer(&session, &settings, "10", usage(1)), Some(PublishOffer::Open));
        assert_eq!(offer(&session, &settings, "10", usage(0)), None);
        session.sandbox.phase = Phase::Destroyed;
        assert_eq!(offer(&session, &settings, "10", usage(1)), None);
    }
}
