//! Following a run of the daemon's: its events, and its record of the turns.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_agent::{AgentError, AgentResult, Fold, Retrying, RunState, RunWatch, reason_of};
use bobbin_agent_client::{AgentClient, Ask, EventStream, TurnState, TurnStatus};
use bobbin_agent_events::Outcome;
use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::About;
use bobbin_core::records::card::{CardStep, PlanItem};
use bobbin_core::records::run::{Answer, RunEnd};
use tokio::time::{Instant, timeout};

use crate::asks;
use crate::attempt::Newest;
use crate::daemon::{Daemon, Trouble};
use crate::standing::{CUT_LATER, Standing};

/// Events that are read before the newest one to find where a run began; where that is not enough, twice as many, and so on.
const BACK_EVENTS: u64 = 500;
/// But no more: what a card shows is the end of it.
const BACK_EVENTS_MAX: u64 = 32_000;
/// Events of one answer.
const PAGE_EVENTS: u64 = 500;
/// Between two looks at the asks that wait.
const ASKS_LOOK_MS: u64 = 1_000;
/// What the end of a turn is called when an agent gave up because somebody said no.
const REFUSED: [&str; 2] = ["tool-calls", "refused"];
/// And when the model's output limit cut the answer off, in the words of the agents.
const CUT: [&str; 2] = ["length", "max_tokens"];
/// And when they do not say how it ended.
const UNEXPLAINED: [&str; 3] = ["unexplained", "unknown", "other"];

/// One run, as it is followed.
pub(crate) struct Watch {
    daemon: Daemon,
    session: String,
    /// The prompts of the run: the first one, and those that were sent after it.
    messages: Vec<String>,
    fold: Option<Fold>,
    events: Option<EventStream>,
    is_caught_up: bool,
    looked_at_asks: Option<Instant>,
}

impl Watch {
    pub(crate) fn new(daemon: Daemon, session: &str, messages: Vec<String>) -> Self {
        Self {
            daemon,
            session: session.to_owned(),
            messages,
            fold: None,
            events: None,
            is_caught_up: false,
            looked_at_asks: None,
        }
    }

    /// How each prompt of the run stands.
    async fn turns(&self) -> Result<Vec<Newest>, Trouble> {
        let mut all = Vec::new();
        for message in &self.messages {
            all.push(self.daemon.newest(&self.session, message).await?);
        }
        Ok(all)
    }

    /// Reads what has been told of the run so far.
    async fn catch_up(&mut self) -> Result<(), Trouble> {
        let turns = self.turns().await?;
        let ids: Vec<String> = turns.iter().map(|turn| turn.turn.clone()).collect();
        let last = turns.iter().map(|turn| turn.status.last_event).max();
        let last = last.unwrap_or(0);
        let mut back = BACK_EVENTS;
        let fold = loop {
            let offset = last.saturating_sub(back);
            let mut fold = Fold::new(&self.directory().await?);
            fold.of(&ids);
            fold.last_id = offset;
            let is_whole = self.read_up_to(&mut fold, last).await?;
            if is_whole || offset == 0 || back >= BACK_EVENTS_MAX {
                break fold;
            }
            back *= 2;
        };
        self.fold = Some(fold);
        self.keep_asks(&turns);
        Ok(())
    }

    /// Reads on up to this event. Whether the first one that was read is of something else than the run, so that nothing of
    /// it comes before.
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

    /// Where the session works, for paths to be shown without it.
    async fn directory(&self) -> Result<String, Trouble> {
        let call = |client: AgentClient| async move { client.sessions().await };
        let all = self.daemon.call(call).await?;
        let own = all.into_iter().find(|one| one.session_id == self.session);
        Ok(own.and_then(|one| one.directory).unwrap_or_default())
    }

    /// An ask that was answered, or went with its turn, is told of by no event of some agents.
    fn keep_asks(&mut self, turns: &[Newest]) {
        self.looked_at_asks = Some(Instant::now());
        let open: BTreeSet<String> = turns
            .iter()
            .flat_map(|turn| &turn.status.asks)
            .map(|ask| match ask {
                Ask::Permission(ask) => ask.id.clone(),
                Ask::Question(ask) => ask.id.clone(),
            })
            .collect();
        if let Some(fold) = &mut self.fold {
            fold.keep_asks(&open);
        }
    }

    fn answer(&self, turns: &[Newest]) -> Answer {
        let last = turns.last().map(|turn| &turn.status);
        let Some(fold) = &self.fold else {
            return Answer {
                end: end_of(last, None),
                text: String::new(),
                usage: bobbin_core::records::usage::Usage::default(),
                steps: Vec::new(),
                earlier: 0,
                plan: Vec::new(),
            };
        };
        let (steps, earlier) = fold.steps(true);
        Answer {
            end: end_of(last, fold.trouble()),
            text: fold.text(),
            usage: fold.usage(),
            steps,
            earlier,
            plan: fold.plan(),
        }
    }
}

/// How the run ended: as the last of its turns did.
fn end_of(last: Option<&TurnStatus>, trouble: Option<&str>) -> RunEnd {
    let Some(last) = last else {
        return RunEnd::Unexplained;
    };
    let said = last.message.as_deref().unwrap_or_default();
    match last.outcome {
        Some(Outcome::Failed) => RunEnd::Error {
            reason: match trouble {
                Some(trouble) => trouble.to_owned(),
                None => reason_of("", None, said),
            },
        },
        Some(Outcome::Cancelled) => RunEnd::Aborted,
        _ if last.reason.as_deref().is_some_and(|reason| REFUSED.contains(&reason)) => {
            RunEnd::Rejected
        }
        Some(Outcome::Done) => match last.reason.as_deref() {
            Some(reason) if CUT.contains(&reason) => RunEnd::Cut,
            Some(reason) if !UNEXPLAINED.contains(&reason) => RunEnd::Completed,
            _ => RunEnd::Unexplained,
        },
        Some(Outcome::Lost) | None => RunEnd::Unexplained,
    }
}

