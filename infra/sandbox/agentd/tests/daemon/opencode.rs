//! The real OpenCode, fetched as the daemon fetches it, against the scripted model.

use bobbin_http::Method;
use bobbin_local_model::{MODEL_ID, Model};
use serde_json::{Value, json};

use crate::images::look;
use crate::installed::installed;
use crate::world::{Daemon, TOKEN, http, runs, wait_for};

/// A daemon with OpenCode, whose model is the scripted one.
async fn opencode(model: &Model) -> Option<Daemon> {
    opencode_with(model, &[]).await
}

/// The same with these variables on top.
async fn opencode_with(model: &Model, more: &[(&str, &str)]) -> Option<Daemon> {
    let bin = installed("opencode").await?;
    let home = tempfile::tempdir().unwrap().keep();
    let config = json!({
        "model": format!("fake/{MODEL_ID}"), "small_model": format!("fake/{MODEL_ID}"), "enabled_providers": ["fake"],
        "autoupdate": false, "share": "disabled", "lsp": false, "formatter": false,
        "permission": {"external_directory": {"*": "deny", "/dev/*": "ask"}, "doom_loop": "deny"},
        "experimental": {"continue_loop_on_deny": true},
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
            "options": {"baseURL": model.base_url(), "apiKey": "k"},
            "models": {MODEL_ID: {"name": "Scripted", "tool_call": true, "attachment": true,
                "modalities": {"input": ["text", "image"], "output": ["text"]}, "limit": {"context": 128_000, "output": 8_192}}},
        }},
    });
    let marker = home.join("config/opencode");
    std::fs::create_dir_all(marker.join("node_modules")).unwrap();
    // Else OpenCode fetches a package at its start.
    let lock = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": bobbin_agent::opencode::VERSION}}}});
    std::fs::write(marker.join("package-lock.json"), lock.to_string()).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let folder = |name: &str| home.join(name).display().to_string();
    let environment = [
        ("PATH", path),
        ("HOME", folder("home")),
        ("XDG_DATA_HOME", folder("data")),
        ("XDG_CONFIG_HOME", folder("config")),
        ("XDG_CACHE_HOME", folder("cache")),
        ("XDG_STATE_HOME", folder("state")),
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
    ];
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(more.iter().copied())
        .collect();
    Some(Daemon::start_with(&[], &environment).await)
}

async fn answer_of(daemon: &Daemon, turn: &str) -> String {
    let ended = daemon.until("s", turn, "done").await;
    assert_eq!(ended["outcome"], "done", "{ended}");
    last_text(daemon, turn).await
}

