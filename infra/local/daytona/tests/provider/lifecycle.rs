use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{Specification, World, fresh_folder, settings, wait_for};

#[tokio::test]
async fn the_calls_of_a_whole_sdk_walk_answer_as_daytona_does() {
    let world = World::start("walk").await;
    let (api, tools) = (
        Specification::read("daytona-api.json"),
        Specification::read("daytona-toolbox.json"),
    );
    let body = json!({
        "name": "bobbin-test-g1", "buildInfo": { "contextHashes": [], "dockerfileContent": "FROM node:22\n" },
        "env": { "FOO": "bar" }, "labels": { "bobbin": "test" }, "target": "us", "cpu": 2, "memory": 4, "disk": 8,
        "autoStopInterval": 120, "volumes": [], "somethingNew": { "is": "ignored" },
    });
    let (status, created) = world.post("/api/sandbox", body.clone()).await;
    assert_eq!(
        (status.as_u16(), &created["state"]),
        (200, &json!("pending_build"))
    );
    api.check("Sandbox", &created);
    assert_eq!(
        (&created["kvm"], &created["spot"], &created["cpu"]),
        (&json!(false), &json!(false), &json!(2))
    );
    let id = created["id"].as_str().unwrap().to_owned();
    let started = world.reach(&id, "started").await;
    api.check("Sandbox", &started);
    let toolbox = started["toolboxProxyUrl"]
        .as_str()
        .unwrap()
        .trim_start_matches(&world.root())
        .to_owned();
    let toolbox = format!("{toolbox}/{id}");

    let command = json!({ "command": "echo $FOO $A; pwd", "envs": { "A": "1" }, "timeout": 10 });
    let (_, ran) = world
        .post(&format!("{toolbox}/process/execute"), command)
        .await;
    tools.check("ExecuteResponse", &ran);
    let home = world.provider.sandboxes()[0].dir.display().to_string();
    assert_eq!(
        ran,
        json!({ "exitCode": 0, "result": format!("bar 1\n{home}\n") })
    );

    let session = format!("{toolbox}/process/session");
    assert_eq!(
        world.post(&session, json!({ "sessionId": "oc" })).await.0,
        201
    );
    let (status, ran) = world
        .post(
            &format!("{session}/oc/exec"),
            json!({ "command": "echo out; echo err >&2" }),
        )
        .await;
    assert_eq!(
        (status.as_u16(), &ran["stdout"], &ran["stderr"]),
        (200, &json!("out\n"), &json!("err\n"))
    );
    tools.check("SessionExecuteResponse", &ran);
    let logs = format!(
        "{session}/oc/command/{}/logs",
        ran["cmdId"].as_str().unwrap()
    );
    let logs = world
        .send(
            world
                .request(Method::GET, &logs)
                .header("x-daytona-sdk-version", "0.205.1"),
        )
        .await
        .1;
    tools.check("SessionCommandLogsResponse", &logs);
    assert_eq!(logs["output"], "\u{1}\u{1}\u{1}out\n\u{2}\u{2}\u{2}err\n");

    let (_, link) = world
        .get(&format!("/api/sandbox/{id}/ports/4096/preview-url"))
        .await;
    api.check("PortPreviewUrl", &link);
    assert_eq!(link["token"].as_str().unwrap().len(), 32);
    let (_, link) = world
        .get(&format!(
            "/api/sandbox/{id}/ports/4096/signed-preview-url?expiresInSeconds=60"
        ))
        .await;
    api.check("SignedPortPreviewUrl", &link);

    let (status, stopping) = world
        .post(&format!("/api/sandbox/{id}/stop?force=false"), json!({}))
        .await;
    assert_eq!(
        (status.as_u16(), &stopping["state"]),
        (200, &json!("stopping"))
    );
    world.reach(&id, "stopped").await;
    assert_eq!(
        world
            .post(&format!("/api/sandbox/{id}/archive"), json!({}))
            .await
            .1["state"],
        "archiving"
    );
    world.reach(&id, "archived").await;
    assert_eq!(
        world
            .post(&format!("/api/sandbox/{id}/start"), json!({}))
            .await
            .1["state"],
        "restoring"
    );
    world.reach(&id, "started").await;
    let (_, by_name) = world.get("/api/sandbox/bobbin-test-g1").await;
    assert_eq!(by_name["id"], json!(id));
    let (_, list) = world
        .get("/api/sandbox?limit=50&labels=%7B%22bobbin%22%3A%20%22test%22%7D")
        .await;
    api.check("ListSandboxesResponse", &list);
    assert_eq!(list["items"][0]["id"], json!(id));
    assert!(list["items"][0].get("env").is_none());

    let (status, conflict) = world.post("/api/sandbox", body).await;
    assert_eq!(status, 409);
    assert_eq!(
        conflict["message"],
        "Sandbox with name bobbin-test-g1 already exists"
    );
    assert_eq!(
        (&conflict["error"], &conflict["path"]),
        (&json!("Conflict"), &json!("/api/sandbox"))
    );
    assert_eq!(
        world
            .post(&format!("/api/sandbox/{id}/autostop/10"), json!({}))
            .await
            .1["autoStopInterval"],
        10
    );
    assert_eq!(
        world
            .send(world.request(Method::POST, &format!("/api/sandbox/{id}/last-activity")))
            .await
            .0,
        201
    );

    let (status, deleted) = world
        .send(world.request(Method::DELETE, &format!("/api/sandbox/{id}")))
        .await;
    api.check("Sandbox", &deleted);
    assert_eq!(
        (status.as_u16(), &deleted["state"]),
        (200, &json!("destroying"))
    );
    assert!(
        deleted["name"]
            .as_str()
            .unwrap()
            .starts_with("DESTROYED_bobbin-test-g1_")
    );
    assert_eq!(world.get("/api/sandbox/bobbin-test-g1").await.0, 404);
    world.gone(&id).await;
    wait_for("the directory's end", async || {
        !std::path::Path::new(&home).exists()
    })
    .await;
    world.end().await;
}

