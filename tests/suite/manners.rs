//! The stack's manners: it leaves no process behind, and its state survives.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bobbin_core::records::outcome::Outcome;
use bobbin_tests::binaries;
use bobbin_tests::chat::Platform;
use bobbin_tests::limits::{ANSWER_MS_MAX, CLEANED_MS_MAX, SECOND_START_MS_MAX};
use bobbin_tests::processes;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::Talk;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::run::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("manners::sigterm_leaves_no_process_behind", sigterm),
        trial("manners::restart_after_kill_resumes_thread", kill_9),
        trial("manners::stacks_cannot_share_state_folder", locked),
        trial("manners::first_ctrl_c_stops_terminal_agent", interrupted),
    ]
}

/// Starts again in the same folder and continues a conversation there.
async fn goes_on(folder: &Arc<tempfile::TempDir>, options: &Options, before: &Talk<'_>) -> Stack {
    let stack = Stack::start_in(folder, options);
    let took_ms = u64::try_from(stack.took.as_millis()).unwrap();
    assert!(took_ms < SECOND_START_MS_MAX, "the second start took {took_ms} ms");
    let world = World::of(&stack);
    let mut talk = before.again(&world);
    let turn = talk.say("run: cat keep.txt").await;
    assert_eq!(talk.ended(&turn).await.outcome, Outcome::Answered);
    assert!(talk.answer(&turn).await.contains("still here"), "{}", talk.answer(&turn).await);
    assert_eq!(talk.session().await.sandbox.generation, 1, "the sandbox did not survive");
    stack
}

async fn sigterm() {
    let options = Options::lean(quick());
    let stack = Stack::start(&options);
    let folder = Arc::clone(stack.folder());
    let world = World::of(&stack);
    let (mut talk, first) = world.begin(Platform::Discord, "write: keep.txt still here").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let slow = talk.say("slow: 15 one two three four five").await;
    talk.running(&slow).await;
    assert!(processes::marked(folder.path()).len() > 1, "an agent's server was running");
    stack.end().unwrap();
    assert_eq!(processes::marked(folder.path()), []);

    let stack = Stack::start_in(&folder, &options);
    let world = World::of(&stack);
    let mut after = talk.again(&world);
    // The end of its sandbox's processes cut the run: the same prompt continues, and so does what comes after it.
    assert_eq!(after.ended(&slow).await.outcome, Outcome::Answered);
    let next = after.say("run: cat keep.txt").await;
    assert_eq!(after.ended(&next).await.outcome, Outcome::Answered);
    assert!(after.answer(&next).await.contains("still here"));
    stack.end().unwrap();
}

async fn kill_9() {
    let options = Options::lean(quick());
    let stack = Stack::start(&options);
    let folder = Arc::clone(stack.folder());
    let world = World::of(&stack);
    let (talk, first) = world.begin(Platform::Slack, "write: keep.txt still here").await;
    assert_eq!(talk.ended(&first).await.outcome, Outcome::Answered);
    let own = stack.pid();
    let left: Vec<u32> = processes::marked(folder.path())
        .into_iter()
        .map(|(pid, _)| pid)
        .filter(|pid| *pid != own)
        .collect();
    assert!(!left.is_empty(), "an agent's server and functions were running");
    stack.kill();

    let stack = goes_on(&folder, &options, &talk).await;
    eventually(CLEANED_MS_MAX, "what the killed stack left is ended", async || {
        let alive: Vec<u32> = left.iter().copied().filter(|pid| processes::alive(*pid)).collect();
        if alive.is_empty() { Ok(()) } else { Err(format!("{alive:?} still run")) }
    })
    .await;
    stack.end().unwrap();
}

async fn locked() {
    let first = Stack::start(&Options { without_aws: true, ..Options::default() });
    let folder = Arc::clone(first.folder());
    let second = std::process::Command::new(binaries::folder().join("bobbin-local"))
        .current_dir(bobbin_tests::binaries::workspace())
        .arg("--state-dir")
        .arg(first.state_dir())
        .args(["--no-build", "--without-aws"])
        .output()
        .unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("Another stack runs with the state folder"), "{said}");
    first.end().unwrap();
    assert_eq!(processes::marked(folder.path()), []);
}

/// An agent that starts, takes a task, and then receives nothing any more.
const DEAF: &str = r#"
import json, sys
ANSWERS = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "s1"}}
for line in sys.stdin:
    said = json.loads(line)
    if said.get("method") in ANSWERS:
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": ANSWERS[said["method"]]}), flush=True)
"#;

async fn interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("deaf.py");
    std::fs::write(&script, DEAF).unwrap();
    let mut run = tokio::process::Command::new(binaries::folder().join("bobbin"))
        .args(["agent", "run", "say hi", "--agent", "deaf", "--acp"])
        .arg(format!("deaf=python3 {}", script.display()))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(run.id().unwrap().cast_signed()).unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let followed = async {
        let mut said = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            said.push(line);
            if said.len() == 2 {
                rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            }
        }
        (said, run.wait().await.unwrap().code())
    };
    let bound = Duration::from_millis(ANSWER_MS_MAX);
    let (said, code) = tokio::time::timeout(bound, followed).await.unwrap();
    assert_eq!(
        said[..4],
        [
            "Starting deaf. Ctrl-C stops it.",
            "deaf works on it.",
            "",
            "Stopping. Press Ctrl-C again to leave at once."
        ],
        "{said:?}"
    );
    assert!(matches!(code, Some(5 | 130)), "{code:?}: {said:?}");
}
