//! A provider in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bobbin_local_vercel::{LocalVercel, LocalVercelSettings};
use reqwest::Client;
use serde_json::{Value, json};

pub const TOKEN: &str = "vercel_test";
pub const TEAM: &str = "team_1";
pub const PROJECT: &str = "prj_1";
const WAIT_MS_MAX: u64 = 30_000;

pub struct World {
    pub provider: LocalVercel,
    pub http: Client,
    pub folder: PathBuf,
}

/// A folder that no other test uses.
fn fresh_folder(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("bobbin-vercel-{name}-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

pub fn settings(folder: &Path) -> LocalVercelSettings {
    let text = str::to_owned;
    let mut settings =
        LocalVercelSettings::new(folder.to_owned(), text(TOKEN), text(TEAM), text(PROJECT));
    settings.run.init = Some(PathBuf::from(env!("CARGO_BIN_EXE_bobbin-vercel")));
    settings.run.transition_ms = 20;
    settings.run.stop_grace_ms = 1_000;
    settings
}

impl World {
    pub async fn start(name: &str) -> Self {
        Self::with(settings(&fresh_folder(name))).await
    }

    /// One whose sandboxes reach a port of this machine.
    pub async fn reaching(name: &str, port: u16) -> Self {
        let mut settings = settings(&fresh_folder(name));
        settings.run.reachable = [port].into_iter().collect();
        Self::with(settings).await
    }

    pub async fn with(settings: LocalVercelSettings) -> Self {
        // Already installed by another test of this process: just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().timeout(Duration::from_secs(60)).build();
        World {
            folder: settings.run.state_dir.clone(),
            provider: LocalVercel::start(settings).await.unwrap(),
            http: http.unwrap(),
        }
    }

    pub async fn end(self) {
        self.provider.stop().await;
        std::fs::remove_dir_all(self.folder).unwrap();
    }

    async fn control(&self, path: &str, body: Value) {
        let root = self.provider.api_url().replace("/api", "");
        let sent = self.http.post(format!("{root}/_control/{path}"));
        let sent = sent.bearer_auth(TOKEN).json(&body).send().await.unwrap();
        assert_eq!(sent.status(), 200, "{}", sent.text().await.unwrap());
    }

    pub async fn arm(&self, fault: Value) {
        self.control("faults", json!({ "faults": [fault] })).await;
    }

    pub async fn advance(&self, minutes: u64) {
        let body = json!({ "advance_ms": minutes * 60_000 });
        self.control("clock", body).await;
    }

    pub async fn lose(&self, sandbox: &str) {
        self.control("lose", json!({ "sandbox": sandbox })).await;
    }

    /// Deletes the snapshot that is a stopped sandbox's disk, as the account's owner can.
    pub async fn lose_disk(&self, sandbox: &str) {
        let api = self.provider.api_url();
        let query = format!("projectId={PROJECT}&teamId={TEAM}");
        let found = self.http.get(format!("{api}/v2/sandboxes/{sandbox}?{query}"));
        let found = found.bearer_auth(TOKEN).send().await.unwrap();
        let found: Value = found.json().await.unwrap();
        let disk = found["sandbox"]["currentSnapshotId"].as_str().unwrap();
        let deleted = self.http.delete(format!("{api}/v2/sandboxes/snapshots/{disk}?{query}"));
        let deleted = deleted.bearer_auth(TOKEN).send().await.unwrap();
        assert_eq!(deleted.status(), 200);
    }
}

/// Polls until the condition holds.
pub async fn wait_for(what: &str, condition: impl AsyncFn() -> bool) {
    let bound = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
    while !condition().await {
        assert!(Instant::now() < bound, "waited too long for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