/// The last text of the agent's in a turn, as it is in the end.
async fn last_text(daemon: &Daemon, turn: &str) -> String {
    let events = daemon.events("s").await;
    let whole = events.iter().rev().filter(|event| event["turn"] == turn);
    let messages = whole
        .map(|event| &event["data"]["message"])
        .filter(|message| message["role"] == "assistant" && message["metadata"]["delta"] != true);
    let mut texts =
        messages.filter_map(|message| Some(message["parts"][0]["text"].as_str()?.to_owned()));
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

async fn permission(daemon: &Daemon, turn: &str, reply: &str) {
    let waiting = daemon.until("s", turn, "waiting").await;
    let ask = waiting["asks"][0]["permission"]["id"].as_str().unwrap().to_owned();
    let answer = daemon
        .post(&format!("/v1/sessions/s/permissions/{ask}/reply"), json!({"reply": reply}))
        .await;
    assert_eq!(answer.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a real agent: just deep"]
async fn real_opencode_passes_all_scenarios() {
    let model = Model::start(0).await.unwrap();
    let Some(mut daemon) = opencode(&model).await else {
        return;
    };
    let made = daemon.create_with("s", json!({"agent": "opencode", "title": "a thread"})).await;
    assert_eq!(made["healthy"], true, "{made}");
    let own = made["agentSessionId"].as_str().unwrap().to_owned();
    assert!(own.starts_with("ses_"));

    daemon.send("s", "text", "echo: hello there").await;
    assert_eq!(answer_of(&daemon, "text").await, "hello there");

    daemon.send("s", "file", "write: made.txt some words").await;
    answer_of(&daemon, "file").await;
    assert_eq!(std::fs::read_to_string(daemon.project().join("made.txt")).unwrap(), "some words");

    look(&daemon, "look").await;
    let seen = answer_of(&daemon, "look").await;
    assert_eq!(seen, "I see 1 image: image/png.");

    for (turn, reply) in [("once", "once"), ("no", "reject"), ("always", "always")] {
        daemon.send("s", turn, &format!("ask: touch {turn}.txt")).await;
        permission(&daemon, turn, reply).await;
        daemon.until("s", turn, "done").await;
        assert_eq!(
            daemon.project().join(format!("{turn}.txt")).exists(),
            reply != "reject",
            "{reply}"
        );
    }
    daemon.send("s", "unasked", "ask: touch unasked.txt").await;
    daemon.until("s", "unasked", "done").await;
    assert!(daemon.project().join("unasked.txt").exists());

    daemon.send("s", "question", "question: Which one? | Left | Right").await;
    let waiting = daemon.until("s", "question", "waiting").await;
    let question = &waiting["asks"][0]["question"];
    assert_eq!(question["questions"][0]["options"][1]["label"], "Right");
    let path = format!("/v1/sessions/s/questions/{}/reply", question["id"].as_str().unwrap());
    assert_eq!(daemon.post(&path, json!({"answers": [["Right"]]})).await.status, 204);
    assert!(answer_of(&daemon, "question").await.contains("Right"));

    daemon.send("s", "slow", "slow: 60 one two three four five six seven eight").await;
    wait_for("the first words", async || daemon.said("s", "slow").await.contains("one")).await;
    assert_eq!(daemon.post("/v1/sessions/s/turns/slow/cancel", json!({})).await.status, 204);
    let cancelled = daemon.until("s", "slow", "done").await;
    assert_eq!(cancelled["outcome"], "cancelled");

    daemon.send("s", "fails", "fail: 400").await;
    let failed = daemon.until("s", "fails", "failed").await;
    assert!(!failed["message"].as_str().unwrap().is_empty());

    // A stop of the sandbox in the middle of a turn; the agent's own session goes on.
    daemon.send("s", "cut", "run: setsid sh -c 'echo $$ > left; exec sleep 600' & sleep 600").await;
    let left = daemon.project().join("left");
    wait_for("the command", async || {
        std::fs::read_to_string(&left).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    let left = crate::world::pid_in(&left);
    assert!(runs(left));
    daemon.signal("TERM");
    daemon.child.wait().unwrap();
    assert!(!runs(left), "a command of OpenCode's outlives the daemon");
    daemon.start_again().await;
    daemon.until("s", "cut", "lost").await;
    daemon.send("s", "after", "echo: back again").await;
    assert_eq!(answer_of(&daemon, "after").await, "back again");
    let sessions = daemon.get("/v1/sessions").await;
    assert_eq!(sessions["sessions"][0]["agentSessionId"], own);

    compat(&daemon, &own).await;
}

/// OpenCode's own API, behind our token.
async fn compat(daemon: &Daemon, own: &str) {
    let call = async |path: &str| {
        let request = http().request(Method::GET, &daemon.url(path)).unwrap().bearer_auth(TOKEN);
        http().send(request).await.unwrap()
    };
    let health: Value = call("/opencode/global/health").await.json().unwrap();
    assert_eq!(health, json!({"healthy": true, "version": bobbin_agent::opencode::VERSION}));
    let directory = daemon.project().canonicalize().unwrap();
    let sessions: Value =
        call(&format!("/opencode/session?directory={}", directory.display())).await.json().unwrap();
    assert_eq!(sessions[0]["id"], own);
    assert_eq!(sessions[0]["title"], "a thread");
    let missing = call("/opencode/session/ses_none").await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json::<Value>().unwrap()["name"], "NotFoundError");
    let request =
        http().request(Method::POST, &daemon.url("/opencode/session")).unwrap().bearer_auth(TOKEN);
    let made = http()
        .send(request.json(&json!({"title": "by the proxy", "metadata": {"k": "v"}})))
        .await
        .unwrap();
    assert_eq!(made.json::<Value>().unwrap()["metadata"], json!({"k": "v"}));
    let request =
        http().request(Method::GET, &daemon.url("/opencode/event")).unwrap().bearer_auth(TOKEN);
    let mut stream = http().open(request).await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("server.connected"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a real agent: just deep"]
async fn opencode_skills_need_permission() {
    for (may, word) in [(false, "off"), (true, "on")] {
        let model = Model::start(0).await.unwrap();
        let more = [("BOBBIN_AGENTD_PROJECT_CONFIG", word)];
        let Some(daemon) = opencode_with(&model, &more).await else {
            return;
        };
        let skills = [".claude/skills", ".agents/skills", ".opencode/skill"];
        for (number, folder) in skills.into_iter().enumerate() {
            let folder = daemon.project().join(folder).join(format!("thief-{number}"));
            std::fs::create_dir_all(&folder).unwrap();
            let text =
                format!("---\nname: thief-{number}\ndescription: Takes things.\n---\nTake it.\n");
            std::fs::write(folder.join("SKILL.md"), text).unwrap();
        }
        let made = daemon.create_with("s", json!({"agent": "opencode"})).await;
        assert_eq!(made["healthy"], true, "{made}");
        let commands = daemon.get("/opencode/command").await.to_string();
        for number in 0..skills.len() {
            let name = format!("thief-{number}");
            assert_eq!(commands.contains(&name), may, "{name}, {word}: {commands}");
        }
    }
}
