//! Vercel's own client finds what its user expects.

use std::path::Path;

use bobbin_local_vercel::Confinement;
use bobbin_tests::tools;
use serde_json::{Value, json};

use crate::world::{PROJECT, TEAM, TOKEN, World};

/// Runs the script with what it is given, and answers what it found.
async fn walk(given: Value) -> Value {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let mut script = tools::script("node");
    script.arg(sdk.join("walk.mjs"));
    tools::found(&mut script, &given).await
}

#[tokio::test(flavor = "multi_thread")]
async fn vercels_sdk_works_against_emulator() {
    let world = World::start("sdk").await;
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let packages = tools::node("vercel-sdk-javascript", &sdk).unwrap();
    let found = walk(json!({
        "api": world.provider.api_url(), "token": TOKEN, "team": TEAM, "project": PROJECT, "packages": packages,
    }))
    .await;
    // Where nothing keeps the sandbox apart from the machine, its files are those of its own folder alone.
    let absolute = match world.provider.confinement() {
        Confinement::None { .. } => {
            json!({"status": 400, "code": "bad_request", "message": found["absolute"]["message"]})
        }
        _ => json!(["elsewhere", "600\n"]),
    };
    let expected = json!({
        "created": {
            "name": "walk-one", "status": "running", "persistent": true, "timeout": 600_000, "vcpus": 2, "memory": 4096,
            "tags": {"bobbin": "dev", "thread": "discord:1:2"}, "ports": [4096, 8000], "keep": {"count": 1},
            "expiration": 0, "expires": true, "source": null,
            "policy": {"allow": {"*": [], "api.example.com": [{"transform": [{"headers": {"x-api-key": "<redacted>"}}]}]}},
        },
        "taken": {
            "status": 400, "code": "bad_request",
            "message": "A sandbox with the name 'walk-one' already exists for this project.",
        },
        "bad_name": {
            "status": 400, "code": "bad_request",
            "message": "Invalid request: `name` must match ^[a-zA-Z0-9_-]+$ and have at most 128 characters",
        },
        "many_tags": {"status": 400, "code": "bad_request", "message": "A sandbox has at most 5 tags"},
        "unknown": {"status": 404, "code": "not_found", "message": "Sandbox not found: nobody"},
        "token": {"status": 401, "code": "unauthorized", "message": "Not authorized"},
        "project": {"status": 404, "code": "not_found", "message": "Project not found"},
        "ran": {"exit": 3, "out": "yes too\n", "err": "grün", "timed": true},
        "no_shell": "$HOME a b\n",
        "no_program": 127,
        "timed_out": true,
        "cwd": [true, "/tmp\n"],
        "live": [0, "first\nsecond\n"],
        "detached": {"exit": null, "waited": 4, "both": 8},
        "logs": [["stderr", "two\n"], ["stdout", "one\n"]],
        "killed": 143,
        "files": ["kept", null, "ran\n"],
        "absolute": absolute,
        "folder_again": 400,
        "folder_deep": 400,
        "route": "kept",
        "extended": 60_000,
        "updated": [{"bobbin": "prod"}, 700_000],
        "policy": "deny-all",
        "stopped": ["stopped", "created", "stopped"],
        "seen": ["stopped", true],
        "exec_stopped": {"status": 410, "code": "sandbox_stopped", "message": "Sandbox is stopped"},
        "back": {
            "resumes": 1, "new_session": true, "new_routes": true, "timeout": 700_000, "file": "kept", "servers": 1,
            "from": true, "env": "yes\n",
        },
        "by_itself": "kept",
        "snapshot": ["created", true, null],
        "kept": [true],
        "got": "created",
        "from_snapshot": ["kept", true],
        "forked": {
            "file": "kept", "timeout": 700_000, "tags": {"team": "blue"}, "ports": [4096, 8000], "env": "yes\n",
        },
        "fork_taken": 400,
        "fork_unknown": 404,
        "deleted_snapshot": "deleted",
        "from_deleted": {"status": 410, "code": "snapshot_not_found", "message": found["from_deleted"]["message"]},
        "lost": {"status": 410, "code": "snapshot_not_found", "message": found["lost"]["message"]},
        "free": ["running", true],
        "listed": {
            "all": ["walk-one", "walk-three", "walk-two"], "pages": ["walk-three", "walk-two"], "tagged": ["walk-three"],
            "prefix_alone": 400,
        },
        "after_faults": "running",
        "deleted": {"status": 404, "code": "not_found", "message": "Sandbox not found: walk-two"},
        "left": [],
    });
    for (what, right) in expected.as_object().unwrap() {
        assert_eq!(&found[what], right, "{what}");
    }
    assert_eq!(found.as_object().unwrap().len(), expected.as_object().unwrap().len());
    assert_eq!(world.provider.sandboxes().len(), 0);
    world.end().await;
}
