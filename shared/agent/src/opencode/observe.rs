//! Observing an OpenCode run: the event stream, and separate reads.

use std::time::Duration;

use bobbin_core::base::ids::AskId;
use bobbin_core::records::ask::About;
use tokio::time::timeout;

use super::answer::conclude;
use super::client::{Events, OpenCode, OpenCodeError};
use super::reading::{Reading, RunSnapshot};
use super::types::{OpenCodeMessage, OpenCodeStatus};
use crate::observe::{Observation, Observe, Pulse, RunCursor, RunRef, RunState};
use crate::runtime::{AgentError, AgentResult};

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
        Ok(conclude(&messages, &self.message, &self.further, status))
    }

    fn asks(&self) -> Vec<(AskId, About)> {
        let open = self.reading.fold().asks().into_iter();
        open.map(|(id, about)| (id.as_str().into(), about)).collect()
    }
}
