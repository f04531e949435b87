//! Nothing that an agent started outlives the daemon.

use serde_json::json;

use crate::world::{Daemon, children, pid_in, runs, signal, wait_for};

/// A daemon whose agent has left processes behind in sessions of their own, with and without its environment.
async fn littered() -> (Daemon, Vec<u32>) {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "t", "leave left\nshed shed\nhang").await;
    wait_for("the agent to hang", async || daemon.said("s", "t").await == "hanging").await;
    let mut processes: Vec<u32> =
        ["left", "shed"].map(|name| pid_in(&daemon.project().join(name))).to_vec();
    let serving = daemon.serving();
    processes.extend(children(serving));
    processes.push(serving);
    assert!(processes.iter().all(|pid| runs(*pid)), "{processes:?}");
    (daemon, processes)
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_daemon_and_descendants() {
    for name in ["TERM", "INT"] {
        let (mut daemon, processes) = littered().await;
        daemon.signal(name);
        let status = daemon.child.wait().unwrap();
        assert!(status.success(), "{name}: {status}");
        let left: Vec<&u32> = processes.iter().filter(|pid| runs(**pid)).collect();
        assert!(left.is_empty(), "{name} left {left:?} of {processes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_server_leaves_no_processes() {
    let (daemon, processes) = littered().await;
    signal("KILL", daemon.serving());
    daemon.wait_until_it_answers().await;
    let left: Vec<&u32> = processes.iter().filter(|pid| runs(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
    daemon.until("s", "t", "lost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_reaper_ends_server_and_agents() {
    let (daemon, processes) = littered().await;
    daemon.signal("KILL");
    let shed = processes[1];
    // What has shed its environment is the reaping half's alone; when that is killed it is the system's.
    wait_for("everything to end", async || processes.iter().all(|pid| *pid == shed || !runs(*pid)))
        .await;
    signal("KILL", shed);
}

#[tokio::test(flavor = "multi_thread")]
async fn next_daemon_ends_leftover_processes() {
    let (mut daemon, processes) = littered().await;
    let serving = daemon.serving();
    daemon.signal("STOP");
    signal("KILL", serving);
    daemon.signal("KILL");
    daemon.start_again().await;
    let left = processes[0];
    assert!(!runs(left));
    signal("KILL", processes[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_session_leaves_no_process() {
    let (daemon, processes) = littered().await;
    assert_eq!(daemon.post("/v1/sessions/s/terminate", json!({})).await.status, 204);
    let (shed, serving) = (processes[1], daemon.serving());
    wait_for("the agent to end", async || {
        processes.iter().all(|pid| *pid == shed || *pid == serving || !runs(*pid))
    })
    .await;
    assert!(runs(serving));
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_session_ends_flooding_agent() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "t", "flood x").await;
    let last = async || daemon.turn("s", "t").await["lastEvent"].as_u64();
    wait_for("the flood", async || last().await > Some(1_000)).await;
    let agents = children(daemon.serving());
    assert!(!agents.is_empty());
    assert_eq!(daemon.post("/v1/sessions/s/terminate", json!({})).await.status, 204);
    wait_for("the agent to end", async || agents.iter().all(|pid| !runs(*pid))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphaned_processes_are_reaped() {
    let (daemon, processes) = littered().await;
    signal("KILL", processes[0]);
    let reaper = daemon.child.id();
    wait_for("the dead to be buried", async || !children(reaper).contains(&processes[0])).await;
}
