//! `git` as this forge runs it: without the machine's or anybody's configuration, without hooks, bounded.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use bobbin_local_sandbox::confine::find_on_path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::api_error::ApiError;
use crate::limits::{GIT_BYTES_MAX, GIT_MS_MAX, PUSH_BYTES_MAX, REPORT_BYTES_MAX};
use crate::state::Engine;

/// First version with `merge-tree --write-tree`.
const VERSION_MIN: (u32, u32) = (2, 38);

/// Settings of every call. GitHub serves filters and any commit; nobody writes below `refs/pull`.
const CONFIGURATION: [(&str, &str); 13] = [
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.logAllRefUpdates", "false"),
    ("gc.auto", "0"),
    ("http.receivepack", "true"),
    ("receive.autogc", "false"),
    ("receive.fsckObjects", "true"),
    ("receive.hideRefs", "refs/pull"),
    ("receive.denyDeleteCurrent", "refuse"),
    ("uploadpack.allowFilter", "true"),
    ("uploadpack.allowAnySHA1InWant", "true"),
    ("commit.gpgSign", "false"),
];

/// A repository, for calls of `git`.
#[derive(Clone)]
pub(crate) struct Git {
    pub(crate) folder: PathBuf,
    home: PathBuf,
    /// Where objects are that do not belong to the repository yet.
    quarantine: Option<PathBuf>,
    environment: Vec<(String, String)>,
}

/// The output of a call.
pub(crate) struct GitOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl GitOutput {
    pub(crate) fn is_ok(&self) -> bool {
        self.code == Some(0)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).trim_end_matches('\n').to_owned()
    }
}

impl Git {
    pub(crate) fn new(engine: &Engine, repository: u64) -> Self {
        Self {
            folder: engine.folder(repository),
            home: engine.home_dir(),
            quarantine: None,
            environment: Vec::new(),
        }
    }

    /// The same, with objects from a folder of their own beside the repository's.
    pub(crate) fn with_quarantine(&self, objects: &Path) -> Self {
        Self { quarantine: Some(objects.to_owned()), ..self.clone() }
    }

    /// The same, with more of an environment.
    pub(crate) fn with(&self, environment: &[(&str, &str)]) -> Self {
        let more = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let environment = self.environment.iter().cloned().chain(more).collect();
        Self { environment, ..self.clone() }
    }

    /// A call whose input and output the caller arranges.
    pub(crate) fn command(&self) -> Command {
        let mut command = plain(&self.home);
        command.env("GIT_DIR", &self.folder).current_dir(&self.home);
        if let Some(objects) = &self.quarantine {
            command
                .env("GIT_OBJECT_DIRECTORY", objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.folder.join("objects"));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs `git` to its end.
    ///
    /// # Errors
    /// It could not be started, took too long, or said too much.
    pub(crate) async fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Result<GitOutput, ApiError> {
        self.run_with(arguments, Vec::new()).await
    }

    /// The same, with an input.
    ///
    /// # Errors
    /// As [`Git::run`].
    pub(crate) async fn run_with<S: AsRef<str>>(
        &self,
        arguments: &[S],
        input: Vec<u8>,
    ) -> Result<GitOutput, ApiError> {
        let mut command = self.command();
        command.args(arguments.iter().map(AsRef::as_ref)).stdin(Stdio::piped());
        finish(command, input).await
    }

    /// The output of a call that must succeed.
    ///
    /// # Errors
    /// It failed.
    pub(crate) async fn text<S: AsRef<str>>(&self, arguments: &[S]) -> Result<String, ApiError> {
        Ok(String::from_utf8_lossy(&self.bytes(arguments).await?).trim_end_matches('\n').to_owned())
    }

    /// The same, as bytes.
    ///
    /// # Errors
    /// It failed.
    pub(crate) async fn bytes<S: AsRef<str>>(&self, arguments: &[S]) -> Result<Vec<u8>, ApiError> {
        let said = self.run(arguments).await?;
        if said.is_ok() { Ok(said.out) } else { Err(ApiError::internal(said.err)) }
    }
}

/// Where `git` is. By a bare name and with an environment of its own a process would be started by a fork, which copies
/// this process's page tables for each of a thousand calls.
static PROGRAM: LazyLock<PathBuf> =
    LazyLock::new(|| find_on_path("git").unwrap_or_else(|| PathBuf::from("git")));

/// `git` without anybody's configuration.
fn plain(home: &Path) -> Command {
    let mut command = Command::new(&*PROGRAM);
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("HOME", home)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_COUNT", (CONFIGURATION.len() + 1).to_string())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let size = PUSH_BYTES_MAX.to_string();
    let all = CONFIGURATION.iter().copied().chain([("receive.maxInputSize", size.as_str())]);
    for (index, (name, value)) in all.enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{index}"), name);
        command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
    }
    command
}

async fn finish(mut command: Command, input: Vec<u8>) -> Result<GitOutput, ApiError> {
    let mut child = command.spawn().map_err(ApiError::internal)?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take().ok_or_else(|| ApiError::internal("no output of git"))?;
    let stderr = child.stderr.take().ok_or_else(|| ApiError::internal("no errors of git"))?;
    let write = async move {
        if let Some(mut stdin) = stdin {
            // It may end without reading everything.
            let _ = stdin.write_all(&input).await;
        }
    };
    let read = async move {
        let mut out = Vec::new();
        let bound = u64::try_from(GIT_BYTES_MAX).unwrap_or(u64::MAX);
        stdout.take(bound + 1).read_to_end(&mut out).await.map(|_| out)
    };
    let complain = async move {
        let mut err = Vec::new();
        let bound = u64::try_from(REPORT_BYTES_MAX).unwrap_or(u64::MAX);
        stderr.take(bound).read_to_end(&mut err).await.map(|_| err)
    };
    let all = async { tokio::join!(write, read, complain) };
    let bound = Duration::from_millis(GIT_MS_MAX);
    let ((), out, err) = tokio::time::timeout(bound, all)
        .await
        .map_err(|_| ApiError::internal("git took too long"))?;
    let out = out.map_err(ApiError::internal)?;
    if out.len() > GIT_BYTES_MAX {
        return Err(ApiError::internal("git said too much"));
    }
    let status = tokio::time::timeout(bound, child.wait()).await;
    let status = status.map_err(ApiError::internal)?.map_err(ApiError::internal)?;
    let err = String::from_utf8_lossy(&err.map_err(ApiError::internal)?).into_owned();
    Ok(GitOutput { code: status.code(), out, err })
}

/// Whether this machine's `git` can do what is asked of it.
///
/// # Errors
/// What it said, in words for a person.
pub(crate) async fn check_version(home: &Path) -> Result<(), String> {
    let mut command = plain(home);
    command.arg("version").stdin(Stdio::null());
    let said = finish(command, Vec::new()).await.map_err(|_| "it cannot be started".to_owned())?;
    let text = said.text();
    let numbers: Vec<u32> =
        text.split([' ', '.']).filter_map(|part| part.parse().ok()).take(2).collect();
    match numbers.as_slice() {
        [major, minor] if (*major, *minor) >= VERSION_MIN => Ok(()),
        _ => Err(format!("this is \"{text}\"")),
    }
}
