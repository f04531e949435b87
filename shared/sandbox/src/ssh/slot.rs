//! Where a sandbox is on its host.

/// Where slots lie on a host.
pub(super) const ROOT: &str = "/var/lib/bobbin";

/// A sandbox's place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    /// The host, by its place among the settings'.
    pub host: usize,
    /// The number of the slot there.
    pub number: u16,
    /// The port of the host's loopback that is the slot's.
    pub port: u16,
    /// The sandbox.
    pub name: String,
}
