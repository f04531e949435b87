//! A sandbox's place on its host.

/// Parent folder of the slots on a host.
pub(super) const ROOT: &str = "/var/lib/bobbin";

/// A sandbox's place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    /// Index of the host in the settings.
    pub host: usize,
    /// Number of the slot.
    pub number: u16,
    /// The slot's port on the host's loopback.
    pub port: u16,
    /// Name of the sandbox.
    pub name: String,
}
