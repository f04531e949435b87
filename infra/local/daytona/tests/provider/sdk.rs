//! Bobbin's client and Daytona's own SDK for Python at one provider: what each of them keeps, the other begins with.

use std::collections::BTreeMap;
use std::path::Path;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_sandbox::daytona::{DaytonaSandboxes, DaytonaSettings, SourceImage};
use bobbin_sandbox::labels::StackIdentity;
use bobbin_sandbox::{ErrorKind, Provider as _, SandboxSpec, SnapshotName, SnapshotState};
use bobbin_tests::tools;
use serde_json::{Value, json};

use crate::world::{KEY, World, wait_for};

const DEV: StackIdentity<'static> = StackIdentity { name: "dev", id: "this-one" };

pub(crate) fn client(world: &World, stack_id: &str) -> DaytonaSandboxes {
    let settings = DaytonaSettings {
        api: world.provider.api_url(),
        stack: DEV.name.to_owned(),
        stack_id: stack_id.to_owned(),
        image: SourceImage::Dockerfile("FROM x\n".to_owned()),
        limits: SandboxLimits::DEFAULT,
    };
    DaytonaSandboxes::new(settings, KEY).unwrap()
}

fn key() -> SandboxKey {
    ThreadKey::discord("1", "2").unwrap().sandbox()
}

pub(crate) async fn begin(
    client: &DaytonaSandboxes,
    generation: u32,
    snapshot: Option<&SnapshotName>,
) -> Result<SandboxState, Failure> {
    let secrets = BTreeMap::new();
    let spec = SandboxSpec { secrets: &secrets, snapshot };
    Ok(client.create(&key(), generation, spec).await?)
}

/// What it is now, as a delivery of its sandbox sees it.
async fn state(client: &DaytonaSandboxes, name: &str) -> Result<SandboxState, Failure> {
    match client.observe(name).await {
        Ok(found) => Ok(found.state),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(SandboxState::Gone),
        Err(error) => Err(error.failure),
    }
}

fn snapshots(client: &DaytonaSandboxes) -> &dyn bobbin_sandbox::SnapshotStore {
    client.facts().snapshots().unwrap()
}

pub(crate) async fn running(client: &DaytonaSandboxes, name: &str) {
    wait_for("a sandbox that runs", async || {
        state(client, name).await == Ok(SandboxState::Running)
    })
    .await;
}

async fn ready(client: &DaytonaSandboxes, name: &SnapshotName) {
    wait_for("a snapshot that is ready", async || {
        snapshots(client).observe(name).await == Ok(SnapshotState::Ready)
    })
    .await;
}

