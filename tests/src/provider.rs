//! The sandbox provider, asked by its documented API, and its controls for tests.

use std::path::{Path, PathBuf};

use bobbin_core::base::ids::ThreadKey;
use reqwest::{Client, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{Answer, call};

/// The agent's directory, below the sandbox's working directory.
pub const PROJECT: &str = "project";

/// A sandbox as the provider lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// The provider's id of the sandbox.
    pub id: String,
    /// The name that Bobbin gave it.
    pub name: String,
    /// Its state, the provider's word.
    pub state: String,
    /// Base of the toolbox.
    #[serde(default)]
    pub toolbox_proxy_url: String,
}

impl Sandbox {
    /// It exists in a state that costs money or holds data.
    #[must_use]
    pub fn live(&self) -> bool {
        !matches!(self.state.as_str(), "destroyed" | "destroying")
    }

    /// The generation, when it is a sandbox of this thread.
    #[must_use]
    pub fn generation_of(&self, thread: &ThreadKey) -> Option<u32> {
        let (stem, generation) = self.name.rsplit_once("-g")?;
        if !stem.ends_with(&format!("-{}", thread.short_hash())) {
            return None;
        }
        generation.parse().ok()
    }
}

/// A client of the stack's Daytona-compatible API.
#[derive(Debug, Clone)]
pub struct Provider {
    client: Client,
    api: String,
    key: String,
    speaks: Speaks,
}

/// Whose API is spoken.
#[derive(Debug, Clone)]
enum Speaks {
    Daytona,
    /// Vercel's, of this team and project.
    Vercel(String, String),
    /// No API: the folder of an SSH host's sandboxes is read.
    Host(PathBuf),
}

impl Provider {
    /// Calls to this API with this key.
    #[must_use]
    pub fn new(client: &Client, api: &str, key: &str) -> Self {
        Self {
            client: client.clone(),
            api: api.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
            speaks: Speaks::Daytona,
        }
    }

    /// The sandboxes of an SSH host, whose `/var/lib/bobbin` is this folder.
    #[must_use]
    pub fn on_host(client: &Client, folder: PathBuf) -> Self {
        Self { speaks: Speaks::Host(folder), ..Self::new(client, "", "") }
    }

    /// Calls to Vercel's API, of this team and project.
    #[must_use]
    pub fn vercel(client: &Client, api: &str, token: &str, (team, project): (&str, &str)) -> Self {
        Self {
            speaks: Speaks::Vercel(team.to_owned(), project.to_owned()),
            ..Self::new(client, api, token)
        }
    }

    async fn call(&self, method: Method, url: &str, body: &Value) -> Result<Answer, String> {
        call(&self.client, method, url, &format!("Bearer {}", self.key), body).await
    }

    /// Every sandbox.
    ///
    /// # Errors
    /// When the provider does not list them, or has more than one page.
    pub async fn list(&self) -> Result<Vec<Sandbox>, String> {
        if let Speaks::Host(folder) = &self.speaks {
            return on_host(folder);
        }
        if let Speaks::Vercel(team, project) = &self.speaks {
            let query = format!("teamId={team}&project={project}&limit=50");
            let url = format!("{}/v2/sandboxes?{query}", self.api);
            return listed(&self.call(Method::GET, &url, &Value::Null).await?.ok()?);
        }
        let page = self
            .call(Method::GET, &format!("{}/sandbox?limit=200", self.api), &Value::Null)
            .await?
            .ok()?;
        if !page["nextCursor"].is_null() {
            return Err("the provider has more sandboxes than a test makes".to_owned());
        }
        serde_json::from_value(page["items"].clone())
            .map_err(|error| format!("the list cannot be read: {error}"))
    }

