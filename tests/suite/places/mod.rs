//! A sandbox's life at each provider: the same scenarios at Daytona's and Vercel's doubles and on an SSH host that the
//! machine's own sshd serves. A stack has all three set up, and a thread's first words say where it works.

mod hosts;
mod kills;
mod life;
mod setup;
mod tools;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bobbin_sandbox::ssh::SshHost;
use bobbin_tests::binaries;
use bobbin_tests::chat::Platform;
use bobbin_tests::provider::Sandbox;
use bobbin_tests::shared::Shared;
use bobbin_tests::stack::{Options, Stack, quick};
use bobbin_tests::talk::{Talk, marked};
use bobbin_tests::world::World;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use self::host::{Host, key_pair, lacks};
use crate::run::{beside, block_on};

#[path = "../../ssh/host.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod host;

/// The host's number of sandboxes: each scenario deletes its own.
const SLOTS: u16 = 8;

/// Sandboxes are idle after two seconds, and kept for long.
pub static KEPT: Shared = Shared::with_options(kept);
/// Idle ones are paused and destroyed within seconds, and orphans are recognised as quickly.
pub static BRIEF: Shared = Shared::with_options(brief);

pub fn trials() -> Vec<Trial> {
    let mut trials = life::trials();
    trials.extend(setup::trials());
    trials.extend(hosts::trials());
    trials.extend(kills::trials());
    trials.extend(tools::trials());
    trials
}

/// A provider, as `provider:` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Daytona,
    Vercel,
    Ssh,
}

impl Place {
    pub const ALL: [Self; 3] = [Self::Daytona, Self::Vercel, Self::Ssh];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Daytona => "daytona",
            Self::Vercel => "vercel",
            Self::Ssh => "ssh",
        }
    }

    /// Why this machine cannot have it; `None`: it can.
    pub fn lacks(self) -> Option<String> {
        (self == Self::Ssh).then(lacks).flatten()
    }

    /// A stack whose sandboxes are here by default.
    pub fn options(self, limits: Value) -> Options {
        match self {
            Self::Daytona => Options::limits(limits),
            Self::Vercel => Options {
                parameters: json!({"Overrides": json!({"provider": "vercel"}).to_string()}),
                ..Options::limits(limits)
            },
            Self::Ssh => on_hosts(limits, "ssh", &[&machine().settings()], &hosted().1),
        }
    }

    /// The stack as seen with the sandboxes here.
    pub fn world(self, stack: &Stack) -> World {
        match self {
            Self::Daytona => World::of(stack),
            Self::Vercel => World::at_vercel(stack),
            Self::Ssh => World::on_host(stack, machine().folder("")),
        }
    }

    /// Begins a thread that works here.
    pub async fn begin<'w>(self, world: &'w World, lines: &str) -> (Talk<'w>, String) {
        let (text, mark) = marked(lines);
        let text = format!("provider:{} {text}", self.word());
        world.begin_marked(Platform::Slack, &text, &mark).await
    }

    /// A sandbox is gone with everything in it, without a request.
    pub async fn lose(self, world: &World, sandbox: &Sandbox) {
        if self != Self::Ssh {
            return world.provider.lose(sandbox).await.unwrap();
        }
        let (slot, name) = (&sandbox.id, &sandbox.name);
        machine().as_root(&format!(
            "rm -f /var/lib/bobbin/registry/{slot}.{name}.*; pkill -KILL -u bobbin-{slot}; rm -rf /var/lib/bobbin/{slot}/disk/{name}; true"
        ));
    }
}

/// The machine for these tests' sandboxes over SSH.
fn machine() -> MutexGuard<'static, Host> {
    hosted().0.lock().unwrap_or_else(PoisonError::into_inner)
}

static HOSTED: OnceLock<(Mutex<Host>, String)> = OnceLock::new();

/// The machine and its key.
fn hosted() -> &'static (Mutex<Host>, String) {
    HOSTED.get_or_init(|| {
        let (key, public) = key_pair();
        (Mutex::new(with_agent(Host::start("one", SLOTS, &public))), key)
    })
}

/// The same machine with the stand-in for OpenCode, which only that machine sees.
fn with_agent(host: Host) -> Host {
    let agent = binaries::folder().join("stand-in-agent");
    host.as_root(&format!(
        "mount -t tmpfs tmpfs /usr/local/bin && cp '{}' /usr/local/bin/opencode && chmod 755 /usr/local/bin /usr/local/bin/opencode",
        agent.display()
    ));
    host
}

/// Stops the machine that the tests have shared.
pub fn end() {
    if HOSTED.get().is_some() {
        machine().stop();
    }
}

fn kept() -> Options {
    let mut limits = quick();
    limits["idle_pause_ms"] = json!(2_000);
    everywhere(limits)
}

fn brief() -> Options {
    let mut limits = quick();
    limits["idle_pause_ms"] = json!(1_000);
    limits["paused_ttl_ms"] = json!(1_000);
    limits["stale_grace_ms"] = json!(2_000);
    everywhere(limits)
}

/// All providers are set up, and the agent only has to answer.
fn everywhere(limits: Value) -> Options {
    match lacks() {
        Some(_) => Options { stand_in_agent: true, ..Options::limits(limits) },
        None => on_hosts(limits, "daytona", &[&machine().settings()], &hosted().1),
    }
}

/// With these hosts, and with this provider by default.
fn on_hosts(limits: Value, provider: &str, hosts: &[&SshHost], key: &str) -> Options {
    let hosts: Vec<Value> = hosts
        .iter()
        .map(|host| {
            json!({
                "name": host.name, "address": host.address, "port": host.port, "host_key": host.host_key,
                "user": host.user, "sandboxes": host.sandboxes,
            })
        })
        .collect();
    let overrides = json!({"provider": provider, "ssh_hosts": hosts});
    Options {
        stand_in_agent: true,
        parameters: json!({"Overrides": overrides.to_string()}),
        keys: json!({"ssh_key": key}),
        ..Options::limits(limits)
    }
}