#[tokio::test]
async fn operations_answer_by_state() {
    let world = World::start("table").await;
    let id = world.sandbox("table").await;
    let call = async |verb: &str| {
        let (status, answer) = world
            .post(&format!("/api/sandbox/{id}/{verb}"), json!({}))
            .await;
        (
            status.as_u16(),
            answer["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(call("start").await.0, 200);
    assert_eq!(
        call("archive").await,
        (400, "Sandbox is not stopped".to_owned())
    );
    assert_eq!(call("recover").await.0, 400);
    world
        .arm(json!({ "fault": "hold_state", "state": "stopping", "ms": 300 }))
        .await;
    assert_eq!(call("stop").await.0, 200);
    assert_eq!(
        call("stop").await,
        (409, "Sandbox state change in progress".to_owned())
    );
    assert_eq!(call("start").await.0, 409);
    world.reach(&id, "stopped").await;
    assert_eq!(
        call("stop").await,
        (400, "Sandbox is not in a stoppable state".to_owned())
    );
    assert_eq!(call("archive").await.0, 200);
    world.reach(&id, "archived").await;
    assert_eq!(call("archive").await.0, 400);
    for verb in ["start", "stop", "archive", "recover"] {
        let (status, answer) = world
            .post(&format!("/api/sandbox/nobody/{verb}"), json!({}))
            .await;
        assert_eq!(
            (status.as_u16(), &answer["error"]),
            (404, &json!("Not Found")),
            "{verb}"
        );
    }
    world.end().await;
}

#[tokio::test]
async fn a_failed_start_leaves_a_sandbox_that_can_be_recovered() {
    let world = World::start("recover").await;
    world
        .arm(json!({ "fault": "fail_start", "recoverable": true }))
        .await;
    let (status, answer) = world.post("/api/sandbox", json!({ "name": "sick" })).await;
    assert_eq!(status, 400);
    assert!(
        answer["message"]
            .as_str()
            .unwrap()
            .starts_with("Sandbox failed to start: "),
        "{answer}"
    );
    let (_, seen) = world.get("/api/sandbox/sick").await;
    assert_eq!(
        (&seen["state"], &seen["recoverable"]),
        (&json!("error"), &json!(true))
    );
    assert_eq!(
        world.post("/api/sandbox/sick/start", json!({})).await.0,
        400
    );
    assert_eq!(
        world.post("/api/sandbox/sick/recover", json!({})).await.0,
        200
    );
    world.reach("sick", "started").await;

    world.arm(json!({ "fault": "fail_build" })).await;
    let build = json!({ "name": "broken", "buildInfo": { "dockerfileContent": "FROM x\n" } });
    let id = world.post("/api/sandbox", build).await.1["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world.reach(&id, "build_failed").await;
    world.end().await;
}

#[tokio::test]
async fn wrong_requests_are_refused_in_daytonas_words() {
    let world = World::start("refusals").await;
    let bare = world.http.get(format!("{}/api/sandbox", world.root()));
    let (status, answer) = world.send(bare).await;
    assert_eq!((status.as_u16(), &answer["statusCode"]), (401, &json!(401)));
    let wrong = world
        .http
        .get(format!("{}/toolbox/x/work-dir", world.root()))
        .bearer_auth("dtn_other");
    let (status, answer) = world.send(wrong).await;
    assert_eq!(
        (status.as_u16(), &answer["code"]),
        (401, &json!("UNAUTHORIZED"))
    );
    let config = world.http.get(format!("{}/api/config", world.root()));
    let (status, answer) = world.send(config).await;
    assert_eq!(status, 200);
    Specification::read("daytona-api.json").check("DaytonaConfiguration", &answer);
    assert_eq!(world.get("/api/socket.io/?EIO=4").await.0, 404);

    let (status, answer) = world.get("/api/nothing").await;
    assert_eq!(
        (status.as_u16(), &answer["message"]),
        (404, &json!("Cannot GET /api/nothing"))
    );
    let (status, answer) = world
        .send(world.request(Method::PATCH, "/api/sandbox"))
        .await;
    assert_eq!(
        (status.as_u16(), &answer["message"]),
        (404, &json!("Cannot PATCH /api/sandbox"))
    );

    let build = json!({ "dockerfileContent": "FROM x\n" });
    for (body, text) in [
        (
            json!({ "snapshot": "a", "buildInfo": build }),
            "Cannot specify a snapshot when using a build info entry",
        ),
        (
            json!({ "cpu": 1 }),
            "Cannot specify Sandbox resources when using a snapshot",
        ),
        (
            json!({ "snapshot": "unheard-of" }),
            "Snapshot unheard-of not found",
        ),
        (
            json!({ "name": "<b>" }),
            "name must not contain HTML, URLs or control characters",
        ),
        (
            json!({ "labels": { "a": 1 } }),
            "the body is not as expected",
        ),
        (
            json!({ "env": { "A=B": "x" } }),
            "invalid environment variable name",
        ),
    ] {
        let (status, answer) = world.post("/api/sandbox", body).await;
        assert_eq!(status, 400);
        assert!(
            answer["message"].as_str().unwrap().contains(text),
            "{answer}"
        );
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
async fn a_list_is_walked_by_cursor_in_order_without_loss() {
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
    let first = world
        .get("/api/sandbox?limit=3&sort=name&order=asc")
        .await
        .1;
    assert_eq!(names(&first), ["list-0", "list-1", "list-2"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = world
        .get(&format!(
            "/api/sandbox?limit=3&sort=name&order=asc&cursor={cursor}"
        ))
        .await
        .1;
    assert_eq!(
        (names(&second), &second["nextCursor"]),
        (vec!["list-3".to_owned()], &Value::Null)
    );
    let labelled = world
        .get("/api/sandbox?sort=createdAt&order=desc&labels={\"kind\":\"a\"}")
        .await
        .1;
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
    assert_eq!(
        (names(&other), &other["nextCursor"]),
        (vec!["list-2".to_owned()], &Value::Null)
    );
    let neither = asked("{\"kind\":\"b\",\"tenant\":\"slack:T1\"}");
    assert!(names(&world.get(&neither).await.1).is_empty());
    let named = world.get("/api/sandbox?name=list-1").await.1;
    assert_eq!(names(&named), ["list-1"]);
    for name in ["list-0", "list-1", "list-2", "list-3"] {
        world.reach(name, "started").await;
    }
    let states = world
        .get("/api/sandbox?states=stopped&states=archived")
        .await
        .1;
    assert!(names(&states).is_empty());
    world.end().await;
}

#[tokio::test]
async fn snapshots_and_secrets_are_kept_and_secret_values_are_not() {
    let world = World::start("shelf").await;
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
    let id = world.post("/api/sandbox", body).await.1["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world.reach(&id, "started").await;
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
    assert_eq!(
        world.send(world.request(Method::DELETE, &path)).await.0,
        204
    );
    assert_eq!(
        world
            .send(world.request(Method::DELETE, "/api/snapshots/prepared"))
            .await
            .0,
        200
    );
    assert_eq!(world.get("/api/snapshots/prepared").await.0, 404);
    world.end().await;
}

#[tokio::test]
async fn a_restart_keeps_sandboxes_and_their_files_and_finds_them_stopped() {
    let folder = fresh_folder("restart");
    let world = World::with(settings(&folder)).await;
    let id = world.sandbox("kept").await;
    world.exec(&id, "echo work > file").await;
    let second = bobbin_local_daytona::Provider::start(settings(&folder)).await;
    assert!(
        matches!(second, Err(bobbin_local_daytona::Error::InUse(_))),
        "one provider at a time"
    );
    world.provider.stop().await;

    let world = World::with(settings(&folder)).await;
    let (_, seen) = world.get("/api/sandbox/kept").await;
    assert_eq!(
        (&seen["id"], &seen["state"]),
        (&json!(id), &json!("stopped"))
    );
    assert_eq!(
        world.post("/api/sandbox/kept/start", json!({})).await.0,
        200
    );
    world.reach(&id, "started").await;
    assert_eq!(world.exec(&id, "cat file").await["result"], "work\n");
    world.end().await;
}
