//! Agents as the daemon fetches them: once for all tests, kept between runs.

use std::path::PathBuf;

use serde_json::json;
use tokio::sync::Mutex;

use crate::world::Daemon;

static FETCHING: Mutex<()> = Mutex::const_new(());

/// A folder with the agent's program in it, for `PATH`. None, and a word, where it cannot be had.
pub async fn installed(agent: &str) -> Option<PathBuf> {
    let _one_at_a_time = FETCHING.lock().await;
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("agents");
    let bin = home.join("bin");
    if bin.join(agent).exists() {
        return Some(bin);
    }
    let daemon = Daemon::start().await;
    std::fs::create_dir_all(&home).unwrap();
    std::os::unix::fs::symlink(&home, daemon.state().join("agents")).unwrap();
    let path = format!("/v1/agents/{agent}/install");
    let answer = daemon.post(&path, json!({"reinstall": true})).await;
    if answer.status == 204 {
        return Some(bin);
    }
    assert!(
        !answer.body["detail"].as_str().unwrap().contains("is not the pinned package"),
        "{}",
        answer.body
    );
    eprintln!("SKIPPED: {agent} cannot be had here: {}", answer.body["detail"]);
    None
}

/// The same by the command that an image is made with, where `BOBBIN_AGENTS` names the agent: it is hundreds of
/// megabytes.
pub async fn named(agent: &str) -> Option<PathBuf> {
    let names = std::env::var("BOBBIN_AGENTS").unwrap_or_default();
    if !names.split([',', ' ']).any(|name| name == agent) {
        eprintln!("SKIPPED: BOBBIN_AGENTS does not name {agent}, so the real one is not run");
        return None;
    }
    let _one_at_a_time = FETCHING.lock().await;
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("agents");
    let command = tokio::process::Command::new(env!("CARGO_BIN_EXE_bobbin-agentd"))
        .args(["install", agent, "--into"])
        .arg(&home)
        .output();
    let output = command.await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.starts_with(&format!("{agent}: /")), "{told}");
        return Some(home.join("bin"));
    }
    assert!(!said.contains("is not the pinned package"), "{said}");
    eprintln!("SKIPPED: {agent} cannot be had here: {said}");
    None
}
