//! The host's set-up: a script that a person reads and runs there.

use super::bounds::SANDBOXES_MAX;
use super::registry::quoted;
use super::settings::is_word;

const SCRIPT: &str = include_str!("scripts/setup.sh");
/// Lower ports are the system's; higher ones are ephemeral ports (`ip_local_port_range`).
const PORTS: std::ops::Range<u16> = 1024..32768;

/// Parameters of a host's set-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetup {
    /// Public half of Bobbin's login key, as `ssh-keygen` writes it.
    pub public_key: String,
    /// The control user; the slots' users are named after it.
    pub user: String,
    /// Most sandboxes at once.
    pub sandboxes: u16,
    /// The port before the first slot's.
    pub first_port: u16,
    /// Memory of each sandbox as systemd writes it (`4G`); `None`: unlimited.
    pub memory: Option<String>,
    /// CPU of each sandbox in percent of one processor; `None`: unlimited.
    pub cpu_percent: Option<u32>,
}

/// The complete, non-interactive script.
///
/// # Errors
/// Names the parameter that cannot be used.
pub fn setup_script(setup: &HostSetup) -> Result<String, String> {
    let key = setup.public_key.trim();
    if russh::keys::PublicKey::from_openssh(key).is_err() || key.contains('\n') {
        return Err("the public key must be one line, as in a file that ends in .pub".to_owned());
    }
    // A user name has at most 32 characters (useradd(8)), and a slot's has four more.
    if !is_word(&setup.user) || setup.user.len() > 28 {
        return Err("the user must be lower-case letters, digits and dashes, at most 28".to_owned());
    }
    if !(1..=SANDBOXES_MAX).contains(&setup.sandboxes) {
        return Err(format!("sandboxes must be 1 to {SANDBOXES_MAX}"));
    }
    let last = setup.first_port.saturating_add(setup.sandboxes);
    if !PORTS.contains(&setup.first_port) || !PORTS.contains(&last) {
        return Err(format!(
            "the ports {} to {last} must be between {} and {}",
            setup.first_port,
            PORTS.start,
            PORTS.end - 1
        ));
    }
    let memory = setup.memory.as_deref().unwrap_or_default();
    let is_size = |text: &str| {
        let digits = text.trim_end_matches(['K', 'M', 'G', 'T']);
        text.len() - digits.len() <= 1
            && !digits.is_empty()
            && digits.bytes().all(|c| c.is_ascii_digit())
    };
    if !memory.is_empty() && !is_size(memory) {
        return Err(format!("the memory {memory:?} must be a number with K, M, G or T"));
    }
    let cpu = setup.cpu_percent.map(|percent| format!("{percent}%"));
    let head = format!(
        "#!/bin/sh\nuser={}\nsandboxes={}\nfirst_port={}\nkey={}\nmemory={}\ncpu={}\n",
        setup.user,
        setup.sandboxes,
        setup.first_port,
        quoted(key),
        quoted(memory),
        quoted(&cpu.unwrap_or_default()),
    );
    Ok(format!("{head}\n{SCRIPT}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ it's ours";

    fn setup() -> HostSetup {
        HostSetup {
            public_key: KEY.to_owned(),
            user: "bobbin".to_owned(),
            sandboxes: 8,
            first_port: 21000,
            memory: Some("4G".to_owned()),
            cpu_percent: None,
        }
    }

    #[test]
    fn setup_script_starts_with_its_settings() {
        let script = setup_script(&setup()).unwrap();
        assert!(
            script.starts_with(&format!(
                "#!/bin/sh\nuser=bobbin\nsandboxes=8\nfirst_port=21000\nkey='{}'\nmemory='4G'\ncpu=''\n\n",
                KEY.replace('\'', r"'\''")
            )),
            "{script}"
        );
    }

    #[test]
    fn unusable_host_setup_is_refused() {
        type Change = fn(&mut HostSetup);
        let change: [(Change, &str); 7] = [
            (|s| s.public_key = "hello".to_owned(), "one line"),
            (|s| s.public_key.push_str("\nreboot"), "one line"),
            (|s| s.user = "a b".to_owned(), "lower-case letters"),
            (|s| s.sandboxes = 0, "1 to 250"),
            (|s| s.first_port = 80, "between 1024 and 32767"),
            (|s| s.first_port = 32760, "between 1024 and 32767"),
            (|s| s.memory = Some("4G; reboot".to_owned()), "K, M, G or T"),
        ];
        for (change, says) in change {
            let mut setup = setup();
            change(&mut setup);
            let error = setup_script(&setup).unwrap_err();
            assert!(error.contains(says), "{setup:?}: {error}");
        }
    }
}
