//! Commands and files of a session.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_http::{HttpError, REQUEST_MS, ReceivedAnswer, broken, media_type};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::error::VercelError;
use super::{Vercel, VercelResult};
use crate::api::{ProviderRefusal, instead_of};
use crate::provider::{InSandbox, ScriptOutput};

/// Extra time for the answer of a command beyond the command's own time.
const EXEC_MARGIN_MS: u64 = 15_000;
/// Vercel kills a command this long after its time, if we could not.
const EXEC_NET_MS: u64 = 5_000;
/// Most bytes of a command's answer that are read.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bound of an upload or download.
const TRANSFER_MS_MAX: u64 = 60_000;
/// Timeout of a listing's script.
const LIST_MS: u64 = 15_000;
/// Exit status of a listing's script if the folder does not exist.
const EXIT_NO_FOLDER: i64 = 66;
/// Lists the files directly in a folder: size, name and a NUL each.
const LIST_SCRIPT: &str = r#"cd -- "$1" 2>/dev/null || exit 66
find . -maxdepth 1 ! -type d -printf '%s %f\0' 2>/dev/null"#;
const SIGKILL: u8 = 9;
/// Media type of JSON lines.
const NDJSON: &str = "application/x-ndjson";

/// Result of a call into a session.
type SessionResult<T> = Result<T, InSandbox<VercelError>>;

/// State of a command so far.
#[derive(Default)]
struct Heard {
    id: Option<String>,
    exit_code: Option<i64>,
    text: String,
}

impl Heard {
    fn take(&mut self, line: &[u8]) -> VercelResult<()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let line: Value = serde_json::from_slice(line).map_err(|_| VercelError::BrokenOff {
            message: "a line that is not JSON".to_owned(),
        })?;
        match line["stream"].as_str() {
            Some("error") => return Err(VercelError::in_stream(&line["data"])),
            Some(_) => self.text += line["data"].as_str().unwrap_or_default(),
            None => {
                let command = &line["command"];
                self.id = command["id"].as_str().map(str::to_owned).or(self.id.take());
                self.exit_code = command["exitCode"].as_i64();
            }
        }
        Ok(())
    }
}

