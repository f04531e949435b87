//! Versions of tools, and lock files.

use bobbin_recipe::recipe_of;

use crate::expected::{is, lines, with};

#[test]
fn one_lock_file_of_a_language_counts() {
    is(
        "versions-node",
        &[
            "pnpm-lock.yaml",
            "derived pnpm install --frozen-lockfile",
            "tool node 22.4.0",
            "refused `package-lock.json` is not used: `pnpm-lock.yaml` is.",
        ],
    );
}

#[test]
fn each_language_installs_from_its_lock() {
    is(
        "versions-many",
        &[
            "yarn.lock",
            "derived yarn install --frozen-lockfile",
            "derived uv sync --frozen",
            "derived cargo fetch --locked",
            "derived BUNDLE_FROZEN=true bundle install",
            "derived go mod download",
            "tool node 20.11.1",
            "tool go 1.22",
            "tool python 3.12.1",
            "tool rust 1.95",
            "refused `.tool-versions`, line 5: `odd` is not a tool with its version: it is left out.",
            "refused `bun.lock` is not used: `yarn.lock` is.",
            "refused `bun.lockb` is not used: `yarn.lock` is.",
        ],
    );
}

#[test]
fn mise_is_read_and_never_run() {
    is(
        "versions-mise",
        &[
            "yarn.lock",
            "derived yarn install --immutable",
            "tool go 1.22",
            "tool node 22",
            "tool npm:prettier 3.3",
            "tool python 3.12",
            "refused `mise.toml`, line 8: `evil $(touch /tmp/x)` is not a tool with its version: it is left out.",
            "refused `mise.toml`, line 10: `env` is not set: mise does not run.",
            "refused `mise.toml`, line 13: `tasks` are not run: mise does not run.",
        ],
    );
}

#[test]
fn a_broken_version_file_stops_nothing() {
    is(
        "versions-broken",
        &[
            "Cargo.lock",
            "derived cargo fetch --locked",
            "refused `mise.toml`, line 2: not TOML (string values must be quoted, expected literal string).",
        ],
    );
}

#[test]
fn versions_alone_make_a_recipe() {
    is("versions-nvm", &[".nvmrc", "tool node lts", "tool rust stable"]);
}

#[test]
fn older_rust_file_may_hold_the_newer_ones_text() {
    let text = "# ours\n[toolchain]\nchannel = \"1.85\"\ncomponents = [\"clippy\"]\n";
    let recipe = recipe_of(&with("rust-toolchain", text)).unwrap();
    assert_eq!(lines(&recipe), ["rust-toolchain", "tool rust 1.85"]);
}
