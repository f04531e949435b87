//! The configured hosts and their validation.

use std::collections::BTreeSet;

use russh::keys::{Algorithm, HashAlg, PublicKey};
use serde::Deserialize;

use super::bounds::{HOSTS_MAX, SANDBOXES_MAX};
use crate::labels::StackIdentity;

/// One host, as in the setting `ssh_hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshHost {
    /// Display name: small letters, digits and dashes.
    pub name: String,
    /// Name or IP address.
    pub address: String,
    /// Port of its sshd.
    #[serde(default = "ssh_port")]
    pub port: u16,
    /// The host key that it must show, as in `/etc/ssh/ssh_host_ed25519_key.pub`. Any other is refused.
    pub host_key: String,
    /// The control user; the slots' users are named after it (`<user>-1`, …).
    #[serde(default = "control_user")]
    pub user: String,
    /// Once the host has this many sandboxes, those of other stacks included, this stack creates no further one on it.
    pub sandboxes: u16,
}

const fn ssh_port() -> u16 {
    22
}

fn control_user() -> String {
    "bobbin".to_owned()
}

/// The one port of a sandbox that is reachable from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPort {
    /// The port in callers' terms.
    pub port: u16,
    /// The variable that tells a sandbox's processes the actual port on the host's loopback.
    pub variable: String,
}

/// Settings for sandboxes on SSH hosts.
#[derive(Debug, Clone)]
pub struct SshSettings {
    /// Name of the stack: part of every sandbox's name and labels.
    pub stack: String,
    /// The stack's unique id: a label of every sandbox.
    pub stack_id: String,
    /// The hosts, from [`hosts_of`].
    pub hosts: Vec<SshHost>,
    /// Port of the agent.
    pub agent: AgentPort,
}

impl SshSettings {
    pub(super) fn stack(&self) -> StackIdentity<'_> {
        StackIdentity { name: &self.stack, id: &self.stack_id }
    }
}

impl SshHost {
    /// The pinned host key.
    ///
    /// # Errors
    /// Where to find it, if the setting is not a key.
    pub(super) fn pinned(&self) -> Result<PublicKey, String> {
        let read = PublicKey::from_openssh(self.host_key.trim()).ok();
        let is_spoken = |key: &PublicKey| {
            matches!(key.algorithm(), Algorithm::Ed25519 | Algorithm::Ecdsa { .. })
        };
        read.filter(is_spoken).ok_or_else(|| {
            format!(
                "ssh_hosts: host_key of {} is not an Ed25519 or ECDSA public key; copy the line in /etc/ssh/ssh_host_ed25519_key.pub on that host",
                self.name
            )
        })
    }

    /// The host's identity, whatever its name and address.
    pub(super) fn identity(&self) -> String {
        let key = self.pinned();
        let key = key
            .map_or_else(|_| self.name.clone(), |key| key.fingerprint(HashAlg::Sha256).to_string());
        format!("{}@{key}", self.user)
    }

    fn wrong(&self) -> Option<String> {
        let name = &self.name;
        if !is_word(name) {
            return Some(format!(
                "ssh_hosts: the name {name:?} must be lower-case letters, digits and dashes"
            ));
        }
        if !is_word(&self.user) {
            return Some(format!(
                "ssh_hosts: user of {name} must be lower-case letters, digits and dashes"
            ));
        }
        if self.address.trim().is_empty() || self.port == 0 {
            return Some(format!("ssh_hosts: {name} needs an address and a port"));
        }
        if !(1..=SANDBOXES_MAX).contains(&self.sandboxes) {
            return Some(format!("ssh_hosts: sandboxes of {name} must be 1 to {SANDBOXES_MAX}"));
        }
        self.pinned().err()
    }
}

/// Parses the setting `ssh_hosts`: a JSON list of hosts.
///
/// # Errors
/// Says what is wrong with it.
pub fn hosts_of(json: &str) -> Result<Vec<SshHost>, String> {
    let hosts: Vec<SshHost> =
        serde_json::from_str(json).map_err(|e| format!("ssh_hosts cannot be read: {e}"))?;
    checked(&hosts)?;
    Ok(hosts)
}

/// Checks that these hosts can be used together.
///
/// # Errors
/// Says what is wrong.
pub(super) fn checked(hosts: &[SshHost]) -> Result<(), String> {
    if hosts.is_empty() || hosts.len() > HOSTS_MAX {
        return Err(format!("ssh_hosts must name 1 to {HOSTS_MAX} hosts"));
    }
    if let Some(wrong) = hosts.iter().find_map(SshHost::wrong) {
        return Err(wrong);
    }
    let names: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let places: BTreeSet<_> =
        hosts.iter().map(|host| (&host.address, host.port, &host.user)).collect();
    if names.len() < hosts.len() || places.len() < hosts.len() {
        return Err("ssh_hosts names a host twice".to_owned());
    }
    Ok(())
}

/// Whether it has no special meaning to a shell, a file system or `useradd`.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    text.len() <= 100
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ host";

    fn host(name: &str, more: &str) -> String {
        format!(r#"{{"name":"{name}","address":"{name}.example","host_key":"{KEY}"{more}}}"#)
    }

    #[test]
    fn ssh_port_and_user_have_defaults() {
        let one = host("one", r#","sandboxes":8"#);
        let two = host("two", r#","sandboxes":2,"port":2222,"user":"agents""#);
        let read = hosts_of(&format!("[{one},{two}]")).unwrap();
        let told: Vec<_> =
            read.iter().map(|host| (host.name.as_str(), host.port, host.user.as_str())).collect();
        assert_eq!(told, [("one", 22, "bobbin"), ("two", 2222, "agents")]);
    }

    #[test]
    fn unusable_ssh_settings_are_explained() {
        let good = host("one", r#","sandboxes":8"#);
        for (json, says) in [
            ("[]".to_owned(), "1 to 16 hosts"),
            ("{}".to_owned(), "ssh_hosts cannot be read"),
            (format!("[{good},{good}]"), "names a host twice"),
            (format!("[{}]", host("one", r#","sandboxes":0"#)), "1 to 250"),
            (format!("[{}]", host("one", "")), "missing field `sandboxes`"),
            (format!("[{}]", host("a b", r#","sandboxes":1"#)), "lower-case letters"),
            (format!("[{}]", host("a", r#","sandboxes":1,"user":"$(x)""#)), "lower-case letters"),
            (
                format!("[{}]", good.replace("ssh-ed25519 AAAA", "ssh-ed25519 BBBB")),
                "ssh_host_ed25519_key.pub",
            ),
            (format!("[{}]", host("a", r#","sandboxes":1,"colour":"red""#)), "colour"),
        ] {
            let error = hosts_of(&json).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
