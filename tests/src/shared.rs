//! A stack that many tests use.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::stack::{Options, Stack, words};

/// A stack that many tests use: started by the first, ended by [`Shared::end`] after the last.
pub struct Shared {
    options: How,
    slot: Mutex<Slot>,
}

/// How it is started.
enum How {
    /// With these limits and otherwise the defaults.
    Limits(fn() -> Value),
    /// The same as [`Options::lean`] has it.
    Lean(fn() -> Value),
    /// The same with agents that are run in this mode.
    Mode(fn() -> Value, &'static str),
    /// In every respect as it says.
    Whole(fn() -> Options),
}

impl How {
    fn options(&self) -> Options {
        match self {
            Self::Limits(limits) => Options::limits(limits()),
            Self::Lean(limits) => Options::lean(limits()),
            Self::Mode(limits, mode) => Options {
                parameters: json!({"SandboxRuntimeMode": mode}),
                ..Options::limits(limits())
            },
            Self::Whole(options) => options(),
        }
    }
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
        Self::with(How::Limits(limits))
    }

    /// The same with the stand-in for OpenCode in its sandboxes, which takes a hundredth of the processor time; at
    /// night with OpenCode itself.
    #[must_use]
    pub const fn lean(limits: fn() -> Value) -> Self {
        Self::with(How::Lean(limits))
    }

    /// The same with agents that are run so.
    #[must_use]
    pub const fn in_mode(limits: fn() -> Value, mode: &'static str) -> Self {
        Self::with(How::Mode(limits, mode))
    }

    /// One that is started as this says, once somebody needs it.
    #[must_use]
    pub const fn with_options(options: fn() -> Options) -> Self {
        Self::with(How::Whole(options))
    }

    const fn with(options: How) -> Self {
        Self { options, slot: Mutex::new(Slot::Unused) }
    }

    /// The running stack.
    ///
    /// # Panics
    /// When it could not be started; every later caller fails at once with the same words.
    pub fn get(&self) -> Arc<Stack> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Unused = *slot {
            let started = std::panic::catch_unwind(|| Stack::start(&self.options.options()));
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
