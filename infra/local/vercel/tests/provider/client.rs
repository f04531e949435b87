//! Bobbin's client through the whole life of a sandbox, with what may go wrong on the way.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_agent::opencode::OpenCode;
use bobbin_agent::server_http;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant, ThreadKey};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_sandbox::labels::StackIdentity;
use bobbin_sandbox::vercel::{VercelAccount, VercelSandboxes, VercelSettings};
use bobbin_sandbox::{
    Deletion, ErrorKind, HostedSecret, Provider, Sandbox, SandboxSpec, Secrets, SnapshotName,
    SnapshotState,
};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{PROJECT, TEAM, TOKEN, World, wait_for};

const DEV: StackIdentity<'static> = StackIdentity { name: "dev", id: "this-one" };
const SECOND: Duration = Duration::from_secs(1);

fn client_of(world: &World, stack: StackIdentity<'_>) -> VercelSandboxes {
    VercelSandboxes::new(VercelSettings {
        account: VercelAccount {
            api: world.provider.api_url(),
            token: TOKEN.to_owned(),
            team: TEAM.to_owned(),
            project: PROJECT.to_owned(),
        },
        stack: stack.name.to_owned(),
        stack_id: stack.id.to_owned(),
        image: String::new(),
        ports: vec![4096],
        limits: SandboxLimits::DEFAULT,
    })
    .unwrap()
}

fn client(world: &World) -> VercelSandboxes {
    client_of(world, DEV)
}

fn key() -> SandboxKey {
    ThreadKey::discord("1", "2").unwrap().sandbox()
}

fn name(generation: u32) -> String {
    sandbox_name(DEV.name, &key(), generation)
}

async fn begin(
    client: &VercelSandboxes,
    generation: u32,
    snapshot: Option<&SnapshotName>,
) -> Result<SandboxState, Failure> {
    let secrets = BTreeMap::new();
    let spec = SandboxSpec { secrets: &secrets, snapshot };
    Ok(client.create(&key(), generation, spec).await?)
}

async fn stop(client: &VercelSandboxes, name: &str) -> Result<SandboxState, Failure> {
    Ok(client.stop(name, Instant::now() + 60 * SECOND).await?)
}

/// What it is now, as a delivery of its sandbox sees it.
async fn state(client: &VercelSandboxes, name: &str) -> Result<SandboxState, Failure> {
    match client.observe(name).await {
        Ok(found) => Ok(found.state),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(SandboxState::Gone),
        Err(error) => Err(error.failure),
    }
}

fn snapshots(client: &VercelSandboxes) -> &dyn bobbin_sandbox::SnapshotStore {
    client.facts().snapshots().unwrap()
}

async fn run(client: &VercelSandboxes, sandbox: &Sandbox, script: &str) -> (i64, String) {
    let none = BTreeMap::new();
    let ran = client.exec(sandbox, script, &none, 20 * SECOND);
    let ran = ran.await.unwrap();
    (ran.exit_code, ran.text)
}

async fn reaches(client: &VercelSandboxes, name: &str, state: SandboxState) {
    wait_for(&format!("{state:?}"), async || {
        self::state(client, name).await.as_ref() == Ok(&state)
    })
    .await;
}

