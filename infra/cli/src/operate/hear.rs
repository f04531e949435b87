//! The words of a turn that runs, from the agent itself.
//!
//! The record and the ledger say how far a turn is and how it ended; the words are in the sandbox until the answer is posted.
//! So the agent's server is asked, through the provider, as the worker asks it. It is only read: who listens changes nothing
//! of the run, and that the agent cannot be heard does not end the following.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bobbin_agent::{Agent, Observe, RunCursor, RunRef, RunState};
use bobbin_app::agents;
use bobbin_core::base::ids::{AgentSessionId, sandbox_name};
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_sandbox::Provider;

use super::stack::Stack;

/// A connection that broke is tried again after this time.
const AGAIN: Duration = Duration::from_secs(3);
/// What the agent has on record at the end is waited for so long.
const LAST: Duration = Duration::from_secs(5);

/// Which run of which agent.
#[derive(Clone, PartialEq, Eq)]
struct Run {
    sandbox: String,
    /// The provider that the record names.
    at: Option<String>,
    /// The runtime that it names.
    runtime: Option<String>,
    session: AgentSessionId,
    message: String,
    further: Vec<String>,
}

impl Run {
    fn at_agent(&self) -> RunRef<'_> {
        RunRef { session: &self.session, message: &self.message, further: &self.further }
    }
}

/// The agent that is listened to, and what it has told so far.
struct Listening {
    agent: Arc<dyn Agent>,
    cursor: RunCursor,
    words: Vec<String>,
    step: Option<String>,
}

/// Listens to the runs of one turn.
pub struct Ear<'a> {
    stack: &'a Stack,
    /// As it was last made, with the name that the record has for it.
    provider: Option<(Option<String>, Arc<dyn Provider>)>,
    run: Option<Run>,
    heard: Option<Listening>,
    /// When to try again.
    next: Instant,
    /// Why the agent could not be heard last.
    trouble: Option<String>,
}

impl<'a> Ear<'a> {
    pub fn new(stack: &'a Stack) -> Self {
        Self { stack, provider: None, run: None, heard: None, next: Instant::now(), trouble: None }
    }

    /// Takes note of what the record says of the run.
    pub fn attend(&mut self, session: &Session, turn: &Turn) {
        let (Some(agent), Some(prompted)) = (&session.conversation.session, turn.stage.prompted())
        else {
            return;
        };
        let run = Run {
            sandbox: sandbox_name(&self.stack.name, &session.sandbox_key(), prompted.generation),
            at: session.sandbox.provider.clone(),
            runtime: session.sandbox.runtime.clone(),
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

    /// Listens for so long. Where there is nothing to be heard it waits.
    pub async fn listen(&mut self, within: Duration) {
        let until = Instant::now() + within;
        if let Err(why) = self.hear(until).await {
            self.trouble = Some(why);
            self.heard = None;
            self.next = Instant::now() + AGAIN;
        }
        tokio::time::sleep(until.saturating_duration_since(Instant::now())).await;
    }

    /// Everything that comes until then, or what is still missing of what came before.
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

    /// The words so far, in pieces of which only the last still grows.
    pub fn words(&self) -> Vec<String> {
        self.heard.as_ref().map(|heard| heard.words.clone()).unwrap_or_default()
    }

    /// What the agent does at the moment.
    pub fn step(&self) -> Option<String> {
        self.heard.as_ref()?.step.clone()
    }

    /// Why the agent could not be heard, once.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// What the agent has on record when the turn is over: all its words, and the answer. None where it cannot be reached
    /// any more, or was never known to run.
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
