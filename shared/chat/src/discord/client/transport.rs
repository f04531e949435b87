//! Calls to Discord: authorisation, rate limits, errors. Knows no card and no session.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bobbin_core::base::ids::digest;
use bobbin_http::{Http, ReceivedAnswer};
use reqwest::header::{AUTHORIZATION, USER_AGENT};
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use tokio::time::Instant;

use super::call::Call;
use super::error::DiscordError;
use super::pace::{Pace, Scope};
use crate::discord::render::AttachedFile;

/// Rate limits up to this long are waited for in place; longer ones go back to the queue.
pub const RATE_WAIT_MS_MAX: u64 = 2_000;
/// Maximum attempts of one call at a rate limit.
const RATE_TRIES_MAX: u32 = 3;
/// Maximum waits of a call at a limit before it is returned to the queue: other calls of this process may take what has
/// just become free.
const LIMIT_TRIES_MAX: u32 = 10;
/// How long the bot token is not used after a 401: 10,000 refused calls within ten minutes get an address banned
/// (Discord's documentation, "Invalid Request Limit"), and a token refused by mistake must not silence a process.
const REFUSED_FOR: Duration = Duration::from_secs(30);
/// Maximum number of dead tokens remembered: trying them again counts towards a ban.
const DEAD_TOKENS_MAX: usize = 1_024;
/// Maximum characters of Discord's message kept in an error.
const MESSAGE_CHARS_MAX: usize = 300;

/// Discord's HTTP API. Clones share what is known about limits and tokens.
#[derive(Clone)]
pub(super) struct Client {
    http: Http,
    base: String,
    agent: String,
    bot_token: String,
    known: Arc<Mutex<KnownLimits>>,
    pub(super) refused_for: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct KnownLimits {
    pace: Pace,
    dead: BTreeSet<String>,
    /// Until when the refused bot token is not used.
    refused_until: Option<Instant>,
}

impl Client {
    pub(super) fn new(http: Http, base: &str, application: &str, bot_token: &str) -> Self {
        // Discord requires this form; the address identifies the calling application.
        let agent = format!(
            "DiscordBot (https://discord.com/developers/applications/{application}, {})",
            env!("CARGO_PKG_VERSION")
        );
        Self {
            http,
            base: base.trim_end_matches('/').to_owned(),
            agent,
            bot_token: bot_token.to_owned(),
            known: Arc::default(),
            refused_for: REFUSED_FOR,
        }
    }

    pub(super) fn is_dead(&self, token: &str) -> bool {
        self.known().dead.contains(&digest(&[token]))
    }

    pub(super) fn mark_dead(&self, token: &str) {
        let mut known = self.known();
        if known.dead.len() >= DEAD_TOKENS_MAX {
            known.dead.clear();
        }
        known.dead.insert(digest(&[token]));
    }

    /// Makes a call; short rate limits are waited for.
    pub(super) async fn call(
        &self,
        call: &Call,
        body: Option<&Value>,
        file: Option<&AttachedFile>,
    ) -> Result<Value, DiscordError> {
        let mut waited_ms = 0;
        let mut after_ms = 0;
        for _ in 0..RATE_TRIES_MAX {
            self.wait_for_rate_limit(call, &mut waited_ms).await?;
            let answer = self.send(call, body, file).await?;
            let now = Instant::now();
            let said: Value = match answer.status {
                429 => answer.json().unwrap_or(Value::Null),
                _ => Value::Null,
            };
            let scope = {
                let mut known = self.known();
                known.pace.note(call, answer.status, &answer.headers, now);
                // An old message that was edited too often: waiting does not help, a new message does.
                if answer.status != 429 || said["code"] == 30_046 {
                    drop(known);
                    return self.read(call, &answer);
                }
                let scope;
                (after_ms, scope) = known.pace.refused(call, &said, &answer.headers, now);
                scope
            };
            match scope {
                Scope::Shared => {
                    tracing::info!(
                        event = "discord.limited",
                        route = call.name,
                        after_ms,
                        "discord: a shared limit"
                    );
                }
                Scope::User | Scope::Global => {
                    tracing::warn!(
                        event = "discord.limited",
                        route = call.name,
                        after_ms,
                        ?scope,
                        "discord: rate limited"
                    );
                }
            }
        }
        Err(DiscordError::RateLimited { after_ms })
    }

