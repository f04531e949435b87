//! An agent for the tests of the daemon: it speaks the Agent Client Protocol, holds what the daemon says against the
//! protocol's own description where `BOBBIN_SPECS` has it, and does what a prompt's lines say:
//!
//! `say TEXT` · `latin TEXT`, `noise TEXT` (in bytes that are no UTF-8; the latter is no JSON) · `long BYTES` · `many
//! CHUNKS BYTES` · `flood TEXT` (without end) · `deaf` (it ends the turn and reads nothing more) · `ask COMMAND` ·
//! `question` · `form PROPERTIES` · `run COMMAND` · `images` · `hang` · `silent` (it hangs without a word) · `die` ·
//! `fail` · `leave FILE` (a process in a session of its own, whose id goes into FILE) · `shed FILE` (the same, without
//! any environment).
//!
//! Each prompt is noted in `prompts` in the session's directory before anything else happens.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

struct Agent {
    input: std::io::Lines<std::io::StdinLock<'static>>,
    directory: PathBuf,
    session: String,
    requests: i64,
}

fn main() {
    let mut agent = Agent {
        input: std::io::stdin().lock().lines(),
        directory: PathBuf::new(),
        session: format!("standin-{}", std::process::id()),
        requests: 0,
    };
    while let Some(line) = agent.read() {
        agent.serve(&line);
    }
}

/// What the daemon said, which is what the protocol's description calls by this name.
fn described(name: &str, said: &Value) -> Value {
    if let Some(mut schema) = bobbin_rules::description("agents/acp-v1.upstream.json") {
        let whole = schema.as_object_mut().expect("a schema is an object");
        whole.retain(|key, _| key == "$defs" || key == "$schema");
        whole.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        if let Err(error) = validator.validate(said) {
            panic!("this is no {name}: {error}: {said}");
        }
    }
    said.clone()
}

