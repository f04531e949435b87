//! Vercel as a [`Provider`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant, digest};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::account::Account;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::HttpError;
use tokio::time::Instant;

use super::client::{LISTED_MAX, Vercel, VercelAccount, VercelError};
use super::policy::{HeldSecret, NetworkPolicy};
use super::types::{Made, Told, is_keeper, older, placed};
use crate::labels::{LABEL_STACK, LABEL_TENANT, Stack};
use crate::provider::{
    Caps, ErrorKind, HostedSecret, Observed, Output, Provider, ProviderError, ProviderResult,
    Sandbox, SandboxSpec, Secrets,
};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState, stack_prefix};

/// Sessions whose policy is remembered; more are forgotten, and set again when needed.
const POLICIES_MAX: usize = 256;

/// What sandboxes at Vercel are made of.
#[derive(Clone)]
pub struct VercelSettings {
    /// Where they are made, and with whose token.
    pub account: VercelAccount,
    /// Name of the stack: part of every sandbox's name and tags.
    pub stack: String,
    /// The stack's own id: a tag of every sandbox.
    pub stack_id: String,
    /// Image in Vercel's registry; empty: Vercel's own, which has the agent in it.
    pub image: String,
    /// Ports that get a route.
    pub ports: Vec<u16>,
    /// The bounds: how long a session lives without work is among them.
    pub limits: SandboxLimits,
}

impl VercelSettings {
    pub(super) fn stack(&self) -> Stack<'_> {
        Stack { name: &self.stack, id: &self.stack_id }
    }
}

/// The sandboxes of a stack at Vercel.
pub struct VercelSandboxes {
    pub(super) settings: VercelSettings,
    pub(super) client: Vercel,
    /// Keys that this process was given, by the names that sandboxes know them by. Vercel never gives one back.
    held: Mutex<BTreeMap<String, HeldSecret>>,
    /// By session: which keys its policy puts in.
    policies: Mutex<HashMap<String, String>>,
}

impl fmt::Debug for VercelSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VercelSandboxes").field("client", &self.client).finish_non_exhaustive()
    }
}

impl VercelSandboxes {
    /// With the token of these settings; without one every call says that it is missing.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the API's base may not be spoken to.
    pub fn new(settings: VercelSettings) -> Result<Self, HttpError> {
        Ok(Self {
            client: Vercel::new(settings.account.clone())?,
            settings,
            held: Mutex::default(),
            policies: Mutex::default(),
        })
    }

    pub(super) fn made(&self) -> Made<'_> {
        let settings = &self.settings;
        Made {
            stack: settings.stack(),
            project: &settings.account.project,
            image: &settings.image,
            ports: &settings.ports,
            limits: &settings.limits,
        }
    }

    /// The policy that puts these secrets in (variable to the secret's name).
    pub(super) fn policy(
        &self,
        names: &BTreeMap<String, String>,
    ) -> Result<NetworkPolicy, Failure> {
        Ok(NetworkPolicy::of(&self.named(names)?))
    }

    fn named(&self, names: &BTreeMap<String, String>) -> Result<Vec<HeldSecret>, Failure> {
        let held = locked(&self.held);
        let found = names.values().map(|name| held.get(name).cloned());
        let found: Option<Vec<HeldSecret>> = found.collect();
        found.ok_or_else(|| Failure::Wait {
            after_ms: 0,
            seen: "a key of the sandbox is not at hand".to_owned(),
        })
    }

    /// Notes what a sandbox was made with, so that its first start need not set it again.
    pub(super) fn note_policy(&self, told: &Told, names: &BTreeMap<String, String>) {
        if let (Some(session), Ok(secrets)) = (&told.session, self.named(names)) {
            self.note(&session.id, version(&secrets));
        }
    }

    fn note(&self, session: &str, version: String) {
        let mut policies = locked(&self.policies);
        if policies.len() >= POLICIES_MAX {
            policies.clear();
        }
        policies.insert(session.to_owned(), version);
    }

    async fn set_policy(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let secrets = self.named(names)?;
        let (session, _) = self.session(sandbox).await.map_err(|e| e.failure())?;
        let version = version(&secrets);
        if locked(&self.policies).get(&session) == Some(&version) {
            return Ok(());
        }
        let policy = NetworkPolicy::of(&secrets);
        let set = self.client.set_policy(&sandbox.name, &session, &policy);
        set.await.map_err(|e| e.session_failure())?;
        self.note(&session, version);
        Ok(())
    }

    /// Id and directory of the session that runs.
    async fn session(&self, sandbox: &Sandbox) -> Result<(String, String), VercelError> {
        let found;
        let base = match &sandbox.exec_base {
            Some(base) => base,
            None => {
                found = Sandbox::from(self.client.get(&sandbox.name).await?).exec_base;
                found.as_ref().ok_or_else(|| VercelError::Stopped {
                    message: "it is not running".to_owned(),
                })?
            }
        };
        let (id, cwd) = placed(base);
        Ok((id.to_owned(), cwd))
    }

    /// Those of this stack's name that run threads' work; what keeps a snapshot is not among them.
    async fn listed(&self, tenant: Option<&Tenant>) -> Result<Vec<Sandbox>, VercelError> {
        let stack = self.settings.stack();
        let listed = self.client.list(&stack_prefix(stack)).await?;
        let listed = listed.into_iter().filter(|one| !is_keeper(&one.name));
        // Another stack's name may begin like this one's.
        let is_named_so = |one: &Sandbox| {
            one.labels.get(LABEL_STACK).map(String::as_str) == Some(stack.name)
                && tenant.is_none_or(|tenant| {
                    one.labels.get(LABEL_TENANT).map(String::as_str) == Some(tenant.as_str())
                })
        };
        Ok(listed.map(Sandbox::from).filter(is_named_so).collect())
    }
}

