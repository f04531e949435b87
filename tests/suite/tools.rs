//! A sandbox's tools for an agent that runs elsewhere, on the laptop stack: with the protocol's own client, with the
//! real OpenCode, and with a server that crashes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bobbin_core::base::ids::SandboxKey;
use bobbin_core::tokens::bearer::Bearer;
use bobbin_tests::binaries::workspace;
use bobbin_tests::limits::ANSWER_MS_MAX;
use bobbin_tests::operator::operate;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::marked;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use bobbin_tests::{http, tools};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::run::{CHAT, COMMON, on, trial};

/// Longest time for one prompt of OpenCode, its start included.
const OPENCODE_MS_MAX: u64 = 120_000;
/// Idle time of a sandbox in the test that uses one.
const IDLE_MS: u64 = 20_000;
const NAMES: [&str; 8] = [
    "run_command",
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search",
    "get_url",
    "upload_file",
];

pub fn trials() -> Vec<Trial> {
    vec![
        on(&CHAT, "tools::mcp_client_works_stale_bearer_fails", async move |world| {
            walked(world).await
        }),
        on(&COMMON, "tools::real_opencode_gets_only_sandbox_tools", async move |world| {
            offered(world).await
        }),
        // The processes of all of the stack's calls are killed.
        trial("tools::dying_tool_server_repeats_no_command", async || {
            let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(quick()) });
            survived(World::of(&stack)).await;
            stack.end().unwrap();
        }),
        trial("tools::used_tools_keep_sandbox_running", async || {
            let mut limits = quick();
            limits["idle_pause_ms"] = json!(IDLE_MS);
            let stack = Stack::start(&Options { stand_in_agent: true, ..Options::limits(limits) });
            used(World::of(&stack)).await;
            stack.end().unwrap();
        }),
        on(&CHAT, "tools::tool_call_wakes_stopped_sandbox", async move |world| {
            brought_back(world).await
        }),
    ]
}

/// A sandbox with a name, and its tools' address.
pub struct Tools {
    world: World,
    name: String,
    told: Value,
}

impl Tools {
    async fn of(world: World) -> Self {
        Self::made(world, &[]).await
    }

    /// Tools of a sandbox created with these additional words of `sandbox create`.
    pub async fn made(world: World, more: &[&str]) -> Self {
        let digits: String = marked("").1.chars().filter(char::is_ascii_digit).collect();
        let name = format!("tools-{digits}");
        let channel = world.ready.discord_channel_id.clone();
        let words = [&["sandbox", "create", &name, "--channel", &channel], more].concat();
        let made = operate(&world, &words).await;
        assert_eq!(made.code, 0, "{made:?}");
        let told = operate(&world, &["sandbox", "tools", &name, "--json"]).await;
        assert_eq!(told.code, 0, "{told:?}");
        let told = told.json();
        assert_eq!(told["url"], format!("{}/mcp", world.ready.tools));
        Self { world, name, told }
    }

    fn url(&self) -> &str {
        self.told["url"].as_str().unwrap()
    }

    fn bearer(&self) -> &str {
        self.told["bearer"].as_str().unwrap()
    }

    /// Another bearer token of this stack for this sandbox.
    async fn bearer_of(&self, generation: u32) -> String {
        let key = self.world.secret("StackKey").await.unwrap();
        let sandbox: SandboxKey = self.told["sandbox"].as_str().unwrap().parse().unwrap();
        Bearer { sandbox, generation }.signed(key["stack_key"].as_str().unwrap())
    }

    /// A POST like a client's: status and body.
    async fn post(&self, bearer: &str, body: &Value) -> Result<(u16, Value), String> {
        let sent = http::client()
            .post(self.url())
            .bearer_auth(bearer)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .header("mcp-session-id", "a-session")
            .json(body)
            .timeout(Duration::from_millis(ANSWER_MS_MAX))
            .send()
            .await;
        let answer = sent.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        Ok((status, answer.json().await.unwrap_or_default()))
    }

    /// A call's text and whether it is an error.
    pub async fn call(
        &self,
        id: u64,
        tool: &str,
        arguments: Value,
    ) -> Result<(String, bool), String> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let (status, body) = self.post(self.bearer(), &body).await?;
        if status != 200 {
            return Err(format!("{status}: {body}"));
        }
        let result = &body["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        Ok((text.to_owned(), result["isError"] == true))
    }

    pub async fn end(self) {
        let words = ["sandbox", "destroy", &self.name, "--yes"];
        let ended = operate(&self.world, &words).await;
        assert_eq!(ended.code, 0, "{ended:?}");
    }
}

/// The report of an ended command, without its duration.
pub fn outcome(told: &str) -> String {
    let (code, rest) = told.split_once(" after ").unwrap();
    let (_, output) = rest.split_once(" s.\n").unwrap();
    format!("{code}: {output}")
}

