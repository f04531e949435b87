//! Faults that a test arms: each is something that Daytona is known to do.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::clock::system_ms;
use crate::limits::FAULTS_MAX;
use crate::state::SandboxState;

/// What goes wrong. `operation` is the word of the call's path: `create`, `get`, `list`, `start`, `stop`,
/// `archive`, `delete`, `exec`, `files`, `session`, `preview-url`, …, or `*`.
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
    /// HTML with this status instead of the effect.
    Html { operation: String, status: u16 },
    /// The effect, then silence for so long, then the answer.
    Delay { operation: String, ms: u64 },
    /// The effect, then the connection is closed without an answer.
    Drop { operation: String },
    /// A sandbox stays so long in this state of transition.
    HoldState { state: SandboxState, ms: u64 },
    /// The next build of a sandbox or a snapshot fails.
    FailBuild {
        #[serde(default)]
        recoverable: bool,
    },
    /// The next snapshot of a sandbox comes to nothing, and nobody is told, as Daytona does it (its issue 4990).
    LoseSnapshot,
    /// The next start of a sandbox fails, as a create or a start tells.
    FailStart {
        #[serde(default)]
        recoverable: bool,
    },
    /// The list shows what was so long ago.
    ListLag { ms: u64 },
    /// After the next start the old preview token holds for so long, and the new one is refused.
    StalePreview { ms: u64 },
    /// The next `POST` through a preview reaches the server twice.
    ReplayPost,
    /// The next streamed answer through a preview breaks off after so many bytes.
    CutStream { after_bytes: u64 },
    /// Toolbox and preview answer 400 "failed to get runner info".
    RunnerInfo,
    /// The sandbox is lost right before this operation.
    Vanish { operation: String },
}

/// A fault with its reach: one sandbox (id or name) or all, so many times (once by default) or for so long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Armed {
    #[serde(flatten)]
    pub(crate) fault: Fault,
    #[serde(default)]
    pub(crate) sandbox: Option<String>,
    #[serde(default = "once")]
    pub(crate) times: u32,
    #[serde(default)]
    pub(crate) for_ms: Option<i64>,
    #[serde(skip)]
    until: Option<i64>,
}

fn once() -> u32 {
    1
}

/// The armed faults, oldest first.
#[derive(Default)]
pub(crate) struct Faults {
    armed: Mutex<Vec<Armed>>,
}

impl Faults {
    /// Adds faults; those over [`FAULTS_MAX`] are refused as a whole.
    pub(crate) fn arm(&self, new: Vec<Armed>) -> Result<(), String> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        if armed.len() + new.len() > FAULTS_MAX {
            return Err(format!("more than {FAULTS_MAX} faults armed"));
        }
        armed.extend(new.into_iter().map(|mut fault| {
            fault.until = fault.for_ms.map(|ms| system_ms().saturating_add(ms));
            fault
        }));
        Ok(())
    }

    pub(crate) fn clear(&self) {
        self.armed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    pub(crate) fn list(&self) -> Vec<Armed> {
        self.armed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Uses up one time of the first fault that `pick` takes and that reaches one of `names` (a sandbox's id and name).
    pub(crate) fn take<T>(
        &self,
        names: &[String],
        pick: impl Fn(&Fault) -> Option<T>,
    ) -> Option<T> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = system_ms();
        armed.retain(|fault| fault.until.is_none_or(|until| now < until));
        let reaches = |fault: &Armed| {
            fault
                .sandbox
                .as_deref()
                .is_none_or(|sandbox| names.iter().any(|name| name == sandbox))
        };
        let (index, picked) = armed
            .iter()
            .enumerate()
            .filter(|(_, fault)| reaches(fault))
            .find_map(|(index, fault)| Some((index, pick(&fault.fault)?)))?;
        if armed[index].until.is_none() {
            armed[index].times = armed[index].times.saturating_sub(1);
            if armed[index].times == 0 {
                armed.remove(index);
            }
        }
        Some(picked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed(text: &str) -> Armed {
        serde_json::from_str(text).expect("a fault")
    }

    #[test]
    fn a_fault_happens_as_often_as_it_is_armed_for_and_only_where() {
        let faults = Faults::default();
        faults
            .arm(vec![armed(
                r#"{"fault":"answer","operation":"start","status":500,"times":2,"sandbox":"a"}"#,
            )])
            .expect("few");
        let take = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            faults.take(&names, |fault| match fault {
                Fault::Answer { status, .. } => Some(*status),
                _ => None,
            })
        };
        assert_eq!(take(&["b"]), None);
        assert_eq!(take(&["id", "a"]), Some(500));
        assert_eq!(take(&["a"]), Some(500));
        assert_eq!(take(&["a"]), None);
        assert!(faults.list().is_empty());
    }
}
