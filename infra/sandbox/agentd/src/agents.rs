//! The daemon's agents: where they are found, what they offer, how one is installed.
//!
//! Promised: a program is taken from `PATH`, else from the daemon's folder; `install` fetches only what is pinned here
//! by hash, and runs no package scripts.

mod install;
mod missing;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

pub(crate) use install::InstallError;
pub(crate) use missing::MissingAgent;

use crate::limits::VERSION_MS_MAX;

/// The driver of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    OpenCode,
    Claude,
    Codex,
    Amp,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
}

impl AgentKind {
    /// Name of its converter.
    pub(crate) const fn converter(self) -> &'static str {
        match self {
            Self::OpenCode => "opencode",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Amp => "amp",
            Self::Acp => "acp",
        }
    }
}

/// An installed agent.
#[derive(Debug, Clone)]
pub(crate) struct InstalledAgent {
    pub(crate) id: String,
    pub(crate) kind: AgentKind,
    pub(crate) path: PathBuf,
    /// Put before the driver's own arguments.
    pub(crate) arguments: Vec<String>,
}

/// An agent's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

const BUILD: Mode = Mode { id: "build", name: "Build", description: "Works on the project" };
const PLAN: Mode =
    Mode { id: "plan", name: "Plan", description: "Reads and makes a plan, changes nothing" };

/// A known agent.
#[derive(Debug, Clone)]
struct KnownAgent {
    id: String,
    kind: AgentKind,
    program: String,
    arguments: Vec<String>,
}

/// Fetches agents into a folder, without a daemon.
///
/// # Errors
/// The first agent that could not be installed.
pub(crate) fn install(
    ids: &[String],
    into: &Path,
    pinned: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let agents = Agents::new(std::path::absolute(into)?, &[])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for id in ids {
            if pinned {
                let path = agents.install_pinned(id).await?;
                println!("{id}: {}", path.display());
                continue;
            }
            agents.install(id, false).await?;
            let agent = agents.find(id).await.map_err(InstallError::Unsupported)?;
            println!("{id}: {}", agent.path.display());
        }
        Ok(())
    })
}

/// All agents of this daemon.
#[derive(Debug, Clone)]
pub(crate) struct Agents {
    known: Vec<KnownAgent>,
    /// Folder for `install`.
    folder: PathBuf,
}

impl Agents {
    /// The four with their own drivers, and the configured ones.
    ///
    /// # Errors
    /// What is wrong with a configured one, in words.
    pub(crate) fn new(folder: PathBuf, configured: &[String]) -> Result<Self, String> {
        let own = [
            ("opencode", AgentKind::OpenCode),
            ("claude", AgentKind::Claude),
            ("codex", AgentKind::Codex),
            ("amp", AgentKind::Amp),
        ];
        let mut known: Vec<KnownAgent> = own
            .into_iter()
            .map(|(id, kind)| KnownAgent {
                id: id.to_owned(),
                kind,
                program: id.to_owned(),
                arguments: Vec::new(),
            })
            .collect();
        for text in configured {
            let agent = parse(text)?;
            if known.iter().any(|other| other.id == agent.id) {
                return Err(format!("--acp {text}: there is another agent named {}", agent.id));
            }
            known.push(agent);
        }
        Ok(Self { known, folder })
    }

    /// In configuration order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(|known| known.id.as_str())
    }

    pub(crate) fn kind(&self, id: &str) -> Result<AgentKind, MissingAgent> {
        self.known(id).map(|known| known.kind)
    }

    fn known(&self, id: &str) -> Result<&KnownAgent, MissingAgent> {
        self.known.iter().find(|known| known.id == id).ok_or_else(|| MissingAgent::Unsupported {
            id: id.to_owned(),
            known: self.ids().map(str::to_owned).collect(),
        })
    }

    /// An agent's program.
    ///
    /// # Errors
    /// It is unknown or not installed; the error says how to install it.
    pub(crate) async fn find(&self, id: &str) -> Result<InstalledAgent, MissingAgent> {
        let known = self.known(id)?.clone();
        let places = self.places(&known.program);
        let found = tokio::task::spawn_blocking(move || places.into_iter().find(|p| is_program(p)));
        let path = found.await.ok().flatten().ok_or_else(|| MissingAgent::NotInstalled {
            id: id.to_owned(),
            program: known.program.clone(),
            folder: self.folder.clone(),
        })?;
        Ok(InstalledAgent { id: known.id, kind: known.kind, path, arguments: known.arguments })
    }

    fn places(&self, program: &str) -> Vec<PathBuf> {
        if program.contains('/') {
            return vec![PathBuf::from(program)];
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .chain([self.folder.join("bin")])
            .map(|folder| folder.join(program))
            .collect()
    }

    /// Installs an agent.
    ///
    /// # Errors
    /// It is unknown, nothing is pinned for it, or a step failed.
    pub(crate) async fn install(&self, id: &str, again: bool) -> Result<(), InstallError> {
        let known = self.known(id).map_err(InstallError::Unsupported)?;
        if !again && self.find(id).await.is_ok() {
            return Ok(());
        }
        let package = self.package(known)?;
        install::install(&package, &self.folder, &known.program).await
    }

    /// Fetches an agent into the folder unless the pinned version is there; returns its program.
    ///
    /// # Errors
    /// As [`Agents::install`].
    async fn install_pinned(&self, id: &str) -> Result<PathBuf, InstallError> {
        let known = self.known(id).map_err(InstallError::Unsupported)?;
        let package = self.package(known)?;
        if !install::is_there(&package, &self.folder, &known.program) {
            install::install(&package, &self.folder, &known.program).await?;
        }
        Ok(self.folder.join("bin").join(&known.program))
    }

    fn package(&self, known: &KnownAgent) -> Result<install::Package, InstallError> {
        install::package(known.kind).ok_or_else(|| InstallError::NotPinned {
            id: known.id.clone(),
            folder: self.folder.clone(),
        })
    }

    /// The modes of an agent.
    pub(crate) fn modes(&self, id: &str) -> Result<&'static [Mode], MissingAgent> {
        Ok(match self.kind(id)? {
            AgentKind::OpenCode | AgentKind::Claude | AgentKind::Codex => &[BUILD, PLAN],
            // Amp has no planning mode on its command line; ACP agents announce theirs only in a session.
            AgentKind::Amp | AgentKind::Acp => &[BUILD],
        })
    }
}

/// A program's own version; `None` if it does not print one in time.
pub(crate) async fn version(agent: &InstalledAgent) -> Option<String> {
    let mut command = Command::new(&agent.path);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let bound = Duration::from_millis(VERSION_MS_MAX);
    let output = tokio::time::timeout(bound, command.output()).await.ok()?.ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let word = said
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    Some(word.to_owned())
}

fn parse(text: &str) -> Result<KnownAgent, String> {
    let (id, line) =
        text.split_once('=').ok_or_else(|| format!("--acp {text}: write NAME=COMMAND LINE"))?;
    let is_name =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let mut words = line.split_whitespace().map(str::to_owned);
    match words.next() {
        Some(program) if is_name => Ok(KnownAgent {
            id: id.to_owned(),
            kind: AgentKind::Acp,
            program,
            arguments: words.collect(),
        }),
        _ => Err(format!(
            "--acp {text}: the name may have letters, digits and -, and a program must follow the ="
        )),
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
