//! The provider through its public surface: HTTP as a client speaks it, and the library's few calls.
#![allow(clippy::unwrap_used, missing_docs)]

mod confinement;
mod crash;
mod faults;
mod files;
mod lifecycle;
mod network;
mod opencode;
mod preview;
mod requests;
mod sdk;
mod snapshots;
mod timers;
mod toolbox;
mod world;
