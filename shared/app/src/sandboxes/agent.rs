//! Performs the effects of the agent: a thread's agent session, its prompts and runs.

use bobbin_agent::{ConversationKey, RunStop, Submission};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{AgentSessionId, AskId, Ms};
use bobbin_core::protocol::effect::{AgentEffect, Sending};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::artifacts::agent_instructions;
use bobbin_core::records::ask::{About, Choice};
use bobbin_core::records::session::StrayRun;
use bobbin_core::tokens::nudge::Nudge;

use super::server::Starting;
use super::{RunContext, Sandboxes, WorkTarget, follow};

impl Sandboxes {
    /// Performs one effect of the agent.
    pub async fn perform_agent<B: RunContext>(
        &self,
        context: &B,
        target: WorkTarget<'_>,
        effect: &AgentEffect,
    ) -> Event {
        let done = match effect {
            AgentEffect::CheckServer { within_ms } => {
                self.check_server(target.sandbox, target.generation, *within_ms).await
            }
            AgentEffect::FindAgentSession { known, since_ms, agent } => {
                let known = (known.as_ref(), *since_ms);
                self.find_session(target, known, agent.as_deref()).await
            }
            AgentEffect::Attach { turn, files } => Ok(self.attach(target, turn, files).await),
            AgentEffect::FindPrompt { agent_session, message } => {
                self.find_prompt(target, agent_session, message).await
            }
            AgentEffect::SendPrompt {
                turn,
                run_of,
                agent_session,
                ids,
                text,
                model,
                agent,
                images,
                sending,
                limit,
            } => {
                let limited =
                    self.limit_key((target.sandbox, target.generation), run_of, *limit).await;
                // The key of a prompt that is sent again has its limit, or was made with it.
                let is_first = matches!(sending, Sending::First { .. });
                if let Some(failure) = limited.err().filter(|_| is_first) {
                    return Event::NotSent(failure);
                }
                let images = self.inline(target, images).await;
                let (url, key) = (&self.settings.nudge_url, &self.settings.stack_key);
                let nudge = Nudge::of(url, key, target.thread, run_of);
                let prompt = Submission {
                    turn,
                    nudge: nudge.as_ref(),
                    ids,
                    model,
                    agent: agent.as_deref(),
                    system: &agent_instructions(&self.settings.limits.files),
                    text,
                    images: &images,
                    sending: *sending,
                };
                self.send_prompt(target, agent_session, prompt).await
            }
            AgentEffect::Follow(follow) => follow::follow(self, context, target, follow).await,
            AgentEffect::Look(follow) => follow::poll(self, context, target, follow).await,
            AgentEffect::Abort { agent_session, message, messages } => {
                let run = (agent_session, message.as_str(), messages.as_slice());
                self.abort(target, run).await
            }
            AgentEffect::EndRun(run) => {
                self.end_run(context, target, run).await.map(|()| Event::RunEnded)
            }
            AgentEffect::Decline { ask, about } => self.expire(context, target, (ask, about)).await,
            AgentEffect::ReadChanges { agent_session, message } => {
                self.read_changes(target, agent_session, message).await
            }
            AgentEffect::ListArtifacts => self.list_artifacts(target).await,
        };
        done.unwrap_or_else(Event::Failed)
    }

    async fn find_session(
        &self,
        target: WorkTarget<'_>,
        (known, since_ms): (Option<&AgentSessionId>, Ms),
        chosen: Option<&str>,
    ) -> Result<Event, Failure> {
        let agent = self.agent_in(target).await?;
        let conversation = ConversationKey { thread: target.thread, since_ms };
        let found = agent.ensure_session(conversation, known, chosen).await;
        let id = found.map_err(|e| e.failure)?;
        Ok(Event::AgentSession { id })
    }

