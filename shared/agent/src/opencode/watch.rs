//! Following a run of OpenCode's: the event stream, and what is read beside it.

use bobbin_core::base::ids::AskId;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::records::ask::About;
use bobbin_core::records::card::{CardStep, PlanItem};
use tokio::time::timeout;

use super::answer::conclude;
use super::client::{Events, OpenCode, OpenCodeError};
use super::reading::{Reading, Snapshot};
use super::types::{Message, Status};
use crate::retrying::Retrying;
use crate::runtime::{AgentError, AgentResult, RunState, RunWatch};

/// One run, as it is followed.
pub(super) struct Watch {
    client: OpenCode,
    session: String,
    message: String,
    further: Vec<String>,
    reading: Reading,
    events: Option<Events>,
    caught_up: bool,
    /// Status and messages that were read, in this order, and not looked at yet.
    read: Option<(Option<Status>, Vec<Message>)>,
}

impl Watch {
    pub(super) fn new(client: OpenCode, session: &str, message: &str, further: &[String]) -> Self {
        Self {
            client,
            session: session.to_owned(),
            message: message.to_owned(),
            further: further.to_vec(),
            reading: Reading::new(session, message, further),
            events: None,
            caught_up: false,
            read: None,
        }
    }

    async fn catch_up(&mut self) -> Result<(), OpenCodeError> {
        let (statuses, permissions, questions) = tokio::try_join!(
            self.client.statuses(),
            self.client.permissions(),
            self.client.questions()
        )?;
        let messages = self.client.messages_since(&self.session, &self.message).await?;
        // The first look is at what has just been read.
        let status = statuses.get(&self.session).cloned();
        self.read = Some((status, messages.clone()));
        self.reading.catch_up(Snapshot { statuses, permissions, questions, messages });
        self.caught_up = true;
        Ok(())
    }
}

#[async_trait]
impl RunWatch for Watch {
    async fn connect(&mut self) -> AgentResult<()> {
        self.caught_up = false;
        self.events = None;
        self.events = Some(self.client.events().await?);
        Ok(())
    }

    async fn hear(&mut self, within: Duration) -> AgentResult<bool> {
        let Some(events) = &mut self.events else {
            return Err(AgentError::unreachable("the event stream is not open"));
        };
        let Ok(next) = timeout(within, events.next()).await else {
            return Ok(false);
        };
        let Some(batch) = next? else {
            return Err(AgentError::unreachable("the event stream ended"));
        };
        for event in batch {
            if event["type"] == "server.connected" {
                // Nothing later is lost, so what is read now and what comes after it is the whole picture.
                self.catch_up().await?;
            } else {
                self.reading.hear(event);
            }
        }
        Ok(true)
    }

    async fn read(&mut self) -> AgentResult<()> {
        Ok(self.catch_up().await?)
    }

    fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    fn suggests_end(&mut self) -> bool {
        self.reading.suggests_end()
    }

    /// Asks of subagents count as the run's own; whose an unknown session is has to be read.
    async fn sort_asks(&mut self) -> AgentResult<()> {
        for stranger in self.reading.strangers() {
            match self.client.session(&stranger).await {
                Ok(session) => self.reading.meet(&session),
                Err(OpenCodeError::SessionMissing | OpenCodeError::NotFound { .. }) => {
                    self.reading.dismiss(&stranger);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn observe(&mut self) -> AgentResult<RunState> {
        let (status, read) = match self.read.take() {
            Some((status, messages)) => (status, Some(messages)),
            None => {
                let mut statuses = self.client.statuses().await?;
                (statuses.remove(&self.session), None)
            }
        };
        if !matches!(status, None | Some(Status::Idle)) {
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

    fn steps(&self) -> (Vec<CardStep>, usize) {
        self.reading.fold().steps(false)
    }

    fn plan(&self) -> Vec<PlanItem> {
        self.reading.fold().plan()
    }

    fn words(&self) -> Vec<String> {
        self.reading.fold().words()
    }

    fn messages(&self) -> usize {
        self.reading.fold().messages()
    }

    fn trouble(&self) -> Option<&str> {
        self.reading.fold().trouble()
    }

    fn retrying(&self) -> Option<Retrying> {
        self.reading.fold().retrying()
    }
}