/// Runs the script with what it is given, and answers what it found.
async fn walk(given: Value) -> Value {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let python = tools::python("daytona-sdk-python", &sdk.join("requirements.txt")).unwrap();
    let mut script = tools::script(python.join("python"));
    script.arg("-B").arg(sdk.join("snapshots.py")).env("DAYTONA_USE_DEPRECATED_POLLING", "true");
    tools::found(&mut script, &given).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bobbin_and_daytonas_sdk_share_snapshots() {
    let world = World::start("sdk").await;
    let client = client(&world, DEV.id);
    assert_eq!(client.facts().snapshots().err(), None);
    begin(&client, 1, None).await.unwrap();
    let theirs = SnapshotName::new(DEV, &key(), 1, 1_000);
    running(&client, theirs.sandbox()).await;
    let source = client.observe(theirs.sandbox()).await.unwrap();
    assert_eq!(
        source.ends_ms.map(|ends| ends - source.created_ms.unwrap()),
        client.facts().life_ms_max,
        "the provider ends it by itself"
    );
    world.exec(&source.id, "mkdir -p project && printf ours >project/kept.txt").await;
    assert_eq!(snapshots(&client).create(&theirs).await, Ok(SnapshotState::Underway));
    ready(&client, &theirs).await;

    // One that Bobbin has a name for, made by the other client.
    let ours = SnapshotName::new(DEV, &key(), 1, 2_000);
    let found = walk(json!({
        "api": world.provider.api_url(), "key": KEY, "source": theirs.sandbox(),
        "theirs": theirs.to_string(), "ours": ours.to_string(),
    }))
    .await;
    assert_eq!(found["back"], "started");
    assert_eq!(found["ours"], "active");
    assert_eq!(found["listed"], json!([theirs.to_string(), ours.to_string()]));
    assert_eq!(found["file"], "ours");
    let none = found["none"].as_str().unwrap();
    assert!(none.contains("Snapshot nobody-made-it not found"), "{none}");

    let listed = snapshots(&client).list().await.unwrap();
    let names: Vec<&SnapshotName> = listed.iter().map(|one| &one.name).collect();
    assert_eq!(names, [&ours, &theirs], "the newest first");
    begin(&client, 2, Some(&ours)).await.unwrap();
    let second = SnapshotName::new(DEV, &key(), 2, 0);
    running(&client, second.sandbox()).await;
    let id = client.observe(second.sandbox()).await.unwrap().id;
    assert_eq!(world.exec(&id, "cat project/kept.txt").await["result"], "ours");
    world.end().await;
}

#[tokio::test]
async fn snapshot_create_and_delete_are_idempotent() {
    let world = World::start("kept-by-us").await;
    let client = client(&world, DEV.id);
    let name = SnapshotName::new(DEV, &key(), 1, 1_000);
    let none = snapshots(&client).create(&name).await.expect_err("no such sandbox");
    assert_eq!((none.kind, &none.failure), (ErrorKind::NotFound, &Failure::SandboxGone));
    begin(&client, 1, None).await.unwrap();
    running(&client, name.sandbox()).await;

    assert_eq!(snapshots(&client).observe(&name).await, Ok(SnapshotState::Absent));
    let hold = json!({ "fault": "hold_state", "state": "snapshotting", "ms": 700 });
    world.arm(hold).await;
    for _ in 0..2 {
        assert_eq!(snapshots(&client).create(&name).await, Ok(SnapshotState::Underway));
    }
    assert_eq!(state(&client, name.sandbox()).await, Ok(SandboxState::Busy));
    ready(&client, &name).await;
    assert_eq!(snapshots(&client).create(&name).await, Ok(SnapshotState::Ready));
    let (_, all) = world.get("/api/snapshots?name=-at1000-").await;
    assert_eq!(all["total"], 1, "{all}");

    // One that comes to nothing is absent again: nobody says why, and a repeat makes it.
    let second = SnapshotName::new(DEV, &key(), 1, 2_000);
    world.arm(json!({ "fault": "lose_snapshot" })).await;
    assert_eq!(snapshots(&client).create(&second).await, Ok(SnapshotState::Underway));
    wait_for("a snapshot that came to nothing", async || {
        snapshots(&client).observe(&second).await == Ok(SnapshotState::Absent)
    })
    .await;
    assert_eq!(snapshots(&client).create(&second).await, Ok(SnapshotState::Underway));
    ready(&client, &second).await;

    // A namesake stack in the same organisation sees neither.
    assert_eq!(snapshots(&self::client(&world, "another")).list().await, Ok(Vec::new()));
    assert_eq!(snapshots(&client).list().await.unwrap().len(), 2);
    for _ in 0..2 {
        snapshots(&client).delete(&name).await.unwrap();
        assert_eq!(snapshots(&client).observe(&name).await, Ok(SnapshotState::Absent));
    }
    assert_eq!(snapshots(&client).list().await.unwrap().len(), 1);
    world.end().await;
}

#[tokio::test]
async fn snapshot_refusal_says_what_is_needed() {
    let world = World::start("kept-needs").await;
    let client = client(&world, DEV.id);
    let name = SnapshotName::new(DEV, &key(), 1, 1_000);
    begin(&client, 1, None).await.unwrap();
    running(&client, name.sandbox()).await;
    let id = client.observe(name.sandbox()).await.unwrap().id;
    world.act(&id, "stop").await;
    world.reach(&id, "stopped").await;
    world.act(&id, "archive").await;
    world.reach(&id, "archived").await;
    let refused = snapshots(&client).create(&name).await.expect_err("it is archived");
    assert_eq!(refused.kind, ErrorKind::WrongState);
    assert!(
        refused.seen.starts_with("the sandbox is archived: start it, then take the snapshot"),
        "{refused}"
    );

    // One that was put to sleep is woken by the create, which is repeated until it is there.
    world.act(&id, "start").await;
    world.reach(&id, "started").await;
    snapshots(&client).create(&name).await.unwrap();
    ready(&client, &name).await;
    let path = format!("/api/snapshots/{name}/deactivate");
    assert_eq!(world.post(&path, json!({})).await.0, 204);
    assert_eq!(snapshots(&client).observe(&name).await, Ok(SnapshotState::Asleep));
    let waits = begin(&client, 2, Some(&name)).await.expect_err("it sleeps");
    assert!(matches!(waits, Failure::Wait { .. }), "{waits:?}");
    wait_for("the sandbox", async || begin(&client, 2, Some(&name)).await.is_ok()).await;

    snapshots(&client).delete(&name).await.unwrap();
    wait_for("the end of it", async || world.get(&format!("/api/snapshots/{name}")).await.0 == 404)
        .await;
    let gone = begin(&client, 3, Some(&name)).await.expect_err("it is gone");
    assert_eq!(
        gone,
        Failure::TurnFailed {
            reason: "The snapshot for the new sandbox no longer exists. Choose another snapshot, or create the sandbox without one.".to_owned()
        }
    );
    let full = json!({ "fault": "answer", "operation": "snapshot", "status": 429 });
    world.arm(full).await;
    let limited = snapshots(&client).create(&name).await.expect_err("limited");
    assert!(matches!(limited.failure, Failure::Wait { .. }), "{limited:?}");
    world.end().await;
}
