//! Scripts and settings of other tools.

use crate::expected::is;

#[test]
fn cursor_installs_and_starts() {
    is(
        "cursor",
        &[
            ".cursor/environment.json",
            "set-up npm ci",
            "start sudo service docker start",
            "refused Line 4: `terminals` are not opened: start what has to run in `start`.",
            "refused Line 5: `snapshot` is not used: the sandbox has its own image.",
            "refused Line 6: `repositoryDependencies` is not known: it is left out.",
        ],
    );
}

#[test]
fn openinspect_has_set_up_and_start() {
    is(
        "openinspect",
        &[
            ".openinspect/setup.sh",
            "set-up bash .openinspect/setup.sh",
            "start bash .openinspect/start.sh",
        ],
    );
}

#[test]
fn openhands_has_set_up_alone() {
    is("openhands", &[".openhands/setup.sh", "set-up bash .openhands/setup.sh"]);
}
