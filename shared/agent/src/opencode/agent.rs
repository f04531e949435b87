//! [`Agent`] for the client of an OpenCode server.

use std::sync::Arc;

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId};
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::run::PromptState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::catalogue::AgentOptions;
use futures::future::try_join;

use super::answer::conclude;
use super::client::{OpenCode, OpenCodeError};
use super::{changes, observe, options, stop, submit};
use crate::observe::{Observation, Observe, RunCursor, RunRef, RunState};
use crate::runtime::{Agent, AgentResult, ConversationKey, Missed, Reported, RunStop, Submission};

#[async_trait]
impl Agent for OpenCode {
    fn in_workspace(&self, workspace: &Workspace) -> Arc<dyn Agent> {
        Arc::new(self.in_directory(workspace.directory()))
    }

    async fn is_healthy(&self, refresh: bool) -> AgentResult<bool> {
        let health = if refresh { self.health().await } else { self.probe().await };
        Ok(health?.healthy)
    }

    async fn options(&self) -> AgentResult<AgentOptions> {
        let (providers, agents) = try_join(self.offered_models(), self.offered_agents()).await?;
        let for_people = |names: Vec<String>| {
            names.into_iter().map(|one| self.models.for_people(&one)).collect::<Vec<String>>()
        };
        let mut unpriced = for_people(options::unpriced(&providers));
        unpriced.retain(|model| self.models.price(model).is_none());
        let models = for_people(options::models(&providers));
        Ok(AgentOptions { models, agents: options::agents(&agents), unpriced })
    }

    async fn ensure_session(
        &self,
        conversation: ConversationKey<'_>,
        known: Option<&AgentSessionId>,
        _agent: Option<&str>,
    ) -> AgentResult<AgentSessionId> {
        if let Some(id) = known {
            match self.session(id).await {
                // A session of another workspace would continue to work there.
                Ok(found) if self.is_at(&found) => return Ok(found.id.into()),
                Ok(_) | Err(OpenCodeError::SessionMissing) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = self.find_session(&conversation.title()).await?;
        Ok(match found {
            Some(found) => found.id.into(),
            None => self.create_session(conversation).await?.id.into(),
        })
    }

    async fn submit(&self, session: &AgentSessionId, prompt: Submission<'_>) -> Result<(), Missed> {
        submit::hand_over(self, session, prompt).await
    }

    async fn prompt_state(
        &self,
        session: &AgentSessionId,
        message: &str,
    ) -> AgentResult<PromptState> {
        if !self.has(session, message).await? {
            return Ok(PromptState::Absent);
        }
        // The status first: a run that begins or ends in between is then never taken for a stopped one.
        let mut statuses = self.statuses().await?;
        let messages = self.messages_since(session, message).await?;
        let status = statuses.remove(session.as_str());
        Ok(match conclude(&messages, message, &[], status.as_ref()) {
            RunState::Busy | RunState::Done(_) => PromptState::Taken,
            RunState::Stopped | RunState::Lost | RunState::Pending => PromptState::Idle,
        })
    }

    async fn observe<'a>(
        &self,
        run: RunRef<'_>,
        cursor: &'a mut RunCursor,
        how: Observe,
    ) -> AgentResult<Observation<'a>> {
        observe::observe(self, run, cursor, how).await
    }

    async fn stop(&self, session: &AgentSessionId, what: RunStop<'_>) -> AgentResult<bool> {
        match what {
            RunStop::Prompt { message, turn } => {
                stop::once_begun(self, session, message, turn).await?
            }
            RunStop::Answering { turn } => stop::if_answering(self, session, turn).await?,
            RunStop::Stray { messages } => {
                return Ok(stop::until_idle(self, session, messages).await?);
            }
        }
        Ok(true)
    }

    async fn answer(&self, ask: &AskId, about: &About, choice: &Choice) -> AgentResult<()> {
        let told = match (about, choice) {
            (About::Permission { .. }, Choice::Once) => self.reply_permission(ask, "once").await,
            (About::Permission { .. }, Choice::Always) => {
                self.reply_permission(ask, "always").await
            }
            (About::Permission { .. }, Choice::Reject) => {
                self.reply_permission(ask, "reject").await
            }
            (About::Question { .. }, Choice::Reject) => self.reject_question(ask).await,
            (About::Question { .. }, Choice::Answers(answers)) => {
                self.reply_question(ask, answers).await
            }
            _ => {
                let reason = "the choice does not match the question".to_owned();
                return Err(Failure::TurnFailed { reason }.into());
            }
        };
        match told {
            Ok(()) | Err(OpenCodeError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn changes(&self, session: &AgentSessionId, message: &str) -> AgentResult<Reported> {
        Ok(changes::summed_up(self, session, message).await?)
    }
}
