//! What an agent says of itself: from the agent as it is installed, or from a file.

use std::error::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use bobbin_http::{AllowedHosts, Http, Method};
use serde_json::{Map, Value, json};
use tokio::process::Command;

/// Time that a server gets to describe itself.
const SERVER_S_MAX: u64 = 60;
/// Time between two tries: OpenCode never answers a request of its first instants.
const TRY_S: u64 = 2;
/// Bytes of a description.
const DESCRIPTION_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The files of Codex's that have what its server writes: what it tells, and what it asks.
const CODEX_FILES: [&str; 2] = ["codex_app_server_protocol.v2.schemas.json", "ServerRequest.json"];

/// What an agent says of itself.
pub enum SelfDescription {
    /// A description.
    Description(Value),
    /// Recorded lines; those that are no JSON are left out.
    Lines(Vec<Value>),
}

/// Reads a file: `.json` is a description, anything else lines, with the marks of recordings (`< `, `> `, `data: `).
///
/// # Errors
/// When the file cannot be read, or is no JSON though it is called so.
pub fn from_file(path: &Path) -> Result<SelfDescription, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    if path.extension().is_some_and(|it| it == "json") {
        return Ok(SelfDescription::Description(serde_json::from_str(&text)?));
    }
    let unmarked = |line: &str| {
        let marks = ["< ", "> ", "data: "];
        let bare = marks.iter().find_map(|mark| line.strip_prefix(mark));
        serde_json::from_str(bare.unwrap_or(line)).ok()
    };
    Ok(SelfDescription::Lines(text.lines().filter_map(unmarked).collect()))
}

/// Asks Codex, as it is installed: `codex app-server generate-json-schema`.
///
/// # Errors
/// When it fails or writes no such file.
pub async fn from_codex(program: &Path) -> Result<SelfDescription, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let status = Command::new(program)
        .args(["app-server", "generate-json-schema", "--out"])
        .arg(folder.path())
        .env("CODEX_HOME", folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await?;
    if !status.success() {
        return Err(format!("{} ended with {status}", program.display()).into());
    }
    let mut definitions = Map::new();
    for file in CODEX_FILES {
        let text = std::fs::read_to_string(folder.path().join(file))?;
        let mut document: Map<String, Value> = serde_json::from_str(&text)?;
        if let Some(Value::Object(more)) = document.remove("definitions") {
            for (name, schema) in more {
                definitions.entry(name).or_insert(schema);
            }
        }
        if let Some(Value::String(title)) = document.get("title").cloned() {
            definitions.insert(title, Value::Object(document));
        }
    }
    Ok(SelfDescription::Description(json!({ "definitions": definitions })))
}

/// Asks OpenCode, as it is installed: `GET /doc` of a server that is started for it and ended.
///
/// # Errors
/// When it does not start or answers otherwise.
pub async fn from_opencode(program: &Path) -> Result<SelfDescription, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let mut server = Command::new(program)
        .args(["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env_remove("OPENCODE_SERVER_PASSWORD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let base = format!("http://127.0.0.1:{port}");
    let http = Http::new(&base, AllowedHosts::Named(vec!["127.0.0.1".to_owned()]))?
        .with_body_bytes_max(DESCRIPTION_BYTES_MAX);
    let mut described = None;
    for _ in 0..SERVER_S_MAX / TRY_S {
        if let Some(status) = server.try_wait()? {
            return Err(format!("{} ended with {status}", program.display()).into());
        }
        let request = http.request(Method::GET, &format!("{base}/doc"))?;
        let request = request.timeout(Duration::from_secs(TRY_S));
        let answer = http.send(request).await;
        described = answer.ok().and_then(|answer| answer.json());
        if described.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(TRY_S)).await;
    }
    server.kill().await?;
    let described = described.ok_or("the server did not describe itself in time")?;
    Ok(SelfDescription::Description(described))
}