    /// The names of the sandboxes' ready snapshots. Vercel keeps each with its sandbox, an SSH host as a file.
    ///
    /// # Errors
    /// When the provider does not list them.
    pub async fn snapshots(&self) -> Result<Vec<String>, String> {
        if let Speaks::Host(folder) = &self.speaks {
            let files = std::fs::read_dir(folder.join("snapshots")).map_err(|e| e.to_string())?;
            let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
            let whole = |name: String| name.strip_suffix(".tar.zst").map(str::to_owned);
            return Ok(names.filter_map(whole).collect());
        }
        if let Speaks::Vercel(..) = self.speaks {
            let all = self.list().await?.into_iter();
            let kept = all.filter(|one| one.name.contains("-at") && one.state == "stopped");
            return Ok(kept.map(|one| one.name).collect());
        }
        let url = format!("{}/snapshots?limit=100", self.api);
        let page = self.call(Method::GET, &url, &Value::Null).await?.ok()?;
        let all = page["items"].as_array().cloned().unwrap_or_default().into_iter();
        let ready = all.filter(|one| one["state"] == "active");
        let names = ready.filter_map(|one| one["name"].as_str().map(str::to_owned));
        Ok(names.filter(|name| name.contains("-at")).collect())
    }

    /// Makes a sandbox, past the product.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn create(&self, body: &Value) -> Result<(), String> {
        let url = format!("{}/sandbox", self.api);
        self.call(Method::POST, &url, body).await?.ok().map(drop)
    }

    /// The sandboxes of a thread, of any generation.
    ///
    /// # Errors
    /// As [`Provider::list`].
    pub async fn of(&self, thread: &ThreadKey) -> Result<Vec<Sandbox>, String> {
        let mut list = self.list().await?;
        list.retain(|sandbox| sandbox.generation_of(thread).is_some());
        Ok(list)
    }

    /// A file of the agent's project in a sandbox, by the toolbox.
    ///
    /// # Errors
    /// Status and body of a refusal.
    pub async fn download(&self, sandbox: &Sandbox, path: &str) -> Result<String, String> {
        if let Speaks::Vercel(team, project) = &self.speaks {
            let base = format!("{}/v2/sandboxes", self.api);
            let url = format!("{base}/{}?teamId={team}&projectId={project}", sandbox.name);
            let told = self.call(Method::GET, &url, &Value::Null).await?.ok()?;
            let session = told["session"]["id"].as_str().unwrap_or_default();
            let url = format!("{base}/sessions/{session}/fs/read?teamId={team}");
            let body = json!({"path": format!("{PROJECT}/{path}")});
            let answer = self.call(Method::POST, &url, &body).await?;
            return match answer.status {
                200 => Ok(answer.text),
                status => Err(format!("HTTP {status}: {}", answer.text)),
            };
        }
        let url = toolbox(sandbox, &format!("files/download?path={PROJECT}/{path}"));
        let answer = self.call(Method::GET, &url, &Value::Null).await?;
        if answer.status == 200 {
            Ok(answer.text)
        } else {
            Err(format!("HTTP {}: {}", answer.status, answer.text))
        }
    }

    /// Makes a folder in the agent's project, by Daytona's toolbox.
    ///
    /// # Errors
    /// Status and body of a refusal.
    pub async fn make_folder(&self, sandbox: &Sandbox, name: &str) -> Result<(), String> {
        let path = format!("files/folder?path={PROJECT}/{name}&mode=755");
        let url = toolbox(sandbox, &path);
        self.call(Method::POST, &url, &Value::Null).await?.ok().map(drop)
    }

    /// Arms a fault, such as `{"fault":"html","operation":"create","status":502}`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn arm(&self, fault: &Value) -> Result<(), String> {
        let base = self.api.strip_suffix("/api").ok_or("the API's address does not end in /api")?;
        self.call(Method::POST, &format!("{base}/_control/faults"), &json!({"faults": [fault]}))
            .await?
            .ok()
            .map(|_| ())
    }

    /// Creates secrets until there is no room for another.
    ///
    /// # Errors
    /// When the provider cannot be reached.
    pub async fn fill_secrets(&self) -> Result<(), String> {
        for nth in 0_u32.. {
            let body = json!({"name": format!("in-the-way-{nth}"), "value": "x"});
            let url = format!("{}/secret", self.api);
            let made = self.call(Method::POST, &url, &body).await?;
            if made.status == 400 {
                return Ok(());
            }
            made.ok()?;
        }
        Ok(())
    }

    /// Has the provider accept a key, of the organisation of this number; the stack's is the first.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn add_key(&self, key: &str, account: u32) -> Result<(), String> {
        let body = json!({"key": key, "account": account});
        self.keys(Method::POST, &body).await
    }

    /// Has it accept a key no more.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn revoke_key(&self, key: &str) -> Result<(), String> {
        self.keys(Method::DELETE, &json!({"key": key})).await
    }

    async fn keys(&self, method: Method, body: &Value) -> Result<(), String> {
        let base = self.api.strip_suffix("/api").ok_or("the API's address does not end in /api")?;
        let url = format!("{base}/_control/keys");
        self.call(method, &url, body).await?.ok().map(drop)
    }

    /// Has a stopped sandbox at Daytona archived, as it does itself with one that rests for long.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn archive(&self, sandbox: &Sandbox) -> Result<(), String> {
        let url = format!("{}/sandbox/{}/archive", self.api, sandbox.name);
        let answer = self.call(Method::POST, &url, &Value::Null).await?;
        answer.ok().map(drop)
    }

    /// Loses a sandbox, as a provider may: it is gone, and nobody was asked.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn lose(&self, sandbox: &Sandbox) -> Result<(), String> {
        let base = self.api.strip_suffix("/api").ok_or("the API's address does not end in /api")?;
        self.call(Method::POST, &format!("{base}/_control/lose"), &json!({"sandbox": sandbox.name}))
            .await?
            .ok()
            .map(|_| ())
    }

    /// Moves the provider's clock forward, and ends what has expired by then.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn advance(&self, ms: u64) -> Result<(), String> {
        let base = self.api.strip_suffix("/api").ok_or("the API's address does not end in /api")?;
        let url = format!("{base}/_control/clock");
        let body = json!({"advance_ms": ms});
        self.call(Method::POST, &url, &body).await?.ok().map(drop)
    }

    /// Clears all armed faults.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn clear(&self) -> Result<(), String> {
        let base = self.api.strip_suffix("/api").ok_or("the API's address does not end in /api")?;
        self.call(Method::DELETE, &format!("{base}/_control/faults"), &Value::Null)
            .await?
            .ok()
            .map(|_| ())
    }
}

