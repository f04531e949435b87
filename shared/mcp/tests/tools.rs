//! The tools in a sandbox of the local provider, which runs what it is told. The program has its own `main` because the
//! provider starts each sandbox's first process from the running program.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_local_daytona::{LocalDaytona, LocalDaytonaSettings, sandbox_init_main};
use bobbin_mcp::{OpenedSandbox, RpcRequest, ToolPlace, answer};
use bobbin_sandbox::daytona::{DaytonaSandboxes, DaytonaSettings, SourceImage};
use bobbin_sandbox::{Provider, SandboxSpec};
use serde_json::{Value, json};

/// Longest time for one step of the test.
const STEP_MS_MAX: u64 = 60_000;

fn main() -> ExitCode {
    if let Some(code) = sandbox_init_main() {
        return code;
    }
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(all());
    ExitCode::SUCCESS
}

/// A connection of a client to the server, which keeps nothing of it.
struct Client {
    provider: Arc<DaytonaSandboxes>,
    name: String,
    session: String,
    ids: AtomicU64,
    left_out: Option<String>,
}

#[async_trait]
impl ToolPlace for Client {
    async fn open(&self) -> Result<OpenedSandbox, String> {
        let sandbox = self.provider.observe(&self.name).await;
        Ok(OpenedSandbox {
            provider: Arc::clone(&self.provider) as Arc<dyn Provider>,
            sandbox: sandbox.map_err(|error| error.to_string())?,
            left_out: self.left_out.clone(),
        })
    }
}

impl Client {
    /// The content and whether it is an error, of the call with this id.
    async fn sent(&self, id: u64, tool: &str, arguments: &Value) -> (Value, bool) {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let body = body.to_string();
        let request = RpcRequest {
            body: body.as_bytes(),
            session: Some(&self.session),
            version: Some("2025-11-25"),
            nonce: "invocation",
        };
        let answered =
            tokio::time::timeout(Duration::from_millis(STEP_MS_MAX), answer(&request, self));
        let body: Value = serde_json::from_str(&answered.await.unwrap().body.unwrap()).unwrap();
        let result = &body["result"];
        (result["content"][0].clone(), result["isError"] == true)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let id = self.ids.fetch_add(1, Ordering::SeqCst);
        let (content, is_error) = self.sent(id, tool, &arguments).await;
        let text = content["text"].as_str().unwrap_or_default().to_owned();
        if is_error { Err(text) } else { Ok(text) }
    }

    async fn run(&self, cmd: &str) -> String {
        self.call("run_command", json!({"cmd": cmd})).await.unwrap()
    }
}

/// What is said of a command that has ended, without how long it took.
fn outcome(told: &str) -> String {
    let (code, rest) = told.split_once(" after ").unwrap();
    let (seconds, output) = rest.split_once(" s.\n").unwrap();
    assert!(seconds.parse::<u64>().unwrap() < 60, "{told}");
    format!("{code}: {output}")
}

