//! The forge's state: one file beside the repositories; what is counted and who is signed in, in memory only.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bobbin_local_sandbox::clock::Clock;
use bobbin_local_sandbox::disk::{private_folder, write_atomically};
use bobbin_local_sandbox::faults::Faults;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api_error::ApiError;
use crate::checks::Checks;
use crate::limits::{CALLERS_MAX, DELIVERIES_AT_ONCE, WINDOW_MS};
use crate::record::{
    App, Code, ForgeAccount, HookDelivery, Installation, Kind, Pull, PullState, RepositoryRecord,
    Token,
};
use crate::reviews::Discussion;
use crate::seeds::ForgeIdentity;
use crate::settings::ForgeSettings;
use crate::webhooks::faults::HookFaults;

const FILE: &str = "state.json";

/// The hash that is stored instead of a secret.
pub(crate) fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

/// All stored state behind one lock. Nothing awaits while it is held.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct ForgeState {
    next_id: u64,
    pub(crate) accounts: BTreeMap<u64, ForgeAccount>,
    pub(crate) repositories: BTreeMap<u64, RepositoryRecord>,
    pub(crate) apps: BTreeMap<u64, App>,
    pub(crate) installations: BTreeMap<u64, Installation>,
    /// By hash.
    pub(crate) tokens: BTreeMap<String, Token>,
    /// By hash.
    pub(crate) codes: BTreeMap<String, Code>,
    /// Oldest first.
    pub(crate) pulls: Vec<Pull>,
    #[serde(default)]
    pub(crate) checks: Checks,
    #[serde(default)]
    pub(crate) talk: Discussion,
    pub(crate) identity: Option<ForgeIdentity>,
}

/// First id that is given; ids of GitHub's are as long.
const ID_FIRST: u64 = 41_000_000;

impl ForgeState {
    pub(crate) fn new_id(&mut self) -> u64 {
        self.next_id = self.next_id.max(ID_FIRST) + 1;
        self.next_id
    }

    pub(crate) fn account(&self, id: u64) -> Result<&ForgeAccount, ApiError> {
        self.accounts.get(&id).ok_or_else(ApiError::not_found)
    }

    /// Logins differ in more than case.
    pub(crate) fn account_of(&self, login: &str) -> Result<&ForgeAccount, ApiError> {
        let mut accounts = self.accounts.values();
        let found = accounts.find(|one| one.login.eq_ignore_ascii_case(login));
        found.ok_or_else(ApiError::not_found)
    }

    pub(crate) fn organization_of(&self, login: &str) -> Result<&ForgeAccount, ApiError> {
        let found = self.account_of(login)?;
        if found.kind == Kind::Organization { Ok(found) } else { Err(ApiError::not_found()) }
    }

