//! Daytona as a [`Provider`]. Create, start, stop and delete: observe, call, observe again. If the sandbox is already
//! in the wanted state, that is success.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::records::account::Account;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_http::HttpError;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::client::{Daytona, DaytonaError, LISTED_MAX};
use super::types::{CreateSandbox, SourceImage, older};
use crate::labels::{StackIdentity, stack_label, tenant_labels};
use crate::provider::{
    Deletion, ErrorKind, Facts, Provider, ProviderResult, Sandbox, SandboxSpec, ScriptOutput,
    too_late,
};
use crate::settings::{ProviderSettings, unusable};

const MINUTE_MS: u64 = 60_000;
/// States that are neither in transition nor broken.
const STANDING: [SandboxState; 2] = [SandboxState::Stopped, SandboxState::Running];

/// Settings for sandboxes at Daytona.
#[derive(Debug, Clone)]
pub struct DaytonaSettings {
    /// Base address of the control API, with its `/api`.
    pub api: String,
    /// Name of the stack: part of every sandbox's name and labels.
    pub stack: String,
    /// The stack's unique id: a label of every sandbox.
    pub stack_id: String,
    /// The image of sandboxes.
    pub image: SourceImage,
    /// The limits, including Daytona's own safety nets for a sandbox.
    pub limits: SandboxLimits,
}

impl DaytonaSettings {
    pub(super) fn stack(&self) -> StackIdentity<'_> {
        StackIdentity { name: &self.stack, id: &self.stack_id }
    }
}

/// The provider of a stack with this key, from a prepared snapshot if the stack names one.
///
/// # Errors
/// A sentence that names the unusable setting.
pub fn configured(settings: &ProviderSettings<'_>, key: &str) -> Result<Arc<dyn Provider>, String> {
    let snapshot = (settings.variable)("DAYTONA_SNAPSHOT");
    let made = DaytonaSettings {
        api: settings.overrides.daytona_api.clone(),
        stack: settings.stack.to_owned(),
        stack_id: settings.stack_id.to_owned(),
        image: if snapshot.is_empty() {
            SourceImage::Dockerfile(settings.dockerfile.to_owned())
        } else {
            SourceImage::Snapshot(snapshot)
        },
        limits: settings.limits.clone(),
    };
    let made = DaytonaSandboxes::new(made, key).map_err(unusable("daytona_api"))?;
    Ok(Arc::new(made))
}

/// The sandboxes of a stack at Daytona.
#[derive(Debug)]
pub struct DaytonaSandboxes {
    pub(super) settings: DaytonaSettings,
    pub(super) client: Daytona,
    /// A key belongs to one organisation for its whole life.
    organization: OnceCell<Account>,
}

impl DaytonaSandboxes {
    /// Uses this key; without one every call reports that it is missing.
    ///
    /// # Errors
    /// [`HttpError::Refused`] when the API's base is not an allowed address.
    pub fn new(settings: DaytonaSettings, api_key: &str) -> Result<Self, HttpError> {
        Ok(Self {
            client: Daytona::new(&settings.api, api_key)?,
            organization: OnceCell::new(),
            settings,
        })
    }

