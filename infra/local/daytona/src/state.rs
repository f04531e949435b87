//! The states of a sandbox, and each operation's answer in each state.
//!
//! The table is Daytona's (reference, section 6); it is pure and tested cell by cell.

use serde::{Deserialize, Serialize};

/// States of this provider. `forking`, `resizing` and `paused` do not occur: they belong to machine classes that a
/// directory is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// The build waits for a runner.
    PendingBuild,
    /// The image is being built.
    BuildingSnapshot,
    /// The runner fetches the image.
    PullingSnapshot,
    /// The sandbox is being created.
    Creating,
    /// The first process runs, and anything started in it.
    Started,
    /// From [`SandboxState::Stopped`] to [`SandboxState::Started`].
    Starting,
    /// On the way to [`SandboxState::Stopped`].
    Stopping,
    /// No process; the directory exists.
    Stopped,
    /// On the way to [`SandboxState::Archived`].
    Archiving,
    /// Like stopped; a start takes longer.
    Archived,
    /// From [`SandboxState::Archived`] to [`SandboxState::Started`].
    Restoring,
    /// A snapshot is being made; afterwards it returns to its previous state.
    Snapshotting,
    /// Being deleted.
    Destroying,
    /// Something failed; see `errorReason`.
    Error,
    /// The build failed; only deletion is possible.
    BuildFailed,
}

impl SandboxState {
    /// The wire name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SandboxState::PendingBuild => "pending_build",
            SandboxState::BuildingSnapshot => "building_snapshot",
            SandboxState::PullingSnapshot => "pulling_snapshot",
            SandboxState::Creating => "creating",
            SandboxState::Started => "started",
            SandboxState::Starting => "starting",
            SandboxState::Stopping => "stopping",
            SandboxState::Stopped => "stopped",
            SandboxState::Archiving => "archiving",
            SandboxState::Archived => "archived",
            SandboxState::Restoring => "restoring",
            SandboxState::Snapshotting => "snapshotting",
            SandboxState::Destroying => "destroying",
            SandboxState::Error => "error",
            SandboxState::BuildFailed => "build_failed",
        }
    }

    /// The last requested state, as far as the state tells.
    pub(crate) fn desired(self) -> &'static str {
        match self {
            SandboxState::Stopping | SandboxState::Stopped => "stopped",
            SandboxState::Archiving | SandboxState::Archived => "archived",
            SandboxState::Destroying => "destroyed",
            _ => "started",
        }
    }

    /// The state after the provider restarts: no process outlives it.
    pub(crate) fn after_restart(self) -> Self {
        match self {
            SandboxState::Archiving | SandboxState::Archived | SandboxState::Restoring => {
                SandboxState::Archived
            }
            SandboxState::Destroying => SandboxState::Destroying,
            SandboxState::Error => SandboxState::Error,
            SandboxState::BuildFailed => SandboxState::BuildFailed,
            _ => SandboxState::Stopped,
        }
    }

    fn errored(self) -> bool {
        matches!(self, SandboxState::Error | SandboxState::BuildFailed)
    }
}

/// A lifecycle call on a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Start,
    Stop,
    Archive,
    Delete,
    Recover,
    Snapshot,
}

/// Verdict on a lifecycle call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call is answered with 200, and the transition begins.
    Go,
    /// The call is answered with 200, and nothing changes.
    Nothing,
    /// The call is refused with this status and text.
    Refuse(u16, &'static str),
}

const CHANGING: Verdict = Verdict::Refuse(409, "Sandbox state change in progress");
const ERRORED: Verdict = Verdict::Refuse(400, "Sandbox is in an errored state");

/// The table of the reference, section 6.
pub(crate) fn verdict(operation: Operation, state: SandboxState, recoverable: bool) -> Verdict {
    match (operation, state) {
        (Operation::Recover, SandboxState::Error) if recoverable => Verdict::Go,
        (Operation::Recover, _) => {
            Verdict::Refuse(400, "Sandbox is not in a recoverable error state")
        }

        (Operation::Delete, SandboxState::Destroying) => CHANGING,
        (
            Operation::Delete,
            SandboxState::Creating
            | SandboxState::Starting
            | SandboxState::Stopping
            | SandboxState::Restoring
            | SandboxState::BuildingSnapshot
            | SandboxState::PullingSnapshot
            | SandboxState::Snapshotting,
        ) => CHANGING,
        (Operation::Delete, _) => Verdict::Go,

        (Operation::Snapshot, SandboxState::Started | SandboxState::Stopped) => Verdict::Go,
        // In transitions too: Daytona checks the state before it checks for a transition in progress.
        (Operation::Snapshot, _) => {
            Verdict::Refuse(400, "Sandbox must be in started or stopped state to create a snapshot")
        }

        (_, state) if state.errored() => ERRORED,

        (Operation::Start, SandboxState::Started) => Verdict::Nothing,
        (
            Operation::Start,
            SandboxState::Stopped | SandboxState::Archived | SandboxState::Archiving,
        ) => Verdict::Go,

        (Operation::Stop, SandboxState::Started) => Verdict::Go,
        (Operation::Stop, SandboxState::Stopped | SandboxState::Archived) => {
            Verdict::Refuse(400, "Sandbox is not in a stoppable state")
        }

        (Operation::Archive, SandboxState::Stopped) => Verdict::Go,
        (Operation::Archive, SandboxState::Started | SandboxState::Archived) => {
            Verdict::Refuse(400, "Sandbox is not stopped")
        }

        _ => CHANGING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns as in the reference: 200 go, 0 no change, else the status.
    fn cell(operation: Operation, state: SandboxState) -> u16 {
        match verdict(operation, state, false) {
            Verdict::Go => 200,
            Verdict::Nothing => 0,
            Verdict::Refuse(status, _) => status,
        }
    }

    #[test]
    fn operations_follow_the_state_table() {
        use Operation::{Archive, Delete, Recover, Snapshot, Start, Stop};
        let columns = [
            SandboxState::Started,
            SandboxState::Stopped,
            SandboxState::Starting,
            SandboxState::Stopping,
            SandboxState::Creating,
            SandboxState::Archived,
            SandboxState::Archiving,
            SandboxState::Error,
            SandboxState::BuildFailed,
            SandboxState::Snapshotting,
        ];
        let rows = [
            (Start, [0, 200, 409, 409, 409, 200, 200, 400, 400, 409]),
            (Stop, [200, 400, 409, 409, 409, 400, 409, 400, 400, 409]),
            (Archive, [400, 200, 409, 409, 409, 400, 409, 400, 400, 409]),
            (Delete, [200, 200, 409, 409, 409, 200, 200, 200, 200, 409]),
            (Recover, [400; 10]),
            (Snapshot, [200, 200, 400, 400, 400, 400, 400, 400, 400, 400]),
        ];
        for (operation, expected) in rows {
            let seen = columns.map(|state| cell(operation, state));
            assert_eq!(seen, expected, "{operation:?}");
        }
        assert_eq!(cell(Delete, SandboxState::PendingBuild), 200);
        assert_eq!(verdict(Recover, SandboxState::Error, true), Verdict::Go);
    }

    #[test]
    fn state_name_is_its_wire_form() {
        for state in [
            SandboxState::PendingBuild,
            SandboxState::Started,
            SandboxState::BuildFailed,
            SandboxState::Restoring,
        ] {
            let written = serde_json::to_value(state).expect("a unit variant serialises");
            assert_eq!(written, state.name());
        }
    }
}
