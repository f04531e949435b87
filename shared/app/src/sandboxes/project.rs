//! Makes the project in a sandbox ready: reads its recipe, runs its set-up, starts its services.
//!
//! Promised: what a project runs has none of the provider's or an agent's variables; each step is bounded in time and
//! output; no process of a set-up outlives it, whatever it holds open; nothing here waits for one longer than for a
//! look.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_core::base::credentials::redact;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::SandboxKey;
use bobbin_core::protocol::effect::{RecipeAt, SetUpBounds};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::recipe::{FoundRecipe, ProjectService, RecipeStep};
use bobbin_core::records::set_up::{FailedStep, SetUpSeen, StepEnd};
use bobbin_core::text::without_controls;
use bobbin_recipe::{FILE_BYTES_MAX, LINK_OUT, LOCK_FILES, ProjectFiles, ROOT_NAMES, WANTED};
use bobbin_sandbox::{ErrorKind, ScriptOutput};
use tokio::time::sleep;

use super::project_secrets::{PlacedSecrets, WasLimited};
use super::{OpenedSecrets, Sandboxes};

const READ: &str = include_str!("project/read_recipe.sh");
const SET_UP: &str = concat!(
    include_str!("project/clean.sh"),
    include_str!("project/services.sh"),
    include_str!("project/write_steps.sh"),
    include_str!("project/set_up.sh")
);
const START: &str = concat!(
    include_str!("project/clean.sh"),
    include_str!("project/services.sh"),
    include_str!("project/write_steps.sh"),
    include_str!("project/start_project.sh")
);
const HOLD: &str = concat!(
    include_str!("project/clean.sh"),
    include_str!("project/services.sh"),
    include_str!("project/hold_services.sh")
);
const READ_LOG: &str = include_str!("project/read_log.sh");
const RUN_STEPS: &str = include_str!("project/run_steps.sh");
/// What a start prints once it has seen to each service.
const SERVED: &str = "served";
/// What a look or a start prints once the steps have begun.
const BEGUN: &str = "begun";
/// What a look prints of a step that was not run, because no time was left.
const UNRUN: &str = "end unrun";
/// Longest time for reading a recipe, with a fetch of the default branch.
const READ_MS_MAX: u64 = 60_000;
/// Seconds of that for the fetch: a branch that is not there by then costs the files, and no setting.
const FETCH_S_MAX: u64 = 40;
/// Longest time for one look at a set-up.
const LOOK_MS_MAX: u64 = 60_000;
/// Time for the services to start, besides the steps.
const SERVICES_MS_MAX: u64 = 90_000;
/// Time for reading the output of a set-up.
const READ_LOG_MS_MAX: u64 = 15_000;
/// Bytes that are kept of the output of all steps.
const LOG_BYTES_MAX: usize = 65_536;

impl Sandboxes {
    pub(super) async fn read_recipe(
        &self,
        key: &SandboxKey,
        generation: u32,
        (at, said): (&RecipeAt, Option<&str>),
    ) -> Result<Event, Failure> {
        let sandbox = self.find_running(key, generation).await?;
        let own = said.and_then(|text| bobbin_recipe::of_settings(text).ok());
        let own = own.and_then(|own| own.recipe).map(Box::new);
        let at = match at {
            RecipeAt::Origin => "origin".to_owned(),
            RecipeAt::Base(commit) => format!("base {commit}"),
            RecipeAt::Brought(branch) => format!("brought {branch}"),
            RecipeAt::Nowhere => String::new(),
        };
        let environment = wanted(at, said.unwrap_or_default(), FETCH_S_MAX);
        let timeout = Duration::from_millis(READ_MS_MAX);
        let text = match self.provider.exec(&sandbox, READ, &environment, timeout).await {
            Ok(ran) => ran.text,
            // A default branch that cannot be had costs the recipe alone.
            Err(error) if error.kind == ErrorKind::CommandTimeout => String::new(),
            Err(error) => return Err(error.failure),
        };
        let found = found(&text);
        // Without a clock nobody could tell the set-up's processes from others.
        let recipe = own.or(found.recipe).filter(|_| found.ticks > 0);
        let image = self.image();
        Ok(Event::RecipeRead(FoundRecipe { recipe, image, ..found }))
    }

