//! A stack that many tests use.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::stack::{Options, Stack, words};

/// A stack that many tests use: started by the first, ended by [`Shared::end`] after the last.
pub struct Shared {
    limits: fn() -> Value,
    stand_in_agent: bool,
    /// How agents are run in its sandboxes; none: as by default.
    runtime_mode: Option<&'static str>,
    slot: Mutex<Slot>,
}

enum Slot {
    Unused,
    Running(Arc<Stack>),
    Broken(String),
}

impl Shared {
    /// One with these bounds, not started yet.
    #[must_use]
    pub const fn new(limits: fn() -> Value) -> Self {
        Self {
            limits,
            stand_in_agent: false,
            runtime_mode: None,
            slot: Mutex::new(Slot::Unused),
        }
    }

    /// The same with the stand-in for OpenCode in its sandboxes, which takes a hundredth of the processor's time.
    #[must_use]
    pub const fn with_stand_in_agent(limits: fn() -> Value) -> Self {
        Self {
            limits,
            stand_in_agent: true,
            runtime_mode: None,
            slot: Mutex::new(Slot::Unused),
        }
    }

    /// The same with agents that are run so.
    #[must_use]
    pub const fn in_mode(limits: fn() -> Value, mode: &'static str) -> Self {
        Self {
            limits,
            stand_in_agent: false,
            runtime_mode: Some(mode),
            slot: Mutex::new(Slot::Unused),
        }
    }

    /// The running stack.
    ///
    /// # Panics
    /// When it could not be started; every later caller fails at once with the same words.
    pub fn get(&self) -> Arc<Stack> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Unused = *slot {
            let options = Options {
                stand_in_agent: self.stand_in_agent,
                parameters: self
                    .runtime_mode
                    .map_or(Value::Null, |mode| json!({"SandboxRuntimeMode": mode})),
                ..Options::limits((self.limits)())
            };
            let started = std::panic::catch_unwind(|| Stack::start(&options));
            *slot = match started {
                Ok(stack) => Slot::Running(Arc::new(stack)),
                Err(panic) => Slot::Broken(words(panic.as_ref())),
            };
        }
        match &*slot {
            Slot::Running(stack) => Arc::clone(stack),
            Slot::Broken(why) => panic!("{why}"),
            Slot::Unused => unreachable!("it was started above"),
        }
    }

    /// The stack, if a test has started it.
    #[must_use]
    pub fn running(&self) -> Option<Arc<Stack>> {
        match &*self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            Slot::Running(stack) => Some(Arc::clone(stack)),
            Slot::Unused | Slot::Broken(_) => None,
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// See [`Stack::end`]; also when a test still holds it.
    pub fn end(&self) -> Result<(), String> {
        let slot = std::mem::replace(
            &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner),
            Slot::Unused,
        );
        match slot {
            Slot::Running(stack) => match Arc::try_unwrap(stack) {
                Ok(stack) => stack.end(),
                Err(_) => Err("a test still holds the shared stack".to_owned()),
            },
            Slot::Unused | Slot::Broken(_) => Ok(()),
        }
    }
}