impl Vercel {
    /// Runs a program with arguments, without a shell. `env` is set only for its processes. Over the timeout it is
    /// killed and is [`VercelError::CommandTimeout`].
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn exec(
        &self,
        session: &str,
        argv: &[&str],
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> SessionResult<ScriptOutput> {
        let (program, arguments) = argv.split_first().unwrap_or((&"true", &[]));
        let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let body = json!({
            "command": program, "args": arguments, "env": env, "sudo": false, "wait": true, "logs": true,
            "timeout": ms.saturating_add(EXEC_NET_MS),
        });
        let ms_max = ms.saturating_add(EXEC_MARGIN_MS);
        let request = self.of_session(Method::POST, session, &["cmd"], ms_max)?;
        let deadline = Instant::now() + timeout;
        let mut heard = Heard::default();
        let listening = async {
            let mut stream = self.stream(request.json(&body)).await?;
            listen(&mut stream, &mut heard).await
        };
        match timeout_at(deadline, listening).await {
            Ok(done) => done?,
            Err(_) => {
                if let Some(command) = &heard.id {
                    self.kill(session, command).await;
                }
                return Err(VercelError::CommandTimeout.into());
            }
        }
        match heard.exit_code {
            Some(exit_code) => Ok(ScriptOutput { exit_code, text: heard.text }),
            None => {
                let message = "the stream ended before the command did".to_owned();
                Err(VercelError::BrokenOff { message }.into())
            }
        }
    }

    /// Kills a command that has exceeded its time; if this fails, Vercel does it.
    async fn kill(&self, session: &str, command: &str) {
        let segments = ["cmd", command, "kill"];
        let Ok(request) = self.of_session(Method::POST, session, &segments, REQUEST_MS) else {
            return;
        };
        if let Err(error) = self.api.send(request.json(&json!({ "signal": SIGKILL }))).await {
            tracing::warn!(
                event = "vercel.command.late",
                %error,
                "a command that timed out could not be ended"
            );
        }
    }

    async fn stream(&self, request: reqwest::RequestBuilder) -> VercelResult<Response> {
        let response = self.api.open(request).await?;
        let status = response.status().as_u16();
        let kind = media_type(response.headers());
        if status / 100 == 2 && kind == NDJSON {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = response.bytes().await.map_err(broken)?;
        let answer = ReceivedAnswer { status, headers, body: body.to_vec() };
        Err(VercelError::of(&answer)
            .unwrap_or_else(|| VercelError::no_answer(status, instead_of(&answer, "a stream"))))
    }

    /// Writes files; parent folders are created. Paths are relative to `cwd`.
    ///
    /// # Errors
    /// [`VercelError`].
    pub async fn put_files(
        &self,
        session: &str,
        cwd: &str,
        files: Vec<(String, Vec<u8>)>,
    ) -> SessionResult<()> {
        let archive = archive(&files).map_err(|e| VercelError::Refused {
            status: 400,
            message: format!("the files cannot be packed: {e}"),
        })?;
        let segments = ["fs", "write"];
        let request = self.of_session(Method::POST, session, &segments, TRANSFER_MS_MAX)?;
        let request =
            request.header("content-type", "application/gzip").header("x-cwd", cwd).body(archive);
        self.api.send(request).await?;
        Ok(())
    }

    /// Reads a file; its path is relative to `cwd`.
    ///
    /// # Errors
    /// [`VercelError`]; [`VercelError::NotFound`] if it does not exist.
    pub async fn get_file(&self, session: &str, cwd: &str, path: &str) -> SessionResult<Vec<u8>> {
        let segments = ["fs", "read"];
        let request = self.of_session(Method::POST, session, &segments, TRANSFER_MS_MAX)?;
        let request = request.json(&json!({ "path": path, "cwd": cwd }));
        let answer = self.api.send(request).await?;
        // A page from something in between is no file.
        if answer.media_type() == "application/octet-stream" {
            return Ok(answer.body);
        }
        let instead = instead_of(&answer, "a file");
        Err(VercelError::no_answer(answer.status, instead).into())
    }

    /// The files directly in a folder, with their sizes in bytes. The API has no call for it, so a script lists them.
    ///
    /// # Errors
    /// [`VercelError`]; [`VercelError::NotFound`] if the folder does not exist.
    pub async fn list_files(
        &self,
        session: &str,
        path: &str,
    ) -> SessionResult<BTreeMap<String, u64>> {
        let argv = ["sh", "-c", LIST_SCRIPT, "sh", path];
        let timeout = Duration::from_millis(LIST_MS);
        let listed = self.exec(session, &argv, &BTreeMap::new(), timeout).await?;
        match listed.exit_code {
            0 => Ok(listed.text.split('\0').filter_map(entry).collect()),
            EXIT_NO_FOLDER => Err(VercelError::NotFound.into()),
            code => {
                let message = format!("a folder could not be listed (exit {code})");
                Err(VercelError::BrokenOff { message }.into())
            }
        }
    }
}

async fn listen(stream: &mut Response, heard: &mut Heard) -> VercelResult<()> {
    let mut held: Vec<u8> = Vec::new();
    let mut bytes = 0;
    while let Some(piece) = stream.chunk().await.map_err(broken)? {
        bytes += piece.len();
        if bytes > OUTPUT_BYTES_MAX {
            let host = stream.url().host_str().unwrap_or("the service").to_owned();
            return Err(VercelError::Http(HttpError::TooLarge {
                host,
                bytes_max: OUTPUT_BYTES_MAX,
            }));
        }
        held.extend_from_slice(&piece);
        while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = held.drain(..=end).collect();
            heard.take(&line)?;
        }
    }
    heard.take(&held)
}

fn entry(line: &str) -> Option<(String, u64)> {
    let (size, name) = line.split_once(' ')?;
    Some((name.to_owned(), size.parse().ok()?))
}

fn archive(files: &[(String, Vec<u8>)]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, path, bytes.as_slice())?;
    }
    archive.into_inner()?.finish()
}