    /// The variables of set-up steps: the recipe's, and the secrets that are for set-ups. Before those are mounted the
    /// sandbox has none of the project's.
    pub(super) async fn set_up_variables(
        &self,
        (key, generation): (&SandboxKey, u32),
        secrets: OpenedSecrets,
        own: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Failure> {
        if secrets.all.is_empty() && secrets.network.is_none() {
            return Ok(own.clone());
        }
        let sandbox = self.find_running(key, generation).await?;
        let keys = self.runtime.keys()?;
        // It is new. Where its network cannot be limited, the thread is told, and its agent gets the secrets too.
        self.limit(&sandbox, (&secrets, WasLimited::No), &keys).await?;
        let mut placed = self.place(&sandbox, &secrets.of_set_up()).await?;
        let held = self.mount(&sandbox, &keys, &mut placed).await?;
        if !placed.outside.is_empty() {
            // Those that were just mounted take seconds to be put in. The server's start checks whether they ever are.
            self.puts_secrets_in(&sandbox, &keys, &held).await;
        }
        // A recipe does not choose what a manager has stored.
        Ok(own.clone().into_iter().chain(placed.variables()).collect())
    }

    /// From now on the project reaches what its network lets it, if that is limited. Some providers limit it only with
    /// the secrets that are mounted next: here the model's.
    pub(super) async fn limit_project(
        &self,
        (key, generation): (&SandboxKey, u32),
        secrets: &OpenedSecrets,
    ) -> Result<(), Failure> {
        if secrets.network.is_some() {
            let sandbox = self.find_running(key, generation).await?;
            let keys = self.runtime.keys()?;
            self.limit(&sandbox, (secrets, WasLimited::Perhaps), &keys).await?;
            self.mount(&sandbox, &keys, &mut PlacedSecrets::default()).await?;
        }
        Ok(())
    }

    pub(super) async fn set_up(
        &self,
        (key, generation): (&SandboxKey, u32),
        (services, steps): (&[ProjectService], &[RecipeStep]),
        (variables, since_ticks): (&BTreeMap<String, String>, u64),
        (after_ms, bounds): (u64, SetUpBounds),
        left_ms: impl Fn() -> u64 + Send,
    ) -> Result<Event, Failure> {
        sleep(Duration::from_millis(after_ms)).await;
        let sandbox = self.find_running(key, generation).await?;
        let services = self.startable(services);
        let mut environment = written(steps, variables);
        let seconds = |ms: u64| ms.div_ceil(1_000).to_string();
        let flag = |is_on: bool| if is_on { "on" } else { "" }.to_owned();
        environment.extend([
            ("BOBBIN_OF".to_owned(), self.name(key, generation)),
            ("BOBBIN_SERVICES".to_owned(), words(services)),
            ("BOBBIN_SINCE".to_owned(), since_ticks.to_string()),
            ("BOBBIN_STEP_S".to_owned(), seconds(bounds.step_ms)),
            ("BOBBIN_ALL_S".to_owned(), seconds(bounds.all_ms)),
            ("BOBBIN_LATE".to_owned(), flag(bounds.is_late)),
            ("BOBBIN_GOES_ON".to_owned(), flag(bounds.goes_on)),
        ]);
        // A look that arrives after the message became visible again could end somebody else's server.
        let timeout = Duration::from_millis(LOOK_MS_MAX.min(left_ms()));
        let ran = self.provider.exec(&sandbox, SET_UP, &environment, timeout).await;
        let ran = ran.map_err(|error| error.failure)?;
        if ran.exit_code != 0 {
            let seen = self.sayable(&ran.text, &BTreeMap::new());
            return Err(Failure::Wait { after_ms: 0, seen });
        }
        let mut seen = seen(&ran.text);
        let failed = seen.first_failed().filter(|_| seen.is_over && bounds.said_bytes > 0);
        if let Some(nth) = failed {
            // What it has said is worth no failure.
            let log = self.read_log(key, generation, Some(nth)).await.unwrap_or_default();
            seen.said = last_words(&log, bounds.said_bytes);
        }
        Ok(Event::SetUpSeen(seen))
    }

    pub(super) async fn start_project(
        &self,
        (key, generation): (&SandboxKey, u32),
        services: &[ProjectService],
        (steps, variables): (&[RecipeStep], &BTreeMap<String, String>),
        within_ms: u64,
    ) -> Result<Event, Failure> {
        let sandbox = self.find_running(key, generation).await?;
        let wanted = services;
        let services = self.startable(wanted);
        let mut environment = written(steps, variables);
        environment.extend([
            ("BOBBIN_SERVICES".to_owned(), words(services)),
            ("BOBBIN_WITHIN_S".to_owned(), within_ms.div_ceil(1_000).to_string()),
        ]);
        let timeout = Duration::from_millis(SERVICES_MS_MAX + within_ms);
        let ran = match self.provider.exec(&sandbox, START, &environment, timeout).await {
            Ok(ran) => ran,
            Err(error) if error.kind == ErrorKind::CommandTimeout => {
                // Nothing tells how far it came: the services had all their time.
                let all = services.iter().map(|one| failed_service(*one, StepEnd::TooLong));
                let failed = all.chain(unrun(steps, StepEnd::TooLong)).collect();
                return Ok(Event::ProjectStarted { failed });
            }
            Err(error) => return Err(error.failure),
        };
        let refused = wanted.iter().filter(|one| !services.contains(one));
        let refused = refused.map(|one| failed_service(*one, StepEnd::Refused));
        let failed = refused.chain(not_started(services, steps, &ran)).collect();
        Ok(Event::ProjectStarted { failed })
    }
}

impl Sandboxes {
    /// Services that only their own sandbox reaches: they have no password.
    fn startable<'a>(&self, services: &'a [ProjectService]) -> &'a [ProjectService] {
        if self.provider.facts().shares_loopback { &[] } else { services }
    }

    /// Stops the project's services before a copy of the disk is made, or starts them again. A failure costs the copy
    /// the last writes to a database, which recovers as after a crash.
    pub(super) async fn hold_services(
        &self,
        (key, generation): (&SandboxKey, u32),
        services: &[ProjectService],
        what: &str,
    ) {
        let services = self.startable(services);
        if services.is_empty() {
            return;
        }
        let environment = BTreeMap::from([
            ("BOBBIN_HOLD".to_owned(), what.to_owned()),
            ("BOBBIN_SERVICES".to_owned(), words(services)),
        ]);
        let timeout = Duration::from_millis(SERVICES_MS_MAX);
        if let Ok(sandbox) = self.find_running(key, generation).await
            && let Err(error) = self.provider.exec(&sandbox, HOLD, &environment, timeout).await
        {
            tracing::warn!(event = "services.hold", what, %error, "the project's services could not be asked");
        }
    }
}

