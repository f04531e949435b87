//! Errors of calls to a host, classified by what to do about them.

use bobbin_core::base::failure::Failure;
use bobbin_core::tenant::keys::Key;

use crate::provider::{ErrorKind, InSandbox, ProviderError};

/// Why a call to a host, or to a sandbox on one, failed. It contains no key and none of a sandbox's output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    /// There is no key: nothing was sent.
    #[error("{}", Key::SshKey.missing())]
    NoKey,
    /// The stored value is not a private key, or needs a passphrase.
    #[error("the key for SSH hosts cannot be read: {why}")]
    BadKey {
        /// The parser's message.
        why: String,
    },
    /// The settings name unusable hosts.
    #[error("{what}")]
    Settings {
        /// Which, and why.
        what: String,
    },
    /// The host did not answer, or the connection broke: unless `unsent`, it is unknown whether the call had its
    /// effect.
    #[error("the SSH host {host} cannot be reached: {what}")]
    Unreachable {
        /// The host's name.
        host: String,
        /// The observed error.
        what: String,
        /// Nothing was sent to it.
        unsent: bool,
    },
    /// The host showed another key than the pinned one: nothing was sent.
    #[error("the SSH host {host} showed another host key than the pinned one: {shown}")]
    HostKeyChanged {
        /// The host's name.
        host: String,
        /// Fingerprint of the shown key, or a description if it showed none.
        shown: String,
    },
    /// The host does not accept our key for this user.
    #[error("the SSH host {host} refused the key for the user {user}")]
    KeyRefused {
        /// The host's name.
        host: String,
        /// The user to log in.
        user: String,
    },
    /// The host lacks something that the set-up script creates.
    #[error("the SSH host {host} is not set up: {what}")]
    NotSetUp {
        /// The host's name.
        host: String,
        /// What is missing.
        what: String,
    },
    /// No host has room.
    #[error("every SSH host is full: {hosts}")]
    Full {
        /// Each host with its number of sandboxes.
        hosts: String,
    },
    /// The host that has the snapshot has no room for a sandbox.
    #[error("the SSH host {host}, which has the snapshot, is full")]
    HolderFull {
        /// The host's name.
        host: String,
    },
    /// The host has as many snapshots as it may have.
    #[error("the SSH host {host} has {most} snapshots, which is as many as it may have")]
    SnapshotsFull {
        /// The host's name.
        host: String,
        /// How many.
        most: u32,
    },
    /// No host has the snapshot.
    #[error("the snapshot for the new sandbox no longer exists")]
    SnapshotGone,
    /// The snapshot cannot be unpacked.
    #[error(
        "the snapshot for the new sandbox cannot be unpacked on the SSH host {host}: its disk is full, or zstd is missing"
    )]
    SnapshotUnusable {
        /// The host's name.
        host: String,
    },
    /// A slot that is free in the registry holds files that are not ours: it is left alone.
    #[error(
        "the directory of the user {user} on the SSH host {host} has files that do not come from a Bobbin sandbox"
    )]
    Unclean {
        /// The host's name.
        host: String,
        /// The slot's user.
        user: String,
    },
    /// Another stack created it.
    #[error("another stack created the sandbox {name} on the SSH host {host}")]
    Foreign {
        /// The host's name.
        host: String,
        /// The sandbox.
        name: String,
    },
    /// No host has a sandbox of this name, or the sandbox does not have the file.
    #[error("no SSH host knows this sandbox")]
    NotFound,
    /// It is stopped.
    #[error("the sandbox is not running")]
    NotRunning,
    /// The directory of a sandbox no longer exists.
    #[error("the directory of the sandbox is gone from the SSH host {host}")]
    DirectoryGone {
        /// The host's name.
        host: String,
    },
    /// A request for something that does not exist here: a path outside the sandbox's directory, a port that is not the
    /// agent's.
    #[error("{what}")]
    Invalid {
        /// What was requested, and what is allowed.
        what: String,
    },
    /// The script exceeded its time and was killed.
    #[error("the command timed out")]
    CommandTimeout,
    /// Larger than allowed.
    #[error("the SSH host {host} sent more than {bytes_max} bytes")]
    TooLarge {
        /// The host's name.
        host: String,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// Another process holds the host's registry, or killed processes come back.
    #[error("not now: {what}")]
    Busy {
        /// The operation in progress.
        what: String,
    },
    /// A step on the host failed, usually because of a full disk.
    #[error("the SSH host {host} failed: {what}")]
    Failed {
        /// The host's name.
        host: String,
        /// The host's message.
        what: String,
    },
}