#[tokio::test]
async fn sandbox_keeps_disk_across_sessions() {
    let world = World::start("life").await;
    let client = client(&world);
    assert_eq!(state(&client, &name(1)).await, Ok(SandboxState::Gone));
    let at_once = (0..5).map(|_| begin(&client, 1, None));
    for made in futures::future::join_all(at_once).await {
        assert!(matches!(made, Ok(SandboxState::Running | SandboxState::Provisioning)), "{made:?}");
    }
    reaches(&client, &name(1), SandboxState::Running).await;
    assert_eq!(begin(&client, 1, None).await, Ok(SandboxState::Running));
    assert_eq!(world.provider.sandboxes().len(), 1, "the others adopt");
    let made = client.observe(&name(1)).await.unwrap();
    assert!(made.belongs_to(DEV, &key(), 1), "{:?}", made.labels);
    assert_eq!(made.owner(), Some((key(), 1)));
    assert!(made.created_ms.is_some() && made.ends_ms.is_none());

    let files = vec![("a/b.txt".to_owned(), b"kept".to_vec())];
    client.put_files(&made, files).await.unwrap();
    let (code, text) = run(&client, &made, "cat a/b.txt; echo ' and' >&2; exit 3").await;
    assert_eq!((code, text.as_str()), (3, "kept and\n"));
    assert_eq!(client.get_file(&made, "a/b.txt").await.unwrap(), b"kept");
    let listed = client.list_files(&made, "a").await.unwrap();
    assert_eq!(listed, BTreeMap::from([("b.txt".to_owned(), 4)]));
    for missing in [
        client.get_file(&made, "none").await.map(drop),
        client.list_files(&made, "none").await.map(drop),
    ] {
        assert_eq!(missing.unwrap_err().kind, ErrorKind::NotFound);
    }
    let env = BTreeMap::from([("MINE".to_owned(), "yes".to_owned())]);
    let ran = client.exec(&made, "echo $MINE", &env, 20 * SECOND).await;
    assert_eq!(ran.unwrap().text, "yes\n");
    assert_eq!(run(&client, &made, "echo $MINE").await.1, "\n");

    let first = client.endpoint(&name(1), 4096).await.unwrap();
    assert_eq!(first.headers, [], "the route is open to everybody");
    let none = client.endpoint(&name(1), 9999).await.unwrap_err();
    assert!(matches!(none.failure, Failure::NonRecoverable { .. }));

    let late = client.stop(&name(1), Instant::now()).await;
    assert!(matches!(late.as_ref().map_err(|e| &e.failure), Err(Failure::Wait { .. })), "{late:?}");
    for _ in 0..2 {
        assert_eq!(stop(&client, &name(1)).await, Ok(SandboxState::Stopped));
    }
    let down = client.endpoint(&name(1), 4096).await.unwrap_err();
    assert!(matches!(down.failure, Failure::SandboxDown { .. }));
    let down = client.exec(&made, "true", &env, SECOND).await.unwrap_err();
    assert!(matches!(down.failure, Failure::SandboxDown { .. }), "{down:?}");
    for _ in 0..2 {
        assert_eq!(client.start(&name(1)).await, Ok(SandboxState::Running));
    }
    let again = client.observe(&name(1)).await.unwrap();
    assert_ne!(again.exec_base, made.exec_base, "another session");
    assert_ne!(client.endpoint(&name(1), 4096).await.unwrap(), first);
    assert_eq!(client.get_file(&again, "a/b.txt").await.unwrap(), b"kept");

    for _ in 0..2 {
        assert_eq!(client.delete(Deletion::Named(&name(1))).await, Ok(SandboxState::Gone));
    }
    let gone = client.observe(&name(1)).await.unwrap_err();
    assert_eq!((gone.kind, &gone.failure), (ErrorKind::NotFound, &Failure::SandboxGone));
    world.end().await;
}

