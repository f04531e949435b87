//! SSH hosts as a [`Provider`].

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::ids::{SandboxKey, Tenant};
use bobbin_core::records::account::Account;
use bobbin_core::records::sandbox::SandboxState;
use tokio::time::Instant;

use super::bounds::LISTED_MAX;
use super::error::SshError;
use super::exec::SlotVerb;
use super::forward::Forwards;
use super::hosts::Hosts;
use super::lifecycle::{bounded, carries};
use super::registry::SlotStage;
use super::settings::{AgentPort, SshHost, SshSettings, hosts_of};
use super::slot::Slot;
use crate::labels::{stack_label, tenant_labels};
use crate::provider::{
    Deletion, Facts, Provider, ProviderResult, Sandbox, SandboxSpec, ScriptOutput,
};
use crate::settings::ProviderSettings;

/// Base address of agents: this program's own loopback, by its listeners.
const BASE: &str = "http://127.0.0.1";
/// A new sandbox is an empty directory, and its programs are those of its host, which nothing here has a version of.
const IMAGE: &str = "the host's own programs";

/// The provider of a stack with this private key.
///
/// # Errors
/// A sentence that names the unusable setting.
pub fn configured(
    settings: &ProviderSettings<'_>,
    private_key: &str,
) -> Result<Arc<dyn Provider>, String> {
    let hosts = serde_json::to_string(&settings.overrides.ssh_hosts).map_err(|e| e.to_string())?;
    let made = SshSettings {
        stack: settings.stack.to_owned(),
        stack_id: settings.stack_id.to_owned(),
        hosts: hosts_of(&hosts).map_err(|e| format!("{e} (of the parameter Overrides)"))?,
        agent: AgentPort {
            port: settings.agent_port,
            variable: settings.agent_port_variable.to_owned(),
        },
    };
    let made = SshSandboxes::new(made, private_key).map_err(|e| e.to_string())?;
    Ok(Arc::new(made))
}

/// The sandboxes of a stack on SSH hosts.
#[derive(Debug)]
pub struct SshSandboxes {
    pub(super) settings: SshSettings,
    pub(super) hosts: Arc<Hosts>,
    /// The host on which each sandbox was last seen: only a first guess.
    pub(super) last_seen: Mutex<HashMap<String, usize>>,
    pub(super) forwards: Forwards,
}

impl SshSandboxes {
    /// Uses this private key; without one every call reports that it is missing.
    ///
    /// # Errors
    /// [`SshError::Settings`] when the hosts cannot be used.
    pub fn new(settings: SshSettings, private_key: &str) -> Result<Self, SshError> {
        Ok(Self {
            hosts: Arc::new(Hosts::new(settings.hosts.clone(), private_key)?),
            settings,
            last_seen: Mutex::default(),
            forwards: Forwards::default(),
        })
    }

    pub(super) fn host_name(&self, host: usize) -> &str {
        &self.hosts.all()[host].name
    }

    /// The slot's user.
    pub(super) fn user(&self, slot: &Slot) -> String {
        format!("{}-{}", self.hosts.all()[slot.host].user, slot.number)
    }

    fn labels_of(&self, tenant: Option<&Tenant>) -> BTreeMap<String, String> {
        match tenant {
            Some(tenant) => tenant_labels(&self.settings.stack, tenant),
            None => stack_label(&self.settings.stack),
        }
    }
}

#[async_trait]
impl Provider for SshSandboxes {
    fn facts(&self) -> Facts<'_> {
        Facts {
            base: BASE,
            listed_max: LISTED_MAX,
            snapshots: Ok(self),
            snapshot_ends_run: false,
            life_ms_max: None,
            secrets: Err("an SSH host keeps no secrets outside of its sandboxes"),
            // Listening on all addresses would open it to everyone who can reach the host.
            listens_on: Ipv4Addr::LOCALHOST,
            shares_loopback: true,
            image: IMAGE,
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        let parts = self.hosts.all().iter().map(SshHost::identity).collect();
        Ok(Some(Account { parts }))
    }

    async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> ProviderResult<SandboxState> {
        Ok(bounded(self.made(key, generation, spec.snapshot)).await?.state())
    }

    /// An unfinished step is completed first. One whose snapshot cannot be had is broken.
    async fn observe(&self, name: &str) -> ProviderResult<Sandbox> {
        let observed = async {
            let (slot, mut entry) = self.locate_ours(name).await?.ok_or(SshError::NotFound)?;
            let settled = self.settle(&slot, &entry).await;
            let mut found = |stage| {
                entry.stage = stage;
                self.told(&slot, &entry)
            };
            match settled {
                Ok(stage) => Ok(found(stage)),
                Err(error) if error.is_about_snapshot() => Ok(Sandbox {
                    state: SandboxState::Broken { reason: error.to_string(), recoverable: false },
                    ..found(SlotStage::Preparing)
                }),
                Err(error) => Err(error),
            }
        };
        Ok(bounded(observed).await?)
    }

