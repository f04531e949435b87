//! Starting the OpenCode server in a sandbox, and finding out whether it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::event::{Coarse, Event};
use bobbin_core::failure::Failure;
use bobbin_core::ids::ThreadKey;
use bobbin_core::signals::HEALTH_RETRIES;
use bobbin_core::wire::daytona::Sandbox;
use bobbin_core::wire::opencode::request::{QUIET_ENVIRONMENT, plugin_marker};
use bobbin_core::wire::opencode::steps::redact;
use tokio::time::{Instant, timeout_at};

use super::Sandboxes;
use crate::daytona::DaytonaError;
use crate::metrics::Unit;
use crate::opencode::{OpenCode, OpenCodeError};
use crate::world::now_ms;

/// The script that prepares the project and starts the server; its first lines are set before it.
const START_SCRIPT: &str = include_str!("start.sh");
/// Exit status of the script when the image has no OpenCode.
const EXIT_NOT_INSTALLED: i64 = 69;
/// Time of the script, which ends a server that does not answer and makes a repository.
const START_MS_MAX: u64 = 30_000;
/// Between two looks at the server's health: first, and at most.
const HEALTH_POLL_MS: u64 = 250;
const HEALTH_POLL_MS_MAX: u64 = 1_000;
/// One look takes no longer: a request that arrives just when the server has bound its port is never answered
/// (measured on OpenCode 1.18.33), while the next one is at once.
const HEALTH_LOOK_MS_MAX: u64 = 2_000;
/// Looks between two fetches of the preview, while the server does not answer.
const LOOKS_PER_PREVIEW: u32 = 8;
/// Characters of the server's last words that are passed on.
const LAST_WORDS_CHARS_MAX: usize = 600;

impl Sandboxes {
    pub(super) async fn check_server(
        &self,
        thread: &ThreadKey,
        generation: u32,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let agent = self.agent(thread, generation).await?;
        match self.healthy_within(&agent, within_ms).await {
            Ok(()) => Ok(Event::Healthy),
            Err(error) => Err(match error.failure() {
                failure @ (Failure::SandboxGone
                | Failure::NonRecoverable { .. }
                | Failure::Outage { .. }) => failure,
                _ => Failure::SandboxDown {
                    seen: error.to_string(),
                },
            }),
        }
    }

    pub(super) async fn ensure_server(
        &self,
        thread: &ThreadKey,
        generation: u32,
        restart: bool,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let name = self.name(thread, generation);
        let environment = self.environment(&name)?;
        let agent = self.agent(thread, generation).await?;
        if !restart && agent.health().await.is_ok() {
            return Ok(Event::Healthy);
        }
        let sandbox = self.daytona.get(&name).await.map_err(|e| e.failure())?;
        if sandbox.coarse() != Coarse::Running {
            return Err(Failure::SandboxDown {
                seen: "the sandbox is not running".to_owned(),
            });
        }
        self.run_start_script(&sandbox, &environment, restart)
            .await?;
        match self.healthy_within(&agent, within_ms).await {
            Ok(()) => Ok(Event::Healthy),
            Err(error) => match error.failure() {
                failure @ (Failure::SandboxGone
                | Failure::NonRecoverable { .. }
                | Failure::Outage { .. }) => Err(failure),
                _ => {
                    let words = self.last_words(&sandbox, &environment).await;
                    Err(Failure::ResumeFailed {
                        seen: format!("{error}. {words}").trim().to_owned(),
                    })
                }
            },
        }
    }

    /// Polls the server until it is healthy, or the time is over and the last error counts. What was asked in vain is
    /// counted.
    async fn healthy_within(&self, agent: &OpenCode, within_ms: u64) -> Result<(), OpenCodeError> {
        let (healthy, looks) = look_within(agent, within_ms).await;
        let retries = looks.saturating_sub(1);
        if retries > 0 {
            tracing::info!(
                event = HEALTH_RETRIES,
                retries,
                healthy = healthy.is_ok(),
                "the server's health was asked for again"
            );
            let count = (HEALTH_RETRIES, Unit::Count, retries.into());
            self.metrics.put(&[count], now_ms());
        }
        healthy
    }

