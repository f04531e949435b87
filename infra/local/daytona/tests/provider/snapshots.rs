//! Snapshots and secrets, from which sandboxes are made.

use reqwest::Method;
use serde_json::json;

use crate::world::{Specification, World, fresh_folder, settings, wait_for};

const ORGANIZATION: &str = "00000000-0000-4000-8000-000000000001";

#[tokio::test]
async fn stored_secrets_omit_their_values() {
    let world = World::start("snapshots").await;
    let api = Specification::read("daytona-api.json");
    let body = json!({ "name": "prepared", "buildInfo": { "dockerfileContent": "FROM x\nENTRYPOINT [\"true\"]\n" } });
    let (status, snapshot) = world.post("/api/snapshots", body).await;
    assert_eq!((status.as_u16(), &snapshot["state"]), (200, &json!("building")));
    api.check("SnapshotDto", &snapshot);
    wait_for("active", async || world.get("/api/snapshots/prepared").await.1["state"] == "active")
        .await;
    let (_, list) = world.get("/api/snapshots?page=1&limit=10").await;
    api.check("PaginatedSnapshots", &list);
    assert_eq!(list["total"], 2);

    let body =
        json!({ "name": "anthropic", "value": "sk-very-secret", "hosts": ["api.anthropic.com"] });
    let (status, secret) = world.post("/api/secret", body).await;
    assert_eq!(status, 201);
    api.check("Secret", &secret);
    api.check("ListSecretsResponse", &world.get("/api/secret/paginated").await.1);
    let body = json!({ "name": "with", "snapshot": "prepared", "secrets": [{ "ANTHROPIC_API_KEY": "anthropic" }] });
    let id = world.create(body).await;
    let seen = world.exec(&id, "printf %s $ANTHROPIC_API_KEY").await;
    assert_eq!(seen["result"], secret["placeholder"]);
    let logs =
        world.request(Method::GET, &format!("/toolbox/{id}/process/session/entrypoint/logs"));
    assert_eq!(world.send(logs).await.0, 200);
    let kept = std::fs::read_to_string(world.folder.join("shelf.json")).unwrap();
    assert!(!kept.contains("sk-very-secret"));

    let path = format!("/api/secret/{}", secret["id"].as_str().unwrap());
    assert_eq!(world.delete(&path).await, 204);
    assert_eq!(world.delete("/api/snapshots/prepared").await, 200);
    let (_, going) = world.get("/api/snapshots/prepared").await;
    assert_eq!(going["state"], "removing");
    removed(&world, "prepared").await;
    world.end().await;
}

async fn removed(world: &World, name: &str) {
    wait_for("404", async || world.get(&format!("/api/snapshots/{name}")).await.0 == 404).await;
}

/// Asks for a snapshot of a sandbox and waits until the sandbox is what it was before; whether there is one now.
async fn keep(world: &World, sandbox: &str, name: &str, back: &str) -> bool {
    let path = format!("/api/sandbox/{sandbox}/snapshot");
    let (status, answer) = world.post(&path, json!({ "name": name })).await;
    assert_eq!((status.as_u16(), &answer["state"]), (200, &json!("snapshotting")), "{answer}");
    Specification::read("daytona-api.json").check("Sandbox", &answer);
    world.reach(sandbox, back).await;
    world.get(&format!("/api/snapshots/{name}")).await.0 == 200
}

