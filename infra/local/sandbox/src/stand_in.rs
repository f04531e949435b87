//! What stands in for a host of the world.

use std::net::SocketAddr;

/// A host of the world that something on this machine stands in for.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// Its name, as sandboxes ask for it.
    pub host: String,
    /// Where what stands in for it listens.
    pub address: SocketAddr,
    /// The certificate of the authority by which it is known, in PEM.
    pub authority: String,
}
