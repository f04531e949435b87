//! State of prompts, from the daemon's states of the newest attempt at each. It uses neither clock nor network, so that
//! the protocol's proofs apply the same rules to a simulated daemon.

use bobbin_agent_client::TurnState;
use bobbin_core::records::run::PromptState;

/// State of the run of some prompts, without its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStanding {
    /// One of them is running, or waits for a person.
    Works,
    /// None is running, and one was cut when the daemon or its sandbox was stopped.
    Cut,
    /// The first has ended, and one that was sent into its run was cut: no turn could begin that one again.
    CutLater,
    /// None is running or was cut, and one is missing.
    Unseen,
    /// All have ended.
    Over,
}

impl RunStanding {
    /// For all prompts of one run, the first one first.
    #[must_use]
    pub fn of(states: &[TurnState]) -> Self {
        let has = |state: TurnState| states.contains(&state);
        if states.iter().any(|state| is_open(*state)) {
            Self::Works
        } else if has(TurnState::Lost) {
            match states.first() {
                Some(TurnState::Done | TurnState::Failed) => Self::CutLater,
                _ => Self::Cut,
            }
        } else if has(TurnState::NotSeen) {
            Self::Unseen
        } else {
            Self::Over
        }
    }
}

/// Why a run ends if a later prompt of it was cut.
pub const CUT_LATER: &str = "the sandbox was stopped while the agent worked on a message that was sent into this turn. Send that message again.";

/// Whether the agent works on it or asks a person.
#[must_use]
pub const fn is_open(state: TurnState) -> bool {
    matches!(state, TurnState::Running | TurnState::Waiting)
}

/// Whether sending a prompt again begins another attempt.
#[must_use]
pub const fn begins_again(state: TurnState) -> bool {
    matches!(state, TurnState::NotSeen | TurnState::Lost)
}

/// State of a prompt at the agent.
#[must_use]
pub const fn known(state: TurnState) -> PromptState {
    match state {
        TurnState::NotSeen => PromptState::Absent,
        TurnState::Lost => PromptState::Idle,
        TurnState::Running | TurnState::Waiting | TurnState::Done | TurnState::Failed => {
            PromptState::Taken
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TurnState::{Done, Lost, NotSeen, Running};

    #[test]
    fn standing_combines_states_of_all_prompts() {
        assert_eq!(RunStanding::of(&[Done, Lost]), RunStanding::CutLater);
        assert_eq!(RunStanding::of(&[Lost, Done]), RunStanding::Cut);
        assert_eq!(RunStanding::of(&[Lost]), RunStanding::Cut);
        assert_eq!(RunStanding::of(&[Done, Lost, Running]), RunStanding::Works);
        assert_eq!(RunStanding::of(&[Done, NotSeen]), RunStanding::Unseen);
        assert_eq!(RunStanding::of(&[Done, Done]), RunStanding::Over);
    }
}
