//! Observing an OpenCode run: the event stream, and separate reads.

use std::time::Duration;

use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::About;
use bobbin_core::tenant::budgets::MicroUsd;
use tokio::time::timeout;

use super::answer::conclude;
use super::client::{Events, OpenCode, OpenCodeError};
use super::reading::{Reading, RunSnapshot};
use super::types::{OpenCodeMessage, OpenCodeStatus};
use crate::observe::{Observation, Observe, Pulse, RunCursor, RunRef, RunState};
use crate::runtime::{AgentError, AgentResult};

/// Sessions whose subagents are read in one look.
const SUBAGENT_READS_MAX: usize = 20;

pub(super) async fn observe<'a>(
    client: &OpenCode,
    run: RunRef<'_>,
    cursor: &'a mut RunCursor,
    how: Observe,
) -> AgentResult<Observation<'a>> {
    let (run, is_whole) = cursor.kept(|| WatchedRun::new(client.clone(), run));
    let looked = run.look(how).await;
    *is_whole = run.caught_up;
    match looked {
        Ok(state) => Ok(Observation {
            state,
            asks: run.asks(),
            spent: run.spent(),
            told: run.reading.fold(),
            is_whole: run.caught_up,
        }),
        Err(error) => {
            run.events = None;
            Err(error)
        }
    }
}

/// One run, and its known state.
struct WatchedRun {
    client: OpenCode,
    session: String,
    message: String,
    further: Vec<String>,
    reading: Reading,
    events: Option<Events>,
    caught_up: bool,
    pulse: Pulse,
    /// Status and messages that were read, in this order, and not evaluated yet.
    read: Option<(Option<OpenCodeStatus>, Vec<OpenCodeMessage>)>,
}

impl WatchedRun {
    fn new(client: OpenCode, run: RunRef<'_>) -> Self {
        let RunRef { session, message, further } = run;
        Self {
            client,
            session: session.to_string(),
            message: message.to_owned(),
            further: further.to_vec(),
            reading: Reading::new(session, message, further),
            events: None,
            caught_up: false,
            pulse: Pulse::default(),
            read: None,
        }
    }

    async fn look(&mut self, how: Observe) -> AgentResult<Option<RunState>> {
        let record_after = match how {
            Observe::Once => {
                self.catch_up().await?;
                Duration::ZERO
            }
            Observe::Listen { within } => {
                self.listen(within).await?;
                return Ok(None);
            }
            Observe::Follow { within, record_after } => {
                self.listen(within).await?;
                record_after
            }
        };
        if !self.caught_up {
            return Ok(None);
        }
        self.sort_asks().await?;
        let suggested = self.reading.suggests_end();
        if !self.pulse.is_due(suggested, record_after) {
            return Ok(None);
        }
        Ok(Some(self.state().await?))
    }

    async fn catch_up(&mut self) -> Result<(), OpenCodeError> {
        let (statuses, permissions, questions) = tokio::try_join!(
            self.client.statuses(),
            self.client.permissions(),
            self.client.questions()
        )?;
        let messages = self.client.messages_since(&self.session, &self.message).await?;
        // The first observation uses the data just read.
        let status = statuses.get(&self.session).cloned();
        self.read = Some((status, messages.clone()));
        self.reading.catch_up(RunSnapshot { statuses, permissions, questions, messages });
        self.read_subagents().await?;
        self.caught_up = true;
        Ok(())
    }

    /// Processes the agent's events for at most this long.
    async fn listen(&mut self, within: Duration) -> AgentResult<()> {
        let events = match &mut self.events {
            Some(events) => events,
            none => {
                self.caught_up = false;
                let events = none.insert(self.client.events().await?);
                self.pulse.connected();
                events
            }
        };
        let Ok(next) = timeout(within, events.next()).await else {
            return self.pulse.listened(false);
        };
        let Some(batch) = next? else {
            return Err(AgentError::unreachable("the event stream ended"));
        };
        for event in batch {
            if event["type"] == "server.connected" {
                // Nothing later is lost, so the data read now and the events after it are complete.
                self.catch_up().await?;
            } else {
                self.reading.receive(event);
            }
        }
        self.pulse.listened(true)
    }

    /// Asks of subagents count as the run's own; the parent of an unknown session has to be read.
    async fn sort_asks(&mut self) -> Result<(), OpenCodeError> {
        for stranger in self.reading.strangers() {
            match self.client.session(&stranger).await {
                Ok(session) => self.reading.meet(&session),
                Err(OpenCodeError::SessionMissing | OpenCodeError::NotFound { .. }) => {
                    self.reading.dismiss(&stranger);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn state(&mut self) -> Result<RunState, OpenCodeError> {
        let (status, read) = match self.read.take() {
            Some((status, messages)) => (status, Some(messages)),
            None => {
                let mut statuses = self.client.statuses().await?;
                (statuses.remove(&self.session), None)
            }
        };
        if !matches!(status, None | Some(OpenCodeStatus::Idle)) {
            return Ok(RunState::Busy);
        }
        let messages = match read {
            Some(messages) => messages,
            None => self.client.messages_since(&self.session, &self.message).await?,
        };
        let status = status.as_ref();
        let mut state = conclude(&messages, &self.message, &self.further, status);
        if let RunState::Done(answer) = &mut state {
            self.read_subagents().await?;
            answer.usage.cost_micro_usd += self.reading.subagents_cost();
        }
        Ok(state)
    }

    /// Reads what the subagents have cost. A run without any costs no call.
    async fn read_subagents(&mut self) -> Result<(), OpenCodeError> {
        let mut parents = match self.reading.subagents() {
            none if none.is_empty() => return Ok(()),
            _ => vec![self.session.clone()],
        };
        for _ in 0..SUBAGENT_READS_MAX {
            let Some(parent) = parents.pop() else { break };
            let children = match self.client.children(&parent).await {
                Ok(children) => children,
                Err(OpenCodeError::SessionMissing | OpenCodeError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            // Those of earlier turns are not of this run.
            let of_run = self.reading.subagents();
            for child in children
                .iter()
                .filter(|child| of_run.contains(&child.id) || of_run.contains(&parent))
            {
                self.reading.meet(child);
                parents.push(child.id.clone());
            }
        }
        Ok(())
    }

    fn spent(&self) -> MicroUsd {
        self.reading.fold().usage().cost_micro_usd + self.reading.subagents_cost()
    }

    fn asks(&self) -> Vec<(AskId, About)> {
        let open = self.reading.fold().asks().into_iter();
        open.map(|(id, about)| (id.as_str().into(), about)).collect()
    }
}
