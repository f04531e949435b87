//! Everything that the core needs from outside.

use std::future::Future;

use crate::base::failure::Failure;
use crate::base::ids::{Ms, ThreadKey, TurnId};
use crate::protocol::event::Event;
use crate::protocol::target::Addressed;
use crate::records::flags::ControlFlags;
use crate::records::ledger::Entry;
use crate::records::parked::Parked;
use crate::records::session::Session;
use crate::tenant::settings::Settings;

/// What a write came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// Written; these control flags stand beside the record.
    Written(ControlFlags),
    /// Somebody else wrote first.
    Conflict,
}

/// The versions that a write expects to be stored (0: nothing is).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// Of the thread's record, which every write writes; none in the group of a sandbox, which has none.
    pub thread: Option<u64>,
    /// Of its sandbox's; none where that stays as it is.
    pub sandbox: Option<u64>,
}

impl Versions {
    /// What has to be stored for `changed` to take the place of `known`.
    #[must_use]
    pub fn to_change(known: &Session, changed: &Session) -> Self {
        let differs = changed.sandbox.differs_from(&known.sandbox);
        Self {
            thread: known.thread.is_conversation().then_some(known.version),
            sandbox: differs.then_some(known.sandbox.version),
        }
    }

    /// Whether these are the versions of what is stored.
    #[must_use]
    pub fn are_of(self, stored: Option<&Session>) -> bool {
        let thread = stored.map_or(0, |stored| stored.version);
        let sandbox = stored.map_or(0, |stored| stored.sandbox.version);
        self.thread.is_none_or(|expected| expected == thread)
            && self.sandbox.is_none_or(|expected| expected == sandbox)
    }

    /// What stands once it is written in their place.
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

/// A write of a thread's record, and of its sandbox's where that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write<'a> {
    /// The record as it shall be stored, and that of its sandbox.
    pub session: &'a Session,
    /// The record as it is stored; `None`: there is none.
    pub before: Option<&'a Session>,
    /// The versions that have to be the stored ones.
    pub expected: Versions,
    /// Entries of the ledger that are written with it, in one piece.
    pub entries: &'a [Entry],
    /// The control flags that are known: those that the write makes superfluous go with it.
    pub flags: &'a ControlFlags,
}

/// What an effect came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    /// What happened.
    pub event: Event,
    /// The control flags, where they were read meanwhile.
    pub flags: Option<ControlFlags>,
}

impl From<Event> for Performed {
    fn from(event: Event) -> Self {
        Self { event, flags: None }
    }
}

/// What was read of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// The record, if the thread has one, with that of its sandbox.
    pub session: Option<Session>,
    /// The control flags beside it, which may stand there before the record does.
    pub flags: ControlFlags,
    /// The ledger knows the message in hand as a turn that has ended.
    pub in_ledger: bool,
    /// What those who manage the thread's server or workspace have set.
    pub settings: Settings,
    /// What the last delivery that gave a turn's message back has left.
    pub parked: Option<Parked>,
}

/// Everything that the core needs from outside. It keeps nothing between two calls: each is told all that it needs.
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

    /// Writes if the stored versions are still the expected ones, each as the version after it, all in one piece.
    fn save(&self, write: Write<'_>) -> impl Future<Output = Result<Saved, Failure>> + Send;

    /// Gets ready for an effect while its intent is being written. Nothing outside may be changed by it, because the write
    /// may fail; what it cannot get, the effect gets by itself.
    fn prepare(&self, _: &Addressed<'_>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Leaves this for the next delivery, with what the queue knows the message in hand by, so that whoever wants the thread
    /// looked at can have it come at once. The control flags as they stand then: what was marked before that is among them, and
    /// who marks later finds what was left. None: it was left in vain, or the flags could not be read; the message comes by
    /// its time.
    fn park(
        &self,
        thread: &ThreadKey,
        parked: &Parked,
    ) -> impl Future<Output = Option<ControlFlags>> + Send;

    /// The sweep with this id has done its work: the sweeper may say the next.
    fn swept(
        &self,
        thread: &ThreadKey,
        sweep: &TurnId,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Performs one effect and says what happened. Never panics; every failure is an event. Two may be under way at the
    /// same time.
    fn perform(&self, effect: &Addressed<'_>) -> impl Future<Output = Performed> + Send;
}
