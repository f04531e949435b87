//! Starts the agent's server in a sandbox, and checks whether it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_agent::{Agent, AgentError, AgentErrorKind, LaunchInputs, ModelKey, ServerLaunch};
use bobbin_core::base::credentials::redact;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::tokens::bearer::Bearer;
use bobbin_sandbox::{ErrorKind, Placeholder, Sandbox, Secrets};
use futures::StreamExt as _;
use futures::future::join;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Sandboxes;
use super::vault::names;

/// Longest time for the script, which ends an unresponsive server and creates a repository.
const START_MS_MAX: u64 = 30_000;
/// First and longest interval of health checks. In between the interval is a fraction of the time so far, so that the
/// server is found soon after it is up.
const HEALTH_POLL_MS: u64 = 100;
const HEALTH_POLL_MS_MAX: u64 = 1_000;
const HEALTH_POLL_PART: u32 = 50;
/// Longest time for one check, which does not delay the next: a request that arrives just as the server binds its port
/// is never answered (measured on OpenCode 1.18.33), while the next one is answered at once.
const HEALTH_LOOK_MS_MAX: u64 = 2_000;
/// Maximum number of checks in flight: as many as start before the first one times out, so that a slow server delays no
/// check, however many it never answers.
const HEALTH_LOOKS_MAX: usize = (HEALTH_LOOK_MS_MAX / HEALTH_POLL_MS) as usize;
/// Interval of fetching the preview again while the server does not answer.
const PREVIEW_MS: u64 = 4_000;
/// Characters of the server's last output that are passed on.
const LAST_WORDS_CHARS_MAX: usize = 600;

impl Sandboxes {
    pub(super) async fn check_server(
        &self,
        key: &SandboxKey,
        generation: u32,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        if !self.runtime.facts().has_server {
            let sandbox = self.find(key, generation).await?;
            return running(&sandbox).map(|()| Event::Healthy);
        }
        let agent = self.agent(key, generation).await?;
        match self.healthy_within(&*agent, within_ms).await {
            Ok(()) => Ok(Event::Healthy),
            Err(error) => Err(match error.failure.clone() {
                failure @ (Failure::SandboxGone
                | Failure::NonRecoverable { .. }
                | Failure::Outage { .. }) => failure,
                _ => Failure::SandboxDown { seen: error.to_string() },
            }),
        }
    }

    pub(super) async fn ensure_server(
        &self,
        key: &SandboxKey,
        generation: u32,
        (is_new, restart): (bool, bool),
        within_ms: u64,
    ) -> Result<Event, Failure> {
        if !self.runtime.facts().has_server {
            return self.prepare_bare(key, generation).await;
        }
        let name = self.name(key, generation);
        // A server without a key would be started for nothing.
        let keys = self.runtime.keys()?;
        // Both at once. The script leaves a server alone if only its old preview is unreachable.
        let look = async {
            let agent = self.agent(key, generation).await?;
            let is_healthy = !restart && agent.is_healthy(false).await == Ok(true);
            Ok::<_, Failure>((agent, is_healthy))
        };
        let (look, sandbox) = join(look, self.provider.observe(&name)).await;
        let (agent, is_healthy) = look?;
        if is_healthy {
            return Ok(Event::Healthy);
        }
        let sandbox = sandbox?;
        running(&sandbox)?;
        let mut launch = self.launch(key, generation, restart)?;
        let held = self.keys_for(&sandbox, &keys).await?;
        launch.environment.extend(held.clone());
        let started = async {
            self.run_start_script(&sandbox, &launch).await?;
            Ok::<_, Failure>(self.healthy_within(&*agent, within_ms).await)
        };
        let looked = async { !is_new || self.puts_secrets_in(&sandbox, &keys, &held).await };
        let (started, puts_in) = join(started, looked).await;
        if !puts_in {
            return Ok(Event::SecretsNotPutIn);
        }
        match started? {
            Ok(()) => Ok(Event::Healthy),
            Err(error) => match error.failure.clone() {
                failure @ (Failure::SandboxGone
                | Failure::NonRecoverable { .. }
                | Failure::Outage { .. }) => Err(failure),
                _ => {
                    let words = self.last_words(&sandbox, &launch.environment).await;
                    Err(Failure::ResumeFailed {
                        seen: format!("{error}. {words}").trim().to_owned(),
                    })
                }
            },
        }
    }

