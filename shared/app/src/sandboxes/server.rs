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

use super::capped::{NewKey, ServerCap, ServerKey};
use super::outside_keys::names;
use super::project_secrets::{OpenedSecrets, PlacedSecrets, WasLimited, is_refusal};
use super::{RunContext, Sandboxes};

/// Longest time for the script, which ends an unresponsive server and creates a repository.
pub(super) const START_MS_MAX: u64 = 30_000;
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

/// How a server is made sure of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting {
    /// The sandbox is new.
    pub(super) is_new: bool,
    /// First end a server that runs.
    pub(super) restart: bool,
    /// What it may spend.
    pub(super) cap: ServerCap,
}

impl Starting {
    /// A server that hangs is ended and started again.
    pub(super) const AGAIN: Self = Self { is_new: false, restart: true, cap: ServerCap::AsBefore };
}

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

    pub(super) async fn ensure_server<B: RunContext>(
        &self,
        context: &B,
        (key, generation): (&SandboxKey, u32),
        how: Starting,
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let Starting { is_new, restart, .. } = how;
        if !self.runtime.facts().has_server {
            return self.prepare_bare(key, generation).await;
        }
        let name = self.name(key, generation);
        // A server without a key would be started for nothing.
        let mut keys = self.runtime.keys()?;
        // Both at once. The script leaves a server alone if only its old preview is unreachable.
        let look = async {
            let agent = self.agent(key, generation).await?;
            let is_healthy = !restart && agent.is_healthy(false).await == Ok(true);
            Ok::<_, Failure>((agent, is_healthy))
        };
        let (look, sandbox) = join(look, self.provider.observe(&name)).await;
        let (agent, is_healthy) = look?;
        if is_healthy {
            return Ok(self.known_key(key, generation).await);
        }
        let sandbox = sandbox?;
        running(&sandbox)?;
        let mut launch = self.launch(key, generation, restart)?;
        let place = (key, generation);
        let mut own = self.key_for(place, &sandbox, (how, &launch), &keys).await?;
        let secrets = context.project_secrets().await?;
        let mut placed = match &own {
            ServerKey::Stays(_) => PlacedSecrets::default(),
            _ => {
                let was_limited = match (context.is_limited(), context.has_project_secrets()) {
                    (true, _) => WasLimited::Yes,
                    (false, true) => WasLimited::Perhaps,
                    (false, false) => WasLimited::No,
                };
                let network = self.limit(&sandbox, (&secrets, was_limited), &keys).await?;
                let mut placed = self.place(&sandbox, &secrets).await?;
                placed.given.network = network;
                placed
            }
        };
        let held = self.held_by(&sandbox, (&mut own, &mut placed), &keys).await?;
        self.end_keys_before(&own).await;
        if context.has_project_secrets() {
            self.forget_removed(&sandbox, &keys, &placed).await;
        }
        let is_own = own.put_first(&mut keys);
        // What Bobbin itself sets is not a project's to set.
        for (variable, value) in placed.variables() {
            launch.environment.entry(variable).or_insert(value);
        }
        launch.environment.extend(held.clone());
        let started = async {
            // A server that keeps its key may not be started without one.
            if !matches!(own, ServerKey::Stays(_)) {
                self.run_start_script(&sandbox, (&launch, &secrets)).await?;
            }
            Ok::<_, Failure>(self.healthy_within(&*agent, within_ms).await)
        };
        // A secret that was just changed takes seconds to be put in, and the previous key has ended.
        let is_changed = is_new || is_own;
        let looked = async { !is_changed || self.puts_secrets_in(&sandbox, &keys, &held).await };
        let (started, puts_in) = join(started, looked).await;
        if is_new && !puts_in {
            return Ok(Event::SecretsNotPutIn);
        }
        match started? {
            Ok(()) => Ok(own.healthy(placed.given)),
            Err(error) => match error.failure.clone() {
                failure @ (Failure::SandboxGone
                | Failure::NonRecoverable { .. }
                | Failure::Outage { .. }) => Err(failure),
                _ => {
                    let words = self.last_words(&sandbox, (&launch, &secrets)).await;
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
        self.run_start_script(&sandbox, (&launch, &OpenedSecrets::default())).await?;
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
        (launch, secrets): (&ServerLaunch, &OpenedSecrets),
    ) -> Result<(), Failure> {
        let timeout = Duration::from_millis(START_MS_MAX);
        let ServerLaunch { script, environment, .. } = launch;
        let ran = self.provider.exec(sandbox, script, environment, timeout).await;
        match ran {
            Ok(ran) if ran.exit_code == 0 => Ok(()),
            Ok(ran) => Err(match launch.refused(ran.exit_code) {
                Some(failure) => failure,
                None => {
                    let said = without(ran.text, secrets.values());
                    Failure::ResumeFailed { seen: self.sayable(&said, environment) }
                }
            }),
            Err(error) if error.kind == ErrorKind::CommandTimeout => {
                Err(Failure::ResumeFailed { seen: "the start script timed out".to_owned() })
            }
            Err(error) => Err(error.failure),
        }
    }

    /// The model keys for the server's environment; without a new capped key, if that finds no place.
    async fn held_by(
        &self,
        sandbox: &Sandbox,
        (own, placed): (&mut ServerKey, &mut PlacedSecrets),
        keys: &[ModelKey],
    ) -> Result<BTreeMap<String, String>, Failure> {
        match own {
            ServerKey::Stays(_) => return Ok(BTreeMap::new()),
            ServerKey::OfStack(_) => {}
            ServerKey::New(new) => match self.keys_for(sandbox, keys, (Some(new), placed)).await {
                Ok(held) => return Ok(held),
                Err(failure) => {
                    self.take_back(new, &failure.to_string()).await;
                    *own = ServerKey::OfStack(new.before());
                }
            },
        }
        self.keys_for(sandbox, keys, (None, placed)).await
    }

    /// Puts the placeholders of the model keys and of these secrets into the sandbox.
    pub(super) async fn mount(
        &self,
        sandbox: &Sandbox,
        keys: &[ModelKey],
        placed: &mut PlacedSecrets,
    ) -> Result<BTreeMap<String, String>, Failure> {
        self.keys_for(sandbox, keys, (None, placed)).await
    }

    /// Has the provider forget the secrets that were removed. What fails is left to the sandbox's end.
    async fn forget_removed(&self, sandbox: &Sandbox, keys: &[ModelKey], placed: &PlacedSecrets) {
        let models = keys.iter().map(|key| key.variable);
        let stays: Vec<&str> = models.chain(placed.outside.keys().map(String::as_str)).collect();
        if let Ok(store) = self.provider.facts().secrets
            && let Err(error) = store.forget(&sandbox.name, &stays).await
        {
            tracing::warn!(event = "project.secrets.left", sandbox = sandbox.name, %error, "removed secrets stay with the provider until their sandbox ends");
        }
    }

    /// The model keys for the server's environment: placeholders, in a sandbox that was created with them.
    async fn keys_for(
        &self,
        sandbox: &Sandbox,
        keys: &[ModelKey],
        (own, placed): (Option<&NewKey>, &mut PlacedSecrets),
    ) -> Result<BTreeMap<String, String>, Failure> {
        let is_outside = |key: &&ModelKey| sandbox.has_placeholders() && !key.hosts.is_empty();
        let inside = keys.iter().filter(|key| !is_outside(key));
        let mut held: BTreeMap<String, String> =
            inside.map(|key| (key.variable.to_owned(), key.value.clone())).collect();
        if let Some(own) = own
            && let Some(value) = held.get_mut(own.variable)
        {
            own.made.value.expose().clone_into(value);
        }
        if sandbox.has_placeholders()
            && let Secrets::Outside(mut placeholders) = self.keep(keys).await?
            && let Ok(store) = self.provider.facts().secrets
        {
            let replaced = own.filter(|own| !held.contains_key(own.variable));
            if let Some(own) = replaced {
                placeholders.extend(self.keep_own(sandbox, own, keys).await?);
            }
            let placeholders = &placeholders;
            let mut all = names(placeholders);
            all.extend(names(&placed.outside));
            match store.mount(sandbox, &all).await {
                Err(error) if is_refusal(&error.failure) && !placed.outside.is_empty() => {
                    placed.not_mounted();
                    store.mount(sandbox, &names(placeholders)).await?;
                }
                mounted => mounted?,
            }
            let text =
                |(variable, one): (&String, &Placeholder)| (variable.clone(), one.text.clone());
            held.extend(placeholders.iter().map(text));
        } else {
            placed.not_mounted();
        }
        Ok(held)
    }

    async fn last_words(
        &self,
        sandbox: &Sandbox,
        (launch, secrets): (&ServerLaunch, &OpenedSecrets),
    ) -> String {
        let script = self.runtime.facts().last_words;
        let timeout = Duration::from_millis(START_MS_MAX);
        match self.provider.exec(sandbox, script, &BTreeMap::new(), timeout).await {
            Ok(ran) if !ran.text.trim().is_empty() => {
                let said = without(ran.text, secrets.values());
                format!("Its last output: {}", self.sayable(&said, &launch.environment))
            }
            Ok(_) => "It left no output.".to_owned(),
            Err(error) => format!("Its log could not be read: {error}"),
        }
    }

    /// Output of the sandbox without the secrets that it was given.
    pub(super) fn sayable(&self, words: &str, environment: &BTreeMap<String, String>) -> String {
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

/// The words without these values.
fn without<'a>(words: String, values: impl Iterator<Item = &'a str>) -> String {
    values.fold(words, |words, value| words.replace(value, "***"))
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
