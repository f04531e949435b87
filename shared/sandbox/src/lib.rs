//! Sandbox providers: the trait [`Provider`], and a folder per provider with its types, its client and its
//! implementation of the trait.

mod api;
pub mod daytona;
pub mod labels;
mod provider;
mod settings;
pub mod snapshot;
pub mod ssh;
pub mod vercel;

pub use provider::{
    Deletion, ErrorKind, Facts, HostedSecret, InSandbox, Placeholder, Provider, ProviderError,
    ProviderResult, Sandbox, SandboxSpec, ScriptOutput, SecretStore, Secrets, SnapshotStore,
};
pub use settings::ProviderSettings;
pub use snapshot::{Snapshot, SnapshotName, SnapshotState};
