//! Observing a run of the daemon: its events, and its record of the turns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bobbin_agent::models::Models;
use bobbin_agent::{
    AgentResult, Fold, Observation, Observe, Pulse, Reason, RunCursor, RunRef, RunState,
};
use bobbin_agent_client::{AgentClient, DaemonAsk, EventStream, TurnState, TurnStatus};
use bobbin_agent_events::TurnOutcome;
use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::About;
use bobbin_core::records::run::{RunAnswer, RunEnd};
use tokio::time::{Instant, timeout};

use crate::asks;
use crate::attempt::Newest;
use crate::daemon::{Daemon, Trouble};
use crate::standing::{CUT_LATER, RunStanding};

/// Events before the newest one that are read to find where a run began; doubled until that is enough.
const BACK_EVENTS: u64 = 500;
/// Upper limit of the doubling: a card shows only the end.
const BACK_EVENTS_MAX: u64 = 32_000;
/// Events per page.
const PAGE_EVENTS: u64 = 500;
/// Pause between two reads of the open asks.
const ASKS_LOOK_MS: u64 = 1_000;
/// End reasons of a turn in which the agent gave up because a person refused.
const REFUSED: [&str; 2] = ["tool-calls", "refused"];
/// End reasons if the model's output limit cut the answer off.
const CUT: [&str; 2] = ["length", "max_tokens"];
/// End reasons if the agent does not say why.
const UNEXPLAINED: [&str; 3] = ["unexplained", "unknown", "other"];

pub(crate) async fn observe(
    begin: impl FnOnce() -> DaemonRun,
    cursor: &mut RunCursor,
    how: Observe,
) -> AgentResult<Observation<'_>> {
    let (run, is_whole) = cursor.kept(begin);
    let looked = run.look(how).await;
    *is_whole = run.is_caught_up;
    match looked {
        Ok((asks, state)) => {
            let spent = run.fold.usage().cost_micro_usd;
            Ok(Observation { state, asks, spent, told: &run.fold, is_whole: run.is_caught_up })
        }
        Err(error) => {
            run.events = None;
            Err(error)
        }
    }
}

type Asks = Vec<(AskId, About)>;

/// One run, and its known state.
pub(crate) struct DaemonRun {
    daemon: Daemon,
    models: Arc<Models>,
    session: String,
    /// The prompts of the run: the first one, and those that were sent later.
    messages: Vec<String>,
    fold: Fold,
    events: Option<EventStream>,
    is_caught_up: bool,
    looked_at_asks: Option<Instant>,
    pulse: Pulse,
    /// State of the prompts when everything was read, not evaluated yet; no event has come since.
    read: Option<Vec<Newest>>,
}

impl DaemonRun {
    pub(crate) fn new(daemon: Daemon, models: Arc<Models>, run: RunRef<'_>) -> Self {
        let RunRef { session, message, further } = run;
        Self {
            daemon,
            models,
            session: session.to_string(),
            messages: std::iter::once(message)
                .chain(further.iter().map(String::as_str))
                .map(str::to_owned)
                .collect(),
            fold: Fold::default(),
            events: None,
            is_caught_up: false,
            looked_at_asks: None,
            pulse: Pulse::default(),
            read: None,
        }
    }

    /// The open asks, and the state of the run, if its record was read after them.
    async fn look(&mut self, how: Observe) -> AgentResult<(Asks, Option<RunState>)> {
        let record_after = match how {
            Observe::Once => {
                self.catch_up().await?;
                Duration::ZERO
            }
            Observe::Listen { within } => {
                self.listen(within).await?;
                return Ok((self.asks(), None));
            }
            Observe::Follow { within, record_after } => {
                self.listen(within).await?;
                record_after
            }
        };
        self.look_at_asks().await?;
        let asks = self.asks();
        let suggested = std::mem::take(&mut self.fold.suggests_end);
        if !self.pulse.is_due(suggested, record_after) {
            return Ok((asks, None));
        }
        let state = self.state().await?;
        Ok((asks, Some(state)))
    }

    /// State of each prompt of the run.
    async fn turns(&self) -> Result<Vec<Newest>, Trouble> {
        let mut all = Vec::new();
        for message in &self.messages {
            all.push(self.daemon.newest(&self.session, message).await?);
        }
        Ok(all)
    }

    /// Reads all events of the run up to now; later ones arrive in order.
    async fn catch_up(&mut self) -> Result<(), Trouble> {
        let turns = self.turns().await?;
        let ids: Vec<String> = turns.iter().map(|turn| turn.turn.clone()).collect();
        let last = turns.iter().map(|turn| turn.status.last_event).max();
        let last = last.unwrap_or(0);
        let mut back = BACK_EVENTS;
        let fold = loop {
            let offset = last.saturating_sub(back);
            let mut fold = Fold::new(&self.directory().await?).priced_by(Arc::clone(&self.models));
            fold.of(&ids);
            fold.last_id = offset;
            let is_whole = self.read_up_to(&mut fold, last).await?;
            if is_whole || offset == 0 || back >= BACK_EVENTS_MAX {
                break fold;
            }
            back *= 2;
        };
        self.fold = fold;
        self.fold.suggests_end = true;
        self.keep_asks(&turns);
        // The first observation uses the data just read.
        self.read = Some(turns);
        self.is_caught_up = true;
        Ok(())
    }

