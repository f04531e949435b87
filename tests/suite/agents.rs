//! Agents other than OpenCode in a thread: the real ones that `BOBBIN_AGENTS` names, with the scripted model.

use std::path::PathBuf;
use std::sync::Arc;

use bobbin_agent_client::{Embedded, EmbeddedOptions};
use bobbin_core::records::outcome::Outcome;
use bobbin_tests::binaries;
use bobbin_tests::chat::Platform;
use bobbin_tests::forge::TestForge;
use bobbin_tests::limits::{CANCEL_MS_MAX, VISIBLE_MS_MAX};
use bobbin_tests::stack::{Options, Stack};
use bobbin_tests::talk::Talk;
use bobbin_tests::world::World;
use futures::future::join_all;
use libtest_mimic::Trial;
use serde_json::json;
use tokio::sync::Mutex;

use crate::artifacts;
use crate::forge::{a_name, pressed};
use crate::run::{brisk, trial};
use crate::scenarios::pause;

/// The agents that are fetched, and whether they ask questions.
const AGENTS: [(&str, bool); 2] = [("claude", true), ("codex", false)];

static FETCHING: Mutex<()> = Mutex::const_new(());

pub fn trials() -> Vec<Trial> {
    let one = |(agent, asks)| {
        let name = format!("embedded::native::{agent}_works_in_a_thread");
        trial(&name, async move || whole(agent, asks).await)
    };
    AGENTS.map(one).into()
}

/// The folders with these agents' programs, for sandboxes; the daemon fetches them once, as its own tests do.
async fn fetched(agents: &[&str]) -> String {
    let _one_at_a_time = FETCHING.lock().await;
    let target = binaries::folder().parent().expect("a target folder");
    let home = target.join("tmp/agents");
    std::fs::create_dir_all(&home).unwrap();
    let state = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&home, state.path().join("agents")).unwrap();
    let options = EmbeddedOptions {
        program: Some(binaries::folder().join("bobbin-agentd")),
        state: state.path().to_owned(),
        ..EmbeddedOptions::default()
    };
    let daemon = Embedded::start(&options).await.unwrap();
    for agent in agents {
        daemon.client().install(agent).await.unwrap();
    }
    daemon.stop().await;
    // `bin` holds links into the folder.
    let folders: [PathBuf; 2] = [home.join("bin"), home];
    let joined = std::env::join_paths(folders).unwrap();
    joined.into_string().unwrap()
}

async fn whole(agent: &'static str, asks: bool) {
    let named = std::env::var("BOBBIN_AGENTS").unwrap_or_default();
    if !named.split([',', ' ']).any(|one| one == agent) {
        eprintln!("SKIPPED: BOBBIN_AGENTS does not name {agent}, so the real one is in no thread");
        return;
    }
    let folders = fetched(&["opencode", agent]).await;
    let stack = Stack::start(&Options {
        parameters: json!({"SandboxRuntimeMode": "native"}),
        environment: vec![("BOBBIN_AGENT_DIR".to_owned(), folders)],
        ..Options::limits(brisk())
    });
    let world = Arc::new(World::of(&stack));
    join_all(Platform::ALL.map(|platform| thread(&world, platform, agent, asks))).await;
    let images = Platform::ALL.map(|platform| artifacts::image_with(&world, platform, agent));
    join_all(images).await;
    published(&world, agent).await;
    drop(world);
    stack.end().unwrap();
}

/// The agent's work on a private repository becomes a pull request.
async fn published(world: &World, agent: &str) {
    let forge = TestForge::of(&world.ready);
    let repository = forge.private(&a_name(), &[("README.md", "begin\n")]).await;
    let choices = [("agent", agent), ("repo", &*repository.name)];
    let (talk, turn) =
        world.begin_with(Platform::Discord, &choices, "ask: echo hello > page.txt").await;
    let ask =
        talk.see(VISIBLE_MS_MAX * 2, "it asks", |one| one.button("Allow once").is_some()).await;
    talk.press(&ask, "Allow once").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    pressed(&talk, &turn, &repository).await;
}

