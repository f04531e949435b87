//! Endpoint of a port inside a sandbox, given by the provider and used by an agent's client.

use crate::base::failure::Failure;

/// Address of a port of a sandbox. It is fetched when needed and kept in memory only: never stored, never identity.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Without query or trailing slash, because addresses end up in logs.
    pub url: String,
    /// Headers that the provider's proxy requires on each request, including its token.
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
    /// Its class in the failure table.
    pub failure: Failure,
    /// What was seen, for the log and the report; contains no secret.
    pub seen: String,
}