    /// Processes the agent's events for at most this long.
    async fn listen(&mut self, within: Duration) -> AgentResult<()> {
        if self.events.is_none() {
            self.is_caught_up = false;
            self.catch_up().await?;
            let (session, offset) = (self.session.as_str(), self.fold.last_id);
            let follow = |client: AgentClient| async move { client.follow(session, offset).await };
            self.events = Some(self.daemon.call(follow).await?);
            self.pulse.connected();
        }
        let Some(events) = &mut self.events else {
            return Ok(());
        };
        let Ok(heard) = timeout(within, events.receive()).await else {
            return self.pulse.listened(false);
        };
        for event in heard.map_err(Trouble::from)? {
            self.fold.take(&event);
        }
        self.read = None;
        self.pulse.listened(true)
    }

    /// Reads on up to this event. Returns whether the first event read does not belong to the run, so that nothing of
    /// the run comes before it.
    async fn read_up_to(&self, fold: &mut Fold, last: u64) -> Result<bool, Trouble> {
        let session = self.session.as_str();
        let mut is_whole = None;
        while fold.last_id < last {
            let offset = fold.last_id;
            let page = |client: AgentClient| async move {
                client.events(session, offset, PAGE_EVENTS, Duration::ZERO).await
            };
            let page = self.daemon.call(page).await?;
            let Some(first) = page.events.first() else {
                break;
            };
            is_whole.get_or_insert(!first.turn.as_ref().is_some_and(|turn| fold.is_of(turn)));
            for event in &page.events {
                fold.take(event);
            }
        }
        Ok(is_whole.unwrap_or(true))
    }

    /// Working directory of the session, for relative paths.
    async fn directory(&self) -> Result<String, Trouble> {
        let call = |client: AgentClient| async move { client.sessions().await };
        let all = self.daemon.call(call).await?;
        let own = all.into_iter().find(|one| one.session_id == self.session);
        Ok(own.and_then(|one| one.directory).unwrap_or_default())
    }

    /// Some agents send no event when an ask was answered, or ended with its turn.
    fn keep_asks(&mut self, turns: &[Newest]) {
        self.looked_at_asks = Some(Instant::now());
        let open: BTreeSet<String> = turns
            .iter()
            .flat_map(|turn| &turn.status.asks)
            .map(|ask| match ask {
                DaemonAsk::Permission(ask) => ask.id.clone(),
                DaemonAsk::Question(ask) => ask.id.clone(),
            })
            .collect();
        self.fold.keep_asks(&open);
    }

    /// Reads the open asks, if there are any.
    async fn look_at_asks(&mut self) -> Result<(), Trouble> {
        let is_due = self
            .looked_at_asks
            .is_none_or(|at| at.elapsed() >= Duration::from_millis(ASKS_LOOK_MS));
        if self.fold.has_asks() && is_due {
            let turns = self.turns().await?;
            self.keep_asks(&turns);
        }
        Ok(())
    }

    fn answer(&self, turns: &[Newest]) -> RunAnswer {
        let last = turns.last().map(|turn| &turn.status);
        let fold = &self.fold;
        let (steps, earlier) = fold.steps(true);
        RunAnswer {
            end: end_of(last, fold.trouble()),
            text: fold.text(),
            usage: fold.usage(),
            steps,
            earlier,
            plan: fold.plan(),
        }
    }

    async fn state(&mut self) -> AgentResult<RunState> {
        let turns = match self.read.take() {
            Some(turns) => turns,
            None => self.turns().await?,
        };
        let states: Vec<TurnState> = turns.iter().map(|turn| turn.status.state).collect();
        let standing = RunStanding::of(&states);
        match standing {
            RunStanding::Works => return Ok(RunState::Busy),
            RunStanding::Cut => return Ok(RunState::Lost),
            RunStanding::Unseen => return Ok(RunState::Pending),
            RunStanding::CutLater | RunStanding::Over => {}
        }
        // All events of a turn that has ended can be read.
        let last = turns.iter().map(|turn| turn.status.last_event).max();
        let mut fold = std::mem::take(&mut self.fold);
        let read = self.read_up_to(&mut fold, last.unwrap_or(0)).await;
        self.fold = fold;
        read?;
        let mut answer = self.answer(&turns);
        if standing == RunStanding::CutLater {
            let reason = CUT_LATER.to_owned();
            answer.end = RunEnd::Error { reason };
        }
        Ok(RunState::Done(answer))
    }

    fn asks(&self) -> Asks {
        let open = self.fold.asks().into_iter();
        open.map(|(id, about)| (asks::name(&self.session, &id), about)).collect()
    }
}

