//! The client against a tiny server: every class of answer, and every body against Daytona's own description.

#![allow(clippy::unwrap_used)]

use crate::provider::SecretStore;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::sandbox::SandboxState as State;
use bobbin_test_server::{Reply, Server};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::daytona::{DaytonaSandboxes, DaytonaSettings, SourceImage};
use crate::labels::StackIdentity;
use crate::{Deletion, ErrorKind, Facts, Provider as _, SnapshotName, SnapshotState, provider};

async fn answering(replies: Vec<Reply>) -> (Server, Daytona) {
    let server = Server::answering(replies).await;
    let client = Daytona::new(&format!("{}/api", server.base()), "dtn_test").unwrap();
    (server, client)
}

fn sandbox_at(server: &Server) -> provider::Sandbox {
    let toolbox = format!("{}/toolbox", server.base());
    let told = json!({"id": "id-1", "name": "n", "toolboxProxyUrl": toolbox});
    serde_json::from_value::<DaytonaSandbox>(told).unwrap().into()
}

fn reply(status: u16, body: Value) -> Reply {
    let kind = "application/json; charset=utf-8";
    Reply::new(status, kind, body.to_string())
}

fn said(status: u16, message: &str) -> Reply {
    reply(status, json!({"statusCode": status, "message": message}))
}

#[tokio::test]
async fn daytona_answers_are_classified() {
    let html = |status| Reply::new(status, "text/html", "<html>Bad gateway</html>");
    let waiting = reply(429, json!({})).with("retry-after-sandbox-lifecycle", "7");
    let table: Vec<(Reply, &str)> = vec![
        (said(401, "Unauthorized"), "non_recoverable"),
        (said(403, "suspended"), "non_recoverable"),
        (said(404, "not found"), "sandbox_gone"),
        (said(409, "Sandbox state change in progress"), "wait"),
        (said(400, "Total disk limit exceeded"), "non_recoverable"),
        (said(400, "bad request: Is the Sandbox started?"), "sandbox_down"),
        (said(400, "failed to get runner info: x"), "sandbox_down"),
        (said(500, "Internal server error"), "outage"),
        (html(502), "outage"),
        (html(200), "outage"),
        (html(404), "outage"),
        (Reply::new(307, "text/plain", "").with("location", "/login"), "outage"),
        (Reply::new(502, "text/plain", ""), "outage"),
        (reply(200, json!({"id": 1})), "outage"),
        (waiting.clone(), "wait"),
    ];
    for (answer, class) in table {
        let (_server, client) = answering(vec![answer.clone()]).await;
        let error = client.observe("n").await.expect_err("an error");
        let failure = serde_json::to_value(error.failure()).unwrap();
        assert_eq!(failure["class"], class, "{answer:?}: {error:?}");
    }
    let (_server, client) = answering(vec![waiting]).await;
    assert_eq!(client.observe("n").await, Err(DaytonaError::RateLimited { after_ms: 7000 }));
}

#[tokio::test]
async fn unreachable_toolbox_is_no_outage() {
    let (server, client) = answering(vec![reply(200, json!({}))]).await;
    let sandbox = sandbox_at(&server);
    drop(server);
    let error = client.observe("n").await.expect_err("nobody listens");
    assert!(matches!(error.failure(), Failure::Outage { .. }), "{error:?}");
    let run = client.exec(&sandbox, "true", &BTreeMap::new(), Duration::from_secs(1)).await;
    assert!(matches!(run.expect_err("nobody listens").failure(), Failure::SandboxDown { .. }));
}

#[tokio::test]
async fn proxy_answer_never_means_sandbox_gone() {
    let (server, client) =
        answering(vec![said(404, "not found: sandbox container not found x")]).await;
    let run =
        client.exec(&sandbox_at(&server), "true", &BTreeMap::new(), Duration::from_secs(1)).await;
    assert!(matches!(run.expect_err("404").failure(), Failure::SandboxDown { .. }));
}