    pub(super) async fn state(&self, name: &str) -> ProviderResult<SandboxState> {
        match self.client.observe(name).await {
            Ok(found) => Ok(found.sandbox_state()),
            Err(DaytonaError::NotFound) => Ok(SandboxState::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// After a call that may have been too late, in transition or lost, observes the actual state. In one of the states
    /// `from` a refused call has changed nothing.
    async fn outcome(
        &self,
        name: &str,
        asked: Result<(), DaytonaError>,
        from: &[SandboxState],
    ) -> ProviderResult<SandboxState> {
        match asked {
            Ok(()) | Err(DaytonaError::NotFound | DaytonaError::Conflict { .. }) => {}
            Err(error @ DaytonaError::Refused { status: 400, .. }) => {
                let seen = self.state(name).await?;
                // Refused though the state allows it: a quota, which only a person can fix.
                return if from.contains(&seen) { Err(error.into()) } else { Ok(seen) };
            }
            Err(error) => return Err(error.into()),
        }
        self.state(name).await
    }
}

#[async_trait]
impl Provider for DaytonaSandboxes {
    fn facts(&self) -> Facts<'_> {
        Facts {
            base: &self.settings.api,
            listed_max: LISTED_MAX,
            snapshots: Ok(self),
            snapshot_ends_run: false,
            life_ms_max: Some(u64::from(self.settings.limits.auto_destroy_min) * MINUTE_MS),
            secrets: Ok(self),
            listens_on: Ipv4Addr::LOCALHOST,
            shares_loopback: false,
            image: match &self.settings.image {
                SourceImage::Snapshot(image) | SourceImage::Dockerfile(image) => image,
            },
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        if let Some(known) = self.organization.get() {
            return Ok(Some(known.clone()));
        }
        let Some(told) = self.client.organization().await? else {
            return Ok(None);
        };
        let account = Account::of(&told);
        Ok(Some(self.organization.get_or_init(async || account).await.clone()))
    }

    async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> ProviderResult<SandboxState> {
        let settings = &self.settings;
        let kept = spec.snapshot.map(|name| SourceImage::Snapshot(name.to_string()));
        let body = CreateSandbox::new(
            settings.stack(),
            key,
            generation,
            kept.as_ref().unwrap_or(&settings.image),
            &settings.limits,
        )
        .with_secrets(spec.secrets);
        let refused = match self.client.create(&body).await {
            // The answer of a create shows the state before it: observe.
            Ok(_) => None,
            Err(
                error @ (DaytonaError::NoKey
                | DaytonaError::BadKey
                | DaytonaError::Forbidden { .. }
                | DaytonaError::RateLimited { .. }),
            ) => {
                return Err(error.into());
            }
            // Nothing was sent, so nothing can exist.
            Err(
                error @ DaytonaError::Http(
                    HttpError::Refused { .. } | HttpError::Transport { unsent: true, .. },
                ),
            ) => {
                return Err(error.into());
            }
            // A taken name, a lost answer, even a refusal ("failed to start"): the sandbox may exist.
            Err(error) => Some(error),
        };
        match (self.client.observe(&body.name).await, refused) {
            (Ok(found), _) => Sandbox::from(found).adopted(settings.stack(), key, generation),
            (Err(DaytonaError::NotFound), Some(error)) => Err(match error {
                DaytonaError::Refused { status: 400, .. } if spec.snapshot.is_some() => {
                    self.why_not_of(spec.snapshot, error).await
                }
                // The name was taken a moment ago and is free again.
                DaytonaError::Conflict { .. } | DaytonaError::NotFound => {
                    Failure::Wait { after_ms: 0, seen: error.to_string() }.into()
                }
                _ => error.into(),
            }),
            // The read may lag behind the create.
            (Err(DaytonaError::NotFound), None) => Ok(SandboxState::Provisioning),
            (Err(error), _) => Err(error.into()),
        }
    }

    async fn observe(&self, name: &str) -> ProviderResult<Sandbox> {
        Ok(self.client.observe(name).await?.into())
    }

    async fn start(&self, name: &str) -> ProviderResult<SandboxState> {
        // Before the start: during a start Daytona accepts no other call. The delivery that follows a run repeats this
        // call, and reports its error.
        match self.keep_alive(name).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(event = "sandbox.time", %error, "a sandbox's time could not be extended");
            }
        }
        let asked = match self.state(name).await? {
            SandboxState::Stopped => self.client.start(name).await,
            SandboxState::Broken { recoverable: true, .. } => self.client.recover(name).await,
            as_it_is => return Ok(as_it_is),
        };
        self.outcome(name, asked, &STANDING).await
    }

    async fn stop(&self, name: &str, latest: Instant) -> ProviderResult<SandboxState> {
        match self.state(name).await? {
            SandboxState::Running if Instant::now() >= latest => Err(too_late()),
            SandboxState::Running => {
                let asked = self.client.stop(name).await;
                self.outcome(name, asked, &[SandboxState::Running]).await
            }
            as_it_is => Ok(as_it_is),
        }
    }

    async fn delete(&self, sandbox: Deletion<'_>) -> ProviderResult<SandboxState> {
        let name = match sandbox {
            Deletion::Named(name) => name,
            Deletion::Found(found) => {
                self.client.delete(&found.id).await?;
                return Ok(SandboxState::Gone);
            }
        };
        // The answer to the delete decides, not an observation: a sandbox that is not found is deleted all the same.
        match self.client.observe(name).await {
            Ok(found) if found.sandbox_state() == SandboxState::Gone => {
                return Ok(SandboxState::Gone);
            }
            Ok(_) | Err(DaytonaError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        match self.client.delete(name).await {
            Err(DaytonaError::NotFound) => Ok(SandboxState::Gone),
            asked => self.outcome(name, asked, &STANDING).await,
        }
    }

    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        let labels = match tenant {
            Some(tenant) => tenant_labels(&self.settings.stack, tenant),
            None => stack_label(&self.settings.stack),
        };
        let listed = self.client.list(&labels).await?;
        Ok(listed.into_iter().map(Sandbox::from).collect())
    }

    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32> {
        let listed = self.client.of_tenant(self.settings.stack(), tenant).await?;
        let sandboxes = older_than.map_or(listed.len(), |own| older(&listed, own));
        Ok(u32::try_from(sandboxes).unwrap_or(u32::MAX))
    }

    /// The time is not a limit of Daytona's: we set it at creation, as a safety net for a sandbox that nobody manages
    /// any more.
    async fn keep_alive(&self, name: &str) -> ProviderResult<()> {
        Ok(self.client.set_ttl(name, self.settings.limits.auto_destroy_min).await?)
    }

    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint> {
        Ok(self.client.endpoint(name, port).await?)
    }

    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<ScriptOutput> {
        let ran = self.client.exec(sandbox, script, env, timeout).await?;
        Ok(ScriptOutput { exit_code: ran.exit_code, text: ran.result })
    }

    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()> {
        Ok(self.client.put_files(sandbox, files).await?)
    }

    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        Ok(self.client.get_file(sandbox, path).await?)
    }

    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>> {
        Ok(self.client.list_files(sandbox, path).await?)
    }
}
