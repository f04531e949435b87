//! Everything that the core needs from outside.

use std::future::Future;

use crate::base::failure::Failure;
use crate::base::ids::{Ms, ThreadKey, TurnId};
use crate::protocol::event::Event;
use crate::protocol::target::Addressed;
use crate::records::flags::ControlFlags;
use crate::records::ledger::LedgerEntry;
use crate::records::parked::Parked;
use crate::records::session::Session;
use crate::tenant::budgets::{BudgetScope, MicroUsd};
use crate::tenant::settings::Settings;

/// Result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// Written; the control flags beside the record.
    Written(ControlFlags),
    /// Another delivery wrote first.
    Conflict,
    /// A stored sum leaves less than was to be set aside: nothing was written.
    OverBudget {
        /// Whose.
        scope: BudgetScope,
        /// The sum, in millionths of a US dollar.
        used: MicroUsd,
    },
}

/// The stored versions that a write expects; 0 means nothing is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedVersions {
    /// Version of the thread's record, which every write writes; `None` in a sandbox's group, which has no thread
    /// record.
    pub thread: Option<u64>,
    /// Version of the sandbox's record; `None` if that record does not change.
    pub sandbox: Option<u64>,
}

impl ExpectedVersions {
    /// The versions that must be stored for `changed` to replace `known`.
    #[must_use]
    pub fn to_change(known: &Session, changed: &Session) -> Self {
        let differs = changed.sandbox.differs_from(&known.sandbox);
        Self {
            thread: known.thread.is_conversation().then_some(known.version),
            sandbox: differs.then_some(known.sandbox.version),
        }
    }

    /// Whether these are the versions of the stored records.
    #[must_use]
    pub fn are_of(self, stored: Option<&Session>) -> bool {
        let thread = stored.map_or(0, |stored| stored.version);
        let sandbox = stored.map_or(0, |stored| stored.sandbox.version);
        self.thread.is_none_or(|expected| expected == thread)
            && self.sandbox.is_none_or(|expected| expected == sandbox)
    }

    /// The stored versions after the write.
    #[must_use]
    pub fn followed_by(self, mut written: Session) -> Session {
        if let Some(version) = self.thread {
            written.version = version + 1;
        }
        if let Some(version) = self.sandbox {
            written.sandbox.version = version + 1;
        }
        written
    }
}

/// A write of a thread's record, and of its sandbox's record if that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordsWrite<'a> {
    /// The records to store: the thread's and its sandbox's.
    pub session: &'a Session,
    /// The stored record; `None` if there is none.
    pub before: Option<&'a Session>,
    /// The versions that must be stored.
    pub expected: ExpectedVersions,
    /// Ledger entries written in the same transaction.
    pub entries: &'a [LedgerEntry],
    /// The known control flags; the write deletes those that it makes superfluous.
    pub flags: &'a ControlFlags,
}

/// Result of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    /// What happened.
    pub event: Event,
    /// The control flags, if they were read meanwhile.
    pub flags: Option<ControlFlags>,
}

impl From<Event> for Performed {
    fn from(event: Event) -> Self {
        Self { event, flags: None }
    }
}

/// Data read of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// The record, if the thread has one, with that of its sandbox.
    pub session: Option<Session>,
    /// The control flags beside it; they may exist before the record does.
    pub flags: ControlFlags,
    /// The ledger knows the message in hand as an ended turn.
    pub in_ledger: bool,
    /// The tenant's settings.
    pub settings: Settings,
    /// State that the last delivery of the turn's message left when it returned the message to the queue.
    pub parked: Option<Parked>,
}

/// Everything that the core needs from outside. It keeps nothing between calls: each call gets all that it needs.
pub trait World: Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> Ms;

    /// When the message in hand becomes visible to other workers.
    fn visible_until_ms(&self) -> Ms;

    /// Reads consistently: the record, the control flags beside it, whether the ledger knows `turn` as ended, and the
    /// tenant's settings.
    fn load(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
    ) -> impl Future<Output = Result<Loaded, Failure>> + Send;

    /// Writes all records in one transaction if the stored versions are the expected ones; each version goes up by one.
    fn save(&self, write: RecordsWrite<'_>) -> impl Future<Output = Result<Saved, Failure>> + Send;

    /// Prepares for an effect while its intent is being written. Must change nothing outside, because the write may
    /// fail; what it cannot get, the effect gets by itself.
    fn prepare(&self, _: &Addressed<'_>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Saves polling state for the next delivery, with the receipt handle of the message in hand, so that others can
    /// make the message visible early. Returns the control flags as they are then: flags set before are among them, and
    /// whoever sets one later finds the saved state. `None`: nothing was saved, or the flags could not be read; the
    /// message comes back after its delay.
    fn park(
        &self,
        thread: &ThreadKey,
        parked: &Parked,
    ) -> impl Future<Output = Option<ControlFlags>> + Send;

    /// Notes that the sweep with this id is done, so that the sweeper may send the next.
    fn swept(
        &self,
        thread: &ThreadKey,
        sweep: &TurnId,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Performs one effect and returns what happened. Never panics; every failure is an event. Two may run at the same
    /// time.
    fn perform(&self, effect: &Addressed<'_>) -> impl Future<Output = Performed> + Send;
}