    pub(crate) fn repository(&self, id: u64) -> Result<&RepositoryRecord, ApiError> {
        self.repositories.get(&id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn repository_mut(&mut self, id: u64) -> Result<&mut RepositoryRecord, ApiError> {
        self.repositories.get_mut(&id).ok_or_else(ApiError::not_found)
    }

    /// The repository that has this name now.
    pub(crate) fn named(&self, owner: &str, name: &str) -> Option<&RepositoryRecord> {
        let owner = self.account_of(owner).ok()?.id;
        let mut all = self.repositories.values();
        all.find(|one| one.owner == owner && one.name.eq_ignore_ascii_case(name))
    }

    /// The repository that had this name, if no other one has it now.
    pub(crate) fn formerly_named(&self, owner: &str, name: &str) -> Option<&RepositoryRecord> {
        let wanted = format!("{owner}/{name}").to_lowercase();
        let mut all = self.repositories.values();
        all.find(|one| one.former.contains(&wanted))
    }

    pub(crate) fn full_name(&self, repository: &RepositoryRecord) -> String {
        let owner = self.accounts.get(&repository.owner).map_or("ghost", |one| &one.login);
        format!("{owner}/{}", repository.name)
    }

    pub(crate) fn app(&self, id: u64) -> Result<&App, ApiError> {
        self.apps.get(&id).ok_or_else(ApiError::not_found)
    }

    pub(crate) fn installation(&self, id: u64) -> Result<&Installation, ApiError> {
        self.installations.get(&id).ok_or_else(ApiError::not_found)
    }

    /// The app's installation on an account.
    pub(crate) fn installed(&self, app: u64, account: u64) -> Option<&Installation> {
        let mut all = self.installations.values();
        all.find(|one| one.app == app && one.account == account)
    }

    pub(crate) fn pull(&self, repository: u64, number: u64) -> Result<&Pull, ApiError> {
        let mut pulls = self.pulls.iter();
        let found = pulls.find(|one| one.repository == repository && one.number == number);
        found.ok_or_else(ApiError::not_found)
    }

    pub(crate) fn pull_mut(&mut self, repository: u64, number: u64) -> Result<&mut Pull, ApiError> {
        let mut pulls = self.pulls.iter_mut();
        let found = pulls.find(|one| one.repository == repository && one.number == number);
        found.ok_or_else(ApiError::not_found)
    }

    pub(crate) fn open_pulls(&self, repository: u64) -> impl Iterator<Item = &Pull> {
        let is_open =
            move |one: &&Pull| one.repository == repository && one.state == PullState::Open;
        self.pulls.iter().filter(is_open)
    }

    /// Ends tokens and codes whose time is over, and the oldest beyond the limits.
    pub(crate) fn tidy(&mut self, now: i64) {
        self.tokens.retain(|_, token| token.expires_at.is_none_or(|end| end > now));
        self.codes.retain(|_, code| code.expires_at > now);
        while self.tokens.len() > crate::limits::TOKENS_MAX {
            let lasting = |token: &Token| token.expires_at.is_none();
            let oldest = self.tokens.iter().min_by_key(|(_, one)| (lasting(one), one.created_at));
            let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) else { break };
            self.tokens.remove(&oldest);
        }
        while self.codes.len() > crate::limits::CODES_MAX {
            let oldest = self.codes.iter().min_by_key(|(_, one)| one.expires_at);
            let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) else { break };
            self.codes.remove(&oldest);
        }
    }
}

/// Bases of addresses.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// Of the REST API, without a slash at the end.
    pub(crate) api: String,
    /// Of git and the pages, without a slash at the end.
    pub(crate) web: String,
}

/// A caller's requests in the present window.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) ends_at: i64,
}

