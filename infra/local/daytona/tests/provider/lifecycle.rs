use reqwest::Method;
use serde_json::json;

use crate::world::{Specification, World, fresh_folder, settings, wait_for};

#[tokio::test]
async fn lifecycle_answers_match_daytonas_specification() {
    let world = World::start("walk").await;
    let (api, tools) =
        (Specification::read("daytona-api.json"), Specification::read("daytona-toolbox.json"));
    let body = json!({
        "name": "bobbin-test-g1", "buildInfo": { "contextHashes": [], "dockerfileContent": "FROM node:22\n" },
        "env": { "FOO": "bar" }, "labels": { "bobbin": "test" }, "target": "us", "cpu": 2, "memory": 4, "disk": 8,
        "autoStopInterval": 120, "volumes": [], "somethingNew": { "is": "ignored" },
    });
    let (status, created) = world.post("/api/sandbox", body.clone()).await;
    assert_eq!((status.as_u16(), &created["state"]), (200, &json!("pending_build")));
    api.check("Sandbox", &created);
    assert_eq!(
        (&created["kvm"], &created["spot"], &created["cpu"]),
        (&json!(false), &json!(false), &json!(2))
    );
    let id = created["id"].as_str().unwrap().to_owned();
    let started = world.reach(&id, "started").await;
    api.check("Sandbox", &started);
    let toolbox =
        started["toolboxProxyUrl"].as_str().unwrap().trim_start_matches(&world.root()).to_owned();
    let toolbox = format!("{toolbox}/{id}");

    let command = json!({ "command": "echo $FOO $A; pwd", "envs": { "A": "1" }, "timeout": 10 });
    let (_, ran) = world.post(&format!("{toolbox}/process/execute"), command).await;
    tools.check("ExecuteResponse", &ran);
    let home = world.provider.sandboxes()[0].dir.display().to_string();
    assert_eq!(ran, json!({ "exitCode": 0, "result": format!("bar 1\n{home}\n") }));

    let session = format!("{toolbox}/process/session");
    assert_eq!(world.post(&session, json!({ "sessionId": "oc" })).await.0, 201);
    let (status, ran) = world
        .post(&format!("{session}/oc/exec"), json!({ "command": "echo out; echo err >&2" }))
        .await;
    assert_eq!(
        (status.as_u16(), &ran["stdout"], &ran["stderr"]),
        (200, &json!("out\n"), &json!("err\n"))
    );
    tools.check("SessionExecuteResponse", &ran);
    let logs = format!("{session}/oc/command/{}/logs", ran["cmdId"].as_str().unwrap());
    let logs = world
        .send(world.request(Method::GET, &logs).header("x-daytona-sdk-version", "0.205.1"))
        .await
        .1;
    tools.check("SessionCommandLogsResponse", &logs);
    assert_eq!(logs["output"], "\u{1}\u{1}\u{1}out\n\u{2}\u{2}\u{2}err\n");

    let (_, link) = world.get(&format!("/api/sandbox/{id}/ports/4096/preview-url")).await;
    api.check("PortPreviewUrl", &link);
    assert_eq!(link["token"].as_str().unwrap().len(), 32);
    let (_, link) = world
        .get(&format!("/api/sandbox/{id}/ports/4096/signed-preview-url?expiresInSeconds=60"))
        .await;
    api.check("SignedPortPreviewUrl", &link);

    let (status, stopping) =
        world.post(&format!("/api/sandbox/{id}/stop?force=false"), json!({})).await;
    assert_eq!((status.as_u16(), &stopping["state"]), (200, &json!("stopping")));
    world.reach(&id, "stopped").await;
    assert_eq!(
        world.post(&format!("/api/sandbox/{id}/archive"), json!({})).await.1["state"],
        "archiving"
    );
    world.reach(&id, "archived").await;
    assert_eq!(
        world.post(&format!("/api/sandbox/{id}/start"), json!({})).await.1["state"],
        "restoring"
    );
    world.reach(&id, "started").await;
    let (_, by_name) = world.get("/api/sandbox/bobbin-test-g1").await;
    assert_eq!(by_name["id"], json!(id));
    let (_, list) =
        world.get("/api/sandbox?limit=50&labels=%7B%22bobbin%22%3A%20%22test%22%7D").await;
    api.check("ListSandboxesResponse", &list);
    assert_eq!(list["items"][0]["id"], json!(id));
    assert!(list["items"][0].get("env").is_none());

    let (status, conflict) = world.post("/api/sandbox", body).await;
    assert_eq!(status, 409);
    assert_eq!(conflict["message"], "Sandbox with name bobbin-test-g1 already exists");
    assert_eq!(
        (&conflict["error"], &conflict["path"]),
        (&json!("Conflict"), &json!("/api/sandbox"))
    );
    assert_eq!(
        world.post(&format!("/api/sandbox/{id}/autostop/10"), json!({})).await.1["autoStopInterval"],
        10
    );
    assert_eq!(
        world
            .send(world.request(Method::POST, &format!("/api/sandbox/{id}/last-activity")))
            .await
            .0,
        201
    );

    let (status, deleted) =
        world.send(world.request(Method::DELETE, &format!("/api/sandbox/{id}"))).await;
    api.check("Sandbox", &deleted);
    assert_eq!((status.as_u16(), &deleted["state"]), (200, &json!("destroying")));
    assert!(deleted["name"].as_str().unwrap().starts_with("DESTROYED_bobbin-test-g1_"));
    assert_eq!(world.get("/api/sandbox/bobbin-test-g1").await.0, 404);
    world.gone(&id).await;
    wait_for("the directory's end", async || !std::path::Path::new(&home).exists()).await;
    world.end().await;
}

