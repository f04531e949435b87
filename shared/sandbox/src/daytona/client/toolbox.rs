//! The toolbox in each sandbox: commands and files.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Url};
use serde_json::{Value, json};

use super::error::DaytonaError;
use super::{Daytona, DaytonaResult, LIFECYCLE_MS_MAX};
use crate::daytona::types::{Executed, FileInfo};
use crate::provider::{self, InSandbox};

/// Extra time for an exec beyond its own timeout.
const EXEC_MARGIN_MS: u64 = 15_000;
/// Bound of an upload or download.
const TRANSFER_MS_MAX: u64 = 60_000;

/// Result of a toolbox call.
type ToolboxResult<T> = Result<T, InSandbox<DaytonaError>>;

impl Daytona {
    /// Runs a shell script in the sandbox. `env` is set only for its processes. The script is the shell's stdin, so a
    /// command that reads stdin needs another one.
    ///
    /// # Errors
    /// [`DaytonaError`]; a script that exceeds the timeout is killed: [`DaytonaError::CommandTimeout`].
    pub async fn exec(
        &self,
        sandbox: &provider::Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ToolboxResult<Executed> {
        let body = execute_body(script, env, timeout);
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(LIFECYCLE_MS_MAX);
        let segments = ["process", "execute"];
        let request = self
            .toolbox(sandbox, Method::POST, &segments, &[], millis.saturating_add(EXEC_MARGIN_MS))
            .await?;
        Ok(self.api.read(request.json(&body)).await?)
    }

    /// Writes files; parent folders are created. Paths are relative to the sandbox's working directory.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn put_files(
        &self,
        sandbox: &provider::Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ToolboxResult<()> {
        let mut form = Form::new();
        for (at, (path, bytes)) in files.into_iter().enumerate() {
            let name = path.rsplit('/').next().unwrap_or("file").to_owned();
            // The path has to come before its file.
            form = form
                .text(format!("files[{at}].path"), path)
                .part(format!("files[{at}].file"), Part::bytes(bytes).file_name(name));
        }
        let segments = ["files", "bulk-upload"];
        let request = self.toolbox(sandbox, Method::POST, &segments, &[], TRANSFER_MS_MAX).await?;
        self.api.send(request.multipart(form)).await?;
        Ok(())
    }

    /// The files directly in a folder, with their sizes in bytes.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn list_files(
        &self,
        sandbox: &provider::Sandbox,
        path: &str,
    ) -> ToolboxResult<BTreeMap<String, u64>> {
        let query = [("path", path), ("depth", "1")];
        let ms_max = bobbin_http::REQUEST_MS;
        let request = self.toolbox(sandbox, Method::GET, &["files"], &query, ms_max).await?;
        let listed: Vec<FileInfo> = self.api.read(request).await?;
        let files = listed.into_iter().filter(|file| !file.is_dir);
        Ok(files.map(|file| (file.name, file.size)).collect())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`DaytonaError`]; [`DaytonaError::NotFound`] if it does not exist.
    pub async fn get_file(
        &self,
        sandbox: &provider::Sandbox,
        path: &str,
    ) -> ToolboxResult<Vec<u8>> {
        let segments = ["files", "download"];
        let request = self
            .toolbox(sandbox, Method::GET, &segments, &[("path", path)], TRANSFER_MS_MAX)
            .await?;
        Ok(self.api.send(request).await?.body)
    }

    async fn toolbox(
        &self,
        sandbox: &provider::Sandbox,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> DaytonaResult<RequestBuilder> {
        let base = match &sandbox.exec_base {
            Some(url) => url.clone(),
            None => self.toolbox_base(&sandbox.id).await?,
        };
        let base = Url::parse(&base).map_err(|_| DaytonaError::Unavailable {
            status: 200,
            message: "its toolbox address cannot be read".to_owned(),
        })?;
        let path: Vec<&str> =
            std::iter::once(sandbox.id.as_str()).chain(segments.iter().copied()).collect();
        self.request(method, &base, &path, query, ms_max)
    }

    async fn toolbox_base(&self, id: &str) -> DaytonaResult<String> {
        #[derive(serde::Deserialize)]
        struct Base {
            url: String,
        }
        let segments = ["sandbox", id, "toolbox-proxy-url"];
        let request = self.control(Method::GET, &segments, &[], bobbin_http::REQUEST_MS)?;
        self.api.read::<Base>(request).await.map(|base| base.url)
    }
}

/// Body of `POST process/execute`; the timeout is always set, because without one a command may run for ever.
#[must_use]
pub fn execute_body(script: &str, env: &BTreeMap<String, String>, timeout: Duration) -> Value {
    let mut body = json!({ "command": script, "timeout": timeout.as_secs().max(1) });
    if !env.is_empty() {
        body["envs"] = json!(env);
    }
    body
}