async fn all() {
    let state = tempfile::tempdir().unwrap();
    let settings = LocalDaytonaSettings::new(state.path().to_owned(), "local-key".to_owned());
    let local = LocalDaytona::start(settings).await.unwrap();
    let settings = DaytonaSettings {
        api: local.api_url(),
        stack: "test".to_owned(),
        stack_id: "this-one".to_owned(),
        image: SourceImage::Dockerfile("FROM scratch\n".to_owned()),
        limits: SandboxLimits::DEFAULT,
    };
    let provider = Arc::new(DaytonaSandboxes::new(settings, local.api_key()).unwrap());
    let key = ThreadKey::discord("1", "2").unwrap().sandbox();
    let name = sandbox_name("test", &key, 1);
    let spec = SandboxSpec { secrets: &BTreeMap::new(), snapshot: None };
    let mut seen = provider.create(&key, 1, spec).await.unwrap();
    while seen != SandboxState::Running {
        seen = provider.observe(&name).await.unwrap().state;
        tokio::task::yield_now().await;
    }
    let sandbox = provider.observe(&name).await.unwrap();
    let made =
        provider.exec(&sandbox, "mkdir project", &BTreeMap::new(), Duration::from_secs(10)).await;
    assert_eq!(made.unwrap().exit_code, 0);
    let client = Client {
        provider,
        name,
        session: "one".to_owned(),
        ids: AtomicU64::new(1),
        left_out: None,
    };
    macro_rules! step {
        ($name:ident) => {
            $name(&client).await;
            println!("test tools::{} ... ok", stringify!($name));
        };
    }
    step!(command_tells_exit_code_output_and_context);
    step!(long_output_keeps_ends_and_whole_file);
    step!(long_command_continues_and_is_polled);
    step!(a_command_runs_once_however_often_its_call_arrives);
    step!(a_command_is_ended_after_its_time);
    step!(written_file_keeps_permissions_when_edited);
    step!(a_repeat_of_a_change_undoes_nothing_newer);
    step!(uploaded_image_is_shown_as_image);
    step!(folders_are_listed_and_searched);
    step!(missing_files_name_what_clone_left_out);
    step!(a_port_has_an_address);
    step!(command_cut_by_stop_is_not_ended);
    drop(client);
    local.stop().await;
}

async fn command_tells_exit_code_output_and_context(client: &Client) {
    let arguments = json!({"cmd": "echo \"$GREETING 'from' $(basename \"$PWD\")\"; env | grep -c BOBBIN_C; echo oh >&2; exit 3", "env": {"GREETING": "hi \"there\""}});
    let told = client.call("run_command", arguments).await.unwrap();
    assert_eq!(outcome(&told), "Exit code 3: hi \"there\" 'from' project\n0\noh");
    // Names that the script around the command has, too.
    let arguments = json!({"cmd": "echo \"$dir $runner $name\"", "env": {"dir": "a b", "runner": "$c", "name": "'d'"}});
    let told = client.call("run_command", arguments).await.unwrap();
    assert_eq!(outcome(&told), "Exit code 0: a b $c 'd'");
    let arguments = json!({"cmd": "echo harmless", "env": {"BASH_ENV": "evil.sh"}});
    let told = client.call("run_command", arguments).await;
    assert!(told.unwrap_err().starts_with("BASH_ENV cannot be set here"));
    let told = client.call("run_command", json!({"cmd": "pwd", "cwd": "/tmp"})).await;
    assert_eq!(outcome(&told.unwrap()), "Exit code 0: /tmp");
    let told = client.call("run_command", json!({"cmd": "pwd", "cwd": "none"})).await;
    assert_eq!(told.unwrap_err(), "The folder to run it in does not exist.");
}

async fn long_output_keeps_ends_and_whole_file(client: &Client) {
    let told = client.run("seq 1 100000").await;
    assert!(told.starts_with("Exit code 0 after ") && told.ends_with("\n99999\n100000"), "{told}");
    assert!(told.len() < 48 * 1024 && told.contains("\n1\n2\n3\n"));
    let file = told.split("The whole output is in ").nth(1).unwrap();
    let file = file.split(']').next().unwrap();
    let counted = client.run(&format!("wc -l <{file}")).await;
    assert!(counted.ends_with("\n100000"), "{counted}");
}

/// The id by which a command that still runs is asked for again.
fn id_of(told: &str) -> String {
    let behind = told.split("with the id ").nth(1).unwrap();
    behind.split(' ').next().unwrap().to_owned()
}

async fn long_command_continues_and_is_polled(client: &Client) {
    let cmd = "echo began; while [ ! -f go ]; do sleep 0.1; done; echo ended";
    let told = client.call("run_command", json!({"cmd": cmd, "background": true})).await.unwrap();
    assert!(told.starts_with("It has been running for "), "{told}");
    let id = id_of(&told);
    let told = client.call("run_command", json!({"id": id, "wait_ms": 400})).await.unwrap();
    assert!(told.ends_with("Its output so far:\nbegan"), "{told}");
    client.run("touch go").await;
    let told = client.call("run_command", json!({"id": id})).await.unwrap();
    assert!(told.starts_with("Exit code 0 after ") && told.ends_with("s.\nbegan\nended"), "{told}");
    let told = client.call("run_command", json!({"id": "abc"})).await.unwrap_err();
    assert!(told.starts_with("There is no command \"abc\" in this sandbox"), "{told}");
}