#[tokio::test]
async fn foreign_stack_sandboxes_are_left_alone() {
    let world = World::start("list").await;
    let (ours, theirs) =
        (client(&world), client_of(&world, StackIdentity { id: "another", ..DEV }));
    let longer = client_of(&world, StackIdentity { name: "dev-eu", ..DEV });
    begin(&ours, 1, None).await.unwrap();
    begin(&longer, 1, None).await.unwrap();
    let taken = begin(&theirs, 1, None).await.unwrap_err();
    let advice = format!("{taken:?}");
    assert!(
        advice.contains("this stack did not create it"),
        "a namesake's sandbox is not adopted: {advice}"
    );
    begin(&theirs, 2, None).await.unwrap();
    let listed = ours.list(None).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, [name(1).as_str(), name(2).as_str()], "in order of creation");
    assert!(listed[1].is_foreign(DEV.id) && !listed[0].is_foreign(DEV.id));
    let tenant = Tenant::discord("1");
    assert_eq!(ours.count(&tenant, None).await, Ok(1));
    assert_eq!(ours.count(&tenant, Some(&name(1))).await, Ok(0));
    assert_eq!(ours.count(&tenant, Some("not listed yet")).await, Ok(1), "all others count");
    assert_eq!(ours.count(&Tenant::discord("9"), None).await, Ok(0));
    ours.delete(Deletion::Found(&listed[0])).await.unwrap();
    assert_eq!(ours.count(&tenant, None).await, Ok(0));
    world.end().await;
}

#[tokio::test]
async fn retry_repairs_lost_answers() {
    let world = World::start("lost").await;
    let client = client(&world);
    world.arm(json!({ "fault": "drop", "operation": "create" })).await;
    assert_eq!(begin(&client, 1, None).await, Ok(SandboxState::Running), "what was made is found");
    assert_eq!(world.provider.sandboxes().len(), 1);

    for operation in ["stop", "delete"] {
        world.arm(json!({ "fault": "drop", "operation": operation })).await;
    }
    let lost = stop(&client, &name(1)).await.unwrap_err();
    assert!(matches!(lost, Failure::Outage { .. }), "{lost:?}");
    reaches(&client, &name(1), SandboxState::Stopped).await;
    let lost = client.delete(Deletion::Named(&name(1))).await.unwrap_err();
    assert!(matches!(lost.failure, Failure::Outage { .. }), "{lost:?}");
    assert_eq!(client.delete(Deletion::Named(&name(1))).await, Ok(SandboxState::Gone));

    for (fault, class) in [
        (
            json!({ "fault": "answer", "operation": "create", "status": 429, "retry_after": 7 }),
            "wait",
        ),
        (json!({ "fault": "answer", "operation": "create", "status": 503 }), "outage"),
        (json!({ "fault": "html", "operation": "create", "status": 502 }), "outage"),
        (json!({ "fault": "html", "operation": "create", "status": 403 }), "outage"),
        (json!({ "fault": "answer", "operation": "create", "status": 401 }), "non_recoverable"),
    ] {
        world.arm(fault.clone()).await;
        let failure = begin(&client, 1, None).await.unwrap_err();
        let told = serde_json::to_value(&failure).unwrap();
        assert_eq!(told["class"], class, "{fault}: {failure:?}");
        if class == "wait" {
            assert_eq!(told["after_ms"], 7_000);
        }
    }
    assert_eq!(world.provider.sandboxes().len(), 0, "nothing was made");
    world.end().await;
}

#[tokio::test]
async fn session_timeout_cuts_commands_keeps_disk() {
    let world = World::start("hard-end").await;
    let client = client(&world);
    begin(&client, 1, None).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    let none = BTreeMap::new();
    let running = client.exec(&sandbox, "echo kept >file; sleep 600", &none, 600 * SECOND);
    let ending = async {
        wait_for("the command's file", async || client.get_file(&sandbox, "file").await.is_ok())
            .await;
        // As long as a session lives without work.
        world.advance(u64::from(SandboxLimits::DEFAULT.auto_stop_min)).await;
    };
    let (broken, ()) = tokio::join!(running, ending);
    let broken = broken.unwrap_err();
    assert!(matches!(broken.failure, Failure::SandboxDown { .. }), "{broken:?}");
    reaches(&client, &name(1), SandboxState::Stopped).await;
    assert_eq!(client.start(&name(1)).await, Ok(SandboxState::Running));
    let sandbox = client.observe(&name(1)).await.unwrap();
    assert_eq!(client.get_file(&sandbox, "file").await.unwrap(), b"kept\n");

    // Looked at in the middle of a transition.
    world.arm(json!({ "fault": "hold", "ms": 300 })).await;
    let own = name(1);
    let (stopped, seen) = tokio::join!(stop(&client, &own), async {
        wait_for("a stop under way", async || state(&client, &own).await == Ok(SandboxState::Busy))
            .await;
        (client.start(&own).await.map_err(Failure::from), stop(&client, &own).await)
    });
    assert_eq!(stopped, Ok(SandboxState::Stopped));
    assert_eq!(seen, (Ok(SandboxState::Busy), Ok(SandboxState::Busy)));
    world.end().await;
}

