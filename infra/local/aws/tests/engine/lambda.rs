//! The runner: one function that does what it is asked to.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use bobbin_local_aws::LogStream;
use serde_json::{Value, json};

use crate::support::{Folder, SMALL, SMALLS, Stack, send, settings, until};

#[tokio::test]
async fn warm_process_serves_next_invocation() {
    let stack = Stack::start().await;
    let (failed, first) = stack.invoke("Echo", json!({ "a": 1 })).await;
    assert_eq!(failed, None);
    assert_eq!(first["echo"], json!({ "a": 1 }));
    let (_, second) = stack.invoke("Echo", json!({ "a": 2 })).await;
    assert_eq!(first["process"], second["process"]);
    let process = u32::try_from(first["process"].as_u64().unwrap()).unwrap();
    assert_eq!(stack.engine.processes(), [("Echo".to_owned(), process)]);
}

#[tokio::test]
async fn function_environment_excludes_the_hosts() {
    let stack = Stack::start().await;
    let (_, environment) = stack.invoke("Echo", json!({ "do": "environment" })).await;
    let told = |name: &str| environment[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(told("GREETING"), "hello");
    assert_eq!(told("STACK"), "test");
    assert_eq!(told("INBOX"), stack.engine.resource("Inbox").unwrap());
    assert_eq!(told("URL_PATH"), "test-Inbox.fifo/${literal}");
    assert_eq!(told("AWS_ENDPOINT_URL"), stack.engine.endpoint());
    assert_eq!(told("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), "512");
    assert_eq!(told("AWS_LAMBDA_FUNCTION_NAME"), "test-Echo");
    assert_eq!(told("RUST_BACKTRACE"), "1");
    let names: BTreeSet<&str> =
        environment.as_object().unwrap().keys().map(String::as_str).collect();
    for absent in ["PATH", "HOME", "CARGO_MANIFEST_DIR"] {
        assert!(!names.contains(absent), "{absent} came through");
    }
}

#[tokio::test]
async fn function_failures_read_as_on_aws() {
    let stack = Stack::start().await;
    let (failed, body) = stack.invoke("Echo", json!({ "do": "error" })).await;
    assert_eq!(failed.as_deref(), Some("Unhandled"));
    assert_eq!(body["errorMessage"], "asked to fail");

    let (failed, body) = stack.invoke("Echo", json!({ "do": "crash" })).await;
    assert_eq!(failed.as_deref(), Some("Unhandled"));
    assert_eq!(body["errorType"], "Runtime.ExitError");
    let message = body["errorMessage"].as_str().unwrap();
    assert!(message.ends_with("Runtime exited with error: exit status 7"), "{message}");
    let (failed, _) = stack.invoke("Echo", json!({})).await;
    assert_eq!(failed, None, "the next invocation gets a new process");

    let (failed, body) = stack.invoke("Brief", json!({ "do": "wait", "file": "/nowhere" })).await;
    assert_eq!(failed.as_deref(), Some("Unhandled"));
    assert_eq!(body["errorType"], "Sandbox.Timedout");
    let message = body["errorMessage"].as_str().unwrap();
    assert!(message.ends_with("Task timed out after 1.00 seconds"), "{message}");
    until("the process is gone", async || {
        stack.engine.processes().iter().all(|(function, _)| function != "Brief")
    })
    .await;

    let (failed, body) = stack.invoke("Broken", json!({})).await;
    assert_eq!(failed.as_deref(), Some("Unhandled"));
    assert_eq!(body["errorType"], "Runtime.ExitError");
    let starts = stack.texts().iter().filter(|line| *line == "refusing to start").count();
    assert_eq!(starts, 2, "a failed start is tried once more");
}

#[tokio::test]
async fn reserved_concurrency_bounds_parallel_processes() {
    let stack = Stack::start().await;
    let go = stack.folder.0.join("go");
    let wait = json!({ "do": "wait", "file": go });
    let both = async {
        tokio::join!(stack.invoke("Echo", wait.clone()), stack.invoke("Echo", wait.clone()))
    };
    let release = async {
        until("two processes wait", async || {
            stack.texts().iter().filter(|line| *line == "waiting").count() == 2
        })
        .await;
        std::fs::write(&go, "").unwrap();
    };
    let (((_, first), (_, second)), ()) = tokio::join!(both, release);
    assert_ne!(first, second);

    let slow = stack.invoke("Brief", json!({ "do": "wait", "file": "/nowhere" }));
    let other = async {
        until("the first runs", async || {
            stack.texts().iter().filter(|line| *line == "waiting").count() == 3
        })
        .await;
        let url =
            format!("{}/2015-03-31/functions/test-Brief/invocations", stack.engine.endpoint());
        send(Request::post(url).body(Body::from("{}")).unwrap()).await.0
    };
    let (_, status) = tokio::join!(slow, other);
    assert_eq!(status, 429);
}

#[tokio::test]
async fn function_output_is_forwarded_live() {
    let stack = Stack::start().await;
    let (_, request_id) = stack.invoke("Echo", json!({ "do": "print", "text": "x" })).await;
    until("both lines are there", async || {
        stack.has_line("to out: \"x\"") && stack.has_line("to error: \"x\"")
    })
    .await;
    let lines = stack.lines.lock().unwrap().clone();
    let line = lines.iter().find(|line| line.text == "to out: \"x\"").unwrap();
    assert_eq!(line.function, "Echo");
    assert_eq!(line.stream, LogStream::Out);
    assert_eq!(line.request_id.as_deref(), request_id.as_str());

    let go = stack.folder.0.join("live");
    let waiting = stack.invoke("Echo", json!({ "do": "wait", "file": go }));
    let live = async {
        until("a line arrives while the function runs", async || stack.has_line("waiting")).await;
        std::fs::write(&go, "").unwrap();
    };
    tokio::join!(waiting, live);
}

#[tokio::test]
async fn idle_process_ends_after_five_minutes() {
    let stack = Stack::start().await;
    stack.invoke("Echo", json!({})).await;
    stack.advance(290);
    stack.invoke("Echo", json!({})).await;
    assert_eq!(stack.engine.processes().len(), 1);
    stack.advance(300);
    until("it is gone", async || stack.engine.processes().is_empty()).await;
    let (failed, _) = stack.invoke("Echo", json!({})).await;
    assert_eq!(failed, None);
}

#[tokio::test]
async fn a_killed_process_is_replaced() {
    let stack = Stack::start().await;
    let (_, first) = stack.invoke("Echo", json!({})).await;
    let (status, killed) = stack.call("POST", "/_bobbin/functions/Echo/kill", None).await;
    assert_eq!(status, 200);
    assert_eq!(killed["killed"], json!([first["process"]]));
    let (failed, second) = stack.invoke("Echo", json!({})).await;
    assert_eq!(failed, None);
    assert_ne!(first["process"], second["process"]);
    until("the first is gone", async || {
        let (_, listed) = stack.call("GET", "/_bobbin/functions", None).await;
        listed == json!({ "Echo": [second["process"]] })
    })
    .await;
}

/// Its end is noticed a moment after it was killed: meanwhile it is not taken for one that waits for work.
#[tokio::test]
async fn killed_process_gets_no_more_work() {
    const KILLS: usize = 100;
    let stack = Stack::start().await;
    let mut processes = BTreeSet::new();
    for _ in 0..KILLS {
        let (failed, told) = stack.invoke("Echo", json!({})).await;
        assert_eq!(failed, None);
        assert!(processes.insert(told["process"].as_u64()));
        stack.call("POST", "/_bobbin/functions/Echo/kill", None).await;
    }
}

async fn fetch(
    stack: &Stack,
    method: &str,
    path: &str,
    kind: &str,
    body: &[u8],
) -> (u16, Value, Vec<u8>) {
    let base = stack.engine.function_url("Echo").unwrap();
    let request = Request::builder()
        .method(method)
        .uri(format!("{}{path}", base.trim_end_matches('/')))
        .header("content-type", kind)
        .header("x-Signature", "v0=1")
        .header("cookie", "k=v; l=w")
        .body(Body::from(body.to_vec()))
        .unwrap();
    let (status, _, bytes) = send(request).await;
    (status, serde_json::from_slice(&bytes).unwrap_or_default(), bytes)
}

#[tokio::test]
async fn function_url_events_match_aws() {
    let stack = Stack::start().await;
    let (status, event, _) = fetch(
        &stack,
        "POST",
        "/slack/events?a=1&b=%C3%A9&a=2",
        "application/json; charset=utf-8",
        b"{\"x\": 1}",
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(event["version"], "2.0");
    assert_eq!(event["rawPath"], "/slack/events");
    assert_eq!(event["rawQueryString"], "a=1&b=%C3%A9&a=2");
    assert_eq!(event["queryStringParameters"], json!({ "a": "1,2", "b": "é" }));
    assert_eq!(event["headers"]["x-signature"], "v0=1");
    assert_eq!(event["cookies"], json!(["k=v", "l=w"]));
    assert_eq!(event["requestContext"]["http"]["method"], "POST");
    assert_eq!(event["requestContext"]["http"]["sourceIp"], "127.0.0.1");
    assert_eq!(event["body"], "{\"x\": 1}");
    assert_eq!(event["isBase64Encoded"], false);

    let form = "application/x-www-form-urlencoded";
    let (_, event, _) = fetch(&stack, "POST", "/", form, b"payload=1").await;
    assert_eq!((&event["body"], &event["isBase64Encoded"]), (&json!("cGF5bG9hZD0x"), &json!(true)));
}

#[tokio::test]
async fn function_url_renders_its_response() {
    let stack = Stack::start().await;
    let url = stack.engine.function_url("Echo").unwrap();
    let get = |path: &str| Request::get(format!("{url}{path}")).body(Body::empty()).unwrap();
    let (status, headers, body) = send(get("binary")).await;
    assert_eq!((status, body.as_slice()), (201, &[0_u8, 1, 255][..]));
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
    let (status, _, body) = send(get("plain")).await;
    assert_eq!((status, body.as_slice()), (200, &b"{\"no\":\"status\"}"[..]));
    for path in ["error", "crash"] {
        let (status, _, body) = send(get(path)).await;
        assert_eq!((status, body.as_slice()), (502, &b"Internal Server Error"[..]), "{path}");
    }
    let (status, ..) = fetch(&stack, "POST", "/", "text/plain", &vec![b'x'; 7 << 20]).await;
    assert_eq!(status, 413);
}

#[tokio::test]
async fn no_process_outlives_stop_or_restart() {
    let stack = Stack::start().await;
    let (_, reply) = stack.invoke("Echo", json!({})).await;
    let process = reply["process"].as_u64().unwrap();
    let folder = stack.folder.clone();
    stack.engine.stop().await;
    assert!(!is_alive(process));

    // A process as a killed engine leaves it: of this state folder, with nobody to answer it.
    let state = folder.0.join("state").canonicalize().unwrap();
    let mut left_over = std::process::Command::new("sleep")
        .arg("600")
        .env("BOBBIN_STATE_DIR", &state)
        .spawn()
        .unwrap();
    let mut other = std::process::Command::new("sleep")
        .arg("600")
        .env("BOBBIN_STATE_DIR", state.join("other"))
        .spawn()
        .unwrap();
    for started in [left_over.id(), other.id()] {
        // The kernel lets its parent go on before its environment can be read.
        while std::fs::read(format!("/proc/{started}/environ")).unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }
    let stack = Stack::start_in(folder).await;
    assert!(left_over.wait().unwrap().code().is_none(), "it was killed");
    assert!(other.try_wait().unwrap().is_none(), "that of another folder runs on");
    other.kill().unwrap();
    other.wait().unwrap();
    stack.engine.stop().await;
}

fn is_alive(process: u64) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

#[tokio::test]
async fn state_folder_refuses_second_engine() {
    let stack = Stack::start().await;
    let folder = Folder(stack.folder.0.clone());
    let again = settings(&folder, SMALL, &SMALLS);
    std::mem::forget(folder);
    let refused = bobbin_local_aws::Engine::start(again).await.err().unwrap();
    assert!(refused.to_string().contains("another stack is running"), "{refused}");
}