#[tokio::test]
async fn snapshot_copies_are_independent() {
    let world = World::start("kept").await;
    let source = world.sandbox("source").await;
    let script = "mkdir -p project && cd project && printf one >a.txt && ln -s a.txt link && printf run >tool && chmod 755 tool
        mkfifo pipe && (while :; do date +%N >>../ticks; sleep 0.02; done >/dev/null 2>&1 </dev/null &)";
    assert_eq!(world.exec(&source, script).await["exitCode"], 0);
    assert!(keep(&world, &source, "mine", "started").await);
    let (_, kept) = world.get("/api/snapshots/mine").await;
    Specification::read("daytona-api.json").check("SnapshotDto", &kept);
    assert_eq!(
        (&kept["state"], &kept["sourceSandboxId"], &kept["general"]),
        (&json!("active"), &json!(source), &json!(false))
    );
    assert!(kept["size"].as_f64().is_some_and(|gib| gib > 0.0), "{kept}");
    let (_, of_it) = world.get(&format!("/api/snapshots?sourceSandboxId={source}")).await;
    Specification::read("daytona-api.json").check("PaginatedSnapshots", &of_it);
    assert_eq!(of_it["total"], 1);

    // What ran goes on, and changes nothing of what was kept.
    let ticks = "wc -l <ticks";
    let before = world.exec(&source, ticks).await["result"].clone();
    wait_for("another tick", async || world.exec(&source, ticks).await["result"] != before).await;
    world.exec(&source, "printf two >project/a.txt").await;
    assert_eq!(world.delete(&format!("/api/sandbox/{source}")).await, 200);
    world.gone(&source).await;

    let copy = world.create(json!({ "name": "copy", "snapshot": "mine" })).await;
    let seen = "cd project && cat a.txt && readlink link && ./tool 2>/dev/null; stat -c %a tool; ls; ps -e | grep -c sleep";
    let seen = world.exec(&copy, seen).await;
    assert_eq!(seen["result"], "onea.txt\n755\na.txt\nlink\ntool\n0\n");
    world.exec(&copy, "printf three >project/a.txt").await;
    let third = world.create(json!({ "name": "third", "snapshot": "mine" })).await;
    let seen = world.exec(&third, "cat project/a.txt").await;
    assert_eq!(seen["result"], "one", "each has a copy of its own");

    assert_eq!(world.delete("/api/snapshots/mine").await, 200);
    removed(&world, "mine").await;
    let seen = world.exec(&copy, "cat project/a.txt").await;
    assert_eq!(seen["result"], "three", "the sandbox outlives it");
    let (status, refused) =
        world.post("/api/sandbox", json!({ "name": "late", "snapshot": "mine" })).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused["message"].as_str().unwrap().starts_with("Snapshot mine not found"));
    world.end().await;
}

#[tokio::test]
async fn snapshotting_blocks_other_operations() {
    let world = World::start("kept-states").await;
    let id = world.sandbox("one").await;
    world.arm(json!({ "fault": "hold_state", "state": "snapshotting", "ms": 1_500 })).await;
    let path = format!("/api/sandbox/{id}/snapshot");
    let (status, _) = world.post(&path, json!({ "name": "first" })).await;
    assert_eq!(status, 200);
    for verb in ["start", "stop", "archive"] {
        let (status, _) = world.post(&format!("/api/sandbox/{id}/{verb}"), json!({})).await;
        assert_eq!(status, 409, "{verb}");
    }
    assert_eq!(world.delete(&format!("/api/sandbox/{id}")).await, 409);
    assert_eq!(world.get("/api/snapshots/first").await.0, 404, "not before it is done");
    world.reach(&id, "started").await;
    assert_eq!(world.get("/api/snapshots/first").await.0, 200);

    world.act(&id, "stop").await;
    world.reach(&id, "stopped").await;
    assert!(keep(&world, &id, "second", "stopped").await);
    world.act(&id, "archive").await;
    world.reach(&id, "archived").await;
    let (status, refused) = world.post(&path, json!({ "name": "third" })).await;
    assert_eq!(
        (status.as_u16(), &refused["message"]),
        (400, &json!("Sandbox must be in started or stopped state to create a snapshot"))
    );
    let (status, _) = world.post("/api/sandbox/none/snapshot", json!({ "name": "x" })).await;
    assert_eq!(status, 404);
    let (status, _) = world.post(&path, json!({ "name": "x", "includeMemory": true })).await;
    assert_eq!(status, 400);
    world.end().await;
}

