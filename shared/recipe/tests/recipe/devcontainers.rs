//! Devcontainers.

use crate::expected::is;

#[test]
fn lifecycle_commands_become_steps_in_order() {
    is(
        "devcontainer-commands",
        &[
            ".devcontainer/devcontainer.json",
            r#"set-up [onCreateCommand: server, client] sh -c 'cd server; npm ci' & p0=$!⏎npm --prefix 'my client' ci & p1=$!⏎failed=0⏎wait "$p0" || { echo 'server failed' >&2; failed=1; }⏎wait "$p1" || { echo 'client failed' >&2; failed=1; }⏎[ "$failed" = 0 ]"#,
            "set-up npm ci && npm run build",
            r#"set-up [node -e console.log('it is "here"', $HOME)] node -e 'console.log('\''it is "here"'\'', $HOME)' ''"#,
            "start npm run dev > dev.log 2>&1 &",
        ],
    );
}

#[test]
fn comments_commas_and_crlf_are_read() {
    is(
        "devcontainer-windows",
        &[
            ".devcontainer/devcontainer.json",
            "set-up echo '// no comment, /* none */'",
            "port 3000",
            "port 5432",
        ],
    );
}

#[test]
fn missing_commas_are_passed_over() {
    is(
        "devcontainer-commas",
        &[".devcontainer/devcontainer.json", "set-up make", "port 3000", "port 3001"],
    );
}

#[test]
fn what_needs_a_host_is_refused() {
    is(
        "devcontainer-host",
        &[
            ".devcontainer/devcontainer.json",
            "set-up make",
            "refused Line 2: `image` is not used: the sandbox has its own image.",
            "refused Line 3: `initializeCommand` is for the machine of an editor: it is not run.",
            "refused Line 4: `postAttachCommand` is for an editor that attaches: it is not run.",
            "refused Line 5: `mounts` are not mounted: a sandbox has its own disk.",
            "refused Line 6: `runArgs` are for Docker, which does not run here.",
            "refused Line 7: `privileged` is not granted: a sandbox has the rights of its provider.",
            "refused Line 8: `capAdd` is not granted: a sandbox has the rights of its provider.",
            "refused Line 9: `securityOpt` is not granted: a sandbox has the rights of its provider.",
            "refused Line 10: `remoteUser` is not changed: a sandbox has one user.",
            "refused Line 11: `hostRequirements` are not read: the operator chooses the size of sandboxes.",
        ],
    );
}

#[test]
fn compose_and_other_hosts_are_refused() {
    is(
        "devcontainer-compose",
        &[
            ".devcontainer/devcontainer.json",
            "port 3000",
            "refused Line 7: `db:5432` is not a port of the sandbox: it is left out.",
            "refused Line 2: `dockerComposeFile` is not started: name Postgres or Redis as `services` in `.bobbin/environment.yaml`.",
            "refused Line 5: `workspaceFolder` is not used: the checkout has its own place.",
        ],
    );
}

#[test]
fn image_features_and_secrets_are_refused() {
    is(
        "devcontainer-features",
        &[
            ".devcontainer.json",
            "refused Line 2: `build` is not used: the sandbox has its own image.",
            "refused Line 3: `features` are not installed: install what is needed in a step.",
            "refused Line 8: `secrets` are not asked for: secrets are in the settings.",
        ],
    );
}

#[test]
fn only_constant_harmless_variables_are_set() {
    is(
        "devcontainer-variables",
        &[
            ".devcontainer/devcontainer.json",
            "variable PRICE=5$",
            "variable RAILS_ENV=test",
            "variable SHELLS=${SHELL}",
            "refused Line 8: `PATH` needs a value from outside of this file: write it as a constant, or set it in the settings.",
            "refused Line 9: `LD_LIBRARY_PATH` is not a variable that a repository may set.",
            "refused Line 14: `TOKEN` needs a value from outside of this file: write it as a constant, or set it in the settings.",
            "refused Line 15: `HERE` needs a value from outside of this file: write it as a constant, or set it in the settings.",
            "refused Line 16: `NO_PROXY` is not a variable that a repository may set.",
            "refused Line 17: `no_proxy` is not a variable that a repository may set.",
            "refused Line 18: `OPENAI_BASE_URL` is not a variable that a repository may set.",
            "refused Line 19: `my-name` is not a variable name: use letters, digits and `_`.",
            "refused Line 2: `image` is not used: the sandbox has its own image.",
        ],
    );
}

#[test]
fn the_first_nested_folder_is_read() {
    is(
        "devcontainer-nested",
        &[
            ".devcontainer/backend/devcontainer.json",
            "set-up make backend",
            "refused `.devcontainer/frontend/devcontainer.json` is not used: the first by name is.",
        ],
    );
}

#[test]
fn broken_json_ends_the_search() {
    is(
        "devcontainer-broken",
        &[
            ".devcontainer/devcontainer.json",
            "refused `.devcontainer/devcontainer.json`, line 4: not JSON (Unexpected token).",
        ],
    );
}

#[test]
fn the_checkout_stands_for_its_placeholder() {
    is(
        "devcontainer-folder",
        &[
            ".devcontainer/devcontainer.json",
            "set-up [git config --global --add safe.directory ${containerWorkspaceFolder}] export containerWorkspaceFolder=$PWD⏎git config --global --add safe.directory ${containerWorkspaceFolder}",
            r#"set-up [ls ${containerWorkspaceFolder}/my dir ${containerWorkspaceFolder}] ls "$PWD"'/my dir' "$PWD""#,
            r#"set-up [postCreateCommand: here] sh -c 'export containerWorkspaceFolder=$PWD⏎ls ${containerWorkspaceFolder}' & p0=$!⏎failed=0⏎wait "$p0" || { echo 'here failed' >&2; failed=1; }⏎[ "$failed" = 0 ]"#,
            "refused Line 6: `there` needs a value from outside of this file: write it as a constant, or set it in the settings.",
            "refused Line 8: `postStartCommand` needs a value from outside of this file: write it as a constant, or set it in the settings.",
        ],
    );
}

#[test]
fn what_asks_nothing_is_not_refused() {
    is("devcontainer-quiet", &[".devcontainer/devcontainer.json"]);
}

#[test]
fn odd_types_are_refused_one_by_one() {
    is(
        "devcontainer-odd",
        &[
            ".devcontainer/devcontainer.json",
            r#"set-up [postCreateCommand: good] sh -c make & p0=$!⏎failed=0⏎wait "$p0" || { echo 'good failed' >&2; failed=1; }⏎[ "$failed" = 0 ]"#,
            "start [if -x a=b] 'if' -x 'a=b'",
            "port 3000",
            "variable NUMBER=5",
            "refused Line 3: `worse` is neither a text nor a list of texts: it is not run.",
            "refused Line 6: `LIST` has no text as its value.",
            "refused Line 5: `0` is not a port of the sandbox: it is left out.",
            "refused Line 5: `70000` is not a port of the sandbox: it is left out.",
            "refused Line 5: `-1` is not a port of the sandbox: it is left out.",
            "refused Line 5: `80.5` is not a port of the sandbox: it is left out.",
            "refused Line 5: `3000` is not a port of the sandbox: it is left out.",
            "refused Line 2: `image` is not used: the sandbox has its own image.",
            "refused Line 7: `onSaveCommand` is not known: it is left out.",
            "refused Line 8: `Image` is not known: it is left out.",
        ],
    );
}
