//! Slack's Web API with a bot token.
//!
//! Promised: a post is made once however often it is asked for (found by its metadata before it is made again); an
//! error names what to do; the token goes to Slack's hosts only and into no log. Deliberately absent: what a post looks
//! like (`crate::slack::render`), modals, OAuth, token rotation.

mod error;
mod files;
mod memory;
mod opening;
mod people;
mod posting;
mod setting_up;
mod status;
mod stream;
mod styles;
#[cfg(test)]
mod tests;
mod wanted;

use std::sync::Mutex;
use std::time::Duration;

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::records::message::Reply;
use bobbin_core::shown::sandboxes::{Listed, Page};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::slack::direct::is_direct_channel;
use crate::slack::render::{self, Rendered};

pub use self::error::SlackError;
pub use self::setting_up::{Installed, deliver, signature};
use bobbin_http::{Answer, Hosts, Http, HttpError};

/// One call takes no longer.
const CALL_MS_MAX: u64 = 15_000;
/// A wait that Slack asks for and that is spent in place; a longer one goes back to the queue.
const WAIT_IN_PLACE_MS_MAX: u64 = 2_000;
/// Waits in place of one call.
const WAITS_IN_PLACE_MAX: u32 = 2;
/// Bytes of one answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Whose token it is (`auth.test`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Id of the team that the app is installed in.
    pub team: String,
    /// Id of the organisation that the team is one of; empty where it is of none.
    pub enterprise: String,
    /// Id of the app's bot user, by which people mention it.
    pub user: String,
    /// Id of the bot, which stands on every message that it posts.
    pub bot: String,
    /// Where people see the workspace, with a slash at its end; empty where Slack does not say it.
    pub site: String,
}

impl Identity {
    /// Reads an answer of `auth.test`.
    fn read(answer: &Value) -> Self {
        let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Self {
            team: field("team_id"),
            enterprise: field("enterprise_id"),
            user: field("user_id"),
            bot: field("bot_id"),
            site: field("url"),
        }
    }
}

/// The client of one installation.
pub struct Slack {
    http: Http,
    base: String,
    token: String,
    identity: OnceCell<Identity>,
    memory: Mutex<memory::Memory>,
    statuses: Mutex<status::Statuses>,
    styles: Mutex<styles::Styles>,
    members: Mutex<people::Members>,
    directs: Mutex<wanted::DirectChannels>,
    /// Answers are streamed where the workspace takes that.
    streams: bool,
}

