//! How a port inside a sandbox is reached from outside: what a provider gives and an agent's client uses.

use crate::base::failure::Failure;

/// An address for a port of a sandbox. It is fetched when needed and kept in memory at most: never stored, never identity.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Without query and without a slash at its end: an address ends up in logs.
    pub url: String,
    /// Headers that the provider's proxy wants with each request, its token among them.
    pub headers: Vec<(&'static str, String)>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Why a port of a sandbox cannot be reached: the provider gave no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen}")]
pub struct NoEndpoint {
    /// The provider does not know the sandbox.
    pub is_gone: bool,
    /// What the failure table makes of it.
    pub failure: Failure,
    /// What was seen of it, for the log and the report: no secret is in it.
    pub seen: String,
}