    /// Allows processes in it again.
    async fn start(&self, name: &str) -> ProviderResult<SandboxState> {
        let started = async {
            let Some((slot, entry)) = self.locate_ours(name).await? else {
                return Ok(SandboxState::Gone);
            };
            let stage = self.settle(&slot, &entry).await?;
            if stage != SlotStage::Stopped {
                return Ok(stage.state());
            }
            self.on_slot(&slot, SlotVerb::Wake).await?;
            self.moved(&slot, &[SlotStage::Stopped], SlotStage::Running).await?;
            Ok(SandboxState::Running)
        };
        Ok(bounded(started).await?)
    }

    async fn stop(&self, name: &str, latest: Instant) -> ProviderResult<SandboxState> {
        let stopped = async {
            let Some((slot, entry)) = self.locate_ours(name).await? else {
                return Ok(SandboxState::Gone);
            };
            if entry.stage != SlotStage::Running {
                return Ok(self.settle(&slot, &entry).await?.state());
            }
            if Instant::now() >= latest {
                return Err(SshError::Busy {
                    what: "too little time is left for a stop".to_owned(),
                });
            }
            self.moved(&slot, &[SlotStage::Running], SlotStage::Stopping).await?;
            Ok(self.finish_stop(&slot).await?.state())
        };
        Ok(bounded(stopped).await?)
    }

    /// Found or named, it is looked up: its host must confirm that it is ours.
    async fn delete(&self, sandbox: Deletion<'_>) -> ProviderResult<SandboxState> {
        let name = match sandbox {
            Deletion::Named(name) => name,
            Deletion::Found(found) => &found.name,
        };
        let deleted = async {
            let Some((slot, _)) = self.locate_ours(name).await? else {
                return Ok(SandboxState::Gone);
            };
            Ok(self.deleted(&slot).await?.state())
        };
        Ok(bounded(deleted).await?)
    }

    /// Every host must answer: a sandbox missing from the list counts as gone. If a sandbox was created twice because
    /// its host could not be reached, the one in which nobody has worked is deleted.
    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        let labels = self.labels_of(tenant);
        let seen = self.everywhere().await;
        if let Some(doubt) = seen.doubt() {
            return Err(doubt.into());
        }
        let hosts = self.host_names();
        let mut listed = Vec::new();
        for (host, inventory, entry) in seen.entries() {
            let slot = self.slot_of(host, inventory, entry);
            if !carries(entry, &labels) {
                continue;
            }
            if self.is_ours(entry) && seen.is_void(host, &entry.name, &hosts) {
                let deleted = bounded(self.deleted(&slot)).await;
                tracing::warn!(
                    event = "ssh.twice",
                    removed = deleted.is_ok(),
                    "a sandbox was on two SSH hosts"
                );
                continue;
            }
            listed.push(self.told(&slot, entry));
        }
        listed.sort_by(|one, other| {
            (one.created_ms, &one.name).cmp(&(other.created_ms, &other.name))
        });
        listed.truncate(LISTED_MAX);
        Ok(listed)
    }

    /// A host that does not answer is skipped if another one does: its sandboxes must not block others.
    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32> {
        let labels = self.labels_of(Some(tenant));
        let seen = self.everywhere().await;
        if seen.0.iter().all(Result::is_err) {
            return Err(seen.doubt().unwrap_or(SshError::NotFound).into());
        }
        let hosts = self.host_names();
        let mut all: Vec<(u64, &str)> = seen
            .entries()
            .filter(|(at, _, entry)| {
                carries(entry, &labels)
                    && self.is_ours(entry)
                    && entry.stage != SlotStage::Destroying
                    && !seen.is_void(*at, &entry.name, &hosts)
            })
            .map(|(_, _, entry)| (entry.created_s, entry.name.as_str()))
            .collect();
        all.sort_unstable();
        let own = older_than.and_then(|own| all.iter().position(|(_, name)| *name == own));
        Ok(u32::try_from(own.unwrap_or(all.len())).unwrap_or(u32::MAX))
    }

    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint> {
        let agent = &self.settings.agent;
        if port != agent.port {
            let what =
                format!("only port {} of a sandbox on an SSH host can be reached", agent.port);
            return Err(SshError::Invalid { what }.into());
        }
        let (slot, entry) = self.locate(name).await?;
        if entry.stage != SlotStage::Running {
            return Err(SshError::NotRunning.into());
        }
        let reached = self.forwards.port(&self.hosts, &self.user(&slot), &slot).await?;
        Ok(Endpoint { url: format!("{BASE}:{reached}"), headers: Vec::new() })
    }

    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<ScriptOutput> {
        Ok(self.inside(sandbox)?.exec(script, env, timeout).await?)
    }

    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()> {
        Ok(self.inside(sandbox)?.put_files(files).await?)
    }

    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        Ok(self.inside(sandbox)?.get_file(path).await?)
    }

    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>> {
        Ok(self.inside(sandbox)?.list_files(path).await?)
    }
}