impl std::fmt::Debug for Slack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slack").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Slack {
    /// A client of the API at `base`, with its `/api` (`https://slack.com/api`).
    ///
    /// # Errors
    /// [`SlackError::Address`] when the base may not be spoken to.
    pub fn new(base: &str, bot_token: &str) -> Result<Self, SlackError> {
        let http =
            Http::new(base, Hosts::Named(vec!["slack.com".to_owned(), ".slack.com".to_owned()]))
                .map_err(|e| SlackError::Address { seen: e.to_string() })?;
        Ok(Self {
            http: http.with_body_bytes_max(ANSWER_BYTES_MAX),
            base: base.trim_end_matches('/').to_owned(),
            token: bot_token.to_owned(),
            identity: OnceCell::new(),
            memory: Mutex::default(),
            statuses: Mutex::default(),
            styles: Mutex::default(),
            members: Mutex::default(),
            directs: Mutex::default(),
            streams: false,
        })
    }

    /// The same client, with answers as streams where the workspace takes that, or without.
    #[must_use]
    pub fn streaming(self, streams: bool) -> Self {
        Self { streams, ..self }
    }

    /// Calls a method with JSON arguments and gives back its answer, `ok: true`.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn call(&self, method: &'static str, arguments: &Value) -> Result<Value, SlackError> {
        // Slack's documentation wants the charset named; without it a warning comes with every answer.
        let body = arguments.to_string();
        self.asked(method, CALL_MS_MAX, |request| {
            request.header("content-type", "application/json; charset=utf-8").body(body.clone())
        })
        .await
    }

    /// Calls a method that takes no JSON: reading ones, and the first step of an upload.
    async fn call_form(
        &self,
        method: &'static str,
        fields: &[(&str, String)],
    ) -> Result<Value, SlackError> {
        self.asked(method, CALL_MS_MAX, |request| request.form(fields)).await
    }

    /// Sends a call, waits in place where Slack asks for little patience, and reads the answer.
    async fn asked(
        &self,
        method: &'static str,
        within_ms: u64,
        fill: impl Fn(RequestBuilder) -> RequestBuilder + Send,
    ) -> Result<Value, SlackError> {
        let mut waits = 0;
        loop {
            let request = self
                .http
                .request(Method::POST, &format!("{}/{method}", self.base))
                .map_err(|e| SlackError::of_http(method, e))?
                .bearer_auth(&self.token)
                .timeout(Duration::from_millis(within_ms));
            let answer =
                self.http.send(fill(request)).await.map_err(|e| SlackError::of_http(method, e))?;
            match read(method, &answer) {
                Err(SlackError::RateLimited { after_ms, .. })
                    if after_ms <= WAIT_IN_PLACE_MS_MAX && waits < WAITS_IN_PLACE_MAX =>
                {
                    waits += 1;
                    tokio::time::sleep(Duration::from_millis(after_ms)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Whose token it is; asked once.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn auth_test(&self) -> Result<&Identity, SlackError> {
        self.identity
            .get_or_try_init(|| async {
                let answer = self.call("auth.test", &serde_json::json!({})).await?;
                Ok(Identity::read(&answer))
            })
            .await
    }

    /// Tells one person something: an ephemeral message, and in a direct message, where nobody else is, an ordinary one.
    /// Where the app is not in the channel, it is told in the direct message with them.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn tell(&self, reply: &Reply, text: &str) -> Result<(), SlackError> {
        self.tell_rendered(reply, &render::free(text)).await
    }

    /// Shows one person a page of the list of sandboxes.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn show_sandboxes(&self, reply: &Reply, page: &Page) -> Result<(), SlackError> {
        self.tell_rendered(reply, &render::sandboxes(page)).await
    }

    /// Asks one person whether a sandbox is to be deleted; `thread` is where they asked.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn ask_destroy(
        &self,
        thread: &ThreadKey,
        reply: &Reply,
        sandbox: &Listed,
        now_ms: Ms,
    ) -> Result<(), SlackError> {
        let rendered = render::ask_destroy(thread, sandbox, now_ms);
        self.tell_rendered(reply, &rendered).await
    }

    async fn tell_rendered(&self, reply: &Reply, rendered: &Rendered) -> Result<(), SlackError> {
        let Reply::Slack { channel, thread_ts, user } = reply else {
            return Err(SlackError::NotSlack);
        };
        let thread_ts = thread_ts.as_deref();
        // A person's id stands for their direct messages, where it is not known which channel those are.
        if channel == user || is_direct_channel(channel) {
            self.call("chat.postMessage", &render::direct_message(channel, thread_ts, rendered))
                .await?;
            return Ok(());
        }
        let arguments = render::ephemeral(channel, thread_ts, user, rendered);
        match self.call("chat.postEphemeral", &arguments).await {
            Err(SlackError::NotInvited { .. }) => {
                self.call("chat.postMessage", &render::direct_message(user, None, rendered))
                    .await?;
            }
            other => {
                other?;
            }
        }
        Ok(())
    }
}

/// The answer to a call: HTTP 200 with `ok`, or what it means that it is not.
fn read(method: &'static str, answer: &Answer) -> Result<Value, SlackError> {
    if answer.status == 429 {
        return Err(SlackError::RateLimited {
            method,
            after_ms: answer.retry_after_ms().unwrap_or(error::RETRY_AFTER_MS_DEFAULT),
        });
    }
    let body = answer.json::<Value>().filter(|body| body["ok"].is_boolean());
    match body {
        Some(body) if body["ok"] == true => Ok(body),
        Some(body) if answer.status < 500 => Err(SlackError::of_answer(method, &body)),
        _ => Err(SlackError::Unclear {
            method,
            seen: format!(
                "status {} with {}",
                answer.status,
                Some(answer.media_type())
                    .filter(|t| !t.is_empty())
                    .unwrap_or_else(|| "no media type".to_owned())
            ),
        }),
    }
}

impl SlackError {
    fn of_http(method: &'static str, error: HttpError) -> Self {
        let seen = error.to_string();
        match error {
            HttpError::Refused { .. } => Self::Address { seen },
            HttpError::Transport { unsent: true, .. } => Self::NotSent { method, seen },
            HttpError::Timeout { .. }
            | HttpError::Transport { .. }
            | HttpError::TooLarge { .. } => Self::Unclear { method, seen },
        }
    }
}
