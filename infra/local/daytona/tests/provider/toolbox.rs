use reqwest::Method;
use serde_json::json;

use crate::world::{Specification, World, wait_for};

#[tokio::test]
async fn timed_out_command_dies_with_children() {
    let world = World::start("timeout").await;
    let id = world.sandbox("timeout").await;
    let body = json!({ "command": "sleep 300 & sleep 300", "timeout": 1 });
    let (status, answer) = world.post(&format!("/toolbox/{id}/process/execute"), body).await;
    assert_eq!((status.as_u16(), &answer["code"]), (408, &json!("PROCESS_EXECUTION_TIMEOUT")));
    assert_eq!((&answer["path"], &answer["method"]), (&json!("/process/execute"), &json!("POST")));
    let count = world.exec(&id, "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep -c '^sleep 300'; true");
    assert_eq!(count.await["result"], "0\n");
    world.end().await;
}

#[tokio::test]
async fn exec_returns_code_and_both_streams() {
    let world = World::start("exec").await;
    let id = world.sandbox("exec").await;
    let ran = world.exec(&id, "echo one; echo two >&2; echo three; exit 7").await;
    assert_eq!(ran, json!({ "exitCode": 7, "result": "one\ntwo\nthree\n" }));
    let path = format!("/toolbox/{id}/process/execute");
    world.exec(&id, "mkdir -p deep/er").await;
    let (_, ran) = world
        .post(&path, json!({ "command": "basename $PWD", "cwd": "deep/er", "timeout": 5 }))
        .await;
    assert_eq!(ran["result"], "er\n");
    let (status, ran) =
        world.post(&path, json!({ "command": "true", "cwd": "nowhere", "timeout": 5 })).await;
    assert_eq!((status.as_u16(), &ran["exitCode"]), (200, &json!(-1)));
    for body in [
        json!({ "command": "  " }),
        json!({ "command": "true", "envs": { "1A": "x" } }),
        json!({ "command": 1 }),
    ] {
        let (status, answer) = world.post(&path, body).await;
        assert_eq!((status.as_u16(), &answer["code"]), (400, &json!("BAD_REQUEST")));
    }
    let long = format!("echo {}", "x".repeat(300_000));
    assert_eq!(world.exec(&id, &long).await["result"].as_str().unwrap().len(), 300_001);

    world.act(&id, "stop").await;
    let (status, answer) = world.post(&path, json!({ "command": "true" })).await;
    assert_eq!(status, 400);
    assert!(answer["message"].as_str().unwrap().contains("Is the Sandbox started?"), "{answer}");
    let (status, answer) =
        world.post("/toolbox/nobody/process/execute", json!({ "command": "true" })).await;
    assert_eq!(status, 404);
    assert!(
        answer["message"].as_str().unwrap().contains("sandbox container not found"),
        "{answer}"
    );
    world.end().await;
}

#[tokio::test]
async fn host_environment_is_invisible_inside() {
    let world = World::start("environment").await;
    let id = world.sandbox("environment").await;
    let seen = world.exec(&id, "env").await["result"].as_str().unwrap().to_owned();
    // Cargo sets this for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!seen.contains("CARGO"), "{seen}");
    let view = &world.provider.sandboxes()[0];
    assert!(seen.contains(&format!("OPENCODE_PORT={}\n", view.port)), "{seen}");
    assert!(seen.contains(&format!("HOME={}\n", view.dir.display())), "{seen}");
    world.end().await;
}

#[tokio::test]
async fn session_keeps_its_shell_state() {
    let world = World::start("session").await;
    let tools = Specification::read("daytona-toolbox.json");
    let id = world.sandbox("session").await;
    let base = format!("/toolbox/{id}/process/session");
    assert_eq!(world.post(&base, json!({ "sessionId": "s" })).await.0, 201);
    assert_eq!(world.post(&base, json!({ "sessionId": "s" })).await.0, 409);
    let exec = format!("{base}/s/exec");
    world.post(&exec, json!({ "command": "mkdir -p sub; cd sub; X=5" })).await;
    let (_, ran) = world.post(&exec, json!({ "command": "basename $PWD; echo $X" })).await;
    assert_eq!((&ran["stdout"], &ran["exitCode"]), (&json!("sub\n5\n"), &json!(0)));

    let (status, begun) = world
        .post(&exec, json!({ "command": "read line; echo got $line", "runAsync": true }))
        .await;
    assert_eq!(status, 202);
    let command = format!("{base}/s/command/{}", begun["cmdId"].as_str().unwrap());
    assert!(world.get(&command).await.1.get("exitCode").is_none());
    assert_eq!(world.post(&format!("{command}/input"), json!({ "data": "word\n" })).await.0, 204);
    wait_for("the command's end", async || world.get(&command).await.1["exitCode"] == 0).await;
    let logs = world
        .request(Method::GET, &format!("{command}/logs"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(logs, "got word\n");
    assert_eq!(world.post(&format!("{command}/input"), json!({ "data": "late\n" })).await.0, 410);
    let (_, session) = world.get(&format!("{base}/s")).await;
    tools.check("Session", &session);
    assert_eq!(session["commands"].as_array().unwrap().len(), 3);

    let (_, ran) = world.post(&exec, json!({ "command": "exit 3" })).await;
    assert_eq!(ran["exitCode"], 3);
    assert_eq!(world.post(&exec, json!({ "command": "true" })).await.0, 410);
    assert_eq!(world.delete(&format!("{base}/s")).await, 204);
    assert_eq!(world.get(&format!("{base}/s")).await.0, 404);
    world.end().await;
}

#[tokio::test]
async fn toolbox_tells_folders_and_open_ports() {
    let world = World::sharing("where").await;
    let id = world.sandbox("where").await;
    let home = json!({ "dir": world.provider.sandboxes()[0].dir });
    assert_eq!(world.get(&format!("/toolbox/{id}/work-dir")).await.1, home);
    assert_eq!(world.get(&format!("/toolbox/{id}/user-home-dir")).await.1, home);
    world.answers(&format!("/toolbox/{id}/port/4096/in-use"), json!({ "isInUse": false })).await;
    let port = world.provider.sandboxes()[0].port;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    world.answers(&format!("/toolbox/{id}/port/4096/in-use"), json!({ "isInUse": true })).await;
    drop(listener);
    assert_eq!(world.get(&format!("/toolbox/{id}/port/80/in-use")).await.0, 400);
    world.answers(&format!("/toolbox/{id}/port"), json!({ "ports": [] })).await;
    world.end().await;
}
