//! The client, in its three modes.

use std::process::{Command, Stdio};
use std::time::Duration;

use bobbin_agent_client::{
    AgentClient, Auto, CreateSession, DaemonAsk, Embedded, EmbeddedOptions, NewMessage,
    PermissionAnswer, Submitted, TurnState,
};
use bobbin_agent_events::TurnOutcome;

use crate::world::{Daemon, TOKEN, children, runs, stand_in, wait_for};

/// Tells the test binary to be a program that starts a daemon, in this folder, and is killed.
const PARENT: &str = "BOBBIN_TESTS_PARENT";

fn options(folder: &std::path::Path) -> EmbeddedOptions {
    EmbeddedOptions {
        program: Some(env!("CARGO_BIN_EXE_bobbin-agentd").into()),
        state: folder.join("state"),
        acp: vec![stand_in()],
        directory: Some(folder.to_owned()),
        ..EmbeddedOptions::default()
    }
}

async fn conversation(client: &AgentClient) {
    let session = CreateSession { agent: "standin".to_owned(), ..CreateSession::default() };
    let created = client.create_session("a/b", &session).await.unwrap();
    assert!(created.healthy, "{created:?}");
    let again = client.create_session("a/b", &session).await.unwrap_err();
    assert!(again.is_kind("session_already_exists"), "{again}");
    let message = NewMessage {
        message: "say hello\nask ls\nquestion".to_owned(),
        turn: Some("t".to_owned()),
        ..NewMessage::default()
    };
    assert_eq!(client.send("a/b", &message).await.unwrap(), Submitted::Accepted("t".to_owned()));
    assert_eq!(
        client.send("a/b", &message).await.unwrap(),
        Submitted::AlreadyKnown("t".to_owned())
    );
    let mut stream = client.follow("a/b", 0).await.unwrap();
    let mut streamed = 0;
    loop {
        let event = stream.next().await.unwrap();
        streamed += 1;
        assert_eq!(event.id, streamed);
        let status = client.turn("a/b", "t").await.unwrap();
        match status.asks.first() {
            // Another look may still have had it.
            Some(DaemonAsk::Permission(ask)) => {
                drop(client.reply_permission("a/b", &ask.id, PermissionAnswer::Once).await)
            }
            Some(DaemonAsk::Question(ask)) => {
                drop(client.reply_question("a/b", &ask.id, &[vec!["DynamoDB".to_owned()]]).await)
            }
            None if status.state == TurnState::Done && status.last_event == streamed => break,
            None => {}
        }
    }
    let status = client.turn("a/b", "t").await.unwrap();
    assert_eq!(status.outcome, Some(TurnOutcome::Done));
    let page = client.events("a/b", 0, 1_000, Duration::ZERO).await.unwrap();
    assert_eq!(page.events.len() as u64, streamed);
    assert_eq!(client.turn("a/b", "none").await.unwrap().state, TurnState::NotSeen);
    assert_eq!(client.sessions().await.unwrap()[0].session_id, "a/b");
    client.terminate("a/b").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn server_mode_uses_a_running_daemon() {
    let daemon = Daemon::start().await;
    let client = AgentClient::server(&daemon.url(""), TOKEN).unwrap();
    conversation(&client).await;
    let stranger = AgentClient::server(&daemon.url(""), "wrong").unwrap();
    let refused = stranger.health().await.unwrap_err();
    assert!(refused.is_kind("token_invalid"), "{refused}");
    assert!(!format!("{stranger:?}").contains("wrong"));
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_daemon_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Embedded::start(&options(folder.path())).await.unwrap();
    conversation(daemon.client()).await;
    let reaper = daemon.pid().unwrap();
    let serving = children(reaper);
    assert_eq!(serving.len(), 1);
    daemon.stop().await;
    assert!(!runs(reaper) && !runs(serving[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_mode_prefers_the_given_daemon() {
    let there = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let given = Auto::open(Some((&there.url(""), TOKEN)), &options(folder.path())).await.unwrap();
    assert!(matches!(given, Auto::Server(_)));
    assert_eq!(given.client().base(), there.url(""));
    given.close().await;
    assert!(!folder.path().join("state").exists());
    let own = Auto::open(None, &options(folder.path())).await.unwrap();
    own.client().health().await.unwrap();
    own.close().await;
    there.wait_until_it_answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_daemon_start_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("state"), "a file where the folder should be").unwrap();
    let error = Embedded::start(&options(folder.path())).await.unwrap_err().to_string();
    assert!(
        error.starts_with("bobbin-agentd ended while it started: bobbin-agentd (serving): "),
        "{error}"
    );
    let nowhere =
        EmbeddedOptions { program: Some("/nowhere/agentd".into()), ..options(folder.path()) };
    let error = Embedded::start(&nowhere).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no file /nowhere/agentd, which SANDBOX_AGENT_BIN or the caller names as bobbin-agentd"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_daemon_ends_with_parent() {
    let folder = tempfile::tempdir().unwrap();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client::parent", "--ignored", "--nocapture"])
        .env(PARENT, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let note = folder.path().join("pid");
    wait_for("the daemon of the program", async || note.exists()).await;
    let reaper: u32 = std::fs::read_to_string(&note).unwrap().parse().unwrap();
    let serving = children(reaper);
    assert!(runs(reaper));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for("the daemon to end", async || !runs(reaper) && serving.iter().all(|pid| !runs(*pid)))
        .await;
}

/// No test: what [`embedded_daemon_ends_with_parent`] starts and kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is started by another test"]
async fn parent() {
    let Some(folder) = std::env::var_os(PARENT).map(std::path::PathBuf::from) else {
        return;
    };
    let daemon = Embedded::start(&options(&folder)).await.unwrap();
    let note = folder.join("pid.new");
    std::fs::write(&note, daemon.pid().unwrap().to_string()).unwrap();
    std::fs::rename(note, folder.join("pid")).unwrap();
    std::future::pending::<()>().await;
}
