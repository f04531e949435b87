//! A machine that runs sandboxes over SSH: Debian's own sshd, as the suite's tests start it, with the real agent.
//!
//! Its agent listens at another port than the functions are told, and where they look for it a relay of ours does once
//! the agent listens, as the slot's own user: the functions look whose the sockets are. So every call to the agent is
//! seen.

use std::net::TcpListener;
use std::path::PathBuf;

use bobbin_local_daytona::opencode;
use bobbin_sandbox::ssh::{HostSetup, SshHost, setup_script};

use crate::host::{Host, key_pair};
use crate::process::runtime;
use crate::programs;

/// The user that keeps the registry; those of slots are called after it.
const USER: &str = "bobbin";
/// Ports below those that the system gives to whoever asks.
const PORTS: std::ops::Range<u16> = 22_000..30_000;
/// One sandbox at a time.
const SANDBOXES: u16 = 1;

/// A machine that is up.
pub struct Machine {
    host: Host,
    /// The private key that opens it.
    pub key: String,
    /// Where the functions look for the agent.
    at: u16,
    /// Where it listens.
    there: u16,
}

/// Why this machine cannot have one; none: it can.
#[must_use]
pub fn lacks() -> Option<String> {
    // A relay that belongs to somebody else's user takes root itself.
    if !nix::unistd::geteuid().is_root() {
        return Some("it is measured by root alone".to_owned());
    }
    crate::host::lacks()
}

impl Machine {
    /// Starts it.
    ///
    /// # Errors
    /// A sentence with what failed.
    pub fn start() -> Result<Self, String> {
        let (key, public_key) = key_pair();
        let mut free = PORTS.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
        let (Some(at), Some(there)) = (free.next(), free.next()) else {
            return Err("there are no free ports".to_owned());
        };
        let setup = setup_script(&HostSetup {
            public_key,
            user: USER.to_owned(),
            sandboxes: SANDBOXES,
            // That of the first slot is the one after it.
            first_port: at - 1,
            memory: None,
            cpu_percent: None,
        });
        let host = Host::start_with("bench", SANDBOXES, &setup.map_err(|e| e.to_string())?);
        let cache = programs::root().join(".bobbin/cache");
        let installed = runtime().block_on(opencode::install(&cache, |step| eprintln!("{step}")));
        let bin = installed.map_err(|e| e.to_string())?.bin_dir;
        // The agent's own command line says another port than its shell's, by which the functions know it.
        host.as_root(&format!(
            "mount -t tmpfs -o mode=755 tmpfs /usr/local/bin\n\
             mkdir /usr/local/bin/real\n\
             cp '{0}'/* /usr/local/bin/real/\n\
             if [ -e /usr/local/bin/real/rg ]; then ln -s real/rg /usr/local/bin/rg; fi\n\
             cat >/usr/local/bin/opencode <<'END'\n\
             #!/bin/sh\n\
             case \"$1\" in serve) ;; *) exec /usr/local/bin/real/opencode \"$@\" ;; esac\n\
             /usr/local/bin/real/opencode serve --hostname 127.0.0.1 --port {there}\n\
             END\n\
             chmod 755 /usr/local/bin/opencode",
            bin.display()
        ));
        Ok(Self { host, key, at, there })
    }

    /// The port of its sshd.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.host.settings().port
    }

    /// As the setting `ssh_hosts` has it, reached at this port.
    #[must_use]
    pub fn settings(&self, port: u16) -> serde_json::Value {
        let SshHost { name, address, host_key, user, sandboxes, .. } = self.host.settings();
        serde_json::json!({
            "name": name, "address": address, "port": port, "host_key": host_key, "user": user, "sandboxes": sandboxes,
        })
    }

    /// The folder of its sandboxes.
    #[must_use]
    pub fn disks(&self) -> PathBuf {
        self.host.folder("")
    }

    /// Who logged in over the connection that came from this port, by sshd's own log.
    #[must_use]
    pub fn login(&self, port: u16) -> String {
        let log = self.host.log();
        let from = format!(" port {port} ");
        let mut lines = log.lines().filter(|line| line.contains(&from));
        let login =
            lines.find_map(|line| line.split_once("Accepted publickey for ")?.1.split(' ').next());
        format!("SSH as {}", login.unwrap_or("nobody yet"))
    }

    /// The user of the slot's processes, where the functions look for its agent, and where that listens.
    ///
    /// # Errors
    /// A sentence, if there is no such user.
    pub fn agent(&self) -> Result<(u32, u16, u16), String> {
        let id = self.host.as_root(&format!("id -u {USER}-1"));
        let user = id.trim().parse();
        let user = user.map_err(|_| format!("{id:?} is no user's id"))?;
        Ok((user, self.at, self.there))
    }
}
