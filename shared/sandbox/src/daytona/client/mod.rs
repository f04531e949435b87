//! Daytona's v0 control API and toolbox.
//!
//! Promised: one method a call, one error that says what to do ([`DaytonaError::failure`]); a create, start or stop is
//! asked for and never waited for (read the sandbox next: its answer is not the outcome). Deliberately absent:
//! retries and state (both are `decide`'s), sessions, and the preview traffic itself (see `opencode`).

mod prepared;
mod secrets;

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::endpoint::Endpoint;
use bobbin_core::failure::Failure;
use bobbin_core::keys::Key;
use bobbin_core::sandbox::SandboxState;
use bobbin_http::{Answer, Hosts, Http, HttpError};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::daytona::{
    CreateSandbox, ErrorBody, Executed, FileInfo, PROTOCOL_VERSION, Page, PreviewLink, Sandbox,
};
use crate::labels::{LABEL_STACK_ID, Stack, tenant_labels};
use crate::provider;

/// A lifecycle call: Daytona holds create and start for up to 30 s.
const LIFECYCLE_MS_MAX: u64 = 45_000;
/// What an exec may take beyond its own timeout.
const EXEC_MARGIN_MS: u64 = 15_000;
/// An upload or download.
const TRANSFER_MS_MAX: u64 = 60_000;
/// Sandboxes a page, the most that Daytona gives.
const PAGE_ITEMS: usize = 200;
/// Pages of one listing.
const PAGES_MAX: usize = 50;
/// Sandboxes that a listing holds at the most.
pub const LISTED_MAX: usize = PAGE_ITEMS * PAGES_MAX;
/// Pages of a count: a tenant with more sandboxes than these hold is over any bound.
const COUNT_PAGES_MAX: usize = 25;
/// Characters of a provider's words that are passed on.
const MESSAGE_CHARS_MAX: usize = 300;

/// What went wrong, by what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DaytonaError {
    /// There is no key: nothing was asked.
    #[error("{}", Key::DaytonaApiKey.missing())]
    NoKey,
    /// 401: the key is bad or expired.
    #[error("Daytona refused the API key")]
    BadKey,
    /// 403: the key may not do this, or the organisation is suspended.
    #[error("Daytona does not allow it: {message}")]
    Forbidden {
        /// What Daytona says of it; empty where it says nothing.
        message: String,
    },
    /// 404: it does not know the sandbox (or file).
    #[error("Daytona does not know it")]
    NotFound,
    /// 409: the name is taken, or the sandbox is in transition.
    #[error("not now: {message}")]
    Conflict {
        /// What Daytona says of it; empty where it says nothing.
        message: String,
    },
    /// Too many requests (429).
    #[error("Daytona is limiting requests")]
    RateLimited {
        /// Milliseconds that it asked for, or 0.
        after_ms: u64,
    },
    /// 400 and its like: validation, quota, wrong state.
    #[error("Daytona refused the request ({status}): {message}")]
    Refused {
        /// HTTP status of the answer.
        status: u16,
        /// What Daytona says of it.
        message: String,
    },
    /// The toolbox or proxy cannot reach the sandbox: not started, or a stale cache.
    #[error("the sandbox cannot be reached: {message}")]
    Unreachable {
        /// What the proxy in front of the sandboxes says.
        message: String,
    },
    /// 408: an exec ran over its timeout and was killed.
    #[error("the command ran over its time")]
    CommandTimeout,
    /// 5xx, a redirect, or something that is no answer of Daytona's (HTML of a proxy).
    #[error("Daytona is not answering properly ({status}): {message}")]
    Unavailable {
        /// HTTP status of the answer.
        status: u16,
        /// What came in place of an answer.
        message: String,
    },
    /// No answer at all; whether the call had its effect is unknown.
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl DaytonaError {
    /// What the sandbox's delivery has to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let seen = self.to_string();
        match self {
            Self::NoKey => Failure::NonRecoverable { advice: seen },
            Self::BadKey => Failure::NonRecoverable {
                advice:
                    "Daytona refused the API key. The operator stores a valid daytona_api_key with `bobbin secrets`."
                        .to_owned(),
            },
            Self::Forbidden { message } => Failure::NonRecoverable {
                advice: format!(
                    "Daytona does not allow this: {message} The operator has to check the key's permissions and the organisation."
                ),
            },
            Self::NotFound => Failure::SandboxGone,
            Self::Conflict { .. } => Failure::Wait { after_ms: 0, seen },
            Self::RateLimited { after_ms } => Failure::Wait {
                after_ms: *after_ms,
                seen,
            },
            Self::Refused { message, .. } => Failure::NonRecoverable {
                advice: format!(
                    "Daytona refused the request: {message} The operator has to look at the quota and the settings."
                ),
            },
            Self::Unreachable { .. } | Self::CommandTimeout => Failure::SandboxDown { seen },
            Self::Http(HttpError::Refused { .. }) => Failure::NonRecoverable {
                advice: format!(
                    "The address of Daytona cannot be used: {seen}. The operator has to check daytona_api of the parameter Overrides."
                ),
            },
            Self::Unavailable { .. }
            | Self::Http(HttpError::Timeout { .. } | HttpError::Transport { .. }) => {
                Failure::Outage { after_ms: 0, seen }
            }
            Self::Http(_) => Failure::Wait { after_ms: 0, seen },
        }
    }

    /// The same for a call into the sandbox (toolbox): silence and server errors are the sandbox's, not Daytona's.
    #[must_use]
    pub fn toolbox_failure(&self) -> Failure {
        match self {
            Self::Unavailable { .. }
            | Self::Http(HttpError::Timeout { .. } | HttpError::Transport { .. }) => {
                Failure::SandboxDown {
                    seen: self.to_string(),
                }
            }
            // A 404 of the toolbox does not say that the control API does not know the sandbox: observe.
            Self::NotFound => Failure::SandboxDown {
                seen: self.to_string(),
            },
            _ => self.failure(),
        }
    }
}

