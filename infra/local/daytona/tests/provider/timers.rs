use reqwest::Method;
use serde_json::json;

use bobbin_sandbox::Provider as _;

use crate::sdk::{begin, client, running};
use crate::world::{World, fresh_folder, settings};

#[tokio::test]
async fn idle_sandbox_is_stopped_then_archived() {
    let world = World::start("autostop").await;
    let body = json!({ "name": "idle", "autoStopInterval": 20, "autoArchiveInterval": 60 });
    let id = world.create(body).await;
    world.advance(15).await;
    world.exec(&id, "true").await;
    world.advance(15).await;
    assert_eq!(
        world.get(&format!("/api/sandbox/{id}")).await.1["state"],
        "started",
        "a toolbox call is activity"
    );
    let quiet = world.request(Method::POST, &format!("/toolbox/{id}/process/execute"));
    let quiet = quiet
        .header("x-daytona-skip-last-activity-update", "true")
        .json(&json!({ "command": "true" }));
    assert_eq!(world.send(quiet).await.0, 200);
    world.advance(6).await;
    world.reach(&id, "stopped").await;
    world.advance(60).await;
    world.reach(&id, "archived").await;
    world.end().await;
}

#[tokio::test]
async fn short_memory_stops_idlest_sandbox() {
    let mut short = settings(&fresh_folder("memory"));
    short.run.memory_left_mb = u64::MAX;
    let world = World::with(short).await;
    let old = world.create(json!({ "name": "old", "autoStopInterval": 0 })).await;
    let new = world.create(json!({ "name": "new", "autoStopInterval": 0 })).await;
    world.advance(2).await;
    world.exec(&new, "true").await;
    world.advance(1).await;
    world.reach(&old, "stopped").await;
    let why = || {
        let all = world.provider.sandboxes().into_iter();
        all.map(|one| (one.name, one.why)).collect::<Vec<_>>()
    };
    let short = Some("memory was short");
    assert_eq!(why(), [("old".to_owned(), short), ("new".to_owned(), None)]);
    let kept = world.get(&format!("/api/sandbox/{new}")).await.1;
    assert_eq!(kept["state"], "started", "it was used a minute ago");
    // Whoever needs it starts it, as any that is stopped.
    world.act(&old, "start").await;
    world.reach(&old, "started").await;
    assert_eq!(why()[0], ("old".to_owned(), None));
    world.end().await;
}

#[tokio::test]
async fn keep_alive_counts_only_by_id() {
    let world = World::start("keepalive").await;
    let id = world.sandbox("keepalive").await;
    world.advance(10).await;
    assert_eq!(world.post(&format!("/api/sandbox/{id}/last-activity"), json!({})).await.0, 201);
    world.advance(10).await;
    assert_eq!(world.post("/api/sandbox/keepalive/last-activity", json!({})).await.0, 201);
    assert_eq!(world.get(&format!("/api/sandbox/{id}")).await.1["state"], "started");
    world.advance(10).await;
    world.reach(&id, "stopped").await;
    world.end().await;
}

#[tokio::test]
async fn ttl_and_auto_delete_end_sandboxes() {
    let world = World::start("ttl").await;
    let body = json!({ "name": "short", "autoStopInterval": 0, "ttlMinutes": 90 });
    let id = world.post("/api/sandbox", body).await.1["id"].as_str().unwrap().to_owned();
    let seen = world.reach(&id, "started").await;
    assert!(seen["autoDestroyAt"].is_string());
    world.advance(60).await;
    assert_eq!(world.get(&format!("/api/sandbox/{id}")).await.1["state"], "started");
    world.advance(31).await;
    world.gone(&id).await;

    let id = world.sandbox("deleted").await;
    assert_eq!(
        world.post(&format!("/api/sandbox/{id}/autodelete/30"), json!({})).await.1["autoDeleteInterval"],
        30
    );
    world.act(&id, "stop").await;
    world.reach(&id, "stopped").await;
    world.advance(31).await;
    world.gone(&id).await;

    let body = json!({ "name": "ephemeral", "autoDeleteInterval": 0 });
    let id = world.create(body).await;
    world.act(&id, "stop").await;
    world.gone(&id).await;
    world.end().await;
}

#[tokio::test]
async fn active_sandbox_outlives_initial_ttl() {
    let world = World::start("kept").await;
    let client = client(&world, "this-one");
    begin(&client, 1, None).await.unwrap();
    let made = client.list(None).await.unwrap().remove(0);
    let (name, id) = (made.name, made.id);
    running(&client, &name).await;
    let (day, life) = (24 * 60, 7);
    for _ in 0..life {
        world.advance(day).await;
        world.reach(&id, "stopped").await;
        client.start(&name).await.unwrap();
        running(&client, &name).await;
    }
    for _ in 0..life {
        world.advance(day).await;
        client.keep_alive(&name).await.unwrap();
    }
    // Nobody works in it any more: the net is under it as before.
    world.advance((life - 1) * day).await;
    assert!(client.observe(&name).await.is_ok());
    world.advance(day + 1).await;
    world.gone(&id).await;
    world.end().await;
}
