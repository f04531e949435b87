//! Codex writes a schema of its own protocol.

use std::error::Error;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use super::SelfDescription;

/// The files with what its server writes: its notifications and its requests.
const FILES: [&str; 2] = ["codex_app_server_protocol.v2.schemas.json", "ServerRequest.json"];

/// Asks the program: `codex app-server generate-json-schema`.
///
/// # Errors
/// When it fails or writes no such file.
pub(super) async fn described(program: &Path) -> Result<SelfDescription, Box<dyn Error>> {
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
    for file in FILES {
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
