//! `bobbin sandbox host ssh`: prints a set-up script for an SSH sandbox host; a person reads it and runs it there.
//!
//! It uses no stack and changes nothing itself.

use std::path::PathBuf;

use bobbin_sandbox::ssh::{HostSetup, setup_script};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::output::{CommandError, ExitStatus, Output};

/// How the host is reached.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Print the script that makes a Linux machine with sshd a host of sandboxes; read it, then run it there as root
    Ssh(SshHostScript),
}

/// Print the script that makes a Linux machine with sshd a host of sandboxes; read it, then run it there as root.
#[derive(Debug, Args)]
pub struct SshHostScript {
    /// File with the public half of the key that Bobbin logs in with: ssh-keygen -t ed25519 -N '' -f bobbin makes
    /// bobbin.pub
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Sandboxes that the machine can have at once
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub sandboxes: u16,
    /// The user who keeps their list; theirs are called after it
    #[arg(long, value_name = "NAME", default_value = "bobbin")]
    pub user: String,
    /// The sandboxes' agents listen on loopback at the ports that follow this one
    #[arg(long, value_name = "PORT", default_value_t = 21_000)]
    pub first_port: u16,
    /// Memory of each sandbox (4G), where systemd can bound it
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Processors of each sandbox in percent of one (200), likewise
    #[arg(long, value_name = "PERCENT")]
    pub cpu: Option<u32>,
}

/// Generates the script.
///
/// # Errors
/// An option is unusable.
pub fn run(command: &HostCommand) -> Result<Output, CommandError> {
    let HostCommand::Ssh(host) = command;
    let public_key = std::fs::read_to_string(&host.key)
        .map_err(|e| format!("--key {} cannot be read: {e}", host.key.display()))?;
    // Without .pub, the file would be the private key, and it would end up in a clipboard.
    if public_key.contains("PRIVATE KEY") {
        return Err(format!(
            "--key {} is a private key, which stays here. Name the file beside it that ends in .pub.",
            host.key.display()
        )
        .into());
    }
    let script = setup_script(&HostSetup {
        public_key,
        user: host.user.clone(),
        sandboxes: host.sandboxes,
        first_port: host.first_port,
        memory: host.memory.clone(),
        cpu_percent: host.cpu,
    })?;
    let json = json!({ "script": script });
    Output::new(script, &json, ExitStatus::Done)
}
