//! Sandboxes on self-managed hosts, over SSH.
//!
//! A host is set up once by a script that a person reads and runs ([`setup_script`]). It then has a control user, who
//! owns the registry of its sandboxes, and a number of slots: a user, a directory and a loopback port each. A sandbox
//! occupies a slot for its whole life, so sandboxes are separated as users are: by the kernel. Its description (name,
//! labels, state) is in the registry, which no sandbox can write; its files are in its slot's directory; its processes
//! are those of its user, so a stop ends every process of that user.
//!
//! The agent listens on the host's loopback and is reached through `direct-tcpip` channels of the slot's own login,
//! behind a listener on this program's loopback ([`forward`]): HTTP clients need to know nothing of SSH.
//!
//! Promised: no connection to a host that does not show the pinned key. A taken name is adopted, whichever host has it.
//! Every change is written to the registry before it is made on the slot, and the next reader completes an unfinished
//! step. A snapshot is the control user's file on the sandbox's host ([`archives`]). Deliberately absent: secrets kept
//! outside sandboxes, and limits on memory and CPU except those that the host's systemd sets for a user.

mod archives;
mod bounds;
mod connection;
mod error;
mod exec;
mod forward;
mod hosts;
mod lifecycle;
mod listener;
mod registry;
mod sandboxes;
mod settings;
mod setup;
mod slot;
mod snapshots;

pub use bounds::SANDBOXES_MAX;
pub use error::SshError;
pub use sandboxes::{SshSandboxes, configured};
pub use settings::{AgentPort, SshHost, SshSettings, hosts_of};
pub use setup::{HostSetup, setup_script};