#[tokio::test]
async fn operations_answer_by_state() {
    let world = World::start("table").await;
    let id = world.sandbox("table").await;
    let call = async |verb: &str| {
        let (status, answer) = world.post(&format!("/api/sandbox/{id}/{verb}"), json!({})).await;
        (status.as_u16(), answer["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(call("start").await.0, 200);
    assert_eq!(call("archive").await, (400, "Sandbox is not stopped".to_owned()));
    assert_eq!(call("recover").await.0, 400);
    world.arm(json!({ "fault": "hold_state", "state": "stopping", "ms": 300 })).await;
    assert_eq!(call("stop").await.0, 200);
    assert_eq!(call("stop").await, (409, "Sandbox state change in progress".to_owned()));
    assert_eq!(call("start").await.0, 409);
    world.reach(&id, "stopped").await;
    assert_eq!(call("stop").await, (400, "Sandbox is not in a stoppable state".to_owned()));
    assert_eq!(call("archive").await.0, 200);
    world.reach(&id, "archived").await;
    assert_eq!(call("archive").await.0, 400);
    for verb in ["start", "stop", "archive", "recover"] {
        let (status, answer) = world.post(&format!("/api/sandbox/nobody/{verb}"), json!({})).await;
        assert_eq!((status.as_u16(), &answer["error"]), (404, &json!("Not Found")), "{verb}");
    }
    world.end().await;
}

#[tokio::test]
async fn failed_start_can_be_recovered() {
    let world = World::start("recover").await;
    world.arm(json!({ "fault": "fail_start", "recoverable": true })).await;
    let (status, answer) = world.post("/api/sandbox", json!({ "name": "sick" })).await;
    assert_eq!(status, 400);
    assert!(
        answer["message"].as_str().unwrap().starts_with("Sandbox failed to start: "),
        "{answer}"
    );
    let (_, seen) = world.get("/api/sandbox/sick").await;
    assert_eq!((&seen["state"], &seen["recoverable"]), (&json!("error"), &json!(true)));
    assert_eq!(world.post("/api/sandbox/sick/start", json!({})).await.0, 400);
    world.act("sick", "recover").await;
    world.reach("sick", "started").await;

    world.arm(json!({ "fault": "fail_build" })).await;
    let build = json!({ "name": "broken", "buildInfo": { "dockerfileContent": "FROM x\n" } });
    let id = world.post("/api/sandbox", build).await.1["id"].as_str().unwrap().to_owned();
    world.reach(&id, "build_failed").await;
    world.end().await;
}

#[tokio::test]
async fn restart_keeps_sandboxes_stopped_with_files() {
    let folder = fresh_folder("restart");
    let world = World::with(settings(&folder)).await;
    let id = world.sandbox("kept").await;
    world.exec(&id, "echo work > file").await;
    let second = bobbin_local_daytona::LocalDaytona::start(settings(&folder)).await;
    assert!(
        matches!(
            second,
            Err(bobbin_local_daytona::StartError::Machine(
                bobbin_local_daytona::MachineError::InUse(_)
            ))
        ),
        "one provider at a time"
    );
    world.provider.stop().await;

    let world = World::with(settings(&folder)).await;
    let (_, seen) = world.get("/api/sandbox/kept").await;
    assert_eq!((&seen["id"], &seen["state"]), (&json!(id), &json!("stopped")));
    world.act("kept", "start").await;
    world.reach(&id, "started").await;
    assert_eq!(world.exec(&id, "cat file").await["result"], "work\n");
    world.end().await;
}
