//! A sandbox at the provider.

use bobbin_core::event::Event;
use bobbin_core::failure::Failure;
use bobbin_core::ids::Ms;

use super::agent::Agent;

#[derive(Debug, Clone)]
pub struct Sandbox {
    pub created_ms: Ms,
    /// It runs from this time on.
    pub(super) ready_ms: Ms,
    pub(super) stopped: bool,
    pub(super) broken: bool,
    /// The repository stands in it.
    pub(super) cloned: bool,
    pub(super) server: bool,
    /// The server takes what it is sent and never answers.
    pub(super) hangs: bool,
    pub(super) session: bool,
    pub(super) agent: Agent,
}

pub(super) fn down() -> Event {
    Event::Failed(Failure::SandboxDown {
        seen: "no answer".to_owned(),
    })
}
