//! The states of a sandbox and what each operation answers in each of them.
//!
//! The table is Daytona's (reference, section 6); it is pure and tested cell by cell.

use serde::{Deserialize, Serialize};

/// States that this provider goes through. `snapshotting`, `forking`, `resizing` and `paused` do not occur:
/// they belong to classes of machine that a directory is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The build waits for a runner.
    PendingBuild,
    /// The image is being built.
    BuildingSnapshot,
    /// The runner fetches the image.
    PullingSnapshot,
    /// The sandbox is being made.
    Creating,
    /// Processes may run.
    Started,
    /// On the way to [`State::Started`] from [`State::Stopped`].
    Starting,
    /// On the way to [`State::Stopped`].
    Stopping,
    /// No process; the directory is there.
    Stopped,
    /// On the way to [`State::Archived`].
    Archiving,
    /// As stopped; a start takes longer.
    Archived,
    /// On the way to [`State::Started`] from [`State::Archived`].
    Restoring,
    /// On the way to nothing.
    Destroying,
    /// Something failed; `errorReason` says what.
    Error,
    /// The build failed.
    BuildFailed,
}

impl State {
    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::PendingBuild => "pending_build",
            State::BuildingSnapshot => "building_snapshot",
            State::PullingSnapshot => "pulling_snapshot",
            State::Creating => "creating",
            State::Started => "started",
            State::Starting => "starting",
            State::Stopping => "stopping",
            State::Stopped => "stopped",
            State::Archiving => "archiving",
            State::Archived => "archived",
            State::Restoring => "restoring",
            State::Destroying => "destroying",
            State::Error => "error",
            State::BuildFailed => "build_failed",
        }
    }

    /// What the operator asked for last, as far as the state tells.
    pub(crate) fn desired(self) -> &'static str {
        match self {
            State::Stopping | State::Stopped => "stopped",
            State::Archiving | State::Archived => "archived",
            State::Destroying => "destroyed",
            _ => "started",
        }
    }

    /// What a provider that was ended and started again finds: no process outlives it.
    pub(crate) fn after_restart(self) -> Self {
        match self {
            State::Archiving | State::Archived | State::Restoring => State::Archived,
            State::Destroying => State::Destroying,
            State::Error => State::Error,
            State::BuildFailed => State::BuildFailed,
            _ => State::Stopped,
        }
    }

    fn errored(self) -> bool {
        matches!(self, State::Error | State::BuildFailed)
    }
}

/// A lifecycle call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Start,
    Stop,
    Archive,
    Delete,
    Recover,
}

/// What a lifecycle call leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// 200, and it begins.
    Go,
    /// 200, and nothing changes.
    Nothing,
    /// Status and text.
    Refuse(u16, &'static str),
}

const CHANGING: Verdict = Verdict::Refuse(409, "Sandbox state change in progress");
const ERRORED: Verdict = Verdict::Refuse(400, "Sandbox is in an errored state");

/// The table of the reference, section 6.
pub(crate) fn verdict(operation: Operation, state: State, recoverable: bool) -> Verdict {
    match (operation, state) {
        (Operation::Recover, State::Error) if recoverable => Verdict::Go,
        (Operation::Recover, _) => {
            Verdict::Refuse(400, "Sandbox is not in a recoverable error state")
        }

        (Operation::Delete, State::Destroying) => CHANGING,
        (
            Operation::Delete,
            State::Creating
            | State::Starting
            | State::Stopping
            | State::Restoring
            | State::BuildingSnapshot
            | State::PullingSnapshot,
        ) => CHANGING,
        (Operation::Delete, _) => Verdict::Go,

        (_, state) if state.errored() => ERRORED,

        (Operation::Start, State::Started) => Verdict::Nothing,
        (Operation::Start, State::Stopped | State::Archived | State::Archiving) => Verdict::Go,

        (Operation::Stop, State::Started) => Verdict::Go,
        (Operation::Stop, State::Stopped | State::Archived) => {
            Verdict::Refuse(400, "Sandbox is not in a stoppable state")
        }

        (Operation::Archive, State::Stopped) => Verdict::Go,
        (Operation::Archive, State::Started | State::Archived) => {
            Verdict::Refuse(400, "Sandbox is not stopped")
        }

        _ => CHANGING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows and columns as in the reference: 200 go, 0 no change, else the status.
    fn cell(operation: Operation, state: State) -> u16 {
        match verdict(operation, state, false) {
            Verdict::Go => 200,
            Verdict::Nothing => 0,
            Verdict::Refuse(status, _) => status,
        }
    }

    #[test]
    fn each_operation_answers_as_the_table_says() {
        use Operation::{Archive, Delete, Recover, Start, Stop};
        let columns = [
            State::Started,
            State::Stopped,
            State::Starting,
            State::Stopping,
            State::Creating,
            State::Archived,
            State::Archiving,
            State::Error,
            State::BuildFailed,
        ];
        let rows = [
            (Start, [0, 200, 409, 409, 409, 200, 200, 400, 400]),
            (Stop, [200, 400, 409, 409, 409, 400, 409, 400, 400]),
            (Archive, [400, 200, 409, 409, 409, 400, 409, 400, 400]),
            (Delete, [200, 200, 409, 409, 409, 200, 200, 200, 200]),
            (Recover, [400; 9]),
        ];
        for (operation, expected) in rows {
            let seen = columns.map(|state| cell(operation, state));
            assert_eq!(seen, expected, "{operation:?}");
        }
        assert_eq!(cell(Delete, State::PendingBuild), 200);
        assert_eq!(verdict(Recover, State::Error, true), Verdict::Go);
    }

    #[test]
    fn the_wire_word_is_what_serde_writes() {
        for state in [
            State::PendingBuild,
            State::Started,
            State::BuildFailed,
            State::Restoring,
        ] {
            let written = serde_json::to_value(state).expect("a unit variant serialises");
            assert_eq!(written, state.name());
        }
    }
}