    /// A sandbox without a server is ready as soon as its project is.
    async fn prepare_bare(&self, key: &SandboxKey, generation: u32) -> Result<Event, Failure> {
        let sandbox = self.find(key, generation).await?;
        running(&sandbox)?;
        let launch = self.launch(key, generation, false)?;
        self.run_start_script(&sandbox, &launch).await?;
        Ok(Event::Healthy)
    }

    fn launch(
        &self,
        key: &SandboxKey,
        generation: u32,
        restart: bool,
    ) -> Result<ServerLaunch, Failure> {
        let bearer = Bearer { sandbox: key.clone(), generation };
        let tenant = key.tenant().to_string();
        self.runtime.launch(LaunchInputs {
            restart,
            password: &self.password(&self.name(key, generation)),
            listens_on: self.provider.facts().listens_on,
            is_trusted: self.settings.project_config_of.contains(&tenant),
            tools_bearer: &bearer.signed(&self.settings.stack_key),
        })
    }

    /// Polls the server until it is healthy, or the time is over; then the last error counts. Repeated checks are
    /// logged.
    async fn healthy_within(&self, agent: &dyn Agent, within_ms: u64) -> Result<(), AgentError> {
        let look = |with_preview| agent.is_healthy(with_preview);
        let (healthy, looks) = check_within(look, within_ms).await;
        let retries = looks.saturating_sub(1);
        if retries > 0 {
            tracing::info!(
                event = "server.health.retried",
                retries,
                healthy = healthy.is_ok(),
                "the server's health was asked for again"
            );
        }
        healthy
    }

    async fn run_start_script(
        &self,
        sandbox: &Sandbox,
        launch: &ServerLaunch,
    ) -> Result<(), Failure> {
        let timeout = Duration::from_millis(START_MS_MAX);
        let ServerLaunch { script, environment, .. } = launch;
        let ran = self.provider.exec(sandbox, script, environment, timeout).await;
        match ran {
            Ok(ran) if ran.exit_code == 0 => Ok(()),
            Ok(ran) => Err(match launch.refused(ran.exit_code) {
                Some(failure) => failure,
                None => Failure::ResumeFailed { seen: self.sayable(&ran.text, environment) },
            }),
            Err(error) if error.kind == ErrorKind::CommandTimeout => {
                Err(Failure::ResumeFailed { seen: "the start script timed out".to_owned() })
            }
            Err(error) => Err(error.failure),
        }
    }

    /// The model keys for the server's environment: placeholders, in a sandbox that was created with them.
    async fn keys_for(
        &self,
        sandbox: &Sandbox,
        keys: &[ModelKey],
    ) -> Result<BTreeMap<String, String>, Failure> {
        let is_outside = |key: &&ModelKey| sandbox.has_placeholders() && !key.hosts.is_empty();
        let inside = keys.iter().filter(|key| !is_outside(key));
        let mut held: BTreeMap<String, String> =
            inside.map(|key| (key.variable.to_owned(), key.value.clone())).collect();
        if sandbox.has_placeholders()
            && let Secrets::Outside(placeholders) = &self.keep(keys).await?
            && let Ok(store) = self.provider.facts().secrets
        {
            store.mount(sandbox, &names(placeholders)).await?;
            let text =
                |(variable, one): (&String, &Placeholder)| (variable.clone(), one.text.clone());
            held.extend(placeholders.iter().map(text));
        }
        Ok(held)
    }

