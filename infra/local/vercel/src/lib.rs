//! A provider compatible with Vercel Sandbox whose sandboxes are directories.
//!
//! Promised: Vercel's API as its official client and Bobbin's own use it, with its errors and states: sandboxes with
//! names and tags, sessions limited by wall-clock time, disks kept as snapshots between them, commands by their
//! arguments, files as packed archives, public routes that are new with each session, network policies that rewrite the
//! headers of requests outside the sandbox; real processes, which end with the provider or at the latest with its next
//! start; state that survives a restart; faults that a test arms.
//!
//! Deliberately absent: images, runtimes and sources other than snapshots, users and `sudo`, drives, regions, the
//! interactive terminal, subnets, and policy rules that rewrite no header. Policies are in memory only, because they
//! hold keys. The API listens on loopback only.
//!
//! Outside of the API's prefix, with the same token: `POST /_control/clock {"advance_ms":N}`, `POST /_control/faults
//! {"faults":[…]}`, `POST /_control/lose {"sandbox":…}`.

mod api;
mod api_error;
mod faults;
mod life;
mod limits;
mod policy;
mod provider;
mod record;
mod routes;
mod settings;
mod state;
mod timers;

pub use bobbin_local_sandbox::confine::Confinement;
pub use bobbin_local_sandbox::init::sandbox_init_main;
pub use bobbin_local_sandbox::machine::MachineError;
pub use bobbin_local_sandbox::settings::StartError;
pub use bobbin_local_sandbox::stand_in::StandIn;
pub use provider::{LocalVercel, SandboxView};
pub use record::SessionStatus;
pub use settings::LocalVercelSettings;