    async fn send_prompt(
        &self,
        target: WorkTarget<'_>,
        session: &AgentSessionId,
        prompt: Submission<'_>,
    ) -> Result<Event, Failure> {
        let is_first = matches!(prompt.sending, Sending::First { .. });
        let agent = match self.agent_in(target).await {
            Ok(agent) => agent,
            Err(failure) if is_first => return Ok(Event::NotSent(failure)),
            Err(failure) => return Err(failure),
        };
        match agent.submit(session, prompt).await {
            Ok(()) => Ok(Event::Prompted),
            Err(missed) if is_first && missed.certain => Ok(Event::NotSent(missed.error.failure)),
            Err(missed) => Err(missed.error.failure),
        }
    }

    /// What the agent knows about a prompt that may have been sent.
    async fn find_prompt(
        &self,
        target: WorkTarget<'_>,
        session: &AgentSessionId,
        message: &str,
    ) -> Result<Event, Failure> {
        let agent = self.agent_in(target).await?;
        let found = agent.prompt_state(session, message).await;
        found.map(Event::PromptFound).map_err(|e| e.failure)
    }

    async fn abort(
        &self,
        target: WorkTarget<'_>,
        (session, message, turn): (&AgentSessionId, &str, &[String]),
    ) -> Result<Event, Failure> {
        let agent = self.agent_in(target).await?;
        let stopped = agent.stop(session, RunStop::Prompt { message, turn }).await;
        stopped.map(|_| Event::Aborted).map_err(|e| e.failure)
    }

    /// Ends a run for control messages: only if the agent is answering a prompt of this turn (by its message ids) at
    /// this moment. A later abort could hit the next prompt, and the worker that follows the run aborts it too.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn abort_answering(
        &self,
        target: WorkTarget<'_>,
        agent_session: &AgentSessionId,
        turn: &[String],
    ) -> Result<(), Failure> {
        let agent = self.agent_in(target).await?;
        let stopped = agent.stop(agent_session, RunStop::Answering { turn }).await;
        stopped.map(drop).map_err(|e| e.failure)
    }

    /// Ends a run that no turn follows any more, and waits until the agent is idle. A server that goes on regardless is
    /// ended, together with everything in the sandbox's other workspaces.
    async fn end_run<B: RunContext>(
        &self,
        context: &B,
        target: WorkTarget<'_>,
        run: &StrayRun,
    ) -> Result<(), Failure> {
        let agent = self.agent_in(WorkTarget { generation: run.generation, ..target }).await?;
        let stray = RunStop::Stray { messages: &run.messages };
        let stopped = agent.stop(&run.agent_session, stray).await;
        if stopped.map_err(|e| e.failure)? {
            return Ok(());
        }
        let within_ms = self.settings.limits.turn.health_start_ms;
        let how = Starting::AGAIN;
        let at = (target.sandbox, run.generation);
        self.ensure_server(context, at, how, within_ms).await.map(drop)
    }

    /// Sends a person's decision on an ask to the agent; an ask that is no longer open counts as answered.
    ///
    /// # Errors
    /// The class of the failure; `TurnFailed` if the choice does not fit the ask.
    pub async fn settle(
        &self,
        target: WorkTarget<'_>,
        (ask, about): (&AskId, &About),
        choice: &Choice,
    ) -> Result<(), Failure> {
        let agent = self.agent_in(target).await?;
        let told = agent.answer(ask, about, choice).await;
        told.map_err(|e| e.failure)
    }

    /// The ask has expired: it counts as denied, unless somebody decided in time and the agent was not told yet.
    async fn expire<B: RunContext>(
        &self,
        context: &B,
        target: WorkTarget<'_>,
        asked @ (ask, _): (&AskId, &About),
    ) -> Result<Event, Failure> {
        let id = ask.to_owned();
        let unread = || Failure::Wait {
            after_ms: 0,
            seen: "whether somebody has decided could not be read".to_owned(),
        };
        let mut flags = context.flags(target.thread).await.ok_or_else(unread)?;
        match flags.settled.remove(ask) {
            Some(settlement) => {
                self.settle(target, asked, &settlement.choice).await?;
                let settlement = Some(settlement);
                Ok(Event::AskClosed { id, settlement })
            }
            None => {
                self.settle(target, asked, &Choice::Reject).await?;
                Ok(Event::Declined { id })
            }
        }
    }
}