async fn walked(world: World) {
    let tools = Tools::of(world).await;
    let packages = tools::node("mcp-client", &workspace().join("tests/mcp")).unwrap();
    let given = json!({
        "packages": packages, "url": tools.url(), "bearer": tools.bearer(),
        "stale": tools.bearer_of(7).await, "forged": format!("{}0", tools.bearer()),
    });
    let mut script = tools::script("node");
    script.arg(workspace().join("tests/mcp/walk.mjs"));
    let found: Value = tools::found(&mut script, &given).await;
    let text = |said: &str, is_error: bool| json!({"content": [{"type": "text", "text": said}], "isError": is_error});
    assert_eq!(found["version"], "2025-11-25", "{found}");
    assert_eq!(found["server"], "bobbin");
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    assert_eq!(found["has_session"], true);
    assert_eq!(found["tools"], json!(NAMES));
    assert_eq!(found["ping"], json!({}));
    assert_eq!(found["written"], text("Wrote project/notes.txt, 8 bytes.", false));
    assert_eq!(found["read"], text("one\ntwo\n", false));
    let ran = found["ran"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(outcome(ran), "Exit code 0: 2");
    assert_eq!(
        found["missing"],
        text("There is no file project/nowhere.txt in the sandbox.", true)
    );
    assert_eq!(found["unknown"]["code"], -32_602);
    for (which, says) in [
        (
            "stale",
            "This bearer is for generation 7 of its sandbox, but the sandbox was created again and is generation 1 now.",
        ),
        ("forged", "This bearer does not belong to this stack."),
    ] {
        let message = found[which]["message"].as_str().unwrap_or_default();
        assert!(message.contains(says), "{which}: {}", found[which]);
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(tools.post("", &list).await.unwrap().0, 401);
    let got = http::client().get(tools.url()).send().await.unwrap();
    assert_eq!(got.status(), 405);
    let page = http::client().post(tools.url()).header("origin", "https://evil.example");
    let page = page.bearer_auth(tools.bearer()).json(&list).send().await.unwrap();
    assert_eq!(page.status(), 403);
    tools.end().await;
}

async fn offered(world: World) {
    let tools = Tools::of(world).await;
    let cache = workspace().join(".bobbin/cache");
    let program = std::env::var_os("BOBBIN_AGENT_DIR").map_or_else(
        || opencode(&cache),
        |folders| std::env::split_paths(&folders).next().unwrap().join("opencode"),
    );
    let folder = tempfile::tempdir().unwrap();
    let mut config = tools.told["opencode"].clone();
    config["provider"] = json!({"scripted": {
        "npm": "@ai-sdk/openai-compatible", "name": "scripted",
        "options": {"baseURL": tools.world.ready.model_api, "apiKey": "none"},
        "models": {"scripted-1": {"name": "scripted-1"}},
    }});
    config["model"] = json!("scripted/scripted-1");
    config["small_model"] = json!("scripted/scripted-1");
    config["share"] = json!("disabled");
    config["autoupdate"] = json!(false);
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("opencode.json"), config.to_string()).unwrap();
    let (_, mark) = marked("");
    let prompt = format!(
        "{mark}\ncall: sandbox_run_command {{\"cmd\": \"echo '{mark}' >made.txt; pwd\"}}\ncall: bash {{\"command\": \"touch here\"}}\necho: done"
    );
    let mut command = tools::script(program);
    command
        .args(["run", "--model", "scripted/scripted-1"])
        .current_dir(&project)
        .env("HOME", folder.path())
        .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
        .env("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")
        .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
    // As an argument it would be quoted.
    let mut opencode = command.spawn().unwrap();
    let mut stdin = opencode.stdin.take().unwrap();
    stdin.write_all(prompt.as_bytes()).await.unwrap();
    drop(stdin);
    let within = Duration::from_millis(OPENCODE_MS_MAX);
    let ran = tokio::time::timeout(within, opencode.wait_with_output()).await;
    let ran = ran.expect("OpenCode ends in time").unwrap();
    let calls = tools.world.model_calls().await.unwrap();
    let calls: Vec<_> =
        calls.iter().filter(|call| call.user.contains(&mark) && !call.internal()).collect();
    assert!(!calls.is_empty(), "{ran:?}");
    let mut expected = NAMES.map(|name| format!("sandbox_{name}"));
    expected.sort();
    for call in &calls {
        let mut offered = call.tools.clone();
        offered.sort();
        assert_eq!(offered, expected);
    }
    let (text, is_error) = tools.call(1, "read_file", json!({"path": "made.txt"})).await.unwrap();
    assert_eq!((text, is_error), (format!("{mark}\n"), false), "{ran:?}");
    let last = calls.last().unwrap();
    assert!(last.text.contains("This request offers no `bash` tool."), "{}", last.text);
    assert!(last.text.contains("/project"), "{}", last.text);
    assert!(!project.join("here").exists() && !project.join("made.txt").exists());
    tools.end().await;
}

/// The real one, from the stack's sandboxes.
fn opencode(cache: &std::path::Path) -> PathBuf {
    let found = std::fs::read_dir(cache).unwrap().flatten();
    let mut programs = found.map(|entry| entry.path().join("bin/opencode"));
    programs.find(|program| program.is_file()).expect("the stack has installed it")
}

async fn survived(world: World) {
    let tools = Arc::new(Tools::of(world).await);
    let run = |id: u64, cmd: &'static str| {
        let tools = Arc::clone(&tools);
        async move { tools.call(id, "run_command", json!({"cmd": cmd})).await }
    };
    let (text, _) = run(1, "echo one").await.unwrap();
    assert_eq!(outcome(&text), "Exit code 0: one");
    assert!(!tools.world.kill("Tools").await.unwrap().is_empty());
    let (text, _) = run(2, "echo two").await.unwrap();
    assert_eq!(outcome(&text), "Exit code 0: two");

    // One that crashes in a call: its client gets no result and sends the same request again.
    let cmd = "echo begun >>count; while [ ! -f go ]; do sleep 0.1; done; cat count";
    let first = tokio::spawn(run(3, cmd));
    let mut id = 10;
    eventually(ANSWER_MS_MAX, "the command is begun", async || {
        id += 1;
        let (text, _) = run(id, "ls").await?;
        text.contains("count").then_some(()).ok_or(text)
    })
    .await;
    assert!(!first.is_finished());
    assert!(!tools.world.kill("Tools").await.unwrap().is_empty());
    first.await.unwrap().unwrap_err();
    let again = tokio::spawn(run(3, cmd));
    let (text, _) = run(5, "touch go").await.unwrap();
    assert_eq!(outcome(&text), "Exit code 0: ");
    let (text, is_error) = again.await.unwrap().unwrap();
    assert_eq!((outcome(&text).as_str(), is_error), ("Exit code 0: begun", false));
    let Ok(tools) = Arc::try_unwrap(tools) else {
        panic!("a call is still under way");
    };
    tools.end().await;
}

