//! OpenCode as a [`Runtime`].

use std::sync::Arc;

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId};
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::run::PromptState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::settings::AgentOptions;
use bobbin_http::{Http, HttpError};

use super::answer::conclude;
use super::client::{OpenCode, OpenCodeError, Via};
use super::launch;
use super::models::{ModelSettings, Models};
use super::outside::{self, ToolServer};
use super::request::session_title;
use super::watch::Watch;
use crate::runtime::{
    Agent, AgentError, AgentErrorKind, AgentResult, Conversation, Launch, LaunchInputs, Missed,
    ModelKey, Refresh, Reported, RunState, RunWatch, Runtime, Submission,
};

/// OpenCode, with the models of a stack.
#[derive(Debug)]
pub struct OpenCodeRuntime {
    models: Arc<Models>,
    via: Via,
    tools: Option<ToolServer>,
}

impl OpenCodeRuntime {
    /// With these models.
    ///
    /// # Errors
    /// What is wrong with a model's name.
    pub fn new(settings: &ModelSettings) -> Result<Self, String> {
        let models = Arc::new(Models::new(settings)?);
        Ok(Self { models, via: Via::Server, tools: None })
    }

    /// The same, which works in another sandbox by these tools.
    #[must_use]
    pub fn working_by(self, tools: ToolServer) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// The same, reached so. The store and its sessions are the same whichever way it is.
    #[must_use]
    pub fn reached(self, via: Via) -> Self {
        Self { via, ..self }
    }
}

/// The port of its server inside a sandbox.
const PORT: u16 = 4096;

impl Runtime for OpenCodeRuntime {
    fn port(&self) -> u16 {
        PORT
    }

    fn providers(&self) -> &[String] {
        self.models.providers()
    }

    fn keys(&self) -> Result<Vec<ModelKey>, Failure> {
        self.models.for_server().map(|(_, keys)| keys)
    }

    fn launch(&self, inputs: LaunchInputs<'_>) -> Result<Launch, Failure> {
        let (mut config, _) = self.models.for_server()?;
        let Some(tools) = &self.tools else {
            return Ok(launch::launch(self.via, inputs, &config));
        };
        outside::configured(&mut config, tools);
        let launch = launch::launch(self.via, inputs, &config);
        Ok(outside::with_bearer(launch, inputs.tools_bearer))
    }

    fn not_launched(&self, exit_code: i64) -> Option<Failure> {
        launch::not_launched(exit_code)
    }

    fn fit_workspace(&self) -> String {
        launch::fit_workspace()
    }

    fn last_words(&self) -> &'static str {
        launch::LAST_WORDS
    }

    fn http(&self, provider_base: &str) -> Result<Http, HttpError> {
        OpenCode::http(provider_base)
    }

    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent> {
        Arc::new(OpenCodeAgent {
            client: OpenCode::over(self.via, http, endpoint, password).refreshed_by(refresh),
            models: Arc::clone(&self.models),
            has_tools: self.tools.is_some(),
        })
    }
}

/// One OpenCode server, with the names that the stack's people use for its models.
#[derive(Debug, Clone)]
pub(super) struct OpenCodeAgent {
    pub(super) client: OpenCode,
    pub(super) models: Arc<Models>,
    /// It works by the tools of another sandbox.
    pub(super) has_tools: bool,
}

#[async_trait]
impl Agent for OpenCodeAgent {
    fn in_workspace(&self, workspace: &Workspace) -> Arc<dyn Agent> {
        Arc::new(Self { client: self.client.in_directory(workspace.directory()), ..self.clone() })
    }

    async fn is_healthy(&self, refresh: bool) -> AgentResult<bool> {
        let health = if refresh { self.client.health().await } else { self.client.probe().await };
        Ok(health?.healthy)
    }

    async fn options(&self) -> AgentResult<AgentOptions> {
        let offer = self.client.options().await?;
        let models = offer.models.iter().map(|one| self.models.for_people(one));
        Ok(AgentOptions { models: models.collect(), agents: offer.agents })
    }

