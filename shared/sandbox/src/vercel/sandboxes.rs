//! Vercel as a [`Provider`]. Create, start, stop and delete: call, then take the state from the answer or from an
//! observation. If the sandbox is already in the wanted state, that is success.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::account::Account;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::HttpError;
use tokio::time::Instant;

use super::client::{LISTED_MAX, Vercel, VercelAccount, VercelError};
use super::policy::HeldSecret;
use super::types::{
    CommonSettings, CreateSandbox, SandboxAnswer, is_keeper, older, placed, session_ms, state_of,
};
use crate::labels::{LABEL_KEYS, LABEL_STACK, LABEL_TENANT, PLACEHOLDERS, StackIdentity};
use crate::provider::{
    Deletion, Facts, InSandbox, Provider, ProviderError, ProviderResult, Sandbox, SandboxSpec,
    ScriptOutput, too_late,
};
use crate::settings::{ProviderSettings, unusable};
use crate::snapshot::stack_prefix;

/// Settings for sandboxes at Vercel.
#[derive(Clone)]
pub struct VercelSettings {
    /// Where they are created, and with whose token.
    pub account: VercelAccount,
    /// Name of the stack: part of every sandbox's name and tags.
    pub stack: String,
    /// The stack's unique id: a tag of every sandbox.
    pub stack_id: String,
    /// Image in Vercel's registry; empty: Vercel's own, which includes the agent.
    pub image: String,
    /// Ports that get a route.
    pub ports: Vec<u16>,
    /// The limits, including how long a session lives without work.
    pub limits: SandboxLimits,
}

impl VercelSettings {
    pub(super) fn stack(&self) -> StackIdentity<'_> {
        StackIdentity { name: &self.stack, id: &self.stack_id }
    }
}

/// The provider of a stack with this token.
///
/// # Errors
/// A sentence that names the unusable setting.
pub fn configured(
    settings: &ProviderSettings<'_>,
    token: &str,
) -> Result<Arc<dyn Provider>, String> {
    let said = settings.overrides;
    let made = VercelSettings {
        account: VercelAccount {
            api: said.vercel_api.clone(),
            token: token.to_owned(),
            team: said.vercel_team_id.clone(),
            project: said.vercel_project_id.clone(),
        },
        stack: settings.stack.to_owned(),
        stack_id: settings.stack_id.to_owned(),
        image: said.vercel_image.clone(),
        ports: vec![settings.agent_port],
        limits: settings.limits.clone(),
    };
    let made = VercelSandboxes::new(made).map_err(unusable("vercel_api"))?;
    Ok(Arc::new(made))
}

/// The sandboxes of a stack at Vercel.
pub struct VercelSandboxes {
    pub(super) settings: VercelSettings,
    pub(super) client: Vercel,
    /// Keys that this process was given, by the names that sandboxes use. Vercel never returns one.
    pub(super) held: Mutex<BTreeMap<String, HeldSecret>>,
    /// The keys in the policy of each session.
    pub(super) policies: Mutex<HashMap<String, String>>,
    /// The hosts that sandboxes reach alone, by their names.
    pub(super) limits: Mutex<HashMap<String, Vec<String>>>,
}

impl fmt::Debug for VercelSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VercelSandboxes").field("client", &self.client).finish_non_exhaustive()
    }
}

impl VercelSandboxes {
    /// Uses the token of these settings; without one every call reports that it is missing.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the API's base is not an allowed address.
    pub fn new(settings: VercelSettings) -> Result<Self, HttpError> {
        Ok(Self {
            client: Vercel::new(settings.account.clone())?,
            settings,
            held: Mutex::default(),
            policies: Mutex::default(),
            limits: Mutex::default(),
        })
    }

