//! The one door between the core and the world.

use std::future::Future;

use crate::effect::Effect;
use crate::event::Event;
use crate::failure::Failure;
use crate::ids::{Ms, ThreadKey, TurnId};
use crate::ledger::Entry;
use crate::session::{ControlFlags, Session};
use crate::settings::Settings;

/// What a write came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// Written; these control flags stand beside the record.
    Written(ControlFlags),
    /// Somebody else wrote first.
    Conflict,
}

/// What was read of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// The record, if the thread has one.
    pub session: Option<Session>,
    /// The control flags beside it, which may stand there before the record does.
    pub flags: ControlFlags,
    /// The ledger knows the message in hand as a turn that has ended.
    pub in_ledger: bool,
    /// What those who manage the thread's server or workspace have set.
    pub settings: Settings,
}

/// Everything that the protocol needs of the outside. One implementation for real, one for tests; decorators crash it.
pub trait World: Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> Ms;

    /// Until when the message in hand stays invisible to others.
    fn visible_until_ms(&self) -> Ms;

    /// Reads the record consistently, with the control flags beside it, whether the ledger knows `turn` as ended, and the
    /// settings of the thread's tenant.
    fn load(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
    ) -> impl Future<Output = Result<Loaded, Failure>> + Send;

    /// Writes the record if its stored version is still `expected` (0: none is stored), as version `expected + 1`, and
    /// with it, in one piece, these entries of the ledger.
    fn save(
        &self,
        session: &Session,
        expected: u64,
        entries: &[Entry],
    ) -> impl Future<Output = Result<Saved, Failure>> + Send;

    /// Gets ready for an effect while its intent is being written. Nothing outside may be changed by it, because the write
    /// may fail; what it cannot get, the effect gets by itself.
    fn prepare(&self, _: &ThreadKey, _: &Effect) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Performs one effect and says what happened. Never panics; every failure is an event. Two may be under way at the
    /// same time.
    fn perform(&self, thread: &ThreadKey, effect: &Effect) -> impl Future<Output = Event> + Send;
}
