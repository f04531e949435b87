//! Shared by the local providers: sandboxes that are directories with real processes.
//!
//! Promised: everything that runs for a sandbox ends with its first process, and that with the provider, or at the
//! latest with the provider's next start; where bubblewrap works, commands are confined ([`confine::Confinement`]) and
//! have their own network, whose requests to named hosts can be rewritten on their way out ([`gateway`]). Starting,
//! testing and stopping providers is shared: settings, faults, timers, program. Deliberately absent: any single
//! provider's API, state or rules.

mod arrivals;
pub mod clock;
pub mod confine;
pub mod disk;
pub mod faults;
pub mod gateway;
mod identity;
pub mod init;
pub mod init_process;
pub mod limits;
pub mod machine;
pub mod memory;
mod network;
pub mod outbound;
pub mod processes;
pub mod program;
pub mod random;
pub mod relay;
pub mod serve;
pub mod settings;
pub mod stand_in;
mod tls;