    pub(super) fn made(&self) -> CommonSettings<'_> {
        let settings = &self.settings;
        CommonSettings {
            stack: settings.stack(),
            project: &settings.account.project,
            image: &settings.image,
            ports: &settings.ports,
            limits: &settings.limits,
        }
    }

    /// Id and directory of the running session.
    pub(super) async fn session(&self, sandbox: &Sandbox) -> Result<(String, String), VercelError> {
        let found;
        let base = match &sandbox.exec_base {
            Some(base) => base,
            None => {
                found = Sandbox::from(self.client.observe(&sandbox.name).await?).exec_base;
                found.as_ref().ok_or_else(|| VercelError::Stopped {
                    message: "it is not running".to_owned(),
                })?
            }
        };
        let (id, cwd) = placed(base);
        Ok((id.to_owned(), cwd))
    }

    /// Like [`Self::session`], for a call into it.
    async fn inside(&self, sandbox: &Sandbox) -> Result<(String, String), InSandbox<VercelError>> {
        Ok(self.session(sandbox).await?)
    }

    async fn state(&self, name: &str) -> ProviderResult<SandboxState> {
        match self.client.observe(name).await {
            Ok(told) => Ok(told.state()),
            Err(VercelError::NotFound) => Ok(SandboxState::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// The sandbox with this name, if it is ours; otherwise the meaning of its absence.
    async fn made_before(
        &self,
        name: &str,
        key: &SandboxKey,
        generation: u32,
        otherwise: ProviderError,
    ) -> ProviderResult<SandboxState> {
        match self.client.observe(name).await {
            Ok(found) => Sandbox::from(found).adopted(self.settings.stack(), key, generation),
            Err(VercelError::NotFound) => Err(otherwise),
            Err(error) => Err(error.into()),
        }
    }

    /// Sandboxes of this stack's name that run threads' work, without those that keep a snapshot.
    async fn listed(&self, tenant: Option<&Tenant>) -> Result<Vec<Sandbox>, VercelError> {
        let stack = self.settings.stack();
        let listed = self.client.list(&stack_prefix(stack)).await?;
        let listed = listed.into_iter().filter(|one| !is_keeper(&one.name));
        // Another stack's name may begin with this one's.
        let is_named_so = |one: &Sandbox| {
            one.labels.get(LABEL_STACK).map(String::as_str) == Some(stack.name)
                && tenant.is_none_or(|tenant| {
                    one.labels.get(LABEL_TENANT).map(String::as_str) == Some(tenant.as_str())
                })
        };
        Ok(listed.map(Sandbox::from).filter(is_named_so).collect())
    }
}

#[async_trait]
impl Provider for VercelSandboxes {
    fn facts(&self) -> Facts<'_> {
        Facts {
            base: &self.settings.account.api,
            listed_max: LISTED_MAX,
            snapshots: Ok(self),
            snapshot_ends_run: true,
            // A session ends, its sandbox does not.
            life_ms_max: None,
            secrets: Ok(self),
            // A route leads to the machine, not to its loopback.
            listens_on: Ipv4Addr::UNSPECIFIED,
            shares_loopback: false,
            image: &self.settings.image,
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        let VercelAccount { team, project, .. } = &self.settings.account;
        // Before they are set nothing can exist.
        let is_set = !team.is_empty() && !project.is_empty();
        Ok(is_set.then(|| Account::of(&format!("{team}/{project}"))))
    }

    async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> ProviderResult<SandboxState> {
        let mut body = CreateSandbox::new(&self.made(), key, generation);
        if !spec.secrets.is_empty() {
            body.network_policy = Some(self.policy(spec.secrets)?);
            body.tags.insert(LABEL_KEYS.to_owned(), PLACEHOLDERS.to_owned());
        }
        if let Some(name) = spec.snapshot {
            match self.kept(name).await {
                Ok(Some(id)) => body = body.on_snapshot(&id),
                // It may have been created already, when the snapshot still existed.
                Ok(None) => return self.made_before(&body.name, key, generation, lost()).await,
                Err(error) => return Err(error.into()),
            }
        }
        match self.client.create(&body).await {
            Ok(told) => {
                self.note_policy(&told, spec.secrets);
                Ok(told.state())
            }
            Err(
                error @ (VercelError::NoKey
                | VercelError::NoProject { .. }
                | VercelError::BadKey
                | VercelError::Forbidden { .. }
                | VercelError::RateLimited { .. }),
            ) => Err(error.into()),
            // Nothing was sent, so nothing can exist.
            Err(
                error @ VercelError::Http(
                    HttpError::Refused { .. } | HttpError::Transport { unsent: true, .. },
                ),
            ) => Err(error.into()),
            Err(VercelError::SnapshotGone { .. }) => {
                self.made_before(&body.name, key, generation, lost()).await
            }
            // A taken name, a lost answer, a failure: the sandbox may exist.
            Err(error) => self.made_before(&body.name, key, generation, error.into()).await,
        }
    }

    async fn observe(&self, name: &str) -> ProviderResult<Sandbox> {
        Ok(self.client.observe(name).await?.into())
    }

    /// Begins a new session if the last one has ended.
    async fn start(&self, name: &str) -> ProviderResult<SandboxState> {
        match self.client.start(name).await {
            Ok(told) => Ok(told.state()),
            Err(VercelError::NotFound) => Ok(SandboxState::Gone),
            // The disk is lost with it. What is left is shown as stopped and never starts: it goes too.
            Err(VercelError::SnapshotGone { .. }) => self.delete(Deletion::Named(name)).await,
            Err(VercelError::InTransition { .. }) => Ok(SandboxState::Busy),
            Err(error) => Err(error.into()),
        }
    }

    async fn stop(&self, name: &str, latest: Instant) -> ProviderResult<SandboxState> {
        let told = match self.client.observe(name).await {
            Ok(told) => told,
            Err(VercelError::NotFound) => return Ok(SandboxState::Gone),
            Err(error) => return Err(error.into()),
        };
        let running = told.session.filter(|session| session.status == "running");
        let Some(session) = running else {
            return Ok(state_of(&told.sandbox.status));
        };
        if Instant::now() >= latest {
            return Err(too_late());
        }
        match self.client.stop(&session.id).await {
            Ok(stopped) => Ok(state_of(&stopped.session.status)),
            // It has ended by itself meanwhile, or somebody else has stopped it.
            Err(
                VercelError::NotFound
                | VercelError::Stopped { .. }
                | VercelError::InTransition { .. },
            ) => self.state(name).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&self, sandbox: Deletion<'_>) -> ProviderResult<SandboxState> {
        let name = match sandbox {
            Deletion::Named(name) => name,
            Deletion::Found(found) => {
                self.client.delete(&found.name).await?;
                return Ok(SandboxState::Gone);
            }
        };
        match self.client.delete(name).await {
            Ok(()) => self.state(name).await,
            Err(VercelError::NotFound) => Ok(SandboxState::Gone),
            Err(VercelError::InTransition { .. }) => Ok(SandboxState::Busy),
            Err(error) => Err(error.into()),
        }
    }

    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        Ok(self.listed(tenant).await?)
    }

    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32> {
        let mut listed = self.listed(Some(tenant)).await?;
        let stack_id = &self.settings.stack_id;
        listed.retain(|one| one.state != SandboxState::Gone && !one.is_foreign(stack_id));
        let sandboxes = older_than.map_or(listed.len(), |own| older(&listed, own));
        Ok(u32::try_from(sandboxes).unwrap_or(u32::MAX))
    }

    /// Extends the session to the time without work, if less is left.
    async fn keep_alive(&self, name: &str) -> ProviderResult<()> {
        let SandboxAnswer { session, .. } = self.client.observe(name).await?;
        let Some(session) = session.filter(|session| session.status == "running") else {
            return Ok(());
        };
        let wanted_ms = session_ms(&self.settings.limits);
        let left_ms = session.ends_ms().saturating_sub(now_ms());
        // Not for each minute again.
        if left_ms >= wanted_ms / 4 * 3 {
            return Ok(());
        }
        match self.client.extend(&session.id, wanted_ms - left_ms).await {
            // Beyond the limit of the plan: the session ends at its time, and its disk is kept.
            Err(VercelError::Refused { message, .. }) => {
                tracing::warn!(
                    event = "vercel.session.last",
                    reason = message,
                    "a sandbox's session cannot be extended any further"
                );
                Ok(())
            }
            other => Ok(other?),
        }
    }

    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint> {
        let told = self.client.observe(name).await?;
        if told.state() != SandboxState::Running {
            let message = format!("it is {}", told.status());
            return Err(VercelError::Stopped { message }.into());
        }
        let Some(route) = told.routes.iter().find(|route| route.port == port) else {
            let message = format!("the sandbox has no route to port {port}.");
            return Err(VercelError::Refused { status: 200, message }.into());
        };
        Ok(route.into())
    }

    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<ScriptOutput> {
        let (session, _) = self.inside(sandbox).await?;
        Ok(self.client.exec(&session, &["bash", "-c", script], env, timeout).await?)
    }

    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()> {
        let (session, cwd) = self.inside(sandbox).await?;
        Ok(self.client.put_files(&session, &cwd, files).await?)
    }

    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        let (session, cwd) = self.inside(sandbox).await?;
        Ok(self.client.get_file(&session, &cwd, path).await?)
    }

    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>> {
        let (session, _) = self.inside(sandbox).await?;
        Ok(self.client.list_files(&session, path).await?)
    }
}

/// This machine's time, in milliseconds since 1970: a clock that is off by seconds makes no difference here.
fn now_ms() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(Ms::MAX))
}

fn lost() -> ProviderError {
    let reason = "The snapshot for the new sandbox no longer exists. Choose another snapshot, or create the sandbox without one."
        .to_owned();
    Failure::TurnFailed { reason }.into()
}
