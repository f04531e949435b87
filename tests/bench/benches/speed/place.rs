//! The places of sandboxes, as far as they differ for measurements: how the functions are configured, how their calls
//! are recognised, where their disks are, and how their agents are reached through a relay.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::Method;
use bobbin_tests::provider::Provider;
use serde_json::{Value, json};

use crate::harness::{Harness, host};
use crate::machine::{Machine, lacks};
use crate::process::{Program, runtime};
use crate::relay::Door;
use crate::shares::{CREATE, START};
use crate::trips::Peer;

/// A place.
pub struct Place {
    /// Its name in the setting `provider`.
    pub word: &'static str,
    /// The worker that creates its sandboxes there.
    pub worker: Program,
    /// The provider there.
    pub provider: Provider,
    /// The folder with its sandboxes' disks.
    pub disks: PathBuf,
    /// The machine, if it is one.
    machine: Option<Arc<Machine>>,
}

/// Every place that this machine can have, set up; says why it cannot have the others.
///
/// # Errors
/// A sentence with what failed.
pub fn all(harness: &Harness) -> Result<Vec<Place>, String> {
    let mut places = vec![daytona(harness)?, vercel(harness)?];
    match lacks() {
        Some(why) => eprintln!("There is no SSH host here: {why}"),
        None => places.push(ssh(harness)?),
    }
    Ok(places)
}

fn daytona(harness: &Harness) -> Result<Place, String> {
    Ok(Place {
        word: "daytona",
        worker: harness.ours_with("worker", &json!({"provider": "daytona"}))?,
        provider: harness.world.provider.clone(),
        disks: harness.world.state_dir.join("daytona"),
        machine: None,
    })
}

fn vercel(harness: &Harness) -> Result<Place, String> {
    let (ready, relays) = (&harness.world.ready, &harness.relays);
    let to = host(&ready.vercel_api);
    let port = runtime().block_on(async { relays.open(Peer::Provider, to, None) });
    let port = port.map_err(|e| e.to_string())?;
    let (team, project) = (&ready.vercel_team_id, &ready.vercel_project_id);
    let overrides = json!({
        "provider": "vercel", "vercel_api": format!("http://127.0.0.1:{port}/api"), "vercel_team_id": team,
        "vercel_project_id": project,
    });
    let client = bobbin_tests::http::client();
    let (api, token) = (&ready.vercel_api, &ready.vercel_token);
    Ok(Place {
        word: "vercel",
        worker: harness.ours_with("worker", &overrides)?,
        provider: Provider::vercel(&client, api, token, (team, project)),
        disks: harness.world.state_dir.join("vercel"),
        machine: None,
    })
}

/// A host whose calls are commands over a connection that only its two ends can read, and whose agents are reached
/// through that connection too: what is told of both is who spoke when, and the agent's part is seen at the host's end.
fn ssh(harness: &Harness) -> Result<Place, String> {
    let machine = Arc::new(Machine::start()?);
    let key = json!({"ssh_key": machine.key});
    runtime().block_on(harness.world.store("ProviderSecret", &key))?;
    let own = Arc::clone(&machine);
    let named = Arc::new(move |port| own.login(port));
    let to = format!("127.0.0.1:{}", machine.port());
    let relays = &harness.relays;
    let port = runtime().block_on(async { relays.open_wire(Peer::Provider, &to, named) });
    let hosts = [machine.settings(port.map_err(|e| e.to_string())?)];
    let overrides = json!({"provider": "ssh", "ssh_hosts": hosts});
    let client = bobbin_tests::http::client();
    Ok(Place {
        word: "ssh",
        worker: harness.ours_with("worker", &overrides)?,
        provider: Provider::on_host(&client, machine.disks()),
        disks: machine.disks(),
        machine: Some(machine),
    })
}

impl Place {
    /// Leads the way to an agent that listens now through a relay, if no answer of the place does that, until this is
    /// dropped.
    ///
    /// # Errors
    /// A sentence, if there is no such way.
    pub fn lead(&self, harness: &Harness) -> Result<Option<Door>, String> {
        let Some(machine) = &self.machine else {
            return Ok(None);
        };
        let (user, at, there) = machine.agent()?;
        let door = harness.relays.open_as(user, at, there);
        door.map(Some).map_err(|e| e.to_string())
    }
}

/// The purpose of a request to a provider's API or into a sandbox; `None`: unknown.
#[must_use]
pub fn named(method: &Method, segments: &[&str], query: &str) -> Option<&'static str> {
    let words = match (method, segments) {
        (&Method::GET, ["api", "sandbox"] | ["api", "v2", "sandboxes"]) => "list sandboxes",
        (&Method::POST, ["api", "sandbox"] | ["api", "v3", "sandboxes"]) => CREATE,
        (_, ["api", "sandbox", _, "start"]) => START,
        (&Method::GET, ["api", "v2", "sandboxes", _]) if query.contains("resume=true") => START,
        (&Method::GET, ["api", "sandbox", _] | ["api", "v2", "sandboxes", _]) => "read sandbox",
        (_, ["api", "sandbox", _, "stop"] | ["api", "v2", "sandboxes", _, _, "stop"]) => {
            "stop sandbox"
        }
        (&Method::DELETE, ["api", "sandbox", _] | ["api", "v2", "sandboxes", _]) => {
            "delete sandbox"
        }
        (_, ["api", "sandbox", _, "ports", _, "preview-url"]) => "read preview",
        (_, [.., "process", "execute"] | ["api", "v2", "sandboxes", "sessions", _, "cmd"]) => {
            "run a script"
        }
        (_, [.., "network-policy"]) => "set policy",
        (_, [.., "extend-timeout"]) => "extend session",
        _ => return None,
    };
    Some(words)
}

/// The agents' addresses in the answer to a request for this path.
pub fn agents_in<'a>(asked: &str, told: &'a mut Value) -> Vec<&'a mut Value> {
    if asked.ends_with("/preview-url") {
        return told.get_mut("url").into_iter().collect();
    }
    let routes = told.get_mut("routes").and_then(Value::as_array_mut);
    let routes = routes.into_iter().flatten();
    routes.filter_map(|route| route.get_mut("url")).collect()
}