    async fn run_start_script(
        &self,
        sandbox: &Sandbox,
        environment: &BTreeMap<String, String>,
        restart: bool,
    ) -> Result<(), Failure> {
        let script = format!(
            "restart={}\nmarker='{}'\n{START_SCRIPT}",
            u8::from(restart),
            plugin_marker()
        );
        let timeout = Duration::from_millis(START_MS_MAX);
        let ran = self
            .daytona
            .execute(sandbox, &script, environment, None, timeout)
            .await;
        match ran {
            Ok(ran) if ran.exit_code == 0 => Ok(()),
            Ok(ran) if ran.exit_code == EXIT_NOT_INSTALLED => Err(Failure::NonRecoverable {
                advice: "The sandbox's image has no OpenCode. The operator has to check the snapshot or the Dockerfile."
                    .to_owned(),
            }),
            Ok(ran) => Err(Failure::ResumeFailed { seen: self.sayable(&ran.result, environment) }),
            Err(DaytonaError::CommandTimeout) => {
                Err(Failure::ResumeFailed { seen: "the start script ran over its time".to_owned() })
            }
            Err(error) => Err(error.toolbox_failure()),
        }
    }

    /// What the server's processes get, and nothing else of the sandbox does.
    fn environment(&self, name: &str) -> Result<BTreeMap<String, String>, Failure> {
        let (config, keys) = self.models.for_server()?;
        let mut environment: BTreeMap<String, String> = QUIET_ENVIRONMENT
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        environment.insert("OPENCODE_SERVER_PASSWORD".to_owned(), self.password(name));
        environment.insert("OPENCODE_CONFIG_CONTENT".to_owned(), config);
        environment.extend(keys);
        Ok(environment)
    }

    async fn last_words(
        &self,
        sandbox: &Sandbox,
        environment: &BTreeMap<String, String>,
    ) -> String {
        let script = "tail -n 5 .bobbin/opencode.log 2>/dev/null | head -c 4000";
        let timeout = Duration::from_millis(START_MS_MAX);
        match self
            .daytona
            .execute(sandbox, script, &BTreeMap::new(), None, timeout)
            .await
        {
            Ok(ran) if !ran.result.trim().is_empty() => {
                format!("Its last words: {}", self.sayable(&ran.result, environment))
            }
            Ok(_) => "It left no words.".to_owned(),
            Err(error) => format!("Its log could not be read: {error}"),
        }
    }

    /// Words of the sandbox without the secrets that it was given.
    fn sayable(&self, words: &str, environment: &BTreeMap<String, String>) -> String {
        let mut words = words.to_owned();
        let secret = |name: &&String| name.ends_with("_KEY") || name.ends_with("_PASSWORD");
        for value in environment
            .iter()
            .filter(|(name, _)| secret(name))
            .map(|(_, value)| value)
        {
            if value.len() >= 8 {
                words = words.replace(value.as_str(), "***");
            }
        }
        let words = redact(words.trim()).replace('\n', " · ");
        let from = words
            .char_indices()
            .rev()
            .nth(LAST_WORDS_CHARS_MAX - 1)
            .map_or(0, |(at, _)| at);
        words[from..].to_owned()
    }
}

/// The same, with how often it was asked.
async fn look_within(agent: &OpenCode, within_ms: u64) -> (Result<(), OpenCodeError>, u32) {
    let until = Instant::now() + Duration::from_millis(within_ms);
    let mut pause_ms = HEALTH_POLL_MS;
    let mut looks = 0_u32;
    loop {
        looks += 1;
        let look = async {
            if looks.is_multiple_of(LOOKS_PER_PREVIEW) {
                agent.health().await
            } else {
                agent.probe().await
            }
        };
        let look_until = until.min(Instant::now() + Duration::from_millis(HEALTH_LOOK_MS_MAX));
        let error = match timeout_at(look_until, look).await {
            Ok(Ok(health)) if health.healthy => return (Ok(()), looks),
            Ok(Ok(_)) => OpenCodeError::Unreachable {
                seen: "the server calls itself unhealthy".to_owned(),
            },
            Ok(Err(
                error @ (OpenCodeError::Preview(DaytonaError::NotFound) | OpenCodeError::Guard(_)),
            )) => {
                return (Err(error), looks);
            }
            Ok(Err(error)) => error,
            Err(_) => OpenCodeError::Unreachable {
                seen: "no answer in time".to_owned(),
            },
        };
        if Instant::now() + Duration::from_millis(pause_ms) >= until {
            return (Err(error), looks);
        }
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        pause_ms = (pause_ms * 2).min(HEALTH_POLL_MS_MAX);
    }
}
