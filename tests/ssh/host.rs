//! A machine that a test reaches over SSH: Debian's own sshd on loopback, in namespaces with their own users and
//! processes, set up by the script that operators run. Test programs that need one include this file by its path.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use bobbin_sandbox::ssh::{HostSetup, SshHost, setup_script};

/// The script that makes the machine.
const MACHINE: &str = include_str!("host.sh");
/// Ports below the system's own range; each host takes its own.
static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);

/// A machine.
pub struct Host {
    name: String,
    port: u16,
    sandboxes: u16,
    state: tempfile::TempDir,
    running: Option<Child>,
    log: Arc<Mutex<String>>,
}

/// The command that begins a machine: with root's own right, or with a user's subordinate ids.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--map-root-user", "--map-auto"]);
    }
    command.args(["--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]);
    command
}

/// Why this machine cannot give a test such a host; `None`: it can. In CI it must.
pub fn lacks() -> Option<String> {
    let made = unshare().arg("true").stderr(Stdio::null()).status();
    let why = if !Path::new("/usr/sbin/sshd").exists() {
        "Debian's openssh-server is not installed"
    } else if !made.is_ok_and(|status| status.success()) {
        "namespaces of its own (unshare) are not allowed here"
    } else {
        return None;
    };
    assert!(std::env::var_os("CI").is_none(), "{why}");
    Some(why.to_owned())
}

/// A key for logging in: its private and its public half.
pub fn key_pair() -> (String, String) {
    key_of_kind("ed25519")
}

/// The same, of a kind as `ssh-keygen` names it.
pub fn key_of_kind(kind: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", "", "-C", "bobbin", "-f"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    (read(&file), read(&file.with_extension("pub")))
}

/// The first of this many free ports in a row.
fn free_ports(slots: u16) -> u16 {
    for _ in 0..100 {
        let first = NEXT_PORT.fetch_add(slots + 1, Ordering::SeqCst);
        let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if (first + 1..=first + slots).all(is_free) {
            return first;
        }
    }
    panic!("no free ports");
}

/// The machine's first process: the only child of the one that made its namespaces.
fn first_of(outer: &Child) -> Option<String> {
    let outer = outer.id();
    let children = std::fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).ok()?;
    children.split_whitespace().next().map(str::to_owned)
}

impl Host {
    /// A machine that is set up for this many sandboxes and this public key.
    pub fn start(name: &str, sandboxes: u16, public_key: &str) -> Self {
        let setup = HostSetup {
            public_key: public_key.to_owned(),
            user: "bobbin".to_owned(),
            sandboxes,
            first_port: free_ports(sandboxes),
            memory: None,
            cpu_percent: None,
        };
        Self::start_with(name, sandboxes, &setup_script(&setup).unwrap())
    }

    /// A machine on which this script was run.
    pub fn start_with(name: &str, sandboxes: u16, setup: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let state = tempfile::Builder::new().prefix("bobbin-ssh-").tempdir().unwrap();
        let mut host = Self {
            name: name.to_owned(),
            port,
            sandboxes,
            state,
            running: None,
            log: Arc::default(),
        };
        host.boot("first", setup);
        host
    }

    fn boot(&mut self, mode: &str, setup: &str) {
        let mut child = unshare()
            .args(["sh", "-c", MACHINE])
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("state", self.state.path())
            .env("port", self.port.to_string())
            .env("mode", mode)
            .env("setup", setup)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.starts_with("Server listening") => break,
                Some(Ok(line)) => said.push(line),
                _ => panic!("{} did not come up: {said:#?}", self.name),
            }
        }
        self.running = Some(child);
        let log = Arc::clone(&self.log);
        *log.lock().unwrap() = said.join("\n");
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = log.lock().unwrap();
                log.push('\n');
                log.push_str(&line);
            }
        });
    }

    /// The output of its set-up and its sshd.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// As the setting `ssh_hosts` has it, with the key that it has now.
    pub fn settings(&self) -> SshHost {
        let key = self.state.path().join("etc/ssh/ssh_host_ed25519_key.pub");
        SshHost {
            name: self.name.clone(),
            address: "127.0.0.1".to_owned(),
            port: self.port,
            host_key: std::fs::read_to_string(key).unwrap(),
            user: "bobbin".to_owned(),
            sandboxes: self.sandboxes,
        }
    }

    /// One of its folders, as this program sees it.
    pub fn folder(&self, path: &str) -> PathBuf {
        self.state.path().join("lib/bobbin").join(path)
    }

    /// Ends the machine, with every process on it.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            // The kernel ends every other process of the machine before the first one, for which the outer one waits.
            match first_of(&child) {
                Some(first) => assert!(
                    Command::new("kill").args(["-KILL", &first]).status().unwrap().success()
                ),
                None => child.kill().unwrap(),
            }
            child.wait().unwrap();
        }
    }

    /// Brings it back with its disk.
    pub fn restart(&mut self) {
        self.stop();
        self.boot("again", "");
    }

    /// Brings it back with another host key.
    pub fn restart_with_another_key(&mut self) {
        self.stop();
        for file in ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"] {
            std::fs::remove_file(self.state.path().join("etc/ssh").join(file)).unwrap();
        }
        self.boot("again", "");
    }

    /// Runs a script on it as root; returns the output.
    pub fn as_root(&self, script: &str) -> String {
        let first = first_of(self.running.as_ref().unwrap()).unwrap();
        let mut child = Command::new("nsenter")
            .args(["--target", &first, "--mount", "--pid", "--ipc", "sh"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{script}");
        String::from_utf8(done.stdout).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(child) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
