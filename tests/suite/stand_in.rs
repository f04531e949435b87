//! The stand-in for OpenCode answers like the recordings of the real one: Bobbin cannot tell them apart, so tests with
//! it are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use bobbin_agent::Sse;
use bobbin_tests::limits::VISIBLE_MS_MAX;
use bobbin_tests::wait::eventually;
use bobbin_tests::world::World;
use bobbin_tests::{binaries, http};
use libtest_mimic::Trial;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::run::{CHAT, on};

/// What a person or a stop does while a prompt runs.
#[derive(Debug, Clone, Copy)]
enum Act {
    Nothing,
    Permission(&'static str),
    Answer,
    Dismiss,
    Abort,
}

/// The recordings, each with an equivalent prompt and what happens meanwhile.
const RECORDED: [(&str, &str, Act); 9] = [
    ("simple", "echo: hello", Act::Nothing),
    ("tool-bash", "run: echo hello", Act::Nothing),
    ("tool-write", "write: hello.txt hello", Act::Nothing),
    ("perm-once", "ask: echo hello", Act::Permission("once")),
    ("perm-reject", "ask: echo hello", Act::Permission("reject")),
    ("question", "question: Which? | red | blue", Act::Answer),
    ("question-reject", "question: Which? | red | blue", Act::Dismiss),
    ("abort-tool", "run: sleep 60", Act::Abort),
    ("error401", "fail: 401", Act::Nothing),
];
/// Fields of the real one that the stand-in lacks and nobody reads.
const UNSAID: [&str; 5] = [
    "summary.diffs",
    "error.data.responseBody",
    "error.data.responseHeaders",
    "error.data.metadata",
    "model",
];

pub fn trials() -> Vec<Trial> {
    vec![on(&CHAT, "stand_in::it_speaks_as_opencode_was_recorded_to", recorded)]
}

/// The stand-in with one session.
struct Agent {
    client: Client,
    base: String,
    session: String,
}

impl Agent {
    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.base);
        let answer = http::call(&self.client, method, &url, "", body).await.unwrap();
        assert!(answer.status < 300, "{path}: {answer:?}");
        if answer.text.is_empty() { Value::Null } else { answer.json() }
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, &Value::Null).await
    }

    /// The only open ask of a kind.
    async fn asked(&self, kind: &str) -> String {
        eventually(VISIBLE_MS_MAX, "it asks", async || {
            let asked = self.get(&format!("/{kind}")).await;
            let id = asked[0]["id"].as_str().map(str::to_owned);
            id.ok_or_else(|| format!("no {kind}"))
        })
        .await
    }

    /// Runs a prompt; returns its messages.
    async fn run(&self, prompt: &str, text: &str, act: Act) -> Vec<Value> {
        let session = &self.session;
        let body = json!({
            "messageID": prompt, "model": {"providerID": "scripted", "modelID": "scripted-1"}, "system": "",
            "parts": [{"id": format!("{prompt}p0"), "type": "text", "text": text}],
        });
        self.call(Method::POST, &format!("/session/{session}/prompt_async"), &body).await;
        match act {
            Act::Nothing => {}
            Act::Permission(reply) => {
                let id = self.asked("permission").await;
                let reply = json!({"reply": reply});
                self.call(Method::POST, &format!("/permission/{id}/reply"), &reply).await;
            }
            Act::Answer => {
                let id = self.asked("question").await;
                let answers = json!({"answers": [["red"]]});
                self.call(Method::POST, &format!("/question/{id}/reply"), &answers).await;
            }
            Act::Dismiss => {
                let id = self.asked("question").await;
                self.call(Method::POST, &format!("/question/{id}/reject"), &json!({})).await;
            }
            Act::Abort => {
                eventually(VISIBLE_MS_MAX, "the command runs", async || {
                    let messages = self.get(&format!("/session/{session}/message")).await;
                    let runs = messages.to_string().contains(r#""metadata":{"output":"#);
                    runs.then_some(()).ok_or_else(|| messages.to_string())
                })
                .await;
                self.call(Method::POST, &format!("/session/{session}/abort"), &json!({})).await;
            }
        }
        eventually(VISIBLE_MS_MAX, "the run ends", async || {
            match self.get("/session/status").await {
                Value::Object(busy) if busy.is_empty() => Ok(()),
                busy => Err(busy.to_string()),
            }
        })
        .await;
        let messages = self.get(&format!("/session/{session}/message")).await;
        let is_its = |message: &&Value| {
            message["info"]["id"] == prompt || message["info"]["parentID"] == prompt
        };
        messages.as_array().unwrap().iter().filter(is_its).cloned().collect()
    }
}