/// Which keys these are, without saying them.
fn version(secrets: &[HeldSecret]) -> String {
    let each = secrets.iter().flat_map(|one| [one.placeholder.as_str(), one.version.as_str()]);
    digest(&each.collect::<Vec<_>>())
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Provider for VercelSandboxes {
    fn base(&self) -> &str {
        &self.settings.account.api
    }

    fn listed_max(&self) -> usize {
        LISTED_MAX
    }

    fn caps(&self) -> Caps {
        Caps {
            no_snapshots: None,
            keys_inside: false,
            snapshot_ends_run: true,
            // A session ends, its sandbox does not.
            life_ms_max: None,
            // A route leads to the machine, not into its loopback.
            listens_on: Ipv4Addr::UNSPECIFIED,
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        let VercelAccount { team, project, .. } = &self.settings.account;
        // Before they are set nothing can be there.
        let is_set = !team.is_empty() && !project.is_empty();
        Ok(is_set.then(|| Account::of(&format!("{team}/{project}"))))
    }

    async fn ensure(&self, key: &SandboxKey, generation: u32, spec: SandboxSpec<'_>) -> Observed {
        self.create(key, generation, spec).await
    }

    async fn observe(&self, name: &str) -> Observed {
        self.state(name).await
    }

    async fn resume(&self, name: &str) -> Observed {
        self.begin_session(name).await
    }

    async fn stop(&self, name: &str, latest: Instant) -> Observed {
        self.end_session(name, latest).await
    }

    async fn destroy(&self, name: &str) -> Observed {
        self.remove(name).await
    }

    async fn delete(&self, found: &Sandbox) -> ProviderResult<()> {
        self.client.delete(&found.name).await.map_err(control)
    }

    async fn find(&self, name: &str) -> ProviderResult<Sandbox> {
        let found = self.client.get(name).await;
        found.map(Sandbox::from).map_err(control)
    }

    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        self.listed(tenant).await.map_err(control)
    }

    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32> {
        let mut listed = self.listed(Some(tenant)).await.map_err(control)?;
        let stack_id = &self.settings.stack_id;
        listed.retain(|one| one.state != SandboxState::Gone && !one.is_foreign(stack_id));
        let sandboxes = older_than.map_or(listed.len(), |own| older(&listed, own));
        Ok(u32::try_from(sandboxes).unwrap_or(u32::MAX))
    }

    async fn keep_alive(&self, name: &str) -> ProviderResult<()> {
        self.extend(name).await.map_err(control)
    }

    async fn snapshot(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        self.make_snapshot(name).await
    }

    async fn find_snapshot(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        self.look_for_snapshot(name).await.map_err(control)
    }

    async fn snapshots(&self) -> ProviderResult<Vec<Snapshot>> {
        self.all_snapshots().await.map_err(control)
    }

    async fn delete_snapshot(&self, name: &SnapshotName) -> ProviderResult<()> {
        self.drop_snapshot(name).await.map_err(control)
    }

    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint> {
        let told = self.client.get(name).await.map_err(control)?;
        if told.state() != SandboxState::Running {
            let message = format!("it is {}", told.status());
            return Err(control(VercelError::Stopped { message }));
        }
        let route = told.routes.iter().find(|route| route.port == port);
        route.map(Endpoint::from).ok_or_else(|| {
            control(VercelError::Refused {
                status: 200,
                message: format!("the sandbox has no route to port {port}."),
            })
        })
    }

    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<Output> {
        let (session, _) = self.session(sandbox).await.map_err(inside)?;
        let argv = ["bash", "-c", script];
        let ran = self.client.run(&session, &argv, env, timeout).await;
        ran.map_err(inside)
    }

    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()> {
        let (session, cwd) = self.session(sandbox).await.map_err(inside)?;
        let written = self.client.upload(&session, &cwd, files).await;
        written.map_err(inside)
    }

    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        let (session, cwd) = self.session(sandbox).await.map_err(inside)?;
        let read = self.client.download(&session, &cwd, path).await;
        read.map_err(inside)
    }

    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>> {
        let (session, _) = self.session(sandbox).await.map_err(inside)?;
        let listed = self.client.list_files(&session, path).await;
        listed.map_err(inside)
    }

    async fn keep_secrets(&self, secrets: &[HostedSecret]) -> Result<Secrets, Failure> {
        let mut held = locked(&self.held);
        let mut kept = BTreeMap::new();
        for secret in secrets {
            let (placeholder, secret_held) = HeldSecret::of(self.settings.stack(), secret);
            held.insert(placeholder.secret.clone(), secret_held);
            kept.insert(secret.variable.to_owned(), placeholder);
        }
        Ok(Secrets::Outside(kept))
    }

    async fn mount_secrets(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        self.set_policy(sandbox, names).await
    }
}

/// A call about sandboxes.
pub(super) fn control(error: VercelError) -> ProviderError {
    told(&error, error.failure())
}

/// A call into a session.
fn inside(error: VercelError) -> ProviderError {
    told(&error, error.session_failure())
}

fn told(error: &VercelError, failure: Failure) -> ProviderError {
    ProviderError {
        kind: match error {
            VercelError::NotFound => ErrorKind::NotFound,
            VercelError::CommandTimeout => ErrorKind::CommandTimeout,
            VercelError::BadKey | VercelError::Forbidden { .. } => ErrorKind::KeyRefused,
            _ => ErrorKind::Other,
        },
        failure,
        seen: error.to_string(),
    }
}