/// How the run ended: as the last of its turns did.
fn end_of(last: Option<&TurnStatus>, trouble: Option<&Reason>) -> RunEnd {
    let Some(last) = last else {
        return RunEnd::Unexplained;
    };
    let said = last.message.as_deref().unwrap_or_default();
    match last.outcome {
        Some(TurnOutcome::Failed) => match (Reason::of("", None, said, ""), trouble) {
            (own, Some(trouble)) if !own.is_budget() => trouble.clone().end(),
            (own, _) => own.end(),
        },
        Some(TurnOutcome::Cancelled) => RunEnd::Aborted,
        _ if last.reason.as_deref().is_some_and(|reason| REFUSED.contains(&reason)) => {
            RunEnd::Rejected
        }
        Some(TurnOutcome::Done) => match last.reason.as_deref() {
            Some(reason) if CUT.contains(&reason) => RunEnd::Cut,
            Some(reason) if !UNEXPLAINED.contains(&reason) => RunEnd::Completed,
            _ => RunEnd::Unexplained,
        },
        Some(TurnOutcome::Lost) | None => RunEnd::Unexplained,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bobbin_core::base::endpoint::Endpoint;
    use bobbin_http::{AllowedHosts, Http};
    use bobbin_test_server::{Reply, Server};
    use serde_json::json;

    use super::*;

    /// The observed state of a run of these prompts, whose attempts have these states in turn.
    async fn observed(prompts: &[&str], states: &[&str]) -> AgentResult<RunState> {
        let replies =
            states.iter().map(|state| Reply::json(200, &json!({"state": state, "lastEvent": 0})));
        let server = Server::answering(replies).await;
        let http = Http::new(server.base(), AllowedHosts::Public).unwrap();
        let endpoint = Endpoint { url: server.base().to_owned(), headers: Vec::new() };
        let refresh = Arc::new(|| unreachable!("the endpoint answers"));
        let daemon = Daemon::new(http, endpoint, "token", refresh);
        let further: Vec<String> = prompts[1..].iter().map(|&prompt| prompt.to_owned()).collect();
        let run = RunRef { session: &"s1".into(), message: prompts[0], further: &further };
        let seen = DaemonRun::new(daemon, Arc::default(), run).state().await;
        assert_eq!(server.lines().len(), states.len());
        seen
    }

    #[tokio::test]
    async fn unknown_end_reason_is_unexplained() {
        let end = |outcome: Option<&str>, reason: Option<&str>| {
            let mut said = json!({"state": "done", "lastEvent": 0});
            if let Some(outcome) = outcome {
                said["outcome"] = json!(outcome);
            }
            if let Some(reason) = reason {
                said["reason"] = json!(reason);
            }
            let last: TurnStatus = serde_json::from_value(said).unwrap();
            end_of(Some(&last), None)
        };
        assert_eq!(end(Some("done"), Some("end_turn")), RunEnd::Completed);
        assert_eq!(end(Some("done"), Some("stop")), RunEnd::Completed);
        assert_eq!(end(Some("done"), Some("length")), RunEnd::Cut);
        assert_eq!(end(Some("done"), Some("max_tokens")), RunEnd::Cut);
        assert_eq!(end(Some("done"), Some("unknown")), RunEnd::Unexplained);
        assert_eq!(end(Some("done"), None), RunEnd::Unexplained);
        assert_eq!(end(None, None), RunEnd::Unexplained);
    }

    /// As Claude Code and Codex end their turns.
    #[test]
    fn spent_limit_of_the_vendor_is_no_fault() {
        let end = |said: &str, trouble: Option<&Reason>| {
            let said =
                json!({"state": "done", "outcome": "failed", "message": said, "lastEvent": 0});
            end_of(Some(&serde_json::from_value(said).unwrap()), trouble)
        };
        let stream = Reason::of("", None, "stream disconnected before completion", "");
        for said in [
            "Credit balance is too low",
            "API Error: 403 {\"error\":{\"message\":\"Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys\",\"code\":403}}",
            "API Error: 400 {\"error\":{\"message\":\"Budget has been exceeded! Current cost: 1.2, Max budget: 1.0\",\"type\":\"budget_exceeded\"}}",
            "exceeded retry limit, last status: 402 Payment Required",
            "unexpected status 429 Too Many Requests: {\"error\":{\"code\":\"organization_spend_limit_exceeded\"}}",
        ] {
            for trouble in [None, Some(&stream)] {
                assert!(matches!(end(said, trouble), RunEnd::OverBudget { .. }), "{said}");
            }
        }
        assert!(matches!(end("no such model", Some(&stream)), RunEnd::Error { .. }));
    }

    /// Not `Stopped`, which a second observation some seconds later has to confirm: the program that ran the agent
    /// reports it.
    #[tokio::test]
    async fn lost_run_needs_one_poll() {
        let cut = observed(&["msg_a"], &["lost", "not_seen"]).await;
        assert_eq!(cut, Ok(RunState::Lost));
        let tried_again = observed(&["msg_a"], &["lost", "running"]).await;
        assert_eq!(tried_again, Ok(RunState::Busy));
        let absent = observed(&["msg_a"], &["not_seen"]).await;
        assert_eq!(absent, Ok(RunState::Pending));
        let with_another = observed(&["msg_a", "msg_b"], &["lost", "not_seen", "done"]).await;
        assert_eq!(with_another, Ok(RunState::Lost));
    }
}