/// The client of Daytona's control API, and of the toolbox in each sandbox.
#[derive(Clone)]
pub struct Daytona {
    http: Http,
    base: Url,
    api_key: String,
}

impl std::fmt::Debug for Daytona {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daytona")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

type Answered<T> = Result<T, DaytonaError>;

impl Daytona {
    /// A client of the control API at `base` (with its `/api`). The toolbox hosts that Daytona names get the same key.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the base may not be spoken to.
    pub fn new(base: &str, api_key: &str) -> Result<Self, HttpError> {
        let http = Http::new(base, Hosts::Public)?;
        let base = Url::parse(base).map_err(|_| HttpError::Refused {
            host: "(unreadable)".to_owned(),
            why: "it is no absolute URL",
        })?;
        Ok(Self {
            http,
            base,
            api_key: api_key.to_owned(),
        })
    }

    /// Asks for a sandbox. A taken name is [`DaytonaError::Conflict`]: read it by name and adopt it.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn create(&self, body: &CreateSandbox) -> Answered<Sandbox> {
        let request = self
            .control(Method::POST, &["sandbox"], &[], LIFECYCLE_MS_MAX)?
            .json(body);
        self.read(request).await
    }

    /// Reads a sandbox by id or name.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn get(&self, name: &str) -> Answered<Sandbox> {
        self.read(self.control(
            Method::GET,
            &["sandbox", name],
            &[],
            bobbin_http::REQUEST_MS,
        )?)
        .await
    }

    /// Every sandbox with these labels, in order of creation. The list lags behind: read a sandbox before acting on it.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn list(&self, labels: &BTreeMap<String, String>) -> Answered<Vec<Sandbox>> {
        self.pages(labels, PAGES_MAX).await
    }

    /// The sandboxes of this stack and tenant, in any state but on their way out, the oldest first; at most 5,000.
    /// The list lags behind: of two that are made at once, each may be listed without the other for a moment.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn of_tenant(&self, stack: Stack<'_>, tenant: &str) -> Answered<Vec<Sandbox>> {
        let labels = tenant_labels(stack.name, tenant);
        let found = self.pages(&labels, COUNT_PAGES_MAX).await?;
        // A server that passes over a filter that it does not know must not make one tenant pay for another.
        let counts = |sandbox: &&Sandbox| {
            let said = sandbox.labels.get(LABEL_STACK_ID);
            sandbox.sandbox_state() != SandboxState::Gone
                && said.is_none_or(|said| said == stack.id)
                && labels
                    .iter()
                    .all(|(name, value)| sandbox.labels.get(name) == Some(value))
        };
        Ok(found.into_iter().filter(|one| counts(&one)).collect())
    }

    async fn pages(
        &self,
        labels: &BTreeMap<String, String>,
        pages_max: usize,
    ) -> Answered<Vec<Sandbox>> {
        let labels = json!(labels).to_string();
        let limit = PAGE_ITEMS.to_string();
        let query = [
            ("limit", limit.as_str()),
            ("labels", &labels),
            ("sort", "createdAt"),
            ("order", "asc"),
        ];
        self.paged(&["sandbox"], &query, pages_max).await
    }

    /// What is listed, page by page: what lies behind so many pages is left out.
    async fn paged<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        pages_max: usize,
    ) -> Answered<Vec<T>> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..pages_max {
            let mut query = query.to_vec();
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let request = self.control(Method::GET, segments, &query, bobbin_http::REQUEST_MS)?;
            let page: Page<T> = self.read(request).await?;
            found.extend(page.items);
            cursor = page.next_cursor.filter(|next| !next.is_empty());
            if cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Asks for a start (also from archived).
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn start(&self, name: &str) -> Answered<()> {
        self.lifecycle(Method::POST, &["sandbox", name, "start"], &[])
            .await
    }

    /// Asks for a stop: every process ends, the disk stays.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn stop(&self, name: &str) -> Answered<()> {
        self.lifecycle(
            Method::POST,
            &["sandbox", name, "stop"],
            &[("force", "false")],
        )
        .await
    }

    /// Asks for the end of a sandbox and its disk.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn delete(&self, name: &str) -> Answered<()> {
        self.lifecycle(Method::DELETE, &["sandbox", name], &[])
            .await
    }

    /// Asks Daytona to repair a sandbox in error.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn recover(&self, name: &str) -> Answered<()> {
        self.lifecycle(
            Method::POST,
            &["sandbox", name, "recover"],
            &[("skipStart", "false")],
        )
        .await
    }

    /// How to reach a port from outside. New with every start.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn endpoint(&self, name: &str, port: u16) -> Answered<Endpoint> {
        let port = port.to_string();
        let segments = ["sandbox", name, "ports", &port, "preview-url"];
        let request = self.control(Method::GET, &segments, &[], bobbin_http::REQUEST_MS)?;
        let link = self.read::<PreviewLink>(request).await?;
        Ok(link.normalised().into())
    }

    /// Runs a shell script in the sandbox. `env` lives only in its processes. The script is the shell's stdin, so a
    /// command that reads stdin has to be given another.
    ///
    /// # Errors
    /// [`DaytonaError`]; over the timeout it is killed and answers [`DaytonaError::CommandTimeout`].
    pub async fn execute(
        &self,
        sandbox: &provider::Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> Answered<Executed> {
        let body = execute_body(script, env, timeout);
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(LIFECYCLE_MS_MAX);
        let segments = ["process", "execute"];
        let request = self
            .toolbox(
                sandbox,
                Method::POST,
                &segments,
                &[],
                millis.saturating_add(EXEC_MARGIN_MS),
            )
            .await?;
        self.read(request.json(&body)).await
    }

    /// Writes files; parents are made. Paths are relative to the sandbox's working directory.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn upload(
        &self,
        sandbox: &provider::Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> Answered<()> {
        let mut form = Form::new();
        for (at, (path, bytes)) in files.into_iter().enumerate() {
            let name = path.rsplit('/').next().unwrap_or("file").to_owned();
            // The path has to come before its file.
            form = form.text(format!("files[{at}].path"), path).part(
                format!("files[{at}].file"),
                Part::bytes(bytes).file_name(name),
            );
        }
        let segments = ["files", "bulk-upload"];
        let request = self
            .toolbox(sandbox, Method::POST, &segments, &[], TRANSFER_MS_MAX)
            .await?;
        self.send(request.multipart(form)).await.map(drop)
    }

    /// The files of a folder, not of those below it, with their bytes.
    ///
    /// # Errors
    /// [`DaytonaError`].
    pub async fn list_files(
        &self,
        sandbox: &provider::Sandbox,
        path: &str,
    ) -> Answered<BTreeMap<String, u64>> {
        let query = [("path", path), ("depth", "1")];
        let ms_max = bobbin_http::REQUEST_MS;
        let request = self
            .toolbox(sandbox, Method::GET, &["files"], &query, ms_max)
            .await?;
        let listed: Vec<FileInfo> = self.read(request).await?;
        let files = listed.into_iter().filter(|file| !file.is_dir);
        Ok(files.map(|file| (file.name, file.size)).collect())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`DaytonaError`]; [`DaytonaError::NotFound`] when there is none.
    pub async fn download(&self, sandbox: &provider::Sandbox, path: &str) -> Answered<Vec<u8>> {
        let segments = ["files", "download"];
        let request = self
            .toolbox(
                sandbox,
                Method::GET,
                &segments,
                &[("path", path)],
                TRANSFER_MS_MAX,
            )
            .await?;
        self.send(request).await.map(|answer| answer.body)
    }

    async fn lifecycle(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Answered<()> {
        self.send(self.control(method, segments, query, LIFECYCLE_MS_MAX)?)
            .await
            .map(drop)
    }

    fn control(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> Answered<RequestBuilder> {
        self.request(method, &self.base, segments, query, ms_max)
    }

    async fn toolbox(
        &self,
        sandbox: &provider::Sandbox,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> Answered<RequestBuilder> {
        let base = match &sandbox.exec_base {
            Some(url) => url.clone(),
            None => self.toolbox_base(&sandbox.id).await?,
        };
        let base = Url::parse(&base).map_err(|_| DaytonaError::Unavailable {
            status: 200,
            message: "its toolbox address cannot be read".to_owned(),
        })?;
        let path: Vec<&str> = std::iter::once(sandbox.id.as_str())
            .chain(segments.iter().copied())
            .collect();
        self.request(method, &base, &path, query, ms_max)
    }

    async fn toolbox_base(&self, id: &str) -> Answered<String> {
        #[derive(serde::Deserialize)]
        struct Base {
            url: String,
        }
        let segments = ["sandbox", id, "toolbox-proxy-url"];
        let request = self.control(Method::GET, &segments, &[], bobbin_http::REQUEST_MS)?;
        self.read::<Base>(request).await.map(|base| base.url)
    }

    fn request(
        &self,
        method: Method,
        base: &Url,
        segments: &[&str],
        query: &[(&str, &str)],
        ms_max: u64,
    ) -> Answered<RequestBuilder> {
        if self.api_key.is_empty() {
            return Err(DaytonaError::NoKey);
        }
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url.as_str())?;
        Ok(request
            .bearer_auth(&self.api_key)
            .header("X-Daytona-Source", "bobbin")
            .header("X-Daytona-SDK-Version", PROTOCOL_VERSION)
            .timeout(Duration::from_millis(ms_max)))
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Answered<T> {
        let answer = self.send(request).await?;
        answer.json().ok_or_else(|| DaytonaError::Unavailable {
            status: answer.status,
            message: format!("{} where JSON was due", describe(&answer)),
        })
    }

    async fn send(&self, request: RequestBuilder) -> Answered<Answer> {
        let answer = self.http.send(request).await?;
        match classify(&answer) {
            None => Ok(answer),
            Some(error) => Err(error),
        }
    }
}

/// Body of `POST process/execute`; the timeout is always stated, because none means for ever.
#[must_use]
pub fn execute_body(script: &str, env: &BTreeMap<String, String>, timeout: Duration) -> Value {
    let mut body = json!({ "command": script, "timeout": timeout.as_secs().max(1) });
    if !env.is_empty() {
        body["envs"] = json!(env);
    }
    body
}

fn describe(answer: &Answer) -> String {
    match answer.media_type().as_str() {
        "" => "an empty or unlabelled answer".to_owned(),
        "application/json" => "unreadable JSON".to_owned(),
        kind => kind.to_owned(),
    }
}

fn classify(answer: &Answer) -> Option<DaytonaError> {
    if answer.ok() {
        return None;
    }
    let body = ErrorBody::parse(&answer.body);
    let status = answer.status;
    let message = body
        .message()
        .chars()
        .take(MESSAGE_CHARS_MAX)
        .collect::<String>();
    let spoken = || {
        if message.is_empty() {
            describe(answer)
        } else {
            message.clone()
        }
    };
    Some(match status {
        // A page of something in between is no word of Daytona's about key or sandbox.
        400..=499 if answer.media_type() == "text/html" => DaytonaError::Unavailable {
            status,
            message: "an HTML page where JSON was due".to_owned(),
        },
        401 => DaytonaError::BadKey,
        403 => DaytonaError::Forbidden { message: spoken() },
        400 if body.says_unreachable() => DaytonaError::Unreachable { message },
        404 => DaytonaError::NotFound,
        408 => DaytonaError::CommandTimeout,
        409 => DaytonaError::Conflict { message: spoken() },
        429 => DaytonaError::RateLimited {
            after_ms: answer.retry_after_ms().unwrap_or(0),
        },
        400..=499 => DaytonaError::Refused {
            status,
            message: spoken(),
        },
        _ => DaytonaError::Unavailable {
            status,
            message: spoken(),
        },
    })
}

#[cfg(test)]
mod tests;