#[tokio::test]
async fn calls_carry_key_and_protocol_version() {
    let sandbox = json!({"id": "id-1", "name": "n", "state": "started"});
    let (server, client) = answering(vec![reply(200, sandbox)]).await;
    client.observe("a/b").await.unwrap();
    client.start("n").await.unwrap();
    client.stop("n").await.unwrap();
    client.recover("n").await.unwrap();
    client.delete("n").await.unwrap();
    let lines = server.lines();
    assert_eq!(
        lines,
        [
            "GET /api/sandbox/a%2Fb",
            "POST /api/sandbox/n/start",
            "POST /api/sandbox/n/stop?force=false",
            "POST /api/sandbox/n/recover?skipStart=false",
            "DELETE /api/sandbox/n",
        ]
    );
    for seen in server.received() {
        assert_eq!(seen.headers["authorization"], "Bearer dtn_test");
        assert_eq!(seen.headers["x-daytona-sdk-version"], PROTOCOL_VERSION);
    }
}

#[tokio::test]
async fn listing_reads_every_page() {
    let page = |name: &str, next: Value| {
        reply(200, json!({"items": [{"id": name, "name": name}], "nextCursor": next}))
    };
    let (server, client) = answering(vec![page("a", json!("c1")), page("b", Value::Null)]).await;
    let found = client.list(&[("bobbin".to_owned(), "dev".to_owned())].into()).await.unwrap();
    assert_eq!(found.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let lines = server.lines();
    assert_eq!(
        lines[0],
        "GET /api/sandbox?limit=200&labels=%7B%22bobbin%22%3A%22dev%22%7D&sort=createdAt&order=asc"
    );
    assert!(lines[1].ends_with("&cursor=c1"));
}

#[tokio::test]
async fn tenant_count_skips_destroyed_sandboxes() {
    let item = |state: &str, tenant: &str| {
        let labels = json!({"bobbin": "dev", "tenant": tenant, "thread": "t"});
        json!({"id": "i", "name": "n", "state": state, "labels": labels})
    };
    let ours = "discord:1";
    let first = json!({"nextCursor": "c1", "items": [
        item("started", ours), item("archived", ours), item("destroying", ours), item("error", ours),
    ]});
    let second = json!({"nextCursor": null, "items": [
        item("creating", ours), item("destroyed", ours), item("started", "discord:2"),
        {"id": "i", "name": "n", "state": "started"},
    ]});
    let (server, client) = answering(vec![reply(200, first), reply(200, second)]).await;
    let listed =
        client.of_tenant(StackIdentity { name: "dev", id: "a" }, &ours.parse().unwrap()).await;
    assert_eq!(listed.map(|all| all.len()), Ok(4));
    let lines = server.lines();
    assert_eq!(
        lines[0],
        "GET /api/sandbox?limit=200&labels=%7B%22bobbin%22%3A%22dev%22%2C%22tenant%22%3A%22discord%3A1%22%7D&sort=createdAt&order=asc"
    );
    assert!(lines[1].ends_with("&cursor=c1") && lines.len() == 2);
}

#[tokio::test]
async fn endless_listing_count_is_bounded() {
    let item = json!({"id": "i", "name": "n", "state": "started", "labels": {"bobbin": "dev", "tenant": "slack:T1"}});
    let page = json!({"items": [item], "nextCursor": "more"});
    let (server, client) = answering(vec![reply(200, page)]).await;
    assert_eq!(
        client
            .of_tenant(StackIdentity { name: "dev", id: "a" }, &Tenant::slack("T1"))
            .await
            .map(|all| all.len()),
        Ok(COUNT_PAGES_MAX)
    );
    assert_eq!(server.received().len(), COUNT_PAGES_MAX);
}

#[tokio::test]
async fn toolbox_is_called_by_sandbox_id() {
    let (server, client) = answering(vec![reply(200, json!({"exitCode": 3, "result": "x"}))]).await;
    let env = [("A".to_owned(), "1".to_owned())].into();
    let ran =
        client.exec(&sandbox_at(&server), "false", &env, Duration::from_secs(5)).await.unwrap();
    assert_eq!((ran.exit_code, ran.result.as_str()), (3, "x"));
    client
        .put_files(&sandbox_at(&server), vec![("a/b.txt".into(), b"hello".to_vec())])
        .await
        .unwrap();
    client.get_file(&sandbox_at(&server), "a/b.txt").await.unwrap();
    let seen = server.received();
    assert_eq!(seen[0].line, "POST /toolbox/id-1/process/execute");
    assert_eq!(seen[0].json(), json!({"command": "false", "timeout": 5, "envs": {"A": "1"}}));
    let form = String::from_utf8_lossy(&seen[1].body).into_owned();
    assert!(form.find("files[0].path").unwrap() < form.find("files[0].file").unwrap(), "{form}");
    assert_eq!(seen[2].line, "GET /toolbox/id-1/files/download?path=a%2Fb.txt");
}

#[tokio::test]
async fn private_toolbox_address_is_refused() {
    let (server, client) =
        answering(vec![reply(200, json!({"url": "http://10.0.0.1/toolbox"}))]).await;
    let mut sandbox = sandbox_at(&server);
    sandbox.exec_base = None;
    let error = client.get_file(&sandbox, "x").await.expect_err("a private address");
    assert!(matches!(error.0, DaytonaError::Http(HttpError::Refused { .. })), "{error:?}");
    assert_eq!(server.received().len(), 1, "nothing went to the private address");
    assert_eq!(server.received()[0].line, "GET /api/sandbox/id-1/toolbox-proxy-url");
}

#[test]
fn request_bodies_match_daytonas_openapi() {
    let Some(spec) = bobbin_rules::description("daytona-api.strict.json") else {
        return;
    };
    let key = ThreadKey::discord("1", "2").unwrap().sandbox();
    for image in [SourceImage::Snapshot("s".into()), SourceImage::Dockerfile("FROM x\n".into())] {
        let body = CreateSandbox::new(
            StackIdentity { name: "dev", id: "a" },
            &key,
            1,
            &image,
            &SandboxLimits::DEFAULT,
        );
        bobbin_rules::conforms(&spec, "/components/schemas/CreateSandbox", &json!(body));
    }
    let kept =
        crate::daytona::prepared::SnapshotSandbox { name: "bobbin-dev-x-g1-at1-0a".to_owned() };
    let shape = "/components/schemas/CreateSandboxSnapshot";
    bobbin_rules::conforms(&spec, shape, &json!(kept));
    let shape = "/components/schemas/UpdateSandboxNetworkSettings";
    for hosts in [None, Some(&[][..]), Some(&["a.example.com".to_owned()][..])] {
        bobbin_rules::conforms(&spec, shape, &super::secrets::network_body(hosts));
    }
    let toolbox = bobbin_rules::description("daytona-toolbox.json").expect("beside the other");
    let body =
        execute_body("true", &[("A".to_owned(), "1".to_owned())].into(), Duration::from_secs(1));
    bobbin_rules::conforms(&toolbox, "/definitions/ExecuteRequest", &body);
}

#[tokio::test]
async fn a_network_is_limited_or_said_to_be_open() {
    let hosts = ["a.example.com".to_owned(), "*.b.example.com".to_owned()];
    let (server, sandboxes) = sandboxes(vec![
        reply(200, json!({"id": "id-1"})),
        said(403, "not with this tier"),
        said(400, "too many hosts"),
        said(500, "later"),
    ])
    .await;
    let sandbox = sandbox_at(&server);
    assert_eq!(sandboxes.limit_network(&sandbox, Some(&hosts)).await, Ok(true));
    assert_eq!(sandboxes.limit_network(&sandbox, Some(&hosts)).await, Ok(false));
    let refused = sandboxes.limit_network(&sandbox, Some(&hosts)).await;
    assert!(refused.is_err(), "what is refused is not left open");
    assert!(sandboxes.limit_network(&sandbox, None).await.is_err(), "it is asked again");
    assert_eq!(server.lines(), ["POST /api/sandbox/id-1/network-settings"; 4]);
}

#[tokio::test]
async fn a_sandboxes_removed_secrets_are_forgotten() {
    let dev = StackIdentity { name: "dev", id: "a" };
    let of = |sandbox, variable| super::super::secrets::secret_name(dev, None, sandbox, variable);
    let one =
        |id: &str, name: String| json!({"id": id, "name": name, "placeholder": "dtn_secret_x"});
    let all = json!([
        one("1", of(Some("n"), "KEPT")),
        one("2", of(Some("n"), "REMOVED")),
        one("3", of(Some("other"), "REMOVED")),
        one("4", of(None, "OPENAI_API_KEY")),
    ]);
    let listed = reply(200, json!({"items": all, "total": 4, "nextCursor": null}));
    let (server, sandboxes) = sandboxes(vec![listed, reply(204, json!({}))]).await;
    let store = sandboxes.facts().secrets.ok().unwrap();
    assert_eq!(store.forget("n", &["KEPT", "OPENAI_API_KEY"]).await, Ok(()));
    assert_eq!(server.lines()[1..], ["DELETE /api/secret/2"]);
}

#[tokio::test]
async fn refused_deletion_is_reported() {
    let (server, sandboxes) = sandboxes(vec![said(409, "it is being started")]).await;
    let refused = sandboxes.delete(Deletion::Found(&sandbox_at(&server))).await;
    let refused = refused.expect_err("it is still there");
    assert!(refused.seen.contains("it is being started"), "{refused}");
    let lines = server.lines();
    assert_eq!(lines, ["DELETE /api/sandbox/id-1"]);
}

#[tokio::test]
async fn destroy_deletes_despite_not_found() {
    let there = reply(200, json!({"id": "id-1", "name": "n", "state": "destroying"}));
    let not_found = said(404, "not found");
    let (server, provider) = sandboxes(vec![not_found.clone(), there.clone(), there]).await;
    assert_eq!(provider.delete(Deletion::Named("n")).await, Ok(State::Gone));
    assert_eq!(
        server.lines(),
        ["GET /api/sandbox/n", "DELETE /api/sandbox/n", "GET /api/sandbox/n"]
    );
    let (server, provider) = sandboxes(vec![not_found.clone(), not_found]).await;
    assert_eq!(provider.delete(Deletion::Named("n")).await, Ok(State::Gone));
    assert_eq!(server.lines().len(), 2, "the answer to the delete counts");
}

async fn sandboxes(replies: Vec<Reply>) -> (Server, DaytonaSandboxes) {
    let (server, _) = answering(replies).await;
    let settings = DaytonaSettings {
        api: format!("{}/api", server.base()),
        stack: "dev".to_owned(),
        stack_id: "a".to_owned(),
        image: SourceImage::Snapshot("s".to_owned()),
        limits: SandboxLimits::DEFAULT,
    };
    let sandboxes = DaytonaSandboxes::new(settings, "dtn_test").unwrap();
    (server, sandboxes)
}

fn of_a_sandbox() -> SnapshotName {
    let key = ThreadKey::discord("1", "2").unwrap().sandbox();
    let dev = StackIdentity { name: "dev", id: "a" };
    SnapshotName::new(dev, &key, 1, 7)
}

fn record(state: &str) -> Reply {
    reply(
        200,
        json!({"id": "s-1", "name": of_a_sandbox().to_string(), "state": state, "errorReason": "the disk"}),
    )
}

fn sandbox(state: &str) -> Reply {
    reply(200, json!({"id": "id-1", "name": "n", "state": state}))
}

#[tokio::test]
async fn refused_stop_is_judged_by_state() {
    let refused = || said(400, "Sandbox is not in a stoppable state");
    for (then, wanted) in [("stopped", Some(State::Stopped)), ("started", None)] {
        let (_server, sandboxes) =
            sandboxes(vec![sandbox("started"), refused(), sandbox(then)]).await;
        let latest = Instant::now() + Duration::from_secs(60);
        let stopped = sandboxes.stop("n", latest).await;
        match wanted {
            Some(state) => assert_eq!(stopped, Ok(state)),
            None => assert!(
                matches!(stopped.as_ref().map_err(|e| &e.failure), Err(Failure::NonRecoverable { advice }) if advice.contains("stoppable")),
                "{stopped:?}"
            ),
        }
    }
}

/// Two kinds of server: one that keeps a record from the beginning and refuses a taken name, as newer ones may
/// (Daytona's issue 4990 and its resolution), and one that does neither, as in the last public source.
#[tokio::test]
async fn snapshot_state_falls_back_to_sandbox() {
    let none = || said(404, "not found");
    let underway = SnapshotState::Underway;
    let failed = SnapshotState::Failed { reason: "the disk".to_owned() };
    let table: Vec<(&str, Vec<Reply>, SnapshotState)> = vec![
        ("a record that is under way", vec![record("snapshotting")], underway.clone()),
        ("one that failed", vec![record("error")], failed),
        ("one that is there", vec![record("active")], SnapshotState::Ready),
        ("no record, and the sandbox says so", vec![none(), sandbox("snapshotting")], underway),
        (
            "written between the looks",
            vec![none(), sandbox("started"), record("active")],
            SnapshotState::Ready,
        ),
        ("nothing came of it", vec![none(), sandbox("started"), none()], SnapshotState::Absent),
        ("the sandbox is gone, and so is it", vec![none(), none(), none()], SnapshotState::Absent),
        ("on its way out", vec![record("removing")], SnapshotState::Absent),
        ("put aside", vec![record("inactive")], SnapshotState::Asleep),
    ];
    for (what, replies, expected) in table {
        let (_server, sandboxes) = sandboxes(replies).await;
        let seen = crate::SnapshotStore::observe(&sandboxes, &of_a_sandbox()).await;
        assert_eq!(seen, Ok(expected), "{what}");
    }
}

#[tokio::test]
async fn snapshot_refusals_have_kind_and_advice() {
    let none = || said(404, "not found");
    let absent = || vec![none(), sandbox("started"), none()];
    let after = |more: Vec<Reply>| absent().into_iter().chain(more).collect::<Vec<_>>();
    let ask = async |replies| {
        let (server, sandboxes) = sandboxes(replies).await;
        let said = crate::SnapshotStore::create(&sandboxes, &of_a_sandbox()).await;
        (said, server.lines())
    };
    let (made, lines) = ask(after(vec![sandbox("snapshotting")])).await;
    assert_eq!(made, Ok(SnapshotState::Underway));
    let asked = format!("POST /api/sandbox/{}/snapshot", of_a_sandbox().sandbox());
    assert_eq!(lines.last(), Some(&asked));

    // Somebody else has requested the same one in the meantime.
    let taken = said(409, "Snapshot with this name already exists");
    let (made, _) = ask(after(vec![taken, record("snapshotting")])).await;
    assert_eq!(made, Ok(SnapshotState::Underway));

    for status in [400, 403] {
        let full = said(status, "Snapshot quota exceeded. Maximum allowed: 30");
        let refused = ask(after(vec![full])).await.0.expect_err("no room");
        assert_eq!(refused.kind, ErrorKind::SnapshotsFull);
        assert_eq!(
            refused.failure.to_string(),
            "This Daytona organisation already has as many snapshots as it may have. Delete a snapshot that nobody needs, then try again."
        );
    }
    let wrong = || said(400, "Sandbox must be in started or stopped state to create a snapshot");
    for (state, kind) in [
        ("starting", ErrorKind::Other),
        ("archived", ErrorKind::WrongState),
        ("error", ErrorKind::WrongState),
        ("stopped", ErrorKind::Other),
    ] {
        let replies = [wrong()].into_iter().chain(absent()).chain([sandbox(state)]);
        let refused = ask(after(replies.collect())).await.0.expect_err("not now");
        assert_eq!(refused.kind, kind, "{state}");
        let waits = matches!(refused.failure, Failure::Wait { .. });
        assert_eq!(waits, state == "starting", "{state}");
    }
    let gone = ask(after(vec![none()])).await.0.expect_err("there is no such sandbox");
    assert_eq!((gone.kind, gone.failure), (ErrorKind::NotFound, Failure::SandboxGone));
}

#[tokio::test]
async fn missing_provider_capabilities_are_worded() {
    let (_server, sandboxes) = sandboxes(Vec::new()).await;
    let able = Facts { life_ms_max: None, ..sandboxes.facts() };
    assert_eq!(able.lacking(), Vec::<String>::new());
    let less = Facts {
        snapshots: Err("hosts make none"),
        snapshot_ends_run: true,
        life_ms_max: Some(7 * 24 * 60 * 60_000),
        secrets: Err("hosts keep none"),
        ..able
    };
    assert_eq!(
        less.lacking(),
        [
            "no snapshots here: hosts make none",
            "a snapshot ends what runs in the sandbox",
            "the disk is not kept: a sandbox is deleted 7 days after its last use",
            "model keys are inside the sandboxes",
        ]
    );
}