async fn used(world: World) {
    let tools = Tools::of(world).await;
    let mut first = None;
    let mut id = 0;
    eventually(ANSWER_MS_MAX, "it has been used for longer than it may be idle", async || {
        id += 1;
        let (text, is_error) = tools.call(id, "run_command", json!({"cmd": "true"})).await?;
        assert!(!is_error, "{text}");
        let listed = operate(&tools.world, &["sandbox", "list", "--json"]).await.json();
        let all = listed["sandboxes"].as_array().cloned().unwrap_or_default();
        let own = all.into_iter().find(|one| one["called"] == tools.name.as_str());
        let last = own.and_then(|own| own["last_used_ms"].as_u64()).ok_or("it is not listed")?;
        let since = last - *first.get_or_insert(last);
        (since > IDLE_MS).then_some(()).ok_or_else(|| format!("{since} ms"))
    })
    .await;
    tools.end().await;
}

async fn brought_back(world: World) {
    let tools = Tools::of(world).await;
    let kept = tools.call(1, "write_file", json!({"path": "kept", "content": "word"})).await;
    assert!(!kept.unwrap().1);
    let stopped = operate(&tools.world, &["sandbox", "stop", &tools.name]).await;
    assert_eq!(stopped.code, 0, "{stopped:?}");
    let read = |id: u64| tools.call(id, "read_file", json!({"path": "kept"}));
    let (text, is_error) = read(2).await.unwrap();
    let expected = "The sandbox was stopped. It is being started again with its files; what ran in it has ended. Wait 20 s and call this again.";
    assert_eq!((text.as_str(), is_error), (expected, true));
    let mut id = 2;
    eventually(ANSWER_MS_MAX, "it is back with its files", async || {
        id += 1;
        let (text, is_error) = read(id).await?;
        (text == "word" && !is_error).then_some(()).ok_or(text)
    })
    .await;
    let words = ["sandbox", "destroy", &tools.name, "--yes"];
    let ended = operate(&tools.world, &words).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let (text, is_error) = read(900).await.unwrap();
    let expected = "The sandbox is gone, with its files. Calling again does not help. Tell the person you work for: another sandbox is created by: bobbin sandbox create NAME; its tools have their own bearer.";
    assert_eq!((text.as_str(), is_error), (expected, true));
    let none = operate(&tools.world, &["sandbox", "tools", &tools.name]).await;
    assert_eq!(none.code, 3, "{none:?}");
}