impl Sandboxes {
    /// The output of a set-up's steps, in their order, without what looks like a secret.
    ///
    /// # Errors
    /// The class of the failure: of a sandbox that does not run, too.
    pub async fn set_up_log(&self, key: &SandboxKey, generation: u32) -> Result<String, Failure> {
        self.read_log(key, generation, None).await
    }

    /// The same, of all steps or of one, from 0.
    async fn read_log(
        &self,
        key: &SandboxKey,
        generation: u32,
        only: Option<usize>,
    ) -> Result<String, Failure> {
        let sandbox = self.find_running(key, generation).await?;
        let timeout = Duration::from_millis(READ_LOG_MS_MAX);
        let step = only.map(|nth| ("BOBBIN_STEP".to_owned(), (nth + 1).to_string()));
        let ran =
            self.provider.exec(&sandbox, READ_LOG, &step.into_iter().collect(), timeout).await;
        Ok(redact(&without_controls(&ran.map_err(|error| error.failure)?.text)))
    }
}

const fn word(service: ProjectService) -> &'static str {
    match service {
        ProjectService::Postgres => "postgres",
        ProjectService::Redis => "redis",
    }
}

fn words(services: &[ProjectService]) -> String {
    services.iter().map(|service| word(*service)).collect::<Vec<_>>().join(" ")
}

fn failed_service(service: ProjectService, end: StepEnd) -> FailedStep {
    let log = format!(".bobbin/start/{}.log", word(service));
    FailedStep { name: service.title().to_owned(), end, is_unrun: false, log }
}

/// What a start did not start, which may have ended before it came to that.
fn not_started(
    services: &[ProjectService],
    steps: &[RecipeStep],
    ran: &ScriptOutput,
) -> Vec<FailedStep> {
    let why = StepEnd::Failed(i32::try_from(ran.exit_code).unwrap_or(1));
    let came_to = |line: &str| ran.exit_code == 0 || ran.text.lines().any(|said| said == line);
    let service = |one: &ProjectService| {
        let prefix = format!("service {} ", word(*one));
        match ran.text.lines().find_map(|line| line.strip_prefix(&prefix)) {
            Some(code) => Some(failed_service(*one, StepEnd::Failed(code.parse().unwrap_or(1)))),
            None if came_to(SERVED) => None,
            None => Some(FailedStep { is_unrun: true, ..failed_service(*one, why) }),
        }
    };
    let mut failed: Vec<FailedStep> = services.iter().filter_map(service).collect();
    if !came_to(BEGUN) {
        failed.extend(unrun(steps, why));
    }
    let ended = ends(&ran.text).into_iter().zip(steps).enumerate();
    failed.extend(ended.filter(|(_, (end, _))| *end != StepEnd::Done).map(|(nth, (end, step))| {
        FailedStep { name: step.name.clone(), end, is_unrun: false, log: start_log(nth) }
    }));
    failed
}