    async fn last_words(
        &self,
        sandbox: &Sandbox,
        environment: &BTreeMap<String, String>,
    ) -> String {
        let script = self.runtime.facts().last_words;
        let timeout = Duration::from_millis(START_MS_MAX);
        match self.provider.exec(sandbox, script, &BTreeMap::new(), timeout).await {
            Ok(ran) if !ran.text.trim().is_empty() => {
                format!("Its last output: {}", self.sayable(&ran.text, environment))
            }
            Ok(_) => "It left no output.".to_owned(),
            Err(error) => format!("Its log could not be read: {error}"),
        }
    }

    /// Output of the sandbox without the secrets that it was given.
    fn sayable(&self, words: &str, environment: &BTreeMap<String, String>) -> String {
        let mut words = words.to_owned();
        let secret =
            |name: &&String| ["_KEY", "_PASSWORD", "_TOKEN"].iter().any(|end| name.ends_with(end));
        for value in environment.iter().filter(|(name, _)| secret(name)).map(|(_, value)| value) {
            if value.len() >= 8 {
                words = words.replace(value.as_str(), "***");
            }
        }
        let words = redact(words.trim()).replace('\n', " · ");
        let from = words.char_indices().rev().nth(LAST_WORDS_CHARS_MAX - 1).map_or(0, |(at, _)| at);
        words[from..].to_owned()
    }
}

pub(super) fn running(sandbox: &Sandbox) -> Result<(), Failure> {
    if sandbox.state == SandboxState::Running {
        return Ok(());
    }
    Err(Failure::SandboxDown { seen: "the sandbox is not running".to_owned() })
}

/// Runs any health check (its argument: whether to fetch the preview again), and returns the number of checks too.
async fn check_within<L>(look: impl Fn(bool) -> L, within_ms: u64) -> (Result<(), AgentError>, u32)
where
    L: Future<Output = Result<bool, AgentError>>,
{
    let start = Instant::now();
    let until = start + Duration::from_millis(within_ms);
    let mut preview_due = start + Duration::from_millis(PREVIEW_MS);
    let mut under_way = FuturesUnordered::new();
    let (mut looks, mut next) = (0_u32, start);
    let mut seen = AgentError::unreachable("no answer in time");
    loop {
        let now = Instant::now();
        if now >= until {
            return (Err(seen), looks);
        }
        if now >= next {
            if under_way.len() < HEALTH_LOOKS_MAX {
                looks += 1;
                let with_preview = now >= preview_due;
                if with_preview {
                    preview_due = now + Duration::from_millis(PREVIEW_MS);
                }
                let bound = until.min(now + Duration::from_millis(HEALTH_LOOK_MS_MAX));
                under_way.push(timeout_at(bound, look(with_preview)));
            }
            let pause = (now - start) / HEALTH_POLL_PART;
            next = now
                + pause.clamp(
                    Duration::from_millis(HEALTH_POLL_MS),
                    Duration::from_millis(HEALTH_POLL_MS_MAX),
                );
        }
        let answered = tokio::select! {
            Some(answered) = under_way.next() => answered,
            () = sleep_until(next.min(until)) => continue,
        };
        match answered {
            Ok(Ok(true)) => return (Ok(()), looks),
            Ok(Ok(false)) => {
                seen = AgentError::unreachable("the server reports that it is unhealthy")
            }
            Ok(Err(error)) if error.kind == AgentErrorKind::Final => return (Err(error), looks),
            Ok(Err(error)) => seen = error,
            // Later checks have already told more.
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn hanging_health_polls_do_not_block() {
        let begun = AtomicU32::new(0);
        let look = async |_: bool| {
            if begun.fetch_add(1, Ordering::Relaxed) < 8 {
                std::future::pending::<()>().await;
            }
            Ok(true)
        };
        let (healthy, looks) = check_within(look, HEALTH_LOOK_MS_MAX - 1).await;
        assert_eq!((healthy.is_ok(), looks), (true, 9));
    }
}
