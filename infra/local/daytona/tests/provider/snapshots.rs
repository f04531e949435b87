//! Snapshots and secrets, from which sandboxes are made.

use reqwest::Method;
use serde_json::json;

use crate::world::{Specification, World, wait_for};

#[tokio::test]
async fn snapshots_and_secrets_are_kept_and_secret_values_are_not() {
    let world = World::start("snapshots").await;
    let api = Specification::read("daytona-api.json");
    let body = json!({ "name": "prepared", "buildInfo": { "dockerfileContent": "FROM x\nENTRYPOINT [\"true\"]\n" } });
    let (status, snapshot) = world.post("/api/snapshots", body).await;
    assert_eq!(
        (status.as_u16(), &snapshot["state"]),
        (200, &json!("building"))
    );
    api.check("SnapshotDto", &snapshot);
    wait_for("active", async || {
        world.get("/api/snapshots/prepared").await.1["state"] == "active"
    })
    .await;
    let (_, list) = world.get("/api/snapshots?page=1&limit=10").await;
    api.check("PaginatedSnapshots", &list);
    assert_eq!(list["total"], 2);

    let body =
        json!({ "name": "anthropic", "value": "sk-very-secret", "hosts": ["api.anthropic.com"] });
    let (status, secret) = world.post("/api/secret", body).await;
    assert_eq!(status, 201);
    api.check("Secret", &secret);
    api.check(
        "ListSecretsResponse",
        &world.get("/api/secret/paginated").await.1,
    );
    let body = json!({ "name": "with", "snapshot": "prepared", "secrets": [{ "ANTHROPIC_API_KEY": "anthropic" }] });
    let id = world.create(body).await;
    let seen = world.exec(&id, "printf %s $ANTHROPIC_API_KEY").await;
    assert_eq!(seen["result"], secret["placeholder"]);
    let logs = world.request(
        Method::GET,
        &format!("/toolbox/{id}/process/session/entrypoint/logs"),
    );
    assert_eq!(world.send(logs).await.0, 200);
    let kept = std::fs::read_to_string(world.folder.join("shelf.json")).unwrap();
    assert!(!kept.contains("sk-very-secret"));

    let path = format!("/api/secret/{}", secret["id"].as_str().unwrap());
    assert_eq!(world.delete(&path).await, 204);
    assert_eq!(world.delete("/api/snapshots/prepared").await, 200);
    assert_eq!(world.get("/api/snapshots/prepared").await.0, 404);
    world.end().await;
}
