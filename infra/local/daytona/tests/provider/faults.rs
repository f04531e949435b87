use reqwest::Method;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn dropped_answer_still_has_its_effect() {
    let world = World::start("lost").await;
    world.arm(json!({ "fault": "drop", "operation": "create" })).await;
    let create = world.request(Method::POST, "/api/sandbox").json(&json!({ "name": "lost" }));
    assert!(create.send().await.is_err(), "no answer comes");
    world.reach("lost", "started").await;
    let (status, _) = world.post("/api/sandbox", json!({ "name": "lost" })).await;
    assert_eq!(status, 409, "the client adopts by name");
    world.end().await;
}

#[tokio::test]
async fn answer_faults_replace_the_effect() {
    let world = World::start("statuses").await;
    world.arm(json!({ "fault": "answer", "operation": "create", "status": 429, "retry_after": 3, "times": 2 })).await;
    for _ in 0..2 {
        let create = world.request(Method::POST, "/api/sandbox").json(&json!({ "name": "later" }));
        let answer = create.send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (429, &"3".parse().unwrap())
        );
    }
    assert_eq!(world.get("/api/sandbox/later").await.0, 404);
    let id = world.sandbox("later").await;
    world.arm(json!({ "fault": "html", "operation": "get", "status": 502 })).await;
    let page = world.request(Method::GET, &format!("/api/sandbox/{id}")).send().await.unwrap();
    assert_eq!(page.status(), 502);
    assert_eq!(page.headers()["content-type"], "text/html");
    world.arm(json!({ "fault": "runner_info", "sandbox": "later" })).await;
    let (status, answer) =
        world.post(&format!("/toolbox/{id}/process/execute"), json!({ "command": "true" })).await;
    assert_eq!(status, 400);
    assert!(answer["message"].as_str().unwrap().contains("failed to get runner info"));
    assert_eq!(
        world.get("/_control/faults").await.1,
        json!({ "faults": [] }),
        "every fault is used up"
    );
    world.end().await;
}

#[tokio::test]
async fn sandbox_vanishes_on_command_or_call() {
    let world = World::start("vanish").await;
    let id = world.sandbox("gone").await;
    let lost = world.post("/_control/lose", json!({ "sandbox": "gone" })).await;
    assert_eq!(lost.0, 200);
    assert_eq!(world.get(&format!("/api/sandbox/{id}")).await.0, 404);

    let id = world.sandbox("vanishing").await;
    world.arm(json!({ "fault": "vanish", "operation": "stop", "sandbox": id })).await;
    assert_eq!(world.get(&format!("/api/sandbox/{id}")).await.0, 200);
    assert_eq!(world.post(&format!("/api/sandbox/{id}/stop"), json!({})).await.0, 404);
    world.end().await;
}

#[tokio::test]
async fn list_lag_spares_single_reads() {
    let world = World::start("lag").await;
    assert_eq!(world.get("/api/sandbox").await.1["items"], json!([]));
    world.arm(json!({ "fault": "list_lag", "ms": 60_000, "for_ms": 60_000 })).await;
    world.sandbox("unseen").await;
    assert_eq!(world.get("/api/sandbox").await.1["items"], json!([]));
    assert_eq!(world.get("/api/sandbox/unseen").await.0, 200);
    assert_eq!(world.delete("/_control/faults").await, 200);
    assert_eq!(world.get("/api/sandbox").await.1["items"][0]["name"], "unseen");
    world.end().await;
}

#[tokio::test]
async fn control_calls_need_the_key() {
    let world = World::start("control").await;
    let bare =
        world.http.post(format!("{}/_control/lose", world.root())).json(&json!({ "sandbox": "x" }));
    assert_eq!(bare.send().await.unwrap().status(), 401);
    world.end().await;
}
