//! A separate network for a program, connected to this machine by one virtual cable: like a Docker container's, without
//! Docker. Its loopback is not the machine's, and the machine has one address in it.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The private block of the addresses; Docker's own are in 172.16.0.0/12.
const BLOCK: [u8; 2] = [10, 231];

/// The network; it is removed when this is dropped.
pub struct Namespace {
    name: String,
    cable: String,
    /// This machine's address inside the network.
    pub outside: Ipv4Addr,
}

impl Namespace {
    /// Creates one.
    ///
    /// # Errors
    /// What this machine or person lacks for it.
    pub fn open() -> Result<Self, String> {
        let pid = std::process::id();
        let [_, _, high, low] = (pid << 2).to_be_bytes();
        let at = |last: u8| Ipv4Addr::new(BLOCK[0], BLOCK[1], high, low + last);
        let (outside, inside) = (at(1), at(2));
        let opened = Self { name: format!("bobbin-{pid}"), cable: format!("bobo{pid}"), outside };
        let (name, cable, end) = (&opened.name, &opened.cable, format!("bobi{pid}"));
        ip(&["netns", "add", name])?;
        ip(&["link", "add", cable, "type", "veth", "peer", "name", &end, "netns", name])?;
        ip(&["addr", "add", &format!("{outside}/30"), "dev", cable])?;
        ip(&["link", "set", cable, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{inside}/30"), "dev", &end])?;
        ip(&["-n", name, "link", "set", &end, "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        Ok(opened)
    }

    /// Runs a program within.
    #[must_use]
    pub fn command(&self, program: &Path) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Either may be gone with the other.
        let _ = ip(&["link", "del", &self.cable]);
        let _ = ip(&["netns", "del", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let ran =
        Command::new("ip").args(arguments).stdin(Stdio::null()).output().map_err(|e| {
            format!("`ip` is not installed (Debian: apt-get install iproute2): {e}")
        })?;
    if ran.status.success() {
        Ok(())
    } else {
        Err(format!(
            "a network of its own takes root: ip {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&ran.stderr).trim()
        ))
    }
}
