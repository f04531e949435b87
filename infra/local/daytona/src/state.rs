//! The states of a sandbox, and each operation's answer in each state.
//!
//! The table is Daytona's (reference, section 6); it is pure and tested cell by cell.

use serde::{Deserialize, Serialize};

/// States of this provider. `forking`, `resizing` and `paused` do not occur: they belong to machine classes that a
/// directory is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaytonaState {
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
    /// From [`DaytonaState::Stopped`] to [`DaytonaState::Started`].
    Starting,
    /// On the way to [`DaytonaState::Stopped`].
    Stopping,
    /// No process; the directory exists.
    Stopped,
    /// On the way to [`DaytonaState::Archived`].
    Archiving,
    /// Like stopped; a start takes longer.
    Archived,
    /// From [`DaytonaState::Archived`] to [`DaytonaState::Started`].
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

impl DaytonaState {
    /// The wire name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DaytonaState::PendingBuild => "pending_build",
            DaytonaState::BuildingSnapshot => "building_snapshot",
            DaytonaState::PullingSnapshot => "pulling_snapshot",
            DaytonaState::Creating => "creating",
            DaytonaState::Started => "started",
            DaytonaState::Starting => "starting",
            DaytonaState::Stopping => "stopping",
            DaytonaState::Stopped => "stopped",
            DaytonaState::Archiving => "archiving",
            DaytonaState::Archived => "archived",
            DaytonaState::Restoring => "restoring",
            DaytonaState::Snapshotting => "snapshotting",
            DaytonaState::Destroying => "destroying",
            DaytonaState::Error => "error",
            DaytonaState::BuildFailed => "build_failed",
        }
    }

    /// The last requested state, as far as the state tells.
    pub(crate) fn desired(self) -> &'static str {
        match self {
            DaytonaState::Stopping | DaytonaState::Stopped => "stopped",
            DaytonaState::Archiving | DaytonaState::Archived => "archived",
            DaytonaState::Destroying => "destroyed",
            _ => "started",
        }
    }

    /// The state after the provider restarts: no process outlives it.
    pub(crate) fn after_restart(self) -> Self {
        match self {
            DaytonaState::Archiving | DaytonaState::Archived | DaytonaState::Restoring => {
                DaytonaState::Archived
            }
            DaytonaState::Destroying => DaytonaState::Destroying,
            DaytonaState::Error => DaytonaState::Error,
            DaytonaState::BuildFailed => DaytonaState::BuildFailed,
            _ => DaytonaState::Stopped,
        }
    }

    fn errored(self) -> bool {
        matches!(self, DaytonaState::Error | DaytonaState::BuildFailed)
    }
}

/// A lifecycle call on a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifecycleCall {
    Start,
    Stop,
    Archive,
    Delete,
    Recover,
    Snapshot,
}

/// Verdict on a lifecycle call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// The call is answered with 200, and the transition begins.
    Go,
    /// The call is answered with 200, and nothing changes.
    Nothing,
    /// The call is refused with this status and text.
    Refuse(u16, &'static str),
}

const CHANGING: CallVerdict = CallVerdict::Refuse(409, "Sandbox state change in progress");
const ERRORED: CallVerdict = CallVerdict::Refuse(400, "Sandbox is in an errored state");

/// The table of the reference, section 6.
pub(crate) fn verdict(
    operation: LifecycleCall,
    state: DaytonaState,
    recoverable: bool,
) -> CallVerdict {
    match (operation, state) {
        (LifecycleCall::Recover, DaytonaState::Error) if recoverable => CallVerdict::Go,
        (LifecycleCall::Recover, _) => {
            CallVerdict::Refuse(400, "Sandbox is not in a recoverable error state")
        }

        (LifecycleCall::Delete, DaytonaState::Destroying) => CHANGING,
        (
            LifecycleCall::Delete,
            DaytonaState::Creating
            | DaytonaState::Starting
            | DaytonaState::Stopping
            | DaytonaState::Restoring
            | DaytonaState::BuildingSnapshot
            | DaytonaState::PullingSnapshot
            | DaytonaState::Snapshotting,
        ) => CHANGING,
        (LifecycleCall::Delete, _) => CallVerdict::Go,

        (LifecycleCall::Snapshot, DaytonaState::Started | DaytonaState::Stopped) => CallVerdict::Go,
        // In transitions too: Daytona checks the state before it checks for a transition in progress.
        (LifecycleCall::Snapshot, _) => CallVerdict::Refuse(
            400,
            "Sandbox must be in started or stopped state to create a snapshot",
        ),

        (_, state) if state.errored() => ERRORED,

        (LifecycleCall::Start, DaytonaState::Started) => CallVerdict::Nothing,
        (
            LifecycleCall::Start,
            DaytonaState::Stopped | DaytonaState::Archived | DaytonaState::Archiving,
        ) => CallVerdict::Go,

        (LifecycleCall::Stop, DaytonaState::Started) => CallVerdict::Go,
        (LifecycleCall::Stop, DaytonaState::Stopped | DaytonaState::Archived) => {
            CallVerdict::Refuse(400, "Sandbox is not in a stoppable state")
        }

        (LifecycleCall::Archive, DaytonaState::Stopped) => CallVerdict::Go,
        (LifecycleCall::Archive, DaytonaState::Started | DaytonaState::Archived) => {
            CallVerdict::Refuse(400, "Sandbox is not stopped")
        }

        _ => CHANGING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns as in the reference: 200 go, 0 no change, else the status.
    fn cell(operation: LifecycleCall, state: DaytonaState) -> u16 {
        match verdict(operation, state, false) {
            CallVerdict::Go => 200,
            CallVerdict::Nothing => 0,
            CallVerdict::Refuse(status, _) => status,
        }
    }

    #[test]
    fn operations_follow_the_state_table() {
        use LifecycleCall::{Archive, Delete, Recover, Snapshot, Start, Stop};
        let columns = [
            DaytonaState::Started,
            DaytonaState::Stopped,
            DaytonaState::Starting,
            DaytonaState::Stopping,
            DaytonaState::Creating,
            DaytonaState::Archived,
            DaytonaState::Archiving,
            DaytonaState::Error,
            DaytonaState::BuildFailed,
            DaytonaState::Snapshotting,
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
        assert_eq!(cell(Delete, DaytonaState::PendingBuild), 200);
        assert_eq!(verdict(Recover, DaytonaState::Error, true), CallVerdict::Go);
    }

    #[test]
    fn state_name_is_its_wire_form() {
        for state in [
            DaytonaState::PendingBuild,
            DaytonaState::Started,
            DaytonaState::BuildFailed,
            DaytonaState::Restoring,
        ] {
            let written = serde_json::to_value(state).expect("a unit variant serialises");
            assert_eq!(written, state.name());
        }
    }
}
