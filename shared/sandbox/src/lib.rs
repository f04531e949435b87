//! What runs sandboxes: the trait [`Provider`], and a folder a provider with its types, its client and its part of the
//! trait.

pub mod daytona;
pub mod labels;
mod provider;

pub use provider::{
    ErrorKind, HostedSecret, Observed, Output, Placeholder, Provider, ProviderError,
    ProviderResult, Sandbox, Secrets,
};