#[async_trait]
impl RunWatch for Watch {
    async fn connect(&mut self) -> AgentResult<()> {
        (self.is_caught_up, self.events) = (false, None);
        self.read().await?;
        let session = self.session.as_str();
        let offset = self.fold.as_ref().map_or(0, |fold| fold.last_id);
        let follow = |client: AgentClient| async move { client.follow(session, offset).await };
        self.events = Some(self.daemon.call(follow).await?);
        Ok(())
    }

    /// Everything up to now; whatever comes after is told in order.
    async fn read(&mut self) -> AgentResult<()> {
        self.catch_up().await?;
        self.is_caught_up = true;
        if let Some(fold) = &mut self.fold {
            fold.suggests_end = true;
        }
        Ok(())
    }

    async fn hear(&mut self, within: Duration) -> AgentResult<bool> {
        let (Some(events), Some(fold)) = (&mut self.events, &mut self.fold) else {
            return Err(AgentError::unreachable("the event stream is not open"));
        };
        let Ok(heard) = timeout(within, events.hear()).await else {
            return Ok(false);
        };
        for event in heard.map_err(Trouble::from)? {
            fold.take(&event);
        }
        Ok(true)
    }

    fn is_caught_up(&self) -> bool {
        self.is_caught_up
    }

    fn suggests_end(&mut self) -> bool {
        let fold = self.fold.as_mut();
        fold.is_some_and(|fold| std::mem::take(&mut fold.suggests_end))
    }

    async fn sort_asks(&mut self) -> AgentResult<()> {
        let waits = self.fold.as_ref().is_some_and(Fold::has_asks);
        let is_due = self
            .looked_at_asks
            .is_none_or(|at| at.elapsed() >= Duration::from_millis(ASKS_LOOK_MS));
        if waits && is_due {
            let turns = self.turns().await?;
            self.keep_asks(&turns);
        }
        Ok(())
    }

    async fn observe(&mut self) -> AgentResult<RunState> {
        let turns = self.turns().await?;
        let states: Vec<TurnState> = turns.iter().map(|turn| turn.status.state).collect();
        let standing = Standing::of(&states);
        match standing {
            Standing::Works => return Ok(RunState::Busy),
            Standing::Cut => return Ok(RunState::Lost),
            Standing::Unseen => return Ok(RunState::Pending),
            Standing::CutLater | Standing::Over => {}
        }
        // Of a turn that has ended all events are there to be read.
        let last = turns.iter().map(|turn| turn.status.last_event).max();
        if let Some(mut fold) = self.fold.take() {
            let read = self.read_up_to(&mut fold, last.unwrap_or(0)).await;
            self.fold = Some(fold);
            read?;
        }
        let mut answer = self.answer(&turns);
        if standing == Standing::CutLater {
            let reason = CUT_LATER.to_owned();
            answer.end = RunEnd::Error { reason };
        }
        Ok(RunState::Done(answer))
    }

    fn asks(&self) -> Vec<(AskId, About)> {
        let open = self.fold.iter().flat_map(Fold::asks);
        open.map(|(id, about)| (asks::name(&self.session, &id), about)).collect()
    }

    fn steps(&self) -> (Vec<CardStep>, usize) {
        let steps = self.fold.as_ref().map(|fold| fold.steps(false));
        steps.unwrap_or_default()
    }

    fn plan(&self) -> Vec<PlanItem> {
        self.fold.as_ref().map(Fold::plan).unwrap_or_default()
    }

    fn words(&self) -> Vec<String> {
        self.fold.as_ref().map(Fold::words).unwrap_or_default()
    }

    fn messages(&self) -> usize {
        self.fold.as_ref().map_or(0, Fold::messages)
    }

    fn trouble(&self) -> Option<&str> {
        self.fold.as_ref().and_then(Fold::trouble)
    }

    fn retrying(&self) -> Option<Retrying> {
        self.fold.as_ref().and_then(Fold::retrying)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use bobbin_core::base::endpoint::Endpoint;
    use bobbin_http::{Hosts, Http};
    use bobbin_test_server::{Reply, Server};
    use serde_json::json;

    use super::*;

    /// What a look says of a run of these prompts, whose tries stand so, one after the other.
    async fn observed(prompts: &[&str], states: &[&str]) -> AgentResult<RunState> {
        let replies =
            states.iter().map(|state| Reply::json(200, &json!({"state": state, "lastEvent": 0})));
        let server = Server::answering(replies).await;
        let http = Http::new(server.base(), Hosts::Public).unwrap();
        let endpoint = Endpoint { url: server.base().to_owned(), headers: Vec::new() };
        let refresh = Arc::new(|| unreachable!("the endpoint answers"));
        let daemon = Daemon::new(http, endpoint, "token", refresh);
        let prompts = prompts.iter().map(|&prompt| prompt.to_owned());
        let seen = Watch::new(daemon, "s1", prompts.collect()).observe().await;
        assert_eq!(server.lines().len(), states.len());
        seen
    }

    #[tokio::test]
    async fn only_an_end_that_is_explained_is_an_answer() {
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

    /// Not `Stopped`, of which a second look some seconds later has to say the same: who ran the agent says it.
    #[tokio::test]
    async fn a_run_that_was_cut_is_lost_at_the_first_look_and_one_that_is_not_there_is_doubted() {
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
