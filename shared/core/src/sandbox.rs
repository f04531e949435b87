//! What a sandbox is doing, whichever provider has it.

/// A sandbox, coarsely (reference: Daytona's states, mapped).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxState {
    /// On its way up.
    Provisioning,
    /// It runs: programs in it can be reached.
    Running,
    /// Stopped or archived; can be started.
    Stopped,
    /// In a transition, or in a state that we do not know.
    Busy,
    /// The provider gave up on it.
    Broken {
        /// The reason that the provider gives.
        reason: String,
        /// The provider offers to repair it.
        recoverable: bool,
    },
    /// The provider does not know it, or is deleting it.
    Gone,
}
