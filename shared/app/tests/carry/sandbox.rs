//! A folder as a sandbox: scripts run in it, and nothing else can be done with it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bobbin_agent::models::{ModelKeys, ModelSettings};
use bobbin_agent::opencode::OpenCodeRuntime;
use bobbin_app::sandboxes::{SandboxSettings, Sandboxes, Wanted, WorkTarget};
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant, ThreadKey};
use bobbin_core::base::limits::Limits;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::account::Account;
use bobbin_core::records::carried::{CarriedTo, ForgeRepository, Submodule};
use bobbin_core::records::given_pull::GivenPull;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::records::workspace::Workspace;
use bobbin_core::tenant::prices::ModelPrices;
use bobbin_sandbox::{
    Deletion, ErrorKind, Facts, Provider, ProviderError, ProviderResult, Sandbox, SandboxSpec,
    ScriptOutput,
};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::forge::{Place, SmallForge, sh};

#[derive(Debug)]
pub struct Folder {
    pub root: TempDir,
    /// Bytes of all files that were put.
    pub put: AtomicU64,
    /// So many more files can be put before the provider fails once.
    pub until_failure: AtomicUsize,
}

fn none<T>() -> ProviderResult<T> {
    panic!("a sandbox into which something is carried is only looked at")
}

#[async_trait]
impl Provider for Folder {
    fn facts(&self) -> Facts<'_> {
        Facts {
            base: "http://127.0.0.1:1",
            listed_max: 1,
            snapshots: Err("none"),
            snapshot_ends_run: false,
            life_ms_max: None,
            secrets: Err("none"),
            listens_on: Ipv4Addr::LOCALHOST,
            shares_loopback: false,
            image: "",
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        none()
    }

    async fn create(
        &self,
        _: &SandboxKey,
        _: u32,
        _: SandboxSpec<'_>,
    ) -> ProviderResult<SandboxState> {
        none()
    }

    async fn observe(&self, name: &str) -> ProviderResult<Sandbox> {
        Ok(Sandbox {
            id: name.to_owned(),
            name: name.to_owned(),
            labels: BTreeMap::new(),
            state: SandboxState::Running,
            said: String::new(),
            created_ms: None,
            ends_ms: None,
            exec_base: None,
        })
    }

    async fn start(&self, _: &str) -> ProviderResult<SandboxState> {
        none()
    }

    async fn stop(&self, _: &str, _: Instant) -> ProviderResult<SandboxState> {
        none()
    }

    async fn delete(&self, _: Deletion<'_>) -> ProviderResult<SandboxState> {
        none()
    }

    async fn list(&self, _: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        none()
    }

    async fn count(&self, _: &Tenant, _: Option<&str>) -> ProviderResult<u32> {
        none()
    }

    async fn endpoint(&self, _: &str, _: u16) -> ProviderResult<Endpoint> {
        none()
    }

