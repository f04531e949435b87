//! A Daytona-compatible provider whose sandboxes are directories.
//!
//! Promised: Daytona's v0 API (control calls, toolbox, previews) as its official SDKs and Bobbin's own client use it,
//! with its errors, states, timers and token rotation; real processes, with a home and a port for each sandbox; state
//! that survives a restart, including snapshots of sandboxes; no process that survives the provider, or at the latest
//! its next start; faults that a test arms.
//!
//! Deliberately absent: images (a Dockerfile's text is kept and never run: what it would install must be on `PATH`),
//! virtual machines with their pauses, forks and sizes, volumes, network rules, SSH, and quotas other than that of
//! snapshots. Where sandboxes have no network of their own, no secret can be put into their requests, and `/secret`
//! answers 501. The API listens on loopback only.
//!
//! Where bubblewrap works, commands are confined ([`Confinement`]); otherwise a sandbox is no isolation at all, and the
//! caller should say so.
//!
//! Outside of the API prefix, with the same key: `POST /_control/clock {"advance_ms":N}`, `POST /_control/faults
//! {"faults":[…]}` (`GET` lists, `DELETE` clears), `POST /_control/lose {"sandbox":…}`.

mod accounts;
mod api;
mod api_error;
mod engine;
mod faults;
mod http;
mod launch;
mod lifecycle;
mod limits;
pub mod opencode;
mod preview;
mod provider;
mod record;
mod secret;
mod settings;
mod snapshot;
mod state;
mod store;
mod timers;
mod toolbox;
mod transition;

pub use bobbin_local_sandbox::confine::Confinement;
pub use bobbin_local_sandbox::init::sandbox_init_main;
pub use bobbin_local_sandbox::machine::MachineError;
pub use bobbin_local_sandbox::settings::StartError;
pub use bobbin_local_sandbox::stand_in::StandIn;
use bobbin_local_sandbox::{
    clock, confine, disk, gateway, init, init_process, machine, outbound, processes, random, serve,
};
pub use provider::{LocalDaytona, SandboxView};
pub use settings::LocalDaytonaSettings;
pub use state::DaytonaState;
