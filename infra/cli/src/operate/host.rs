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
    /// Print the script that turns a Linux machine with sshd into a host for sandboxes; read it, then run it there as
    /// root
    Ssh(SshHostScript),
}

/// Print the script that turns a Linux machine with sshd into a host for sandboxes; read it, then run it there as root.
#[derive(Debug, Args)]
pub struct SshHostScript {
    /// File with the public half of Bobbin's login key: ssh-keygen -t ed25519 -N '' -f bobbin writes bobbin.pub
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// How many sandboxes the machine can have at once
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub sandboxes: u16,
    /// The user that keeps the list of sandboxes; their own users are named after it
    #[arg(long, value_name = "NAME", default_value = "bobbin")]
    pub user: String,
    /// The sandboxes' agents listen on loopback at the ports that follow this one
    #[arg(long, value_name = "PORT", default_value_t = 21_000)]
    pub first_port: u16,
    /// Memory limit of each sandbox (4G), if systemd can enforce it
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// CPU limit of each sandbox in percent of one processor (200), if systemd can enforce it
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
            "--key {} is a private key, which must stay here. Name the file beside it that ends in .pub.",
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
