//! Reads a running turn's text from the agent itself.
//!
//! The record and the ledger have a turn's progress and outcome; the text stays in the sandbox until the answer is
//! posted. So this asks the agent's server through the provider, as the worker does. It only reads, so the run is not
//! affected, and an unreachable agent does not end the following.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bobbin_agent::{Agent, Observe, RunCursor, RunRef, RunState};
use bobbin_app::agents;
use bobbin_core::base::ids::AgentSessionId;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_sandbox::Provider;

use super::stack::Stack;

/// Delay before a broken connection is retried.
const AGAIN: Duration = Duration::from_secs(3);
/// Longest wait for the agent's final messages.
const LAST: Duration = Duration::from_secs(5);

/// Identifies the agent's run.
#[derive(Clone, PartialEq, Eq)]
struct HeardRun {
    sandbox: String,
    /// The record's provider.
    at: Option<String>,
    /// The record's runtime.
    runtime: Option<String>,
    session: AgentSessionId,
    message: String,
    further: Vec<String>,
}

impl HeardRun {
    fn at_agent(&self) -> RunRef<'_> {
        RunRef { session: &self.session, message: &self.message, further: &self.further }
    }
}

/// The agent's event stream, and what it has sent so far.
struct Listening {
    agent: Arc<dyn Agent>,
    cursor: RunCursor,
    words: Vec<String>,
    step: Option<String>,
}

/// Listens to the runs of one turn.
pub struct Ear<'a> {
    stack: &'a Stack,
    /// The last provider client, with its name in the record.
    provider: Option<(Option<String>, Arc<dyn Provider>)>,
    run: Option<HeardRun>,
    heard: Option<Listening>,
    /// Time of the next retry.
    next: Instant,
    /// The last connection error.
    trouble: Option<String>,
}

impl<'a> Ear<'a> {
    pub fn new(stack: &'a Stack) -> Self {
        Self { stack, provider: None, run: None, heard: None, next: Instant::now(), trouble: None }
    }

    /// Updates the run from the record.
    pub fn attend(&mut self, session: &Session, turn: &Turn) {
        let (Some(agent), Some(prompted)) = (&session.conversation.session, turn.stage.prompted())
        else {
            return;
        };
        let run = HeardRun {
            sandbox: sandbox_name(&self.stack.name, &session.sandbox_key(), prompted.generation),
            at: session.sandbox.spec.provider.clone(),
            runtime: session.sandbox.spec.runtime.clone(),
            session: agent.clone(),
            message: prompted.ids.message.clone(),
            further: turn.further(),
        };
        if self.run.as_ref() != Some(&run) {
            self.run = Some(run);
            self.heard = None;
            self.next = Instant::now();
        }
    }

    /// Listens until `within` has passed; without an agent it only waits.
    pub async fn listen(&mut self, within: Duration) {
        let until = Instant::now() + within;
        if let Err(why) = self.hear(until).await {
            self.trouble = Some(why);
            self.heard = None;
            self.next = Instant::now() + AGAIN;
        }
        tokio::time::sleep(until.saturating_duration_since(Instant::now())).await;
    }

    /// Reads events until then, after catching up on missed ones.
    async fn hear(&mut self, until: Instant) -> Result<(), String> {
        if self.heard.is_none() && (self.run.is_none() || Instant::now() < self.next) {
            return Ok(());
        }
        self.connect().await?;
        let (Some(heard), Some(run)) = (&mut self.heard, &self.run) else {
            return Ok(());
        };
        loop {
            let within = until.saturating_duration_since(Instant::now());
            let how = Observe::Listen { within };
            let seen = heard.agent.observe(run.at_agent(), &mut heard.cursor, how).await;
            let told = seen.map_err(|e| e.seen)?.told;
            if Instant::now() >= until {
                heard.words = told.words();
                heard.step = told.steps(false).0.into_iter().next_back().map(|step| step.text);
                return Ok(());
            }
        }
    }

    async fn connect(&mut self) -> Result<(), String> {
        let (None, Some(run)) = (&self.heard, &self.run) else {
            return Ok(());
        };
        let provider = match &self.provider {
            Some((at, provider)) if *at == run.at => Arc::clone(provider),
            _ => {
                let made = self.stack.provider_named(run.at.as_deref()).await;
                made.map_err(|e| e.message)?
            }
        };
        self.provider = Some((run.at.clone(), Arc::clone(&provider)));
        let runtime = agents::listening(
            self.stack.runtime_mode(),
            run.runtime.as_deref(),
            self.stack.model(),
        )?;
        let key = self.stack.stack_key().await.map_err(|e| e.message)?;
        let agent = agents::connect(&provider, &*runtime, &run.sandbox, key.expose());
        let agent = agent.await.map_err(|failure| failure.to_string())?;
        let cursor = RunCursor::default();
        self.heard = Some(Listening { agent, cursor, words: Vec::new(), step: None });
        Ok(())
    }

    /// The text so far, in pieces; only the last can still grow.
    pub fn words(&self) -> Vec<String> {
        self.heard.as_ref().map(|heard| heard.words.clone()).unwrap_or_default()
    }

    /// The agent's current step.
    pub fn step(&self) -> Option<String> {
        self.heard.as_ref()?.step.clone()
    }

    /// The last connection error, reported once.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// The agent's full text and answer after the turn's end; `None` if the agent is unreachable or was never seen
    /// running.
    pub async fn last(&mut self) -> Option<(Vec<String>, String)> {
        let read = async {
            self.heard = None;
            self.connect().await.ok()?;
            let (heard, run) = (self.heard.as_mut()?, self.run.as_ref()?);
            let seen = heard.agent.observe(run.at_agent(), &mut heard.cursor, Observe::Once);
            let seen = seen.await.ok()?;
            let answer = match seen.state {
                Some(RunState::Done(answer)) => answer.text,
                _ => String::new(),
            };
            Some((seen.told.words(), answer))
        };
        tokio::time::timeout(LAST, read).await.ok()?
    }
}
