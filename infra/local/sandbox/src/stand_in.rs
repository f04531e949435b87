//! Stand-ins for public hosts.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A public host for which something on this machine stands in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StandIn {
    /// Host name, as sandboxes request it.
    pub host: String,
    /// Address of the stand-in.
    pub address: SocketAddr,
    /// Certificate of its authority, in PEM.
    pub authority: String,
}