async fn answered(talk: &Talk<'_>, turn: &str, words: &str) {
    assert_eq!(talk.ended(turn).await.outcome, Outcome::Answered);
    let answer = talk.answer(turn).await;
    assert!(answer.contains(words), "{words:?}: {answer}");
}

async fn thread(world: &World, platform: Platform, agent: &str, asks: bool) {
    let (mut talk, first) =
        world.begin_with(platform, &[("agent", agent)], "echo: hello there").await;
    answered(&talk, &first, "hello there").await;
    let session = talk.session().await.conversation.session.unwrap();
    assert!(session.starts_with(agent), "{session}");

    // It asks for its actions; "always" covers the same action again. Claude Code asks for each redirection again, and
    // writes into the project what it may always do.
    let always = if agent == "claude" { "2 files changed, +7 -0" } else { "1 file changed, +0 -0" };
    let line = "1 file changed, +1 -0";
    for (name, command, button, is_done, changed) in [
        ("once", "echo once > once.txt", "Allow once", true, line),
        ("no", "echo no > no.txt", "Deny", false, line),
        ("always", "touch always.txt", "Allow always", true, always),
    ] {
        let turn = talk.say(&format!("ask: {command}")).await;
        let ask = talk
            .see(VISIBLE_MS_MAX * 2, "the permission is asked for", |one| {
                one.button(button).is_some() && one.text.contains(&format!("{name}.txt"))
            })
            .await;
        talk.press(&ask, button).await;
        let ended = talk.ended(&turn).await.outcome;
        assert!(!is_done || ended == Outcome::Answered, "{name}: {ended:?}");
        let (sandbox, path) = (talk.sandbox().await, format!("{name}.txt"));
        let file = world.provider.download(&sandbox, &path).await;
        assert_eq!(file.is_ok(), is_done, "{name}");
        let card = talk.card(&turn).await;
        let tells = card.text.contains(changed);
        assert_eq!(tells, is_done, "{name}: {}", card.text);
        if name == "once" {
            talk.press(&card, "View diff").await;
            talk.whispered(&format!("+++ b/{name}.txt")).await;
        }
    }
    let again = talk.say("ask: touch always.txt").await;
    assert_eq!(talk.ended(&again).await.outcome, Outcome::Answered);

    if asks {
        let turn = talk.say("question: Which one? | Left | Right").await;
        let ask = talk
            .see(VISIBLE_MS_MAX * 2, "the question is asked", |one| one.button("Right").is_some())
            .await;
        talk.press(&ask, "Right").await;
        answered(&talk, &turn, "Right").await;
    }

    let slow = talk.say("slow: 90 one two three four five six seven eight nine ten").await;
    talk.running(&slow).await;
    talk.stop().await;
    let ended = talk.ended_within(CANCEL_MS_MAX, &slow).await;
    assert!(matches!(ended.outcome, Outcome::Cancelled { .. }), "{:?}", ended.outcome);

    let fails = talk.say("fail: 400").await;
    let ended = talk.ended(&fails).await.outcome;
    assert!(
        matches!(&ended, Outcome::Failed { reason } if reason.contains("The request is not valid")),
        "{ended:?}"
    );

    pause(&talk).await;
    let back = talk.say("echo: back again").await;
    answered(&talk, &back, "back again").await;
    let after = talk.session().await;
    assert_eq!(after.conversation.session, Some(session.clone()));

    // Another agent is told the history, and the first one continues where it was.
    let turn = talk.say_as("opencode", "echo: the other one").await;
    answered(&talk, &turn, "the other one").await;
    let other = talk.session().await.conversation.session.unwrap();
    assert!(other.starts_with("opencode"), "{other}");
    let turn = talk.say_as(agent, "echo: and back").await;
    answered(&talk, &turn, "and back").await;
    assert_eq!(talk.session().await.conversation.session, Some(session));
    talk.finish().await;
}