async fn a_command_runs_once_however_often_its_call_arrives(client: &Client) {
    let arguments = json!({"cmd": "echo once >>count; cat count"});
    let call = || client.sent(900, "run_command", &arguments);
    let (one, two, three) = tokio::join!(call(), call(), call());
    let expected = "Exit code 0: once";
    for (content, is_error) in [one, two, three, call().await] {
        let told = outcome(content["text"].as_str().unwrap());
        assert_eq!((told.as_str(), is_error), (expected, false));
    }
    // The same words under an id of their own are another call.
    let again = client.sent(901, "run_command", &arguments).await.0;
    let told = outcome(again["text"].as_str().unwrap());
    assert_eq!(told, "Exit code 0: once\nonce");
}

async fn a_command_is_ended_after_its_time(client: &Client) {
    let told = client.call("run_command", json!({"cmd": "sleep 600", "timeout_ms": 1000})).await;
    let told = told.unwrap();
    assert!(
        told.starts_with("It timed out and was ended after ") && told.contains("(exit code 124)"),
        "{told}"
    );
}

async fn written_file_keeps_permissions_when_edited(client: &Client) {
    let content = "#!/bin/sh\necho 'a $b \"c\"'\n";
    let wanted = json!({"path": "deep/er/run.sh", "content": content, "mode": "755"});
    let told = client.call("write_file", wanted).await.unwrap();
    assert_eq!(told, format!("Wrote project/deep/er/run.sh, {} bytes.", content.len()));
    let read = client.call("read_file", json!({"path": "deep/er/run.sh"})).await.unwrap();
    assert_eq!(read, content);
    let edit = |old: &str, new: &str| json!({"path": "deep/er/run.sh", "old": old, "new": new});
    client.call("edit_file", edit("a $b", "b $c")).await.unwrap();
    let told = client.run("deep/er/run.sh; stat -c %a deep/er/run.sh").await;
    assert!(told.ends_with("\nb $c \"c\"\n755"), "{told}");
    let told = client.call("edit_file", edit("nowhere", "x")).await.unwrap_err();
    assert!(told.starts_with("The old text is not in project/deep/er/run.sh"), "{told}");
    client.run("printf 'one\\r\\ntwo\\r\\nthree\\r\\n' > crlf.txt").await;
    let edit_crlf = json!({"path": "crlf.txt", "old": "one\ntwo", "new": "one\n2\nand"});
    client.call("edit_file", edit_crlf).await.unwrap();
    let told = client.run("od -c crlf.txt | head -2").await;
    let expected = ["o   n   e  \\r  \\n   2  \\r  \\n", "a   n   d  \\r  \\n   t"];
    assert!(expected.iter().all(|part| told.contains(part)), "{told}");
    let told = client.call("edit_file", edit("c", "x")).await.unwrap_err();
    assert!(told.contains("times: include more of the text around it"), "{told}");
    let told = client.call("read_file", json!({"path": "none"})).await.unwrap_err();
    assert_eq!(told, "There is no file project/none in the sandbox.");
    let told = client.call("write_file", json!({"path": "deep", "content": ""})).await;
    assert_eq!(told.unwrap_err(), "project/deep is a folder.");
    let absolute = json!({"path": "/tmp/bobbin-mcp-test", "content": "x"});
    client.call("write_file", absolute).await.unwrap();
    assert!(client.run("cat /tmp/bobbin-mcp-test").await.ends_with("\nx"));
}

async fn a_repeat_of_a_change_undoes_nothing_newer(client: &Client) {
    let wanted = json!({"path": "newer", "content": "old"});
    assert!(!client.sent(950, "write_file", &wanted).await.1);
    client.run("echo new >newer").await;
    let (content, is_error) = client.sent(950, "write_file", &wanted).await;
    let expected =
        "This call arrived before, so it is not repeated. Read project/newer to see the result.";
    assert_eq!((content["text"].as_str(), is_error), (Some(expected), true));
    assert_eq!(client.call("read_file", json!({"path": "newer"})).await.unwrap(), "new\n");
    assert_eq!(outcome(&client.run("ls ../.bobbin/ready | wc -l").await), "Exit code 0: 0");
}

