//! Daytona as a [`Provider`].

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::account::Account;
use bobbin_http::HttpError;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::client::{Daytona, DaytonaError, LISTED_MAX};
use super::secrets::{StoredSecret, WriteSecret, secret_name};
use super::types::{Image, older};
use crate::labels::{Stack, stack_label, tenant_labels};
use crate::provider::{
    Caps, ErrorKind, HostedSecret, Observed, Output, Placeholder, Provider, ProviderError,
    ProviderResult, Sandbox, SandboxSpec, Secrets,
};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState};

const MINUTE_MS: u64 = 60_000;

/// What sandboxes at Daytona are made of.
#[derive(Debug, Clone)]
pub struct DaytonaSettings {
    /// Base of the control API, with its `/api`.
    pub api: String,
    /// Name of the stack: part of every sandbox's name and labels.
    pub stack: String,
    /// The stack's own id: a label of every sandbox.
    pub stack_id: String,
    /// What a sandbox is made from.
    pub image: Image,
    /// The bounds: Daytona's own nets under a sandbox are among them.
    pub limits: SandboxLimits,
}

impl DaytonaSettings {
    pub(super) fn stack(&self) -> Stack<'_> {
        Stack { name: &self.stack, id: &self.stack_id }
    }
}

/// The sandboxes of a stack at Daytona.
#[derive(Debug)]
pub struct DaytonaSandboxes {
    pub(super) settings: DaytonaSettings,
    pub(super) client: Daytona,
    /// A key opens one organisation for as long as it lives.
    organization: OnceCell<Account>,
}

impl DaytonaSandboxes {
    /// With this key; without one every call says that it is missing.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the API's base may not be spoken to.
    pub fn new(settings: DaytonaSettings, api_key: &str) -> Result<Self, HttpError> {
        Ok(Self {
            client: Daytona::new(&settings.api, api_key)?,
            organization: OnceCell::new(),
            settings,
        })
    }

    async fn written(
        &self,
        secret: &HostedSecret,
        name: &str,
        there: &[StoredSecret],
    ) -> Result<StoredSecret, DaytonaError> {
        let mut body = WriteSecret {
            name: None,
            value: secret.value.clone(),
            description: secret.version.clone(),
            hosts: secret.hosts.clone(),
        };
        match there.iter().find(|one| one.name == name) {
            Some(found) if body.is(found) => Ok(found.clone()),
            Some(found) => match self.client.update_secret(&found.id, &body).await {
                // Deleted since the list was read: the next try makes it.
                Err(DaytonaError::NotFound) => {
                    Err(DaytonaError::Conflict { message: format!("the secret {name} is gone") })
                }
                other => other,
            },
            None => {
                body.name = Some(name.to_owned());
                self.client.create_secret(&body).await
            }
        }
    }

    async fn all_written(
        &self,
        secrets: &[HostedSecret],
    ) -> Result<BTreeMap<String, Placeholder>, DaytonaError> {
        let mut kept = BTreeMap::new();
        if secrets.is_empty() {
            return Ok(kept);
        }
        let there = self.client.secrets().await?;
        for secret in secrets {
            let owner = secret.owner.as_ref();
            let name = secret_name(self.settings.stack(), owner, secret.variable);
            let written = self.written(secret, &name, &there).await?;
            let placeholder = Placeholder { secret: name, text: written.placeholder };
            kept.insert(secret.variable.to_owned(), placeholder);
        }
        Ok(kept)
    }
}

#[async_trait]
impl Provider for DaytonaSandboxes {
    fn base(&self) -> &str {
        &self.settings.api
    }

    fn listed_max(&self) -> usize {
        LISTED_MAX
    }

