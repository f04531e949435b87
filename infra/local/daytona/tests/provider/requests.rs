//! What of a request is refused, and what a list can be asked for.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{Specification, World};

#[tokio::test]
async fn wrong_requests_get_daytonas_errors() {
    let world = World::start("refusals").await;
    let bare = world.http.get(format!("{}/api/sandbox", world.root()));
    let (status, answer) = world.send(bare).await;
    assert_eq!((status.as_u16(), &answer["statusCode"]), (401, &json!(401)));
    let wrong =
        world.http.get(format!("{}/toolbox/x/work-dir", world.root())).bearer_auth("dtn_other");
    let (status, answer) = world.send(wrong).await;
    assert_eq!((status.as_u16(), &answer["code"]), (401, &json!("UNAUTHORIZED")));
    let config = world.http.get(format!("{}/api/config", world.root()));
    let (status, answer) = world.send(config).await;
    assert_eq!(status, 200);
    Specification::read("daytona-api.json").check("DaytonaConfiguration", &answer);
    assert_eq!(world.get("/api/socket.io/?EIO=4").await.0, 404);

    let (status, answer) = world.get("/api/nothing").await;
    assert_eq!((status.as_u16(), &answer["message"]), (404, &json!("Cannot GET /api/nothing")));
    let (status, answer) = world.send(world.request(Method::PATCH, "/api/sandbox")).await;
    assert_eq!((status.as_u16(), &answer["message"]), (404, &json!("Cannot PATCH /api/sandbox")));

    for (method, path) in [
        (Method::PATCH, "/api/sandbox/x/labels"),
        (Method::GET, "/api/sandbox/x/pause"),
        (Method::PATCH, "/api/snapshots/x/activate"),
    ] {
        let (status, answer) = world.send(world.request(method.clone(), path)).await;
        assert_eq!(
            (status.as_u16(), &answer["message"]),
            (404, &json!(format!("Cannot {method} {path}")))
        );
    }

    let build = json!({ "dockerfileContent": "FROM x\n" });
    for (body, text) in [
        (
            json!({ "snapshot": "a", "buildInfo": build }),
            "Cannot specify a snapshot when using a build info entry",
        ),
        (json!({ "cpu": 1 }), "Cannot specify Sandbox resources when using a snapshot"),
        (json!({ "snapshot": "unheard-of" }), "Snapshot unheard-of not found"),
        (json!({ "name": "<b>" }), "name must not contain HTML, URLs or control characters"),
        (json!({ "labels": { "a": 1 } }), "the body is not as expected"),
        (json!({ "env": { "A=B": "x" } }), "invalid environment variable name"),
    ] {
        let (status, answer) = world.post("/api/sandbox", body).await;
        assert_eq!(status, 400);
        assert!(answer["message"].as_str().unwrap().contains(text), "{answer}");
    }
    let malformed = world
        .request(Method::POST, "/api/sandbox")
        .body("{")
        .header("content-type", "application/json");
    assert_eq!(world.send(malformed).await.0, 400);
    assert_eq!(world.get("/api/sandbox?limit=201").await.0, 400);
    assert_eq!(world.get("/api/sandbox?states=destroyed").await.0, 400);
    assert!(world.provider.sandboxes().is_empty());
    world.end().await;
}

#[tokio::test]
async fn list_pages_by_cursor_without_loss() {
    let world = World::start("list").await;
    for (number, label) in ["a", "b", "a", "a"].iter().enumerate() {
        let build = json!({ "dockerfileContent": "FROM x\n" });
        let body = json!({ "name": format!("list-{number}"), "labels": { "kind": label }, "buildInfo": build });
        assert_eq!(world.post("/api/sandbox", body).await.0, 200);
    }
    let names = |list: &Value| -> Vec<String> {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = world.get("/api/sandbox?limit=3&sort=name&order=asc").await.1;
    assert_eq!(names(&first), ["list-0", "list-1", "list-2"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second =
        world.get(&format!("/api/sandbox?limit=3&sort=name&order=asc&cursor={cursor}")).await.1;
    assert_eq!((names(&second), &second["nextCursor"]), (vec!["list-3".to_owned()], &Value::Null));
    let labelled =
        world.get("/api/sandbox?sort=createdAt&order=desc&labels={\"kind\":\"a\"}").await.1;
    assert_eq!(names(&labelled).len(), 3);
    // Several labels are asked for together: every one has to be carried.
    let both = json!({ "labels": { "kind": "a", "tenant": "slack:T1" } });
    for name in ["list-0", "list-2"] {
        let labelled = world.request(Method::PUT, &format!("/api/sandbox/{name}/labels"));
        assert_eq!(world.send(labelled.json(&both)).await.0, 200);
    }
    let asked = |labels: &str| format!("/api/sandbox?sort=name&order=asc&limit=1&labels={labels}");
    let both = asked("{\"kind\":\"a\",\"tenant\":\"slack:T1\"}");
    let one = world.get(&both).await.1;
    assert_eq!(names(&one), ["list-0"]);
    let cursor = one["nextCursor"].as_str().unwrap();
    let other = world.get(&format!("{both}&cursor={cursor}")).await.1;
    assert_eq!((names(&other), &other["nextCursor"]), (vec!["list-2".to_owned()], &Value::Null));
    let neither = asked("{\"kind\":\"b\",\"tenant\":\"slack:T1\"}");
    assert!(names(&world.get(&neither).await.1).is_empty());
    let named = world.get("/api/sandbox?name=list-1").await.1;
    assert_eq!(names(&named), ["list-1"]);
    for name in ["list-0", "list-1", "list-2", "list-3"] {
        world.reach(name, "started").await;
    }
    let states = world.get("/api/sandbox?states=stopped&states=archived").await.1;
    assert!(names(&states).is_empty());
    world.end().await;
}
