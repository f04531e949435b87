//! A run of the agent: its progress with a prompt, and its results.

use crate::records::card::{CardStep, PlanLine};
use crate::records::usage::Usage;

/// Results of a finished run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunAnswer {
    /// How the run ended.
    pub end: RunEnd,
    /// The final text, as Markdown; empty if there was none.
    pub text: String,
    /// Usage: time, tokens and money.
    pub usage: Usage,
    /// The agent's steps, for the card.
    pub steps: Vec<CardStep>,
    /// Number of steps before these.
    pub earlier: usize,
    /// State of its plan.
    pub plan: Vec<PlanLine>,
}

/// How a run ended, by the messages that it left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RunEnd {
    /// With an answer, maybe an empty one.
    Completed,
    /// With an answer that was cut off by the model's output limit.
    Cut,
    /// The agent does not say how: take it neither for an answer nor for an abort.
    Unexplained,
    /// By an abort, from Bobbin or anybody else.
    Aborted,
    /// Because somebody answered an ask with no.
    Rejected,
    /// With an error of the model or the agent.
    Error {
        /// The reason, for people.
        reason: String,
    },
    /// The model's vendor refused, because its account or key has no money left.
    OverBudget {
        /// Whose limit, and who can raise it.
        reason: String,
        /// The limit is the key's own.
        of_key: bool,
    },
}

/// State of a prompt at the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptState {
    /// The agent does not know it.
    Absent,
    /// The agent works on it, or has finished it: sending it again would begin nothing.
    Taken,
    /// The agent has it and has not finished it, and nothing works on it at this moment.
    Idle,
}