impl Rate {
    pub(crate) fn remaining(self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// This forge has no faults beyond those of every call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault")]
pub(crate) enum NoFault {}

/// Shared state of a running forge.
pub(crate) struct Engine {
    pub(crate) settings: ForgeSettings,
    pub(crate) addresses: Addresses,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults<NoFault>,
    /// Stops servers.
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Sends webhooks.
    pub(crate) http: reqwest::Client,
    pub(crate) senders: Semaphore,
    pub(crate) hook_faults: HookFaults,
    inner: Mutex<ForgeState>,
    deliveries: Mutex<VecDeque<HookDelivery>>,
    rates: Mutex<BTreeMap<String, Rate>>,
    /// People who are signed in, by the hash of their cookie.
    sessions: Mutex<BTreeMap<String, u64>>,
    /// How often each pull request was looked at in its present state: base and head, and a count.
    looks: Mutex<BTreeMap<u64, (String, u64)>>,
    /// Job and end, by the key in the address of a log.
    log_links: Mutex<BTreeMap<String, (u64, i64)>>,
    /// Held while a repository's branches are changed.
    writers: Mutex<BTreeMap<u64, Arc<tokio::sync::Mutex<()>>>>,
}

/// Shared handle of the engine.
pub(crate) type SharedEngine = Arc<Engine>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Reads the stored state.
    ///
    /// # Errors
    /// The system's error, or an unreadable file, which may be somebody's work.
    pub(crate) fn open(
        settings: ForgeSettings,
        addresses: Addresses,
        http: reqwest::Client,
    ) -> std::io::Result<Self> {
        private_folder(&settings.state_dir)?;
        for folder in ["repositories", "spool", "home", "logs"] {
            private_folder(&settings.state_dir.join(folder))?;
        }
        let inner = match std::fs::read(settings.state_dir.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => ForgeState::default(),
            Err(error) => return Err(error),
        };
        sweep(&settings.state_dir.join("spool"), |_| false)?;
        sweep(&settings.state_dir.join("repositories"), |name| {
            let id = name.strip_suffix(".git").and_then(|id| id.parse().ok());
            id.is_some_and(|id| inner.repositories.contains_key(&id))
        })?;
        sweep(&settings.state_dir.join("logs"), |name| {
            let id = name.strip_suffix(".log").and_then(|id| id.parse().ok());
            id.is_some_and(|id| inner.checks.run(id).is_ok())
        })?;
        Ok(Self {
            settings,
            addresses,
            clock: Clock::default(),
            faults: Faults::default(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            http,
            senders: Semaphore::new(DELIVERIES_AT_ONCE),
            hook_faults: HookFaults::default(),
            inner: Mutex::new(inner),
            deliveries: Mutex::default(),
            rates: Mutex::default(),
            sessions: Mutex::default(),
            log_links: Mutex::default(),
            looks: Mutex::default(),
            writers: Mutex::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ForgeState> {
        locked(&self.inner)
    }

    /// Changes the state and writes it before anybody is answered.
    ///
    /// # Errors
    /// The error of the change itself, which then must not have changed anything.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut ForgeState) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut inner = self.lock();
        let result = change(&mut inner)?;
        inner.tidy(self.clock.now_ms());
        let text = serde_json::to_vec(&*inner).map_err(ApiError::internal)?;
        write_atomically(&self.settings.state_dir.join(FILE), &text).map_err(ApiError::internal)?;
        Ok(result)
    }

    /// Folder of a repository.
    pub(crate) fn folder(&self, repository: u64) -> PathBuf {
        self.repositories_dir().join(format!("{repository}.git"))
    }

    pub(crate) fn repositories_dir(&self) -> PathBuf {
        self.settings.state_dir.join("repositories")
    }

    /// Folder for pushes that are being received.
    pub(crate) fn spool_dir(&self) -> PathBuf {
        self.settings.state_dir.join("spool")
    }

    /// Folder of logs, by their jobs.
    pub(crate) fn logs_dir(&self) -> PathBuf {
        self.settings.state_dir.join("logs")
    }

    /// Counts a look at a pull request as it is, and answers how many there were before.
    pub(crate) fn look(&self, pull: u64, ends: String) -> u64 {
        let mut looks = locked(&self.looks);
        let seen = looks.entry(pull).or_default();
        if seen.0 != ends {
            *seen = (ends, 0);
        }
        seen.1 += 1;
        seen.1 - 1
    }

    pub(crate) fn log_links(&self) -> MutexGuard<'_, BTreeMap<String, (u64, i64)>> {
        locked(&self.log_links)
    }

    /// The home folder of `git`, which is empty.
    pub(crate) fn home_dir(&self) -> PathBuf {
        self.settings.state_dir.join("home")
    }

    /// The lock under which a repository's branches are changed.
    pub(crate) fn writer(&self, repository: u64) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(locked(&self.writers).entry(repository).or_default())
    }

    pub(crate) fn forget_writer(&self, repository: u64) {
        locked(&self.writers).remove(&repository);
    }

    pub(crate) fn deliveries(&self) -> MutexGuard<'_, VecDeque<HookDelivery>> {
        locked(&self.deliveries)
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        locked(&self.sessions)
    }

    /// A caller's window; `counts` takes one of its requests.
    pub(crate) fn rate(&self, caller: &str, limit: u64, counts: bool) -> Rate {
        let now = self.clock.now_ms();
        let mut rates = locked(&self.rates);
        if rates.len() >= CALLERS_MAX {
            rates.clear();
        }
        let new = Rate { limit, used: 0, ends_at: now + WINDOW_MS };
        let rate = rates.entry(caller.to_owned()).or_insert(new);
        if rate.ends_at <= now {
            *rate = new;
        }
        if counts {
            rate.used += 1;
        }
        *rate
    }
}

/// Removes what a crash left.
fn sweep(folder: &Path, is_kept: impl Fn(&str) -> bool) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_kept(&entry.file_name().to_string_lossy()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