/// Start steps that were not run, and why.
fn unrun(steps: &[RecipeStep], end: StepEnd) -> impl Iterator<Item = FailedStep> + '_ {
    steps.iter().enumerate().map(move |(nth, step)| FailedStep {
        name: step.name.clone(),
        end,
        is_unrun: true,
        log: start_log(nth),
    })
}

/// The file with the output of the n-th start step, from 0.
fn start_log(nth: usize) -> String {
    format!(".bobbin/start/{}.log", nth + 1)
}

/// What is read of a repository, as the script reads it.
fn wanted(at: String, said: &str, fetch_s: u64) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("BOBBIN_AT".to_owned(), at),
        ("BOBBIN_FETCH_S".to_owned(), fetch_s.to_string()),
        ("BOBBIN_WANTED".to_owned(), WANTED.join("\n")),
        ("BOBBIN_BYTES".to_owned(), (FILE_BYTES_MAX + 1).to_string()),
        ("BOBBIN_LOCKS".to_owned(), LOCK_FILES.join("\n")),
        ("BOBBIN_BESIDE".to_owned(), ROOT_NAMES.join("\n")),
        ("BOBBIN_SAID".to_owned(), said.to_owned()),
    ])
}

/// The steps, as the scripts read them.
fn written(steps: &[RecipeStep], variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let exports = variables.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "export {name}='{}'", value.replace('\'', r"'\''"));
        text
    });
    let texts = steps.iter().enumerate();
    let mut written: BTreeMap<String, String> =
        texts.map(|(nth, step)| (format!("BOBBIN_STEP_{}", nth + 1), step.run.clone())).collect();
    let log_bytes = LOG_BYTES_MAX / steps.len().max(1);
    written.extend([
        ("BOBBIN_STEPS".to_owned(), steps.len().to_string()),
        ("BOBBIN_VARIABLES".to_owned(), exports),
        ("BOBBIN_RUNNER".to_owned(), RUN_STEPS.to_owned()),
        ("BOBBIN_LOG_BYTES".to_owned(), log_bytes.to_string()),
    ]);
    written
}

/// What a look has printed.
fn seen(text: &str) -> SetUpSeen {
    let took = text.lines().filter_map(|line| line.strip_prefix("took "));
    SetUpSeen {
        ended: ends(text),
        unrun: text.lines().filter(|line| *line == UNRUN).count(),
        is_over: text.lines().any(|line| line == "over"),
        is_left: text.lines().any(|line| line == "left"),
        has_begun: text.lines().any(|line| line == BEGUN),
        took_s: took.map_while(|seconds| seconds.parse().ok()).collect(),
        said: String::new(),
    }
}

/// The end of a step's output, without the line that counts the step.
fn last_words(log: &str, bytes: usize) -> String {
    let said = log.split_once('\n').map_or("", |(_, said)| said).trim_end();
    said[said.ceil_char_boundary(said.len().saturating_sub(bytes))..].to_owned()
}

fn ends(text: &str) -> Vec<StepEnd> {
    let lines = text.lines().filter(|line| *line != UNRUN);
    let lines = lines.filter_map(|line| line.strip_prefix("end "));
    lines
        .map(|end| match end.parse() {
            Ok(0) => StepEnd::Done,
            Ok(code) => StepEnd::Failed(code),
            Err(_) => StepEnd::TooLong,
        })
        .collect()
}

/// What the script has printed of a repository.
fn found(text: &str) -> FoundRecipe {
    let of = |kind: &'static str| text.lines().filter_map(move |line| line.strip_prefix(kind));
    let links = of("link ").filter(|path| bobbin_recipe::is_wanted(path));
    let links = links.map(|path| (path.to_owned(), LINK_OUT.to_vec()));
    let files = ProjectFiles {
        texts: of("file ").filter_map(file).chain(links).collect(),
        root: of("root ").map(str::to_owned).collect::<BTreeSet<_>>(),
    };
    FoundRecipe {
        recipe: bobbin_recipe::recipe_of(&files).map(Box::new),
        commit: of("commit ").next().map(str::to_owned),
        ticks: of("ticks ").next().and_then(|ticks| ticks.parse().ok()).unwrap_or_default(),
        locks: of("locks ").next().unwrap_or_default().to_owned(),
        image: None,
    }
}

/// A line with a file: size, path and content.
fn file(line: &str) -> Option<(String, Vec<u8>)> {
    let (_, rest) = line.split_once(' ')?;
    let (path, content) = rest.rsplit_once(' ')?;
    let is_wanted = bobbin_recipe::is_wanted(path);
    is_wanted.then(|| Some((path.to_owned(), STANDARD.decode(content).ok()?)))?
}

#[cfg(test)]
mod tests;