    fn caps(&self) -> Caps {
        Caps {
            no_snapshots: None,
            keys_inside: false,
            snapshot_ends_run: false,
            life_ms_max: Some(u64::from(self.settings.limits.auto_destroy_min) * MINUTE_MS),
            listens_on: Ipv4Addr::LOCALHOST,
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        if let Some(known) = self.organization.get() {
            return Ok(Some(known.clone()));
        }
        let Some(told) = self.client.organization().await.map_err(control)? else {
            return Ok(None);
        };
        let account = Account::of(&told);
        Ok(Some(self.organization.get_or_init(async || account).await.clone()))
    }

    async fn ensure(&self, key: &SandboxKey, generation: u32, spec: SandboxSpec<'_>) -> Observed {
        self.create(key, generation, spec).await
    }

    async fn observe(&self, name: &str) -> Observed {
        self.state(name).await
    }

    async fn resume(&self, name: &str) -> Observed {
        // Before the start: while that goes on Daytona takes no other call. Who follows a run says it again, and is told.
        match self.keep_alive(name).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(event = "sandbox.time", %error, "a sandbox's time could not be extended");
            }
        }
        self.start(name).await
    }

    async fn stop(&self, name: &str, latest: Instant) -> Observed {
        self.halt(name, latest).await
    }

    async fn destroy(&self, name: &str) -> Observed {
        self.remove(name).await
    }

    async fn delete(&self, found: &Sandbox) -> ProviderResult<()> {
        self.client.delete(&found.id).await.map_err(control)
    }

    async fn find(&self, name: &str) -> ProviderResult<Sandbox> {
        let found = self.client.get(name).await;
        found.map(Sandbox::from).map_err(control)
    }

    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        let labels = match tenant {
            Some(tenant) => tenant_labels(&self.settings.stack, tenant),
            None => stack_label(&self.settings.stack),
        };
        let listed = self.client.list(&labels).await.map_err(control)?;
        Ok(listed.into_iter().map(Sandbox::from).collect())
    }

    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32> {
        let listed = self.client.of_tenant(self.settings.stack(), tenant).await;
        let listed = listed.map_err(control)?;
        let sandboxes = older_than.map_or(listed.len(), |own| older(&listed, own));
        Ok(u32::try_from(sandboxes).unwrap_or(u32::MAX))
    }

    /// Its time is no bound of Daytona's: we set it when it is made, as a net under what nobody looks after any more.
    async fn keep_alive(&self, name: &str) -> ProviderResult<()> {
        let minutes = self.settings.limits.auto_destroy_min;
        self.client.set_ttl(name, minutes).await.map_err(control)
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
        self.client.endpoint(name, port).await.map_err(control)
    }

    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<Output> {
        let ran = self.client.execute(sandbox, script, env, timeout).await;
        let ran = ran.map_err(toolbox)?;
        Ok(Output { exit_code: ran.exit_code, text: ran.result })
    }

    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()> {
        self.client.upload(sandbox, files).await.map_err(toolbox)
    }

    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        self.client.download(sandbox, path).await.map_err(toolbox)
    }

    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>> {
        self.client.list_files(sandbox, path).await.map_err(toolbox)
    }

    async fn keep_secrets(&self, secrets: &[HostedSecret]) -> Result<Secrets, Failure> {
        match self.all_written(secrets).await {
            Ok(kept) => Ok(Secrets::Outside(kept)),
            Err(
                error @ (DaytonaError::Forbidden { .. }
                | DaytonaError::NotFound
                | DaytonaError::Unavailable { status: 501, .. }),
            ) => Ok(Secrets::Nowhere { seen: error.to_string() }),
            Err(error) => Err(error.failure()),
        }
    }

    async fn mount_secrets(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let mounted = self.client.mount_secrets(&sandbox.id, names).await;
        mounted.map_err(|e| e.failure())
    }
}

/// A call of the control API.
pub(super) fn control(error: DaytonaError) -> ProviderError {
    told(&error, error.failure())
}

/// A call into the sandbox.
fn toolbox(error: DaytonaError) -> ProviderError {
    told(&error, error.toolbox_failure())
}

fn told(error: &DaytonaError, failure: Failure) -> ProviderError {
    ProviderError {
        kind: match error {
            DaytonaError::NotFound => ErrorKind::NotFound,
            DaytonaError::CommandTimeout => ErrorKind::CommandTimeout,
            refused if refused.says_snapshots_full() => ErrorKind::SnapshotsFull,
            DaytonaError::BadKey | DaytonaError::Forbidden { .. } => ErrorKind::KeyRefused,
            _ => ErrorKind::Other,
        },
        failure,
        seen: error.to_string(),
    }
}
