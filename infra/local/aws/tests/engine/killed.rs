//! `kill -9` of the whole engine.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Folder, SMALL, SMALLS, Stack, echo_function, settings, until};

/// The engine as a program of its own; its address, once it is up.
fn serve(folder: &Folder) -> (Child, String) {
    let echo = echo_function();
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/template.yaml");
    let mut child = Command::new(echo.with_file_name("serve"))
        .arg(template)
        .arg(folder.0.join("state"))
        .args(["Echo", "Brief", "Broken"].map(|id| format!("{id}={}", echo.display())))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    (child, ready["endpoint"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn restart_recovers_from_a_killed_engine() {
    let folder = std::sync::Arc::new(Folder::new());
    let (mut engine, endpoint) = serve(&folder);
    let go = folder.0.join("go");
    for (group, name) in [("a", "busy"), ("a", "next")] {
        let body = json!({ "name": name, "file": go }).to_string();
        let sent = crate::support::sqs(&endpoint)
            .send_message()
            .queue_url(format!("{endpoint}/000000000000/test-Inbox.fifo"))
            .message_group_id(group)
            .message_body(body)
            .send();
        sent.await.unwrap();
    }
    let processes = || async {
        let (_, listed) = crate::support::call(&endpoint, "GET", "/_bobbin/functions", None).await;
        listed["Echo"].as_array().cloned().unwrap_or_default()
    };
    until("a function works", async || processes().await.len() == 1).await;
    let process = processes().await[0].as_u64().unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();

    let again = settings(&folder, SMALL, &SMALLS);
    let stack = Stack::start_with(folder.clone(), again).await;
    let proc = format!("/proc/{process}/environ");
    until("the old process is gone", async || {
        std::fs::read(&proc).is_ok_and(|environment| environment.is_empty())
            || !std::path::Path::new(&proc).exists()
    })
    .await;
    std::fs::write(&go, "").unwrap();
    until("both messages are done", async || {
        stack.has_line("end busy") && stack.has_line("end next")
    })
    .await;
    stack.engine.stop().await;
}
