use std::path::{Path, PathBuf};
use std::time::Duration;

use bobbin_local_daytona::opencode;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, fresh_folder, settings, wait_for};

fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.bobbin/cache")
}

/// As Bobbin's worker starts it: the quiet, offline way, with the port of the sandbox.
const START: &str = r#"
marker="${XDG_CONFIG_HOME:-$HOME/.config}/opencode"
mkdir -p .bobbin "$marker/node_modules"
printf '%s' '{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}}}' >"$marker/package-lock.json"
(setsid opencode serve --hostname 127.0.0.1 --port "${OPENCODE_PORT:-4096}" >.bobbin/opencode.log 2>&1 </dev/null &)
"#;

async fn start_server(world: &World, id: &str) {
    let body = json!({ "command": START, "timeout": 20, "envs": {
        "OPENCODE_SERVER_PASSWORD": "pw", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_SHARE": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }});
    let (status, answer) = world.post(&format!("/toolbox/{id}/process/execute"), body).await;
    assert_eq!((status.as_u16(), &answer["exitCode"]), (200, &json!(0)), "{answer}");
}

struct Link {
    url: String,
    token: String,
}

impl Link {
    async fn fetch(world: &World, id: &str) -> Self {
        let (_, link) = world.get(&format!("/api/sandbox/{id}/ports/4096/preview-url")).await;
        let text = |field: &str| link[field].as_str().unwrap().to_owned();
        Link { url: text("url"), token: text("token") }
    }

    /// A request that arrives in the moment in which OpenCode opens its port is never answered: hence the short
    /// limit, after which the caller asks again. `None` is such a silence.
    async fn health(&self, world: &World) -> Option<(StatusCode, Value)> {
        let request =
            world.http.get(format!("{}/global/health", self.url)).timeout(Duration::from_secs(2));
        let request = request
            .header("x-daytona-preview-token", &self.token)
            .basic_auth("opencode", Some("pw"));
        let response = request.send().await.ok()?;
        let status = response.status();
        Some((status, serde_json::from_slice(&response.bytes().await.ok()?).unwrap_or(Value::Null)))
    }

    async fn wait_until_healthy(&self, world: &World) {
        let healthy =
            Some((StatusCode::OK, json!({ "healthy": true, "version": opencode::VERSION })));
        wait_for("a healthy server", async || self.health(world).await == healthy).await;
    }
}

#[tokio::test]
async fn real_opencode_runs_behind_its_preview() {
    let installed = opencode::install(&cache(), |step| eprintln!("{step}")).await.unwrap();
    assert_eq!(installed.version, opencode::VERSION);
    let again =
        opencode::install(&cache(), |step| panic!("the second call finds it at once, not: {step}"))
            .await;
    assert_eq!(again.unwrap(), installed);

    let mut settings = settings(&fresh_folder("opencode"));
    settings.run.tools = vec![installed.bin_dir];
    settings.run.stop_grace_ms = 5_000;
    let world = World::with(settings).await;
    let id = world.sandbox("opencode").await;
    let tools = world.exec(&id, "opencode --version; git --version; rg --version").await;
    assert_eq!(tools["exitCode"], 0, "{tools}");
    start_server(&world, &id).await;
    let link = Link::fetch(&world, &id).await;
    link.wait_until_healthy(&world).await;
    world.answers(&format!("/toolbox/{id}/port/4096/in-use"), json!({ "isInUse": true })).await;
    world.answers(&format!("/toolbox/{id}/port"), json!({ "ports": [4096] })).await;
    let bare = world
        .http
        .get(format!("{}/global/health", link.url))
        .header("x-daytona-preview-token", &link.token);
    assert_eq!(bare.send().await.unwrap().status(), 401, "the password is OpenCode's own");

    // Its event stream speaks at once.
    let events = world
        .http
        .get(format!("{}/event", link.url))
        .header("x-daytona-preview-token", &link.token);
    let mut events = events.basic_auth("opencode", Some("pw")).send().await.unwrap();
    let first = tokio::time::timeout(Duration::from_secs(20), events.chunk())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(String::from_utf8_lossy(&first).contains("server.connected"), "{first:?}");
    drop(events);

    world.act(&id, "stop").await;
    world.reach(&id, "stopped").await;
    assert_eq!(world.provider.sandboxes()[0].pids, Vec::<u32>::new());
    world.act(&id, "start").await;
    world.reach(&id, "started").await;
    assert_eq!(link.health(&world).await.unwrap().0, 307, "the old token");
    let link = Link::fetch(&world, &id).await;
    assert_eq!(link.health(&world).await.unwrap().0, 502, "no process outlived the stop");
    start_server(&world, &id).await;
    link.wait_until_healthy(&world).await;
    world.end().await;
}
