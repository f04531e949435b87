//! The client against a tiny server: every class of answer, and every body as Vercel's own client sends it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_test_server::{Reply, Server};
use serde_json::json;

use super::*;
use crate::provider::{Provider as _, Sandbox as Found, SandboxSpec};
use crate::vercel::{VercelSandboxes, VercelSettings};

fn account(server: &Server) -> VercelAccount {
    VercelAccount {
        api: format!("{}/api", server.base()),
        token: "vcp_secret".to_owned(),
        team: "team_1".to_owned(),
        project: "prj_1".to_owned(),
    }
}

async fn answering(replies: Vec<Reply>) -> (Server, Vercel) {
    let server = Server::answering(replies).await;
    let client = Vercel::new(account(&server)).unwrap();
    (server, client)
}

fn sandboxes(server: &Server) -> VercelSandboxes {
    VercelSandboxes::new(VercelSettings {
        account: account(server),
        stack: "dev".to_owned(),
        stack_id: "a".to_owned(),
        image: String::new(),
        ports: vec![4096],
        limits: SandboxLimits::DEFAULT,
    })
    .unwrap()
}

fn told(status: &str) -> Value {
    json!({
        "sandbox": {"name": "n", "status": status, "createdAt": 1, "tags": {}, "currentSessionId": "se_1", "surprise": 1},
        "session": {"id": "se_1", "status": status, "timeout": 60_000, "createdAt": 1, "cwd": "/vercel/sandbox"},
        "routes": [{"url": "https://n.vercel.run", "subdomain": "n", "port": 4096}],
    })
}

fn refused(status: u16, code: &str, message: &str) -> Reply {
    let body = json!({"error": {"code": code, "message": message}});
    Reply::json(status, &body)
}

fn lines(lines: &[Value]) -> Reply {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Reply::new(200, "application/x-ndjson", text)
}

fn running() -> Found {
    serde_json::from_value::<SandboxAnswer>(told("running")).unwrap().into()
}

#[tokio::test]
async fn vercel_answers_are_classified() {
    let table = [
        (refused(401, "unauthorized", "Not authorized"), "non_recoverable"),
        (refused(403, "forbidden", "No"), "non_recoverable"),
        (refused(402, "payment_required", "Pay"), "non_recoverable"),
        (refused(404, "not_found", "Sandbox not found: n"), "sandbox_gone"),
        (refused(400, "bad_request", "no such thing"), "non_recoverable"),
        (
            refused(
                400,
                "bad_request",
                "A sandbox with the name 'n' already exists for this project.",
            ),
            "wait",
        ),
        (refused(410, "sandbox_stopped", "Sandbox is stopped"), "sandbox_down"),
        (refused(410, "snapshot_not_found", "Snapshot not found"), "sandbox_gone"),
        (refused(422, "sandbox_stopping", "Stopping"), "wait"),
        (refused(422, "sandbox_snapshotting", "Snapshotting"), "wait"),
        (refused(429, "rate_limited", "Slow down").with("retry-after", "7"), "wait"),
        (refused(500, "internal", "Oh"), "outage"),
        (Reply::new(404, "text/html", "<h1>Not found</h1>"), "outage"),
        (Reply::new(502, "text/html", "<h1>Bad gateway</h1>"), "outage"),
        (Reply::new(200, "text/html", "<h1>Log in</h1>"), "outage"),
        (Reply::new(307, "", "").with("location", "/login"), "outage"),
        (Reply::json(200, &json!({"sandbox": 1})), "outage"),
    ];
    for (reply, class) in table {
        let (_server, client) = answering(vec![reply.clone()]).await;
        let error = client.observe("n").await.expect_err("an error");
        let failure = serde_json::to_value(error.failure()).unwrap();
        assert_eq!(failure["class"], class, "{reply:?}: {error:?}");
        if reply.status == 429 {
            assert_eq!(error, VercelError::RateLimited { after_ms: 7_000 });
        }
    }
    let (server, client) = answering(Vec::new()).await;
    drop(server);
    let silent = client.observe("n").await.expect_err("nobody listens");
    assert!(matches!(silent.failure(), Failure::Outage { .. }));
    assert!(matches!(InSandbox(silent).failure(), Failure::SandboxDown { .. }));
}

