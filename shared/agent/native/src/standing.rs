//! How prompts stand, by what the daemon says of the newest try of each: without clock and network, so that the proofs of
//! the protocol read a simulated daemon by these same rules.

use bobbin_agent_client::TurnState;
use bobbin_core::records::run::PromptState;

/// How the run of some prompts stands, but for what it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// One of them is worked on, or waits for a person.
    Works,
    /// None is worked on, and one was cut when the daemon or its sandbox was stopped.
    Cut,
    /// The first has come to its end, and one that was sent into its run was cut: that one has no turn that could begin it again.
    CutLater,
    /// None is worked on or was cut, and one is not there.
    Unseen,
    /// All have come to an end.
    Over,
}

impl Standing {
    /// Of all prompts of one run, the one that began it first.
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

/// Why a run ends of which a later prompt was cut.
pub const CUT_LATER: &str = "the sandbox was stopped while the agent worked on a message that had been sent into this turn. Send that message again.";

/// Whether the agent works on it or asks a person.
#[must_use]
pub const fn is_open(state: TurnState) -> bool {
    matches!(state, TurnState::Running | TurnState::Waiting)
}

/// Whether a prompt begins another try when it is sent once more.
#[must_use]
pub const fn begins_again(state: TurnState) -> bool {
    matches!(state, TurnState::NotSeen | TurnState::Lost)
}

/// What the agent knows of a prompt.
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
        assert_eq!(Standing::of(&[Done, Lost]), Standing::CutLater);
        assert_eq!(Standing::of(&[Lost, Done]), Standing::Cut);
        assert_eq!(Standing::of(&[Lost]), Standing::Cut);
        assert_eq!(Standing::of(&[Done, Lost, Running]), Standing::Works);
        assert_eq!(Standing::of(&[Done, NotSeen]), Standing::Unseen);
        assert_eq!(Standing::of(&[Done, Done]), Standing::Over);
    }
}