/// An address of the toolbox in a sandbox.
fn toolbox(sandbox: &Sandbox, call: &str) -> String {
    let proxy = sandbox.toolbox_proxy_url.trim_end_matches('/');
    format!("{proxy}/{}/{call}", sandbox.id)
}

/// A host's registry: a file for each sandbox, `<slot>.<name>.<stage>`. A running one is called started, the first
/// provider's word for it.
fn on_host(folder: &Path) -> Result<Vec<Sandbox>, String> {
    let files = std::fs::read_dir(folder.join("registry")).map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for file in files {
        let file = file.map_err(|e| e.to_string())?.file_name();
        let file = file.to_string_lossy().into_owned();
        let parts: Vec<&str> = file.split('.').collect();
        // A lock has no slot.
        let [slot, name, stage] = parts[..] else {
            continue;
        };
        if slot.parse::<u16>().is_err() {
            continue;
        }
        let state = match stage {
            "running" => "started",
            other => other,
        };
        all.push(Sandbox {
            id: slot.to_owned(),
            name: name.to_owned(),
            state: state.to_owned(),
            toolbox_proxy_url: String::new(),
        });
    }
    Ok(all)
}

/// A page of Vercel's listing. A sandbox whose session runs is called started, the other provider's word for it.
fn listed(page: &Value) -> Result<Vec<Sandbox>, String> {
    if !page["pagination"]["next"].is_null() {
        return Err("the provider has more sandboxes than a test makes".to_owned());
    }
    let one = |told: &Value| {
        let text = |field: &str| told[field].as_str().unwrap_or_default().to_owned();
        let state = match text("status") {
            running if running == "running" => "started".to_owned(),
            other => other,
        };
        Sandbox { id: text("name"), name: text("name"), state, toolbox_proxy_url: String::new() }
    };
    let all = page["sandboxes"].as_array();
    let all = all.ok_or("the list cannot be read")?;
    Ok(all.iter().map(one).collect())
}
