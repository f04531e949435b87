//! Stand-ins for public hosts.

use std::net::SocketAddr;

/// A public host for which something on this machine stands in.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// Host name, as sandboxes request it.
    pub host: String,
    /// Address of the stand-in.
    pub address: SocketAddr,
    /// Certificate of its authority, in PEM.
    pub authority: String,
}