async fn recorded(world: World) {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({"provider": {"scripted": {
        "options": {"baseURL": world.ready.model_api}, "models": {"scripted-1": {}},
    }}});
    let mut program = Command::new(binaries::folder().join("stand-in-agent"))
        .args(["serve", "--hostname", "127.0.0.1", "--port", "0"])
        .env("OPENCODE_CONFIG_CONTENT", config.to_string())
        .env("XDG_DATA_HOME", folder.path().join("data"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let base = line.rsplit(' ').next().unwrap().to_owned();
    let mut agent = Agent { client: http::client(), base, session: String::new() };
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = tokio::spawn(listen(agent.client.clone(), agent.base.clone(), heard.clone()));
    let made = agent.call(Method::POST, "/session", &json!({"title": "recorded"})).await;
    agent.session = made["id"].as_str().unwrap().to_owned();

    let fixtures = binaries::workspace().join("tests/fixtures/opencode");
    for (number, (name, text, act)) in RECORDED.into_iter().enumerate() {
        let said = agent.run(&format!("msg_{number}"), text, act).await;
        let file = std::fs::read_to_string(fixtures.join(format!("{name}.messages.json"))).unwrap();
        let real: Vec<Value> = serde_json::from_str(&file).unwrap();
        assert_eq!(said.len(), real.len(), "{name}: {said:#?}");
        for (said, real) in said.iter().zip(&real) {
            compared(name, &paths(&said["info"]), &paths(&real["info"]));
            let real = parts(real);
            for (kind, said) in parts(said) {
                let real = real.get(&kind);
                let real = real.unwrap_or_else(|| panic!("{name}: there is no {kind}"));
                compared(name, &said, real);
            }
        }
    }
    listening.abort();
    let real = events(&fixtures);
    let heard = heard.lock().unwrap();
    assert!(heard.len() > 50, "only {} events were heard", heard.len());
    for event in heard.iter() {
        let kind = event["type"].as_str().unwrap();
        let Some(real) = real.get(kind) else { panic!("there is no event {kind}") };
        let beyond: Vec<String> =
            paths(&event["properties"]).into_iter().filter(|path| !real.contains(path)).collect();
        assert!(beyond.is_empty(), "{kind} says beyond what was recorded: {beyond:?}");
    }
}

/// It has nothing that the real one lacks, and lacks nothing that is read.
fn compared(name: &str, said: &BTreeSet<String>, real: &BTreeSet<String>) {
    let beyond: Vec<&String> = said.difference(real).collect();
    assert!(beyond.is_empty(), "{name} says beyond what was recorded: {beyond:?}");
    let is_read = |path: &&String| !UNSAID.iter().any(|unsaid| path.starts_with(unsaid));
    let lacks: Vec<&String> = real.difference(said).filter(is_read).collect();
    assert!(lacks.is_empty(), "{name} lacks what was recorded: {lacks:?}");
}

/// A message's parts by kind, with all their fields.
fn parts(message: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for part in message["parts"].as_array().into_iter().flatten() {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = format!(
            "{} {} {}",
            word(&part["type"]),
            word(&part["tool"]),
            word(&part["state"]["status"])
        );
        all.insert(kind, paths(part));
    }
    all
}

/// The names of all fields of a value, from its root; lists and tool inputs are skipped.
fn paths(value: &Value) -> BTreeSet<String> {
    let (mut all, mut open) = (BTreeSet::new(), vec![(String::new(), value)]);
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) if !path.ends_with("input") => {
                let below = fields.iter().map(|(name, value)| {
                    (if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value)
                });
                open.extend(below);
            }
            _ => {
                all.insert(path);
            }
        }
    }
    all
}

/// The recorded events' fields, by kind.
fn events(fixtures: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in std::fs::read_dir(fixtures).unwrap() {
        let file = file.unwrap().path();
        if !file.to_string_lossy().ends_with(".event.sse") {
            continue;
        }
        let text = std::fs::read(&file).unwrap();
        for event in Sse::default().push(&text).unwrap() {
            let event: Value = serde_json::from_str(&event).unwrap();
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            all.entry(kind).or_default().extend(paths(&event["properties"]));
        }
    }
    all
}

async fn listen(client: Client, base: String, heard: Arc<Mutex<Vec<Value>>>) {
    let mut stream = client.get(format!("{base}/event")).send().await.unwrap();
    let mut sse = Sse::default();
    while let Ok(Some(bytes)) = stream.chunk().await {
        let events = sse.push(&bytes).unwrap();
        let events = events.iter().map(|event| serde_json::from_str(event).unwrap());
        heard.lock().unwrap().extend(events);
    }
}