    async fn ensure_session(
        &self,
        conversation: Conversation<'_>,
        known: Option<&AgentSessionId>,
        _agent: Option<&str>,
    ) -> AgentResult<AgentSessionId> {
        if let Some(id) = known {
            match self.client.session(id).await {
                // One of another workspace would go on working there.
                Ok(found) if self.client.is_at(&found) => return Ok(found.id.into()),
                Ok(_) | Err(OpenCodeError::SessionMissing) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = self.client.find_session(&session_title(conversation)).await?;
        Ok(match found {
            Some(found) => found.id.into(),
            None => self.client.create_session(conversation).await?.id.into(),
        })
    }

    async fn submit(&self, session: &AgentSessionId, prompt: Submission<'_>) -> Result<(), Missed> {
        self.hand_over(session, prompt).await
    }

    async fn prompt_state(
        &self,
        session: &AgentSessionId,
        message: &str,
    ) -> AgentResult<PromptState> {
        if !self.client.has(session, message).await? {
            return Ok(PromptState::Absent);
        }
        // The status first: a run that begins or ends in between is then never taken for one that stands still.
        let mut statuses = self.client.statuses().await?;
        let messages = self.client.messages_since(session, message).await?;
        let status = statuses.remove(session.as_str());
        Ok(match conclude(&messages, message, &[], status.as_ref()) {
            RunState::Busy | RunState::Done(_) => PromptState::Taken,
            RunState::Stopped | RunState::Lost | RunState::Pending => PromptState::Idle,
        })
    }

    fn watch(
        &self,
        session: &AgentSessionId,
        message: &str,
        further: &[String],
    ) -> Box<dyn RunWatch> {
        Box::new(Watch::new(self.client.clone(), session, message, further))
    }

    async fn cancel(
        &self,
        session: &AgentSessionId,
        message: &str,
        turn: &[String],
    ) -> AgentResult<()> {
        Ok(self.client.cancel(session, message, turn).await?)
    }

    async fn cancel_if_answering(
        &self,
        session: &AgentSessionId,
        turn: &[String],
    ) -> AgentResult<()> {
        Ok(self.client.cancel_if_answering(session, turn).await?)
    }

    async fn end(&self, session: &AgentSessionId, messages: &[String]) -> AgentResult<bool> {
        Ok(self.client.end(session, messages).await?)
    }

    async fn answer(&self, ask: &AskId, about: &About, choice: &Choice) -> AgentResult<()> {
        let client = &self.client;
        let told = match (about, choice) {
            (About::Permission { .. }, Choice::Once) => client.reply_permission(ask, "once").await,
            (About::Permission { .. }, Choice::Always) => {
                client.reply_permission(ask, "always").await
            }
            (About::Permission { .. }, Choice::Reject) => {
                client.reply_permission(ask, "reject").await
            }
            (About::Question { .. }, Choice::Reject) => client.reject_question(ask).await,
            (About::Question { .. }, Choice::Answers(answers)) => {
                client.reply_question(ask, answers).await
            }
            _ => {
                let reason = "the choice does not fit what was asked".to_owned();
                return Err(Failure::TurnFailed { reason }.into());
            }
        };
        match told {
            Ok(()) | Err(OpenCodeError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn changes(&self, session: &AgentSessionId, message: &str) -> AgentResult<Reported> {
        Ok(self.client.changes(session, message).await?)
    }
}

impl From<OpenCodeError> for AgentError {
    fn from(error: OpenCodeError) -> Self {
        Self {
            kind: match &error {
                OpenCodeError::Guard(_) => AgentErrorKind::Final,
                OpenCodeError::NoEndpoint(none) if none.is_gone => AgentErrorKind::Final,
                _ => AgentErrorKind::Other,
            },
            failure: error.failure(),
            seen: error.to_string(),
        }
    }
}