#[tokio::test]
async fn keep_alive_extends_running_session() {
    let world = World::start("alive").await;
    let client = client(&world);
    begin(&client, 1, None).await.unwrap();
    let most = u64::from(SandboxLimits::DEFAULT.auto_stop_min);
    client.keep_alive(&name(1)).await.unwrap();
    world.advance(most / 2).await;
    assert_eq!(state(&client, &name(1)).await, Ok(SandboxState::Running));
    world.advance(most / 2).await;
    reaches(&client, &name(1), SandboxState::Stopped).await;
    client.keep_alive(&name(1)).await.unwrap();
    assert_eq!(
        state(&client, &name(1)).await,
        Ok(SandboxState::Stopped),
        "one that stands still is left alone"
    );
    world.end().await;
}

#[tokio::test]
async fn overrunning_command_is_ended() {
    let world = World::start("over").await;
    let client = client(&world);
    begin(&client, 1, None).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    let none = BTreeMap::new();
    let over = client.exec(&sandbox, "echo $$ >pid; exec sleep 600", &none, SECOND);
    let over = over.await.unwrap_err();
    assert_eq!(over.kind, ErrorKind::CommandTimeout);
    wait_for("the command's end", async || {
        run(&client, &sandbox, "kill -0 $(cat pid)").await.0 != 0
    })
    .await;
    world.end().await;
}

#[tokio::test]
async fn snapshot_lives_under_its_own_name() {
    let world = World::start("snapshots").await;
    let client = client(&world);
    let facts = client.facts();
    assert!(facts.snapshots().is_ok() && facts.snapshot_ends_run && facts.life_ms_max.is_none());
    let first = SnapshotName::new(DEV, &key(), 1, 1_000);
    let none = snapshots(&client).create(&first).await.unwrap_err();
    assert_eq!((none.kind, &none.failure), (ErrorKind::NotFound, &Failure::SandboxGone));
    begin(&client, 1, None).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    run(&client, &sandbox, "echo one >file").await;
    assert_eq!(snapshots(&client).observe(&first).await, Ok(SnapshotState::Absent));
    // Every answer on the way is lost once: a repeat goes on where the last call left off.
    for operation in ["snapshot", "create", "stop"] {
        world.arm(json!({ "fault": "drop", "operation": operation })).await;
    }
    wait_for("the snapshot", async || {
        let _ = snapshots(&client).create(&first).await;
        snapshots(&client).observe(&first).await == Ok(SnapshotState::Ready)
    })
    .await;
    assert_eq!(snapshots(&client).create(&first).await, Ok(SnapshotState::Ready));
    assert_eq!(
        state(&client, &name(1)).await,
        Ok(SandboxState::Stopped),
        "the run has ended with it"
    );

    // The sandbox goes on, and its own snapshots come and go.
    client.start(&name(1)).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    run(&client, &sandbox, "echo two >file").await;
    stop(&client, &name(1)).await.unwrap();
    let second = SnapshotName::new(DEV, &key(), 1, 2_000);
    snapshots(&client).create(&second).await.unwrap();
    wait_for("the second", async || {
        snapshots(&client).observe(&second).await == Ok(SnapshotState::Ready)
    })
    .await;
    let listed = snapshots(&client).list().await.unwrap();
    let names: Vec<&SnapshotName> = listed.iter().map(|one| &one.name).collect();
    assert_eq!(names, [&second, &first], "the newest first");
    assert_eq!(
        client.list(None).await.unwrap().len(),
        1,
        "what keeps a snapshot is no thread's sandbox"
    );
    client.delete(Deletion::Named(&name(1))).await.unwrap();
    for (generation, snapshot, text) in [(2, &first, "one\n"), (3, &second, "two\n")] {
        assert_eq!(begin(&client, generation, Some(snapshot)).await, Ok(SandboxState::Running));
        let made = client.observe(&name(generation)).await.unwrap();
        let file = client.get_file(&made, "file").await.unwrap();
        assert_eq!(String::from_utf8(file).unwrap(), text);
    }
    for _ in 0..2 {
        snapshots(&client).delete(&first).await.unwrap();
    }
    assert_eq!(snapshots(&client).observe(&first).await, Ok(SnapshotState::Absent));
    assert_eq!(
        begin(&client, 2, Some(&first)).await,
        Ok(SandboxState::Running),
        "one that was made of it stays"
    );
    let gone = begin(&client, 4, Some(&first)).await.unwrap_err();
    assert_eq!(
        gone,
        Failure::TurnFailed {
            reason: "The snapshot for the new sandbox no longer exists. Choose another snapshot, or create the sandbox without one.".to_owned()
        }
    );
    world.end().await;
}