#[tokio::test]
async fn calls_name_team_and_project() {
    let (server, client) = answering(vec![Reply::json(200, &told("running"))]).await;
    client.observe("a/b").await.unwrap();
    client.start("n").await.unwrap();
    client.delete("n").await.unwrap();
    client.stop("se_1").await.unwrap();
    client.extend("se_1", 5_000).await.unwrap();
    let lines = server.lines();
    assert_eq!(
        lines,
        [
            "GET /api/v2/sandboxes/a%2Fb?teamId=team_1&projectId=prj_1",
            "GET /api/v2/sandboxes/n?teamId=team_1&projectId=prj_1&resume=true",
            "DELETE /api/v2/sandboxes/n?teamId=team_1&projectId=prj_1&deleteOrphanSnapshots=true",
            "POST /api/v2/sandboxes/sessions/se_1/stop?teamId=team_1",
            "POST /api/v2/sandboxes/sessions/se_1/extend-timeout?teamId=team_1",
        ]
    );
    let received = server.received();
    assert!(received.iter().all(|one| one.headers["authorization"] == "Bearer vcp_secret"));
    assert_eq!(received[4].json(), json!({"duration": 5_000}));
}

#[tokio::test]
async fn create_request_has_vercels_shape() {
    let (server, _) = answering(vec![Reply::json(200, &told("pending"))]).await;
    let key = ThreadKey::discord("1", "2").unwrap().sandbox();
    let none = BTreeMap::new();
    let spec = SandboxSpec { secrets: &none, snapshot: None };
    let made = sandboxes(&server).create(&key, 3, spec).await;
    assert_eq!(made, Ok(SandboxState::Provisioning));
    let sent = &server.received()[0];
    assert_eq!(sent.line, "POST /api/v3/sandboxes?teamId=team_1");
    let name = bobbin_core::base::names::sandbox_name("dev", &key, 3);
    assert_eq!(
        sent.json(),
        json!({
            "projectId": "prj_1", "name": name, "ports": [4096], "timeout": 7_200_000, "resources": {"vcpus": 2},
            "persistent": true, "snapshotExpiration": 0, "keepLastSnapshots": {"count": 1, "expiration": 0},
            "tags": {"bobbin": "dev", "stack": "a", "thread": key.to_string(), "tenant": "discord:1"},
        })
    );
}

#[tokio::test]
async fn prefix_listing_reads_bounded_pages() {
    let page = |name: &str, created: u64, next: Value| {
        let one = json!({"name": name, "status": "stopped", "createdAt": created});
        let body = json!({"sandboxes": [one], "pagination": {"count": 1, "next": next}});
        Reply::json(200, &body)
    };
    let (server, client) = answering(vec![
        page("bobbin-dev-a-g1", 2, json!("c1")),
        page("bobbin-dev-b-g1", 1, Value::Null),
    ])
    .await;
    let found = client.list("bobbin-dev-").await.unwrap();
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["bobbin-dev-b-g1", "bobbin-dev-a-g1"], "in order of creation");
    let lines = server.lines();
    assert_eq!(
        lines[0],
        "GET /api/v2/sandboxes?teamId=team_1&project=prj_1&limit=50&namePrefix=bobbin-dev-&sortBy=name&sortOrder=asc"
    );
    assert!(lines[1].ends_with("&cursor=c1") && lines.len() == 2);
    let endless = page("bobbin-dev-a-g1", 1, json!("more"));
    let (server, client) = answering(vec![endless]).await;
    assert_eq!(client.list("bobbin-dev-").await.unwrap().len(), PAGES_MAX);
    assert_eq!(server.received().len(), PAGES_MAX, "a list without end");
}

