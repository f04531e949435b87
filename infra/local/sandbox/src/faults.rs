//! Faults that a test arms: faults of calls, which every provider has, and a provider's own.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::clock::system_ms;
use crate::limits::FAULTS_MAX;

/// A fault of a call. `operation` is the provider's word for it, or `*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum CallFault {
    /// This status instead of the effect.
    Answer {
        /// The call.
        operation: String,
        /// HTTP status.
        status: u16,
        /// Seconds until a retry.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// HTML with this status instead of the effect.
    Html {
        /// The call.
        operation: String,
        /// HTTP status.
        status: u16,
    },
    /// The effect, then a delay, then the answer.
    Delay {
        /// The call.
        operation: String,
        /// Length of the delay.
        ms: u64,
    },
    /// The effect, then the connection is closed without an answer.
    Drop {
        /// The call.
        operation: String,
    },
}

/// A fault of a call, or one of this provider only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fault<Own> {
    /// With a call.
    Call(CallFault),
    /// The provider's own.
    Own(Own),
}

/// Answer in place of a call's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The provider's refusal with this status.
    Refusal {
        /// HTTP status.
        status: u16,
        /// Seconds until a retry.
        retry_after: Option<u64>,
    },
    /// An unrelated page with this status.
    Page {
        /// HTTP status.
        status: u16,
    },
}

/// A fault and its scope: one sandbox (id or name) or all, a number of times (once by default) or a time span.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Armed<Own> {
    #[serde(flatten)]
    fault: Fault<Own>,
    #[serde(default)]
    sandbox: Option<String>,
    #[serde(default = "once")]
    times: u32,
    #[serde(default)]
    for_ms: Option<i64>,
    #[serde(skip)]
    until: Option<i64>,
}

const fn once() -> u32 {
    1
}

/// The armed faults, oldest first.
pub struct Faults<Own> {
    armed: Mutex<Vec<Armed<Own>>>,
}

impl<Own> Default for Faults<Own> {
    fn default() -> Self {
        Self { armed: Mutex::default() }
    }
}

impl<Own: Clone> Faults<Own> {
    /// Adds faults; refuses them all if the total would exceed [`FAULTS_MAX`].
    ///
    /// # Errors
    /// There are too many.
    pub fn arm(&self, new: Vec<Armed<Own>>) -> Result<(), String> {
        let mut armed = self.lock();
        if armed.len() + new.len() > FAULTS_MAX {
            return Err(format!("more than {FAULTS_MAX} faults armed"));
        }
        armed.extend(new.into_iter().map(|mut fault| {
            fault.until = fault.for_ms.map(|ms| system_ms().saturating_add(ms));
            fault
        }));
        Ok(())
    }

    /// Removes all.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Faults still armed.
    pub fn list(&self) -> Vec<Armed<Own>> {
        self.lock().clone()
    }

    /// Uses up the provider's first own fault that `pick` accepts and whose scope matches one of `names` (a sandbox's
    /// id and name).
    pub fn take<T>(&self, names: &[String], pick: impl Fn(&Own) -> Option<T>) -> Option<T> {
        self.take_any(names, |fault| match fault {
            Fault::Own(own) => pick(own),
            Fault::Call(_) => None,
        })
    }

    /// The answer in place of a call's effect, if a fault is armed.
    pub fn instead(&self, names: &[String], operation: &str) -> Option<Instead> {
        self.of_call(names, operation, |fault| match fault {
            CallFault::Answer { operation, status, retry_after } => {
                Some((operation, Instead::Refusal { status: *status, retry_after: *retry_after }))
            }
            CallFault::Html { operation, status } => {
                Some((operation, Instead::Page { status: *status }))
            }
            _ => None,
        })
    }

    /// Delay of a call's answer in milliseconds.
    pub fn delay_ms(&self, names: &[String], operation: &str) -> Option<u64> {
        self.of_call(names, operation, |fault| match fault {
            CallFault::Delay { operation, ms } => Some((operation, *ms)),
            _ => None,
        })
    }

    /// Whether a call's answer is dropped.
    pub fn is_dropped(&self, names: &[String], operation: &str) -> bool {
        let dropped = self.of_call(names, operation, |fault| match fault {
            CallFault::Drop { operation } => Some((operation, ())),
            _ => None,
        });
        dropped.is_some()
    }

    fn of_call<T>(
        &self,
        names: &[String],
        operation: &str,
        pick: impl Fn(&CallFault) -> Option<(&String, T)>,
    ) -> Option<T> {
        self.take_any(names, |fault| {
            let Fault::Call(call) = fault else {
                return None;
            };
            let (named, picked) = pick(call)?;
            (named == "*" || named == operation).then_some(picked)
        })
    }

    fn take_any<T>(&self, names: &[String], pick: impl Fn(&Fault<Own>) -> Option<T>) -> Option<T> {
        let mut armed = self.lock();
        let now = system_ms();
        armed.retain(|fault| fault.until.is_none_or(|until| now < until));
        let reaches = |fault: &Armed<Own>| {
            fault.sandbox.as_deref().is_none_or(|sandbox| names.iter().any(|name| name == sandbox))
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Armed<Own>>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "fault", rename_all = "snake_case")]
    enum Own {
        Vanish { operation: String },
    }

    fn armed(text: &str) -> Armed<Own> {
        serde_json::from_str(text).expect("a fault")
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fault_fires_only_as_armed() {
        let faults = Faults::default();
        let fault =
            r#"{"fault":"answer","operation":"start","status":500,"times":2,"sandbox":"a"}"#;
        faults.arm(vec![armed(fault)]).expect("few");
        let take = |sandbox: &[&str]| faults.instead(&names(sandbox), "start");
        let refusal = Some(Instead::Refusal { status: 500, retry_after: None });
        assert_eq!(take(&["b"]), None);
        assert_eq!(faults.instead(&names(&["a"]), "stop"), None);
        assert_eq!(take(&["id", "a"]), refusal);
        assert_eq!(take(&["a"]), refusal);
        assert_eq!(take(&["a"]), None);
        assert!(faults.list().is_empty());
    }

    #[test]
    fn own_faults_coexist_with_call_faults() {
        let faults = Faults::default();
        let own = armed(r#"{"fault":"vanish","operation":"exec"}"#);
        let dropped = armed(r#"{"fault":"drop","operation":"*"}"#);
        faults.arm(vec![own, dropped]).expect("few");
        let told = serde_json::to_value(faults.list()).expect("JSON");
        assert_eq!(told[0]["fault"], "vanish");
        assert!(faults.is_dropped(&[], "create") && !faults.is_dropped(&[], "create"));
        let Own::Vanish { operation } = faults.take(&[], |own| Some(own.clone())).expect("armed");
        assert_eq!(operation, "exec");
        assert!(serde_json::from_str::<Armed<Own>>(r#"{"fault":"no such"}"#).is_err());
    }
}
