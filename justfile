# `just --list` shows the recipes. CI runs `check`, then the README's test command, then `deep`.

# the laptop stack
run *options:
    cargo run -- {{ options }}

# the gates: format, lints, dependencies, documentation
check:
    cargo fmt --all --check
    cargo test --quiet --package bobbin-house
    cargo clippy --quiet --workspace --all-targets -- --deny warnings
    RUSTDOCFLAGS="--deny warnings" cargo doc --quiet --workspace --no-deps --document-private-items

# the README's test command
test:
    cargo test --workspace

# what `test` leaves out: the other engine, real agents, kills and histories in samples
deep:
    cargo test --workspace -- --ignored

# every scenario in all its ways and with OpenCode itself, all kills, and a minute of fuzzing for each target
nightly:
    PROPTEST_RNG_SEED=$(date +%s) BOBBIN_KILLS=all BOBBIN_PLATFORMS=all cargo test --workspace -- --include-ignored
    tests/fuzz/explore 60

# how quick and how small
bench *options:
    cargo bench -- {{ options }}