impl SshError {
    /// What the sandbox's delivery has to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let seen = self.to_string();
        let advice =
            |what: &str| Failure::NonRecoverable { advice: format!("{}. {what}", capital(&seen)) };
        match self {
            Self::NoKey => Failure::NonRecoverable { advice: seen },
            Self::BadKey { .. } => advice(
                "The operator has to store a private key without a passphrase (`ssh-keygen -t ed25519 -N ''`) as ssh_key with `bobbin secrets`. It must be the private half of the key with which the hosts were set up.",
            ),
            Self::Settings { .. } => {
                advice("The operator has to check ssh_hosts of the parameter Overrides.")
            }
            Self::HostKeyChanged { .. } => advice(
                "Nothing was sent to it. If the host was reinstalled, the operator has to put its new key into ssh_hosts; if not, somebody may be intercepting the connection.",
            ),
            Self::KeyRefused { .. } => advice(
                "The operator runs the script of `bobbin sandbox host ssh` on that host again, with the public half of the stored key and at least as many sandboxes as ssh_hosts says.",
            ),
            Self::NotSetUp { .. } => {
                advice("The operator runs the script of `bobbin sandbox host ssh` on that host.")
            }
            Self::Full { .. } => {
                advice("End a sandbox that nobody needs, or ask the operator for another host.")
            }
            Self::HolderFull { .. } => advice(
                "End a sandbox that nobody needs there, or create the sandbox without the snapshot.",
            ),
            Self::SnapshotsFull { .. } => advice("Delete one that nobody needs."),
            Self::SnapshotGone | Self::SnapshotUnusable { .. } => Failure::TurnFailed {
                reason: format!(
                    "{}. Choose another snapshot, or create the sandbox without one.",
                    capital(&seen)
                ),
            },
            Self::Unclean { .. } => {
                advice("It was left alone. The operator has to check it and remove it.")
            }
            Self::Foreign { .. } => advice(
                "It was left alone. The operator has to give one of the stacks another name.",
            ),
            Self::DirectoryGone { .. } => advice(
                "Somebody removed it on the host. End this sandbox; the next prompt starts a new one.",
            ),
            Self::Invalid { .. } => {
                Failure::NonRecoverable { advice: format!("{}.", capital(&seen)) }
            }
            Self::NotFound => Failure::SandboxGone,
            Self::NotRunning | Self::CommandTimeout => Failure::SandboxDown { seen },
            Self::Unreachable { .. } => Failure::Outage { after_ms: 0, seen },
            Self::Busy { .. } | Self::TooLarge { .. } | Self::Failed { .. } => {
                Failure::Wait { after_ms: 0, seen }
            }
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::CommandTimeout => ErrorKind::CommandTimeout,
            Self::NoKey | Self::BadKey { .. } | Self::KeyRefused { .. } => ErrorKind::KeyRefused,
            Self::Foreign { .. } => ErrorKind::Foreign,
            Self::SnapshotsFull { .. } => ErrorKind::SnapshotsFull,
            _ => ErrorKind::Other,
        }
    }

    /// Whether a sandbox cannot begin with its snapshot, and a repeat is no better.
    pub(super) const fn is_about_snapshot(&self) -> bool {
        matches!(self, Self::SnapshotGone | Self::SnapshotUnusable { .. })
    }

    /// Whether the call certainly had no effect.
    pub(super) const fn is_unsent(&self) -> bool {
        matches!(self, Self::Unreachable { unsent: true, .. })
    }
}

impl From<SshError> for ProviderError {
    fn from(error: SshError) -> Self {
        Self { kind: error.kind(), failure: error.failure(), seen: error.to_string() }
    }
}

impl From<InSandbox<SshError>> for ProviderError {
    /// There, a missing answer is the sandbox's problem, not every host's.
    fn from(InSandbox(error): InSandbox<SshError>) -> Self {
        let seen = error.to_string();
        let failure = match error {
            SshError::Unreachable { .. } | SshError::NotFound => {
                Failure::SandboxDown { seen: seen.clone() }
            }
            _ => error.failure(),
        };
        Self { kind: error.kind(), failure, seen }
    }
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
