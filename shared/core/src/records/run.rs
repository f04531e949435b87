//! A run of the agent: how far it has come with a prompt, and what it left.

use crate::records::card::{CardStep, PlanItem};
use crate::records::usage::Usage;

/// What a finished run left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Answer {
    /// How the run ended.
    pub end: RunEnd,
    /// The final text, Markdown, empty if there was none.
    pub text: String,
    /// Time, tokens and money that it took.
    pub usage: Usage,
    /// What the agent did, for the card.
    pub steps: Vec<CardStep>,
    /// How many steps came before these.
    pub earlier: usize,
    /// How its plan stands.
    pub plan: Vec<PlanItem>,
}

/// How a run ended, by the messages it left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RunEnd {
    /// With an answer, maybe an empty one.
    Completed,
    /// With an answer that the model's output limit cut off.
    Cut,
    /// The agent does not say how: neither an answer nor an abort may be read into that.
    Unexplained,
    /// By an abort, ours or somebody else's.
    Aborted,
    /// Because somebody said no to an ask.
    Rejected,
    /// With an error of the model or the agent.
    Error {
        /// The reason, for people.
        reason: String,
    },
}

/// What an agent knows of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptState {
    /// It has never heard of it.
    Absent,
    /// It works on it, or has come to an end with it: sending it again would begin nothing.
    Taken,
    /// It has it, and at this moment nothing works on it, without an end.
    Idle,
}