#[tokio::test]
async fn failed_snapshot_leaves_no_trace() {
    let world = World::start("kept-lost").await;
    let id = world.sandbox("one").await;
    world.arm(json!({ "fault": "lose_snapshot" })).await;
    assert!(!keep(&world, &id, "lost", "started").await);
    assert!(keep(&world, &id, "lost", "started").await, "a repeat makes it");
    let first = world.get("/api/snapshots/lost").await.1;
    // A taken name is not refused; the snapshot that has it stays what it was.
    assert!(keep(&world, &id, "lost", "started").await);
    assert_eq!(world.get("/api/snapshots/lost").await.1, first);
    let copies = std::fs::read_dir(world.folder.join("snapshots")).unwrap();
    assert_eq!(copies.count(), 1);
    world.end().await;
}

#[tokio::test]
async fn only_finished_snapshots_survive_restart() {
    let folder = fresh_folder("kept-restart");
    let world = World::with(settings(&folder)).await;
    let id = world.sandbox("one").await;
    world.exec(&id, "printf kept >a.txt").await;
    assert!(keep(&world, &id, "mine", "started").await);
    let hold = json!({ "fault": "hold_state", "state": "snapshotting", "ms": 60_000 });
    world.arm(hold).await;
    let path = format!("/api/sandbox/{id}/snapshot");
    assert_eq!(world.post(&path, json!({ "name": "half" })).await.0, 200);
    wait_for("the second copy", async || {
        std::fs::read_dir(folder.join("snapshots")).unwrap().count() == 2
    })
    .await;
    world.provider.stop().await;

    let world = World::with(settings(&folder)).await;
    world.reach(&id, "stopped").await;
    assert_eq!(world.get("/api/snapshots/half").await.0, 404);
    assert_eq!(std::fs::read_dir(folder.join("snapshots")).unwrap().count(), 1);
    let copy = world.create(json!({ "name": "copy", "snapshot": "mine" })).await;
    assert_eq!(world.exec(&copy, "cat a.txt").await["result"], "kept");
    world.end().await;
}

#[tokio::test]
async fn unused_snapshot_sleeps_until_activated() {
    let world = World::start("kept-asleep").await;
    let id = world.sandbox("one").await;
    assert!(keep(&world, &id, "mine", "started").await);
    world.advance(13 * 24 * 60).await;
    assert_eq!(world.get("/api/snapshots/mine").await.1["state"], "active");
    world.advance(24 * 60).await;
    assert_eq!(world.get("/api/snapshots/mine").await.1["state"], "inactive");
    let body = json!({ "name": "copy", "snapshot": "mine" });
    let (status, refused) = world.post("/api/sandbox", body.clone()).await;
    assert_eq!((status.as_u16(), &refused["message"]), (400, &json!("Snapshot mine is inactive")));
    let (status, _) = world.post("/api/snapshots/mine/activate", json!({})).await;
    assert_eq!(status, 200);
    wait_for("active", async || world.get("/api/snapshots/mine").await.1["state"] == "active")
        .await;
    world.create(body).await;
    world.end().await;
}

#[tokio::test]
async fn snapshot_quota_is_enforced() {
    let world = World::start("kept-quota").await;
    let id = world.sandbox("one").await;
    let (_, usage) = world.get(&format!("/api/organizations/{ORGANIZATION}/usage")).await;
    let room = usage["totalSnapshotQuota"].as_u64().unwrap()
        - usage["currentSnapshotUsage"].as_u64().unwrap();
    for number in 0..room {
        let body = json!({ "name": format!("image-{number}"), "imageName": "a:1" });
        assert_eq!(world.post("/api/snapshots", body).await.0, 200);
    }
    for (path, body) in [
        (format!("/api/sandbox/{id}/snapshot"), json!({ "name": "more" })),
        ("/api/snapshots".to_owned(), json!({ "name": "more", "imageName": "a:1" })),
    ] {
        let (status, refused) = world.post(&path, body).await;
        assert_eq!(status, 400);
        let words = refused["message"].as_str().unwrap();
        assert!(words.starts_with("Snapshot quota exceeded. Maximum allowed:"), "{words}");
    }
    world.end().await;
}