    /// Waits until the route is free, or returns how long that takes.
    async fn wait_for_rate_limit(
        &self,
        call: &Call,
        waited_ms: &mut u64,
    ) -> Result<(), DiscordError> {
        for _ in 0..LIMIT_TRIES_MAX {
            let now = Instant::now();
            let taken = {
                let mut known = self.known();
                if self.bot_token.is_empty() && !call.by_token {
                    return Err(DiscordError::NoToken);
                }
                if known.refused_until.is_some_and(|until| now < until) && !call.by_token {
                    return Err(DiscordError::Revoked);
                }
                known.pace.take(call, now)
            };
            let Err(until) = taken else { return Ok(()) };
            let left = until.saturating_duration_since(now);
            let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
            if waited_ms.saturating_add(left_ms) > RATE_WAIT_MS_MAX {
                return Err(DiscordError::RateLimited { after_ms: left_ms });
            }
            *waited_ms += left_ms;
            tokio::time::sleep(left).await;
        }
        Err(DiscordError::RateLimited { after_ms: RATE_WAIT_MS_MAX })
    }

    async fn send(
        &self,
        call: &Call,
        body: Option<&Value>,
        file: Option<&AttachedFile>,
    ) -> Result<ReceivedAnswer, DiscordError> {
        let mut request = self
            .http
            .request(call.method.clone(), &format!("{}{}", self.base, call.path))?
            .header(USER_AGENT, &self.agent);
        if !call.by_token {
            request = request.header(AUTHORIZATION, format!("Bot {}", self.bot_token));
        }
        request = match (body, file) {
            (Some(body), None) => request.json(body),
            (Some(body), Some(file)) => {
                let payload = Part::text(body.to_string())
                    .mime_str("application/json")
                    .expect("a constant media type");
                let part = Part::bytes(file.bytes.clone())
                    .file_name(file.name.clone())
                    .mime_str(file.media_type)
                    .expect("a constant media type");
                request.multipart(Form::new().part("payload_json", payload).part("files[0]", part))
            }
            (None, _) => request,
        };
        Ok(self.http.send(request).await?)
    }

    fn read(&self, call: &Call, answer: &ReceivedAnswer) -> Result<Value, DiscordError> {
        if answer.status == 204 {
            return Ok(Value::Null);
        }
        let unreadable = DiscordError::Unreadable { route: call.name, status: answer.status };
        let body: Option<Value> = answer.json();
        // A 403 that is not in Discord's form comes from something in front of it, and passes.
        if answer.ok() || (answer.status == 403 && body.is_none()) {
            return body.ok_or(unreadable);
        }
        let body = body.unwrap_or(Value::Null);
        let code = body["code"].as_u64().unwrap_or(0);
        match (answer.status, code) {
            (404, 10_062 | 10_015) | (401, 50_027) if call.by_token => {
                return Err(DiscordError::TokenGone);
            }
            (401, _) if !call.by_token => {
                self.known().refused_until = Some(Instant::now() + self.refused_for);
                tracing::error!(
                    event = "discord.revoked",
                    route = call.name,
                    "discord: the bot token was refused; it is tried again in half a minute"
                );
                return Err(DiscordError::Revoked);
            }
            _ => {}
        }
        let words = body["message"].as_str().unwrap_or("no reason given");
        let path = first_error(&body["errors"], String::new())
            .map(|path| format!(" ({path})"))
            .unwrap_or_default();
        let message = bobbin_core::text::shorten(&format!("{words}{path}"), MESSAGE_CHARS_MAX);
        Err(DiscordError::Api { route: call.name, status: answer.status, code, message })
    }

    fn known(&self) -> MutexGuard<'_, KnownLimits> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Path and code of the first field that Discord calls invalid; never the value.
fn first_error(errors: &Value, path: String) -> Option<String> {
    let fields = errors.as_object()?;
    if let Some(code) = fields.get("_errors").and_then(|list| list[0]["code"].as_str()) {
        return Some(format!("{path}: {code}"));
    }
    fields.iter().find_map(|(name, inner)| {
        first_error(inner, if path.is_empty() { name.clone() } else { format!("{path}.{name}") })
    })
}
