//! Faults that a test arms.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::limits::FAULTS_MAX;

/// What goes wrong. `operation` is the word of a call: `create`, `get`, `list`, `update`, `delete`, `cmd`, `fs`, `stop`,
/// `extend-timeout`, `snapshot`, `network-policy`, or `*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// This status instead of the effect.
    Answer {
        operation: String,
        status: u16,
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// A page with this status instead of the effect.
    Html { operation: String, status: u16 },
    /// The effect, then the connection is closed without an answer.
    Drop { operation: String },
    /// A session stays so long in its next state of transition.
    Hold { ms: u64 },
    /// A route answers a page of somebody else's, with this status.
    Page { status: u16 },
}

/// A fault, and how many times it is still to come (once by default).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Armed {
    #[serde(flatten)]
    pub(crate) fault: Fault,
    #[serde(default = "once")]
    pub(crate) times: u32,
}

const fn once() -> u32 {
    1
}

/// The armed faults, oldest first.
#[derive(Default)]
pub(crate) struct Faults {
    armed: Mutex<Vec<Armed>>,
}

impl Faults {
    /// Adds faults.
    ///
    /// # Errors
    /// That there are too many.
    pub(crate) fn arm(&self, faults: Vec<Armed>) -> Result<(), String> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        if armed.len() + faults.len() > FAULTS_MAX {
            return Err(format!("more than {FAULTS_MAX} faults"));
        }
        armed.extend(faults);
        Ok(())
    }

    /// Takes the first fault that is picked, once.
    pub(crate) fn take<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, picked) = armed
            .iter()
            .enumerate()
            .find_map(|(at, one)| Some((at, pick(&one.fault)?)))?;
        armed[at].times = armed[at].times.saturating_sub(1);
        if armed[at].times == 0 {
            armed.remove(at);
        }
        Some(picked)
    }

    pub(crate) fn list(&self) -> Vec<Armed> {
        let armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.clone()
    }

    pub(crate) fn clear(&self) {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.clear();
    }
}