#[tokio::test]
async fn sandbox_without_its_disk_is_gone() {
    let world = World::start("disk").await;
    let client = client(&world);
    begin(&client, 1, None).await.unwrap();
    stop(&client, &name(1)).await.unwrap();
    reaches(&client, &name(1), SandboxState::Stopped).await;
    world.lose_disk(&name(1)).await;
    assert_eq!(state(&client, &name(1)).await, Ok(SandboxState::Stopped));
    assert_eq!(client.start(&name(1)).await, Ok(SandboxState::Gone));
    assert_eq!(state(&client, &name(1)).await, Ok(SandboxState::Gone));
    assert!(client.list(None).await.unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn lost_sandbox_is_gone() {
    let world = World::start("gone").await;
    let client = client(&world);
    begin(&client, 1, None).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    world.lose(&name(1)).await;
    assert_eq!(state(&client, &name(1)).await, Ok(SandboxState::Gone));
    assert_eq!(client.start(&name(1)).await, Ok(SandboxState::Gone));
    assert_eq!(stop(&client, &name(1)).await, Ok(SandboxState::Gone));
    let none = BTreeMap::new();
    let down = client.exec(&sandbox, "true", &none, SECOND).await;
    let down = down.unwrap_err();
    assert!(
        matches!(down.failure, Failure::SandboxDown { .. }),
        "a session's word is not the sandbox's: {down:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn key_is_injected_outside_sandbox() {
    // What stands for a provider of models: it tells the key that it was sent.
    let told = axum::Router::new().fallback(async |headers: axum::http::HeaderMap| {
        let key = headers.get("authorization");
        key.map_or(String::new(), |key| key.to_str().unwrap().to_owned())
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move { axum::serve(listener, told).await });
    let world = World::reaching("keys", port).await;
    if *world.provider.confinement() != bobbin_local_vercel::Confinement::Bubblewrap {
        eprintln!("SKIPPED: sandboxes have no network of their own here");
        return;
    }
    let client = client(&world);
    let secret = |value: &str| HostedSecret {
        variable: "OPENAI_API_KEY".to_owned(),
        value: value.to_owned(),
        version: value.to_owned(),
        hosts: vec!["127.0.0.1".to_owned()],
        owner: None,
        sandbox: None,
    };
    let kept = client.facts().secrets.ok().unwrap().keep(&[secret("sk-first")]).await.unwrap();
    let Secrets::Outside(kept) = kept else {
        panic!("it keeps them");
    };
    let placeholder = kept["OPENAI_API_KEY"].clone();
    let names = BTreeMap::from([("OPENAI_API_KEY".to_owned(), placeholder.secret.clone())]);
    let spec = SandboxSpec { secrets: &names, snapshot: None };
    client.create(&key(), 1, spec).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    assert!(sandbox.has_placeholders() && sandbox.belongs_to(DEV, &key(), 1));
    let ask = |said: &str| {
        format!("curl -s -H 'Authorization: Bearer {said}' http://127.0.0.1:{port}/v1")
    };
    let text = &placeholder.text;
    assert_eq!(run(&client, &sandbox, &ask(text)).await.1, "Bearer sk-first");
    assert_eq!(run(&client, &sandbox, &ask("own")).await.1, "Bearer own");
    assert!(!run(&client, &sandbox, "env").await.1.contains("sk-first"));

    // Another key: the sandbox that runs gets it, and so does its next session.
    client.facts().secrets.ok().unwrap().keep(&[secret("sk-second")]).await.unwrap();
    client.facts().secrets.ok().unwrap().mount(&sandbox, &names).await.unwrap();
    assert_eq!(run(&client, &sandbox, &ask(text)).await.1, "Bearer sk-second");
    stop(&client, &name(1)).await.unwrap();
    client.start(&name(1)).await.unwrap();
    let sandbox = client.observe(&name(1)).await.unwrap();
    assert_eq!(run(&client, &sandbox, &ask(text)).await.1, "Bearer sk-second");
    served.abort();
    world.end().await;
}

#[tokio::test]
async fn foreign_page_is_no_agent() {
    let world = World::start("page").await;
    let client = client(&world);
    begin(&client, 1, None).await.unwrap();
    let api = world.provider.api_url();
    let probe = async || {
        let endpoint = client.endpoint(&name(1), 4096).await.unwrap();
        let agent = OpenCode::new(server_http(&api).unwrap(), endpoint, "password");
        let error = agent.probe().await.err().unwrap();
        (error.to_string(), error.failure())
    };
    for (status, words) in [
        (200, "the server does not answer: text/html with status 200 instead of OpenCode's JSON"),
        (404, "the server does not answer: status 404"),
        (302, "the preview refuses its token"),
    ] {
        world.arm(json!({ "fault": "page", "status": status })).await;
        let (said, failure) = probe().await;
        assert_eq!(said, words);
        assert!(matches!(failure, Failure::SandboxDown { .. }), "{failure:?}");
    }
    let (said, failure) = probe().await;
    assert_eq!(said, "the server does not answer: status 502", "nobody listens");
    assert!(matches!(failure, Failure::SandboxDown { .. }));

    // With the session its address ends.
    let endpoint = client.endpoint(&name(1), 4096).await.unwrap();
    stop(&client, &name(1)).await.unwrap();
    let agent = OpenCode::new(server_http(&api).unwrap(), endpoint, "password");
    let error = agent.probe().await.err().unwrap();
    assert!(matches!(error.failure(), Failure::SandboxDown { .. }), "{error}");
    world.end().await;
}

#[tokio::test]
async fn missing_token_or_project_is_reported() {
    let world = World::start("none").await;
    for (token, project, said) in
        [("", PROJECT, "The key vercel_token is missing"), (TOKEN, "", "vercel_project_id")]
    {
        let client = VercelSandboxes::new(VercelSettings {
            account: VercelAccount {
                api: world.provider.api_url(),
                token: token.to_owned(),
                team: TEAM.to_owned(),
                project: project.to_owned(),
            },
            stack: DEV.name.to_owned(),
            stack_id: DEV.id.to_owned(),
            image: String::new(),
            ports: Vec::new(),
            limits: SandboxLimits::DEFAULT,
        })
        .unwrap();
        let failure = begin(&client, 1, None).await.unwrap_err();
        let Failure::NonRecoverable { advice } = failure else {
            panic!("{failure:?}");
        };
        assert!(advice.contains(said), "{advice}");
    }
    world.end().await;
}
