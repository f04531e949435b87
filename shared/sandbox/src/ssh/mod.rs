//! Sandboxes on hosts of one's own, over SSH.
//!
//! A host is set up once by a script that a person reads and runs ([`setup_script`]). It then has a control user, who owns
//! the registry of its sandboxes, and so many slots: a user, a directory and a port of loopback each. A sandbox is a slot for
//! as long as it lives, so that what keeps sandboxes apart is what keeps users apart: the kernel. What a sandbox is (name,
//! labels, state) stands in the registry, which no sandbox can write; what it holds lies in its slot's directory; what it
//! runs is what its user runs, so that a stop is the end of every process of that user.
//!
//! The agent listens on the host's loopback and is reached through `direct-tcpip` channels of the slot's own login, behind a
//! listener on this program's loopback ([`forward`]): HTTP clients need to know nothing of SSH.
//!
//! Promised: a host shows the key that is pinned or is not spoken to; a name that is taken is adopted, whichever host has
//! it; every change is on the registry before it is made on the slot, and whoever looks finishes what was left half done.
//! Deliberately absent: snapshots, secrets kept outside of sandboxes, and limits on memory and CPU but those that the
//! host's systemd sets for a user.

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

pub use bounds::SANDBOXES_MAX;
pub use error::SshError;
pub use sandboxes::SshSandboxes;
pub use settings::{AgentPort, SshHost, SshSettings, hosts_of};
pub use setup::{HostSetup, setup_script};