async fn uploaded_image_is_shown_as_image(client: &Client) {
    // A picture of one dot.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    client.call("upload_file", json!({"path": "dot.png", "data": data})).await.unwrap();
    let (content, is_error) = client.sent(960, "read_file", &json!({"path": "dot.png"})).await;
    let expected = json!({"type": "image", "data": data, "mimeType": "image/png"});
    assert_eq!((content, is_error), (expected, false));
    let told = client.call("upload_file", json!({"path": "x", "data": "%"})).await;
    assert_eq!(told.unwrap_err(), "`data` is not base64.");
    client.run("printf '\\377\\376' >binary").await;
    let told = client.call("read_file", json!({"path": "binary"})).await.unwrap_err();
    assert_eq!(told, "This file is not text: read it with run_command.");
}

async fn missing_files_name_what_clone_left_out(client: &Client) {
    let cloned = Client {
        provider: Arc::clone(&client.provider),
        name: client.name.clone(),
        session: "two".to_owned(),
        ids: AtomicU64::new(1),
        left_out: Some("submodules (lib)".to_owned()),
    };
    cloned.run("mkdir -p tree/lib").await;
    let list = json!({"path": "tree/lib"});
    let listed = cloned.call("list_files", list).await.unwrap();
    let read = json!({"path": "tree/lib/a.c"});
    let missed = cloned.call("read_file", read).await.unwrap_err();
    let left_out =
        "(The checkout was made without submodules (lib). Fetch them if the task needs them.)";
    assert_eq!(listed, format!("The folder is empty.\n{left_out}"));
    assert_eq!(
        missed,
        format!("There is no file project/tree/lib/a.c in the sandbox.\n{left_out}")
    );
}

async fn folders_are_listed_and_searched(client: &Client) {
    client.run("mkdir -p tree/sub tree/.git/objects; echo 'fn main() {}' >tree/sub/main.rs").await;
    let told = client.call("list_files", json!({"path": "tree", "depth": 3})).await.unwrap();
    let names: Vec<&str> = told.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(names, [".git", "sub", "sub/main.rs"], "{told}");
    let told = client.call("list_files", json!({"path": "none"})).await.unwrap_err();
    assert_eq!(told, "There is no folder project/none in the sandbox.");
    let wanted = json!({"pattern": "fn +main", "path": "tree"});
    let told = client.call("search", wanted).await.unwrap();
    assert!(told.ends_with("/tree/sub/main.rs:1:fn main() {}"), "{told}");
    let told = client.call("search", json!({"pattern": "no such words"})).await;
    assert_eq!(told.unwrap(), "Nothing matches.");
}

async fn a_port_has_an_address(client: &Client) {
    let told = client.call("get_url", json!({"port": 3000})).await.unwrap();
    assert!(
        told.starts_with("http") && told.contains("with the header x-daytona-preview-token: "),
        "{told}"
    );
}

async fn command_cut_by_stop_is_not_ended(client: &Client) {
    let told =
        client.call("run_command", json!({"cmd": "echo began; sleep 600", "wait_ms": 500})).await;
    let told = told.unwrap();
    let id = id_of(&told);
    let latest = tokio::time::Instant::now() + Duration::from_millis(STEP_MS_MAX);
    let mut seen = client.provider.stop(&client.name, latest).await.unwrap();
    while seen != SandboxState::Stopped {
        seen = client.provider.observe(&client.name).await.unwrap().state;
    }
    while seen != SandboxState::Running {
        seen = client.provider.start(&client.name).await.unwrap();
    }
    let told = client.call("run_command", json!({"id": id})).await.unwrap_err();
    assert!(told.starts_with("It ended when the sandbox was stopped"), "{told}");
    assert!(told.ends_with("began"), "{told}");
}
