//! The buttons of sandboxes that threads share, and the sandbox of a task.

use bobbin_core::base::ids::{SandboxKey, SandboxName};
use bobbin_core::records::control::{ControlAction, Operation, WhichSandbox};
use bobbin_core::shown::sandboxes::{SandboxAction, SandboxOption};
use bobbin_core::tenant::commands::argument::{
    IN, IN_SHARED, PROVIDER, RUNTIME, SANDBOX, SNAPSHOT,
};
use bobbin_core::tenant::selection::Selection;

use super::request::{AdmittedInteraction, Refused, RequestOutcome, refuse};
use crate::HttpAnswer;
use crate::commands::{FilledIn, sandbox};
use crate::discord::answer;
use crate::discord::interaction::InvokedCommand;

impl AdmittedInteraction<'_> {
    /// A page of the list: replaces the current page, or is a separate answer.
    pub(super) fn listed(&self, page: u32, answer: HttpAnswer) -> RequestOutcome {
        let want = ControlAction::Sandboxes { page, in_thread: self.in_thread() };
        Ok(self.control(self.here()?, want, answer, "discord: sandboxes"))
    }

    /// A button of the list. The result is posted beside the list, which stays.
    pub(super) fn sandbox_pressed(&self, action: SandboxAction, key: SandboxKey) -> RequestOutcome {
        let sandbox = WhichSandbox::Exactly(key);
        let (thread, want) = match action {
            SandboxAction::Connect => {
                (self.thread()?, ControlAction::Connect { to: Some(sandbox) })
            }
            SandboxAction::Destroy => (self.here()?, ControlAction::AskDestroy { sandbox }),
            SandboxAction::Stop => (self.here()?, operate(sandbox, Operation::Pause)),
            SandboxAction::Start => (self.here()?, operate(sandbox, Operation::Resume)),
            SandboxAction::Snapshot => (self.here()?, operate(sandbox, Operation::Snapshot)),
        };
        let answer = answer::deferred_word();
        Ok(self.control(thread, want, answer, "discord: sandbox pressed"))
    }

    /// The deletion was confirmed: the buttons disappear at once.
    pub(super) fn destroy(&self, key: SandboxKey) -> RequestOutcome {
        let want = operate(WhichSandbox::Exactly(key), Operation::Destroy);
        let answer = answer::replaced("Destroying it…");
        Ok(self.control(self.here()?, want, answer, "discord: destroy"))
    }
}

const fn operate(sandbox: WhichSandbox, operation: Operation) -> ControlAction {
    ControlAction::Operate { sandbox, operation }
}

/// The choices for the sandbox of a task.
pub(super) fn chosen(command: &InvokedCommand) -> Result<Selection, Refused> {
    Ok(Selection {
        sandbox: named(command)?,
        provider: beside(command, PROVIDER, SandboxOption::Provider)?,
        runtime: beside(command, RUNTIME, SandboxOption::Runtime)?,
        snapshot: beside(command, SNAPSHOT, SandboxOption::Snapshot)?,
        in_common: command.text(IN).is_some_and(|place| place == IN_SHARED),
        ..Selection::default()
    })
}

fn named(command: &InvokedCommand) -> Result<Option<SandboxName>, Refused> {
    sandbox(command, SANDBOX).or_else(|bad| refuse(bad.to_string(), "discord: unusable name"))
}

fn beside(
    command: &InvokedCommand,
    option: &str,
    what: SandboxOption,
) -> Result<Option<String>, Refused> {
    let typed = command.text(option).unwrap_or_default();
    if typed.trim().is_empty() {
        return Ok(None);
    }
    match what.usable(typed) {
        Ok(value) => Ok(Some(value)),
        Err(unusable) => refuse(unusable.to_string(), "discord: unusable choice"),
    }
}
