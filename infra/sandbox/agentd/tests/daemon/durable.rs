//! What is told stays true: kills, full disks, very many events.

use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Daemon, TOKEN, signal, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn kill_keeps_events_and_loses_turn() {
    let mut daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "done", "say before").await;
    daemon.until("s", "done", "done").await;
    for round in 0..6_u64 {
        let turn = format!("cut{round}");
        let before = daemon.events("s").await.len() as u64;
        daemon.send("s", &turn, "many 400 50\nhang").await;
        // Killed in the middle of writing, each time elsewhere.
        let wanted = before + 1 + round * 61;
        let mut told: Vec<Value> = Vec::new();
        while told.len() as u64 + before < wanted {
            let offset = before + told.len() as u64;
            let page = daemon
                .get(&format!("/v1/sessions/s/events?offset={offset}&wait=1000&limit=20"))
                .await;
            told.extend(page["events"].as_array().unwrap().iter().cloned());
        }
        if round % 2 == 0 {
            // The half that serves alone: the other one starts it again.
            signal("KILL", daemon.serving());
            daemon.wait_until_it_answers().await;
        } else {
            let serving = daemon.serving();
            daemon.signal("STOP");
            signal("KILL", serving);
            daemon.signal("KILL");
            daemon.start_again().await;
        }
        let events = daemon.events("s").await;
        let place = usize::try_from(before).unwrap();
        assert_eq!(events[place..place + told.len()], told, "round {round}");
        let lost = daemon.until("s", &turn, "lost").await;
        assert_eq!(lost["message"], "the daemon or its sandbox was stopped during the turn");
        let last = events.last().unwrap();
        assert_eq!(
            (&last["turn"], &last["data"]["turnEnded"]["outcome"]),
            (&json!(turn), &json!("lost"))
        );
        let ids: Vec<u64> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
        assert_eq!(daemon.send("s", &turn, "many 400 50\nhang").await, "AlreadyKnown");
        assert_eq!(daemon.turn("s", "done").await["state"], "done");
        assert_eq!(daemon.turn("s", "never").await["state"], "not_seen");
    }
    daemon.send("s", "after", "say after").await;
    daemon.until("s", "after", "done").await;
    assert_eq!(daemon.prompts().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_loses_the_queued_turn() {
    for kills in [true, false] {
        let mut daemon = Daemon::start().await;
        daemon.create("s").await;
        daemon.send("s", "first", "hang").await;
        daemon.send("s", "second", "say second").await;
        wait_for("the agent to hang", async || daemon.said("s", "first").await == "hanging").await;
        let serving = daemon.serving();
        daemon.signal(if kills { "KILL" } else { "TERM" });
        // The serving half ends with the reaping one.
        wait_for("the serving half to end", async || !crate::world::runs(serving)).await;
        daemon.start_again().await;
        daemon.until("s", "first", "lost").await;
        let second = daemon.turn("s", "second").await;
        assert_eq!(
            (&second["state"], &second["message"]),
            (&json!("lost"), &json!("the daemon or its sandbox was stopped before the turn began"))
        );
        daemon.send("s", "third", "say third").await;
        daemon.until("s", "third", "done").await;
        assert_eq!(daemon.prompts(), ["hang", "say third"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_events() {
    let daemon = Daemon::start().await;
    daemon.create("s").await;
    daemon.send("s", "warm", "many 2000 100").await;
    daemon.until("s", "warm", "done").await;
    let before = daemon.events("s").await.len() as u64;
    let resident = resident_kb(daemon.serving());
    daemon.send("s", "t", "many 100000 100").await;
    // A client that reads nothing of what it has asked for costs nothing either.
    let url = daemon.url("/v1/sessions/s/events/sse");
    let request = crate::world::http().request(bobbin_http::Method::GET, &url).unwrap();
    let idle = crate::world::http().open(request.bearer_auth(TOKEN)).await.unwrap();
    wait_for("the turn to end", async || daemon.turn("s", "t").await["state"] == "done").await;
    drop(idle);
    for offset in [0, 1, 50_000, before + 99_990] {
        let page = daemon.get(&format!("/v1/sessions/s/events?offset={offset}&limit=5")).await;
        assert_eq!(page["events"][0]["id"], offset + 1);
        assert_eq!(page["events"].as_array().unwrap().len(), 5);
    }
    let grown = resident_kb(daemon.serving()).saturating_sub(resident);
    assert!(grown < 30 * 1024, "{grown} KiB more for 100,000 events");
}

/// Resident memory of a process, in KiB.
fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn second_daemon_on_state_folder_refuses() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let daemon = runtime.block_on(Daemon::start());
    let mut second = Command::new(env!("CARGO_BIN_EXE_bobbin-agentd"));
    second.args(["--port", "0", "--token", TOKEN, "--state"]).arg(daemon.state());
    let output = second.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let folder = daemon.state().canonicalize().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!(
            "bobbin-agentd (serving): {} belongs to another running bobbin-agentd; end that one, or give this one its own --state\n",
            folder.display()
        )
    );
}

/// A daemon whose folder is a disk of so few kilobytes, where the system lets us make one.
async fn on_a_small_disk(kilobytes: u32) -> Option<Daemon> {
    let may = Command::new("unshare").args(["-rm", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no mount namespaces here, so no small disk");
        return None;
    }
    let mut daemon = Daemon::start().await;
    daemon.signal("TERM");
    let _ = daemon.child.wait();
    let script = format!("mount -t tmpfs -o size={kilobytes}k none \"$0\" && exec \"$@\"");
    let plain = daemon.command();
    let mut command = Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", &script])
        .arg(daemon.state())
        .arg(plain.get_program())
        .args(plain.get_args());
    command.current_dir(daemon.project());
    daemon.child = command.spawn().unwrap();
    daemon.wait_until_it_answers().await;
    Some(daemon)
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_fails_the_turn() {
    let Some(daemon) = on_a_small_disk(2_000).await else {
        return;
    };
    daemon.create("s").await;
    daemon.send("s", "small", "say small").await;
    daemon.until("s", "small", "done").await;
    daemon.send("s", "big", "many 20000 500\nhang").await;
    let failed = daemon.until("s", "big", "failed").await;
    assert_eq!(failed["reason"], "storage_full");
    assert_eq!(
        failed["message"],
        "the sandbox's disk is full, and what the agent says cannot be kept"
    );
    let events = daemon.events("s").await;
    let ids: Vec<u64> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["data"]["turnEnded"]["reason"], "storage_full");
    assert_eq!(daemon.said("s", "small").await, "small");
    // Room was set aside for the end, so that messages are taken a while longer; then they are refused.
    let mut refused = None;
    for number in 0..2_000 {
        let turn = format!("more{number}");
        let body = json!({"message": "say y".repeat(10_000), "turn": turn});
        let answer = daemon.post("/v1/sessions/s/messages", body).await;
        match answer.status {
            // One at a time: a session that works takes no other.
            204 => drop(daemon.until_any("s", &turn, &["done", "failed"]).await),
            _ => {
                refused = Some(answer);
                break;
            }
        }
    }
    let refused = refused.expect("the disk gets full");
    assert_eq!(
        (refused.status, &refused.body["type"]),
        (507, &json!("urn:sandbox-agent:error:storage_full"))
    );
    assert_eq!(daemon.turn("s", "small").await["state"], "done");
}

/// A turn that fills the daemon's disk and says nothing more. Its id is long, so that nothing of it fits where a prompt
/// does not.
async fn filled(daemon: &Daemon, how: &str) -> String {
    let turn = "quiet".repeat(38);
    daemon.create("s").await;
    let fills = format!("run {how}; cat /dev/zero > ../state/fill; touch filled\nsilent");
    daemon.send("s", &turn, &fills).await;
    wait_for("the disk to be full", async || daemon.project().join("filled").exists()).await;
    // What is left of the last block.
    for (size, name) in [(1_000, "large"), (1, "small")] {
        for number in 0.. {
            let body = json!({"message": "x".repeat(size), "turn": format!("{name}{number}")});
            let answer = daemon.post("/v1/sessions/s/messages", body).await;
            if answer.status == 507 {
                break;
            }
            assert_eq!(answer.status, 204, "{}", answer.body);
        }
    }
    assert_eq!(daemon.turn("s", &turn).await["state"], "running");
    turn
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_still_allows_cancel() {
    // With what was set aside, and without.
    for before in ["true", "rm ../state/reserve"] {
        let Some(daemon) = on_a_small_disk(2_000).await else {
            return;
        };
        let turn = filled(&daemon, before).await;
        let path = format!("/v1/sessions/s/turns/{turn}/cancel");
        let told = daemon.post(&path, json!({})).await;
        assert_eq!(told.status, 204, "{before}: {}", told.body);
        let ended = daemon.until("s", &turn, "done").await;
        assert_eq!(ended["outcome"], "cancelled", "{before}");
        for waited in ["large0", "small0"] {
            daemon.until_any("s", waited, &["not_seen", "done", "failed"]).await;
        }
        let told = daemon.post("/v1/sessions/s/terminate", json!({})).await;
        assert_eq!(told.status, 204, "{before}: {}", told.body);
        let after = json!({"message": "x", "turn": "after"});
        let refused = daemon.post("/v1/sessions/s/messages", after).await;
        assert_eq!(refused.status, 409, "{before}: {}", refused.body);
    }
}