#[tokio::test]
async fn command_stream_becomes_output_or_error() {
    let began = json!({"command": {"id": "cmd_1", "exitCode": null}});
    let ended = json!({"command": {"id": "cmd_1", "exitCode": 3}});
    let said = |stream: &str, data: Value| json!({"stream": stream, "data": data});
    let out = lines(&[
        began.clone(),
        said("stdout", json!("one ")),
        said("stderr", json!("zwei")),
        ended.clone(),
    ]);
    let (server, _) = answering(vec![out]).await;
    let env = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
    let ran =
        sandboxes(&server).exec(&running(), "exit 3", &env, Duration::from_secs(2)).await.unwrap();
    assert_eq!((ran.exit_code, ran.text.as_str()), (3, "one zwei"));
    let sent = &server.received()[0];
    assert_eq!(sent.line, "POST /api/v2/sandboxes/sessions/se_1/cmd?teamId=team_1");
    assert_eq!(
        sent.json(),
        json!({
            "command": "bash", "args": ["-c", "exit 3"], "env": {"A": "b"}, "sudo": false, "wait": true, "logs": true,
            "timeout": 7_000,
        })
    );
    let stopped =
        said("error", json!({"code": "sandbox_stopped", "message": "Sandbox is stopped"}));
    let broken = Reply::new(200, "application/x-ndjson", "{\"command\":\n");
    for (reply, words) in [
        (lines(&[began.clone(), stopped]), "the sandbox's session has ended: Sandbox is stopped"),
        (
            lines(&[began]),
            "the command's output broke off: the stream ended before the command did",
        ),
        (broken, "the command's output broke off: a line that is not JSON"),
        (refused(410, "sandbox_stopped", "Stopped"), "the sandbox's session has ended: Stopped"),
        (refused(404, "not_found", "Session not found"), "Vercel does not know this object"),
        (
            Reply::new(200, "text/html", "<h1>Hi</h1>"),
            "Vercel is not answering properly (200): text/html instead of a stream",
        ),
    ] {
        let (server, _) = answering(vec![reply]).await;
        let error = sandboxes(&server)
            .exec(&running(), "true", &env, Duration::from_secs(2))
            .await
            .unwrap_err();
        assert_eq!(error.seen, words);
        assert!(matches!(error.failure, Failure::SandboxDown { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn files_are_sent_as_one_archive() {
    let (server, _) = answering(vec![Reply::json(200, &json!({}))]).await;
    let long = format!("{}/file.txt", "folder/".repeat(30));
    let files = vec![("a/b.txt".to_owned(), b"one".to_vec()), (long.clone(), Vec::new())];
    sandboxes(&server).put_files(&running(), files).await.unwrap();
    let sent = &server.received()[0];
    assert_eq!(sent.line, "POST /api/v2/sandboxes/sessions/se_1/fs/write?teamId=team_1");
    assert_eq!(sent.headers["content-type"], "application/gzip");
    assert_eq!(sent.headers["x-cwd"], "/vercel/sandbox");
    let unpacked = flate2::read::GzDecoder::new(sent.body.as_slice());
    let mut archive = tar::Archive::new(unpacked);
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        found.insert(path, bytes);
    }
    assert_eq!(found["a/b.txt"], b"one");
    assert!(found.len() == 2 && found.keys().any(|path| path.contains("folder/folder")));

    let page = Reply::new(200, "text/html", "<h1>Hi</h1>");
    let (server, _) = answering(vec![page]).await;
    let error = sandboxes(&server).get_file(&running(), "a").await;
    let error = error.unwrap_err();
    assert!(error.seen.contains("text/html instead of a file"), "{error}");
}

#[tokio::test]
async fn token_is_sent_only_to_vercel() {
    let (server, client) = answering(vec![refused(403, "forbidden", "No")]).await;
    let error = client.observe("n").await.unwrap_err();
    assert!(!format!("{error} {error:?} {client:?}").contains("vcp_secret"));
    let elsewhere =
        VercelAccount { api: "http://vercel.example/api".to_owned(), ..account(&server) };
    assert!(matches!(Vercel::new(elsewhere), Err(HttpError::Refused { .. })));
}