    async fn exec(
        &self,
        _: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        _: Duration,
    ) -> ProviderResult<ScriptOutput> {
        let mut shell = tokio::process::Command::new("sh");
        shell.envs(env).env("HOME", self.root.path()).current_dir(self.root.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut stdin = shell.stdin.take().unwrap();
        stdin.write_all(script.as_bytes()).await.unwrap();
        drop(stdin);
        let ran = shell.wait_with_output().await.unwrap();
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(ScriptOutput { exit_code: ran.status.code().unwrap().into(), text })
    }

    async fn put_files(&self, _: &Sandbox, files: Vec<(String, Vec<u8>)>) -> ProviderResult<()> {
        for (path, bytes) in files {
            if self.until_failure.fetch_sub(1, Ordering::SeqCst) == 0 {
                return Err(Failure::SandboxDown { seen: "it fell over".to_owned() }.into());
            }
            self.put.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            let path = self.root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        Ok(())
    }

    async fn get_file(&self, _: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        std::fs::read(self.root.path().join(path)).map_err(|error| {
            let failure = Failure::SandboxDown { seen: error.to_string() };
            ProviderError { kind: ErrorKind::NotFound, ..failure.into() }
        })
    }

    async fn list_files(&self, _: &Sandbox, _: &str) -> ProviderResult<BTreeMap<String, u64>> {
        none()
    }
}

/// Into which something is carried.
pub struct Carrier {
    pub folder: Arc<Folder>,
    pub sandboxes: Sandboxes,
    thread: ThreadKey,
    key: SandboxKey,
}

impl Carrier {
    pub fn new() -> Self {
        let folder = Arc::new(Folder {
            root: tempfile::tempdir().unwrap(),
            put: AtomicU64::new(0),
            until_failure: AtomicUsize::new(usize::MAX),
        });
        let settings = SandboxSettings {
            stack: "test".to_owned(),
            stack_id: "0".to_owned(),
            project_config_of: Vec::new(),
            model_keys_inside: false,
            keys_of: None,
            nudge_url: String::new(),
            stack_key: "stack-key".to_owned(),
            files: Vec::new(),
            limits: Limits::DEFAULT,
        };
        let models = ModelSettings {
            model: "anthropic/a-model".to_owned(),
            models: Vec::new(),
            model_base_url: None,
            keys: ModelKeys::default(),
            prices: ModelPrices::new(),
        };
        let runtime = Arc::new(OpenCodeRuntime::new(&models).unwrap());
        let provider: Arc<dyn Provider> = Arc::<Folder>::clone(&folder);
        let sandboxes = Sandboxes::new(settings, provider, runtime).unwrap();
        let thread = ThreadKey::discord("1", "2").unwrap();
        Self { folder, sandboxes, key: thread.sandbox(), thread }
    }

    pub fn target(&self) -> WorkTarget<'_> {
        let workspace = &Workspace::Common;
        WorkTarget { thread: &self.thread, sandbox: &self.key, generation: 1, workspace }
    }

    async fn carried(
        &self,
        place: &Place,
        at: Option<&str>,
        size_kb: u64,
    ) -> Result<Event, Failure> {
        let what = Wanted {
            repository: &place.repository,
            at,
            pull: None,
            to: &CarriedTo::Project,
            size_kb,
        };
        self.sandboxes.carry(&place.forge, self.target(), what, 60_000).await
    }

    /// Carries a repository into a folder beside the thread's own.
    pub async fn carry_beside(
        &self,
        forge: &SmallForge,
        repository: &ForgeRepository,
        folder: &str,
    ) -> Event {
        let to = &CarriedTo::Beside(folder.to_owned());
        let what = Wanted { repository, at: None, pull: None, to, size_kb: 0 };
        self.sandboxes.carry(forge, self.target(), what, 60_000).await.unwrap()
    }

    /// Carries a repository's submodule.
    pub async fn carry_submodule(
        &self,
        forge: &SmallForge,
        repository: &ForgeRepository,
        one: &Submodule,
    ) -> Event {
        let to = &CarriedTo::Submodule(one.path.clone());
        let what = Wanted { repository, at: Some(&*one.commit), pull: None, to, size_kb: 0 };
        self.sandboxes.carry(forge, self.target(), what, 60_000).await.unwrap()
    }

    /// Carries a repository whose size is said to be this.
    pub async fn carry_of(&self, place: &Place, size_kb: u64) -> Result<Event, Failure> {
        self.carried(place, None, size_kb).await
    }

    /// Carries a branch, tag or commit.
    pub async fn carry_at(&self, place: &Place, at: &str) -> Event {
        self.carried(place, Some(at), 0).await.unwrap()
    }

    /// Carries the head of a pull request.
    pub async fn carry_pull(&self, place: &Place, pull: &GivenPull) -> Event {
        let (repository, pull) = (&place.repository, Some(pull));
        let to = &CarriedTo::Project;
        let what = Wanted { repository, at: None, pull, to, size_kb: 0 };
        self.sandboxes.carry(&place.forge, self.target(), what, 60_000).await.unwrap()
    }

    pub async fn carry(&self, place: &Place) -> Event {
        self.carry_of(place, 0).await.unwrap()
    }

    /// What a command prints in the checkout.
    pub fn sh(&self, command: &str) -> String {
        sh(&self.folder.root.path().join("project"), command)
    }
}