fn text(value: &Value) -> String {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

impl Agent {
    fn read(&mut self) -> Option<Value> {
        let line = self.input.next()?.ok()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON: {error}: {line}")))
    }

    fn write(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let mut output = std::io::stdout().lock();
        // A daemon that is gone takes nothing more.
        if writeln!(output, "{message}").and_then(|()| output.flush()).is_err() {
            std::process::exit(0);
        }
    }

    fn respond(&self, line: &Value, result: &Value) {
        self.write(json!({"id": line["id"], "result": result}));
    }

    fn serve(&mut self, line: &Value) {
        match line["method"].as_str().unwrap_or("") {
            "initialize" => {
                described("InitializeRequest", &line["params"]);
                let can = json!({
                    "loadSession": false, "sessionCapabilities": {"resume": {}},
                    "promptCapabilities": {"image": std::env::var_os("STANDIN_SEES").is_some()},
                });
                self.respond(line, &json!({"protocolVersion": 1, "agentCapabilities": can}));
            }
            "session/new" => {
                let new = described("NewSessionRequest", &line["params"]);
                self.directory = text(&new["cwd"]).into();
                self.respond(line, &json!({"sessionId": self.session}));
            }
            "session/resume" => {
                let resumed = described("ResumeSessionRequest", &line["params"]);
                self.directory = text(&resumed["cwd"]).into();
                self.session = text(&resumed["sessionId"]);
                self.respond(line, &json!({}));
            }
            "session/prompt" => self.prompt(line),
            "session/cancel" => {
                described("CancelNotification", &line["params"]);
            }
            other => panic!("nobody says {other} to an agent: {line}"),
        }
    }

    fn prompt(&mut self, line: &Value) {
        let prompt = described("PromptRequest", &line["params"]);
        assert_eq!(text(&prompt["sessionId"]), self.session);
        let blocks = prompt["prompt"].as_array().expect("a list");
        let texts = blocks.iter().filter(|block| block["type"] == "text");
        let text = texts.map(|block| text(&block["text"])).collect::<Vec<_>>().join("\n");
        let mut notes = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("prompts"))
            .expect("the directory takes files");
        writeln!(notes, "{}", text.replace('\n', " / ")).expect("the directory takes files");
        let mut reason = "end_turn";
        for action in text.lines() {
            let (word, rest) = action.split_once(' ').unwrap_or((action, ""));
            match word {
                "say" => self.say(rest),
                "many" => self.many(rest),
                "latin" => self.latin(&self.said(rest).to_string()),
                "noise" => self.latin(rest),
                "long" => self.say(&"x".repeat(rest.parse().expect("a number"))),
                "ask" => self.ask(rest),
                "question" => self.question(),
                "form" => self.form(serde_json::from_str(rest).expect("JSON")),
                "flood" => self.flood(rest),
                "deaf" => {
                    self.respond(line, &json!({"stopReason": reason}));
                    loop {
                        std::thread::park();
                    }
                }
                "run" => {
                    let mut shell = Command::new("sh");
                    shell.args(["-c", rest]).current_dir(&self.directory);
                    let done = shell.stdin(Stdio::null()).stdout(Stdio::null()).status();
                    assert!(done.is_ok_and(|done| done.success()), "{rest}");
                }
                "images" => {
                    let images = blocks.iter().filter(|block| block["type"] == "image");
                    let images = images.map(|one| format!("{} {}", one["mimeType"], one["data"]));
                    self.say(&format!("images: {}", images.collect::<Vec<_>>().join(", ")));
                    let links = blocks.iter().filter(|block| block["type"] == "resource_link");
                    let links = links.map(|one| self::text(&one["uri"]));
                    self.say(&format!("; links: {}", links.collect::<Vec<_>>().join(", ")));
                }
                "hang" | "silent" => {
                    if word == "hang" {
                        self.say("hanging");
                    }
                    self.wait_for_cancel();
                    reason = "cancelled";
                }
                "die" => std::process::exit(3),
                "fail" => {
                    let details = json!({"details": rest});
                    let error = json!({"code": -32603, "message": "the model is not there", "data": details});
                    self.write(json!({"id": line["id"], "error": error}));
                    return;
                }
                "leave" => leave(
                    &self.directory.join(rest),
                    "setsid sh -c 'echo $$ > \"$0\"; exec sleep 600' \"$0\" &",
                ),
                "shed" => leave(
                    &self.directory.join(rest),
                    "setsid env -i sh -c 'echo $$ > \"$0\"; exec /bin/sleep 600' \"$0\" &",
                ),
                other => self.say(&format!("unknown: {other}")),
            }
        }
        self.respond(line, &json!({"stopReason": reason}));
    }

    fn said(&self, text: &str) -> Value {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": self.session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    fn say(&self, text: &str) {
        self.write(self.said(text));
    }

    /// A line in which each `é` is the byte that Latin-1 has for it.
    fn latin(&self, line: &str) {
        let parts = line.split('é').map(str::as_bytes);
        let line = parts.collect::<Vec<_>>().join(&0xe9);
        let mut output = std::io::stdout().lock();
        let written = output.write_all(&line).and_then(|()| output.write_all(b"\n"));
        written.and_then(|()| output.flush()).expect("a daemon reads");
    }

    fn many(&self, numbers: &str) {
        let (chunks, bytes) = numbers.split_once(' ').expect("many CHUNKS BYTES");
        let text = "x".repeat(bytes.parse().expect("a number"));
        for _ in 0..chunks.parse().expect("a number") {
            self.say(&text);
        }
    }

    /// Says the same again and again, many lines at once.
    fn flood(&self, text: &str) -> ! {
        let lines = format!("{}\n", self.said(text)).repeat(1_000);
        let mut output = std::io::stdout().lock();
        while output.write_all(lines.as_bytes()).is_ok() {}
        std::process::exit(0);
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.requests;
        self.requests += 1;
        self.write(json!({"id": id, "method": method, "params": params}));
        while let Some(line) = self.read() {
            if line["id"] == json!(id) {
                return line["result"].clone();
            }
            self.serve(&line);
        }
        std::process::exit(0);
    }

    fn ask(&mut self, command: &str) {
        let call = json!({"toolCallId": "call-1", "title": command, "kind": "execute", "rawInput": {"command": command}});
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
        let options = json!([
            option("yes", "allow_once"),
            option("ever", "allow_always"),
            option("no", "reject_once")
        ]);
        let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
        let result = self.request("session/request_permission", &params);
        let response = described("RequestPermissionResponse", &result);
        match response["outcome"]["optionId"].as_str() {
            Some(chosen) => self.say(&format!("chosen: {chosen}")),
            None => self.say("chosen: nothing"),
        }
    }

    fn question(&mut self) {
        let options =
            json!([{"const": "pg", "title": "Postgres"}, {"const": "dy", "title": "DynamoDB"}]);
        self.form(json!({"db": {"type": "string", "title": "Which database?", "oneOf": options}}));
    }

    fn form(&mut self, properties: Value) {
        let schema = json!({"type": "object", "properties": properties});
        let params = json!({"mode": "form", "message": "A question", "requestedSchema": schema, "sessionId": self.session});
        let result = self.request("elicitation/create", &params);
        self.say(&format!("answered: {result}"));
    }

    fn wait_for_cancel(&mut self) {
        while let Some(line) = self.read() {
            self.serve(&line);
            if line["method"] == "session/cancel" {
                return;
            }
        }
        std::process::exit(0);
    }
}

/// Starts a process whose parent ends at once, and waits until it has noted its id.
fn leave(file: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    while std::fs::read_to_string(file).map_or(true, |text| text.trim().is_empty()) {
        std::thread::yield_now();
    }
}
