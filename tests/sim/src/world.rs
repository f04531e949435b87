//! A simulator in virtual time: queues, table, provider, agents and chat for a few threads, with the real `drive` as
//! its workers. A [`Trouble`] says what goes wrong: nothing, dice, or crashes at chosen calls.
//!
//! Time stands still while anything can be done and then jumps to the next moment at which something happens, so that
//! hours pass in milliseconds. All chance comes from one seed.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bobbin_core::base::ids::{Ms, Tenant};
use bobbin_core::base::limits::Limits;
use bobbin_core::records::control::Operation;
use bobbin_core::records::message::{Message, Work};

use super::forge;
use super::plan::{PlannedEvent, START_MS, Trouble};
use super::state::Inner;
use super::thread::SimThread;
use crate::promises::Fact;

/// The world; workers hold it too.
#[derive(Clone)]
pub struct World {
    inner: Arc<Mutex<Inner>>,
    pub limits: Arc<Limits>,
}

/// Waits for a moment.
pub struct Pause {
    world: World,
    until_ms: Ms,
}

impl Future for Pause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.world.lock();
        if inner.now_ms >= self.until_ms {
            return Poll::Ready(());
        }
        inner.wake_at(self.until_ms);
        Poll::Pending
    }
}

/// Lets all other tasks run first, once; no time passes.
pub struct Aside {
    world: World,
    went: bool,
}

impl Future for Aside {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.went, true) {
            return Poll::Ready(());
        }
        let mut inner = self.world.lock();
        let now_ms = inner.now_ms;
        inner.wake_at(now_ms);
        Poll::Pending
    }
}

impl World {
    pub fn aside(&self) -> Aside {
        Aside { world: self.clone(), went: false }
    }

    pub fn new(threads: usize, seed: u64, trouble: Trouble, limits: Limits) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner::new(threads, seed, trouble))),
            limits: Arc::new(limits),
        }
    }

    /// There is a forge, and all its repositories are open to the existing threads.
    pub fn has_forge(&self) {
        let mut inner = self.lock();
        inner.forge = Some(forge::bound());
        for place in 0..inner.places.len() {
            inner.opens(place, true);
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pause(&self, ms: u64) -> Pause {
        let until_ms = self.lock().now_ms + ms;
        Pause { world: self.clone(), until_ms }
    }

    /// Plans an action at a place, `after_ms` from the start.
    pub fn plan(&self, after_ms: u64, place: usize, deed: PlannedEvent) {
        let mut inner = self.lock();
        let at = (START_MS + after_ms, inner.planned);
        inner.planned += 1;
        inner.deeds.insert(at, (place, deed));
    }

    /// Messages about a place's sandbox use that sandbox's group.
    pub fn message(&self, place: usize, id: &str, work: Work) -> Message {
        let inner = self.lock();
        let thread = inner.places[place].thread.clone();
        let of_sandbox = match &work {
            Work::Operate { want, .. } => *want != Operation::Forget,
            work => matches!(work, Work::Sweep | Work::Reconcile | Work::Create(_)),
        };
        Message {
            id: id.into(),
            thread: if of_sandbox { thread.sandbox().group() } else { thread },
            accepted_at_ms: inner.now_ms,
            work,
        }
    }

    /// Writes the end of every history, so that the promises can be checked.
    pub fn settle(&self) {
        let mut inner = self.lock();
        let now_ms = inner.now_ms;
        for at in 0..inner.places.len() {
            let times = inner.seconds_left(at);
            inner.places[at].history.facts.push(Fact::Spent {
                what: "second sandboxes whose agent's has ended",
                times,
                bound: 0,
            });
        }
        for at in 0..inner.places.len() {
            let facts = std::mem::take(&mut inner.places[at].home.facts);
            for place in inner.places[at].home.users.clone() {
                inner.places[place].history.facts.extend(facts.iter().cloned());
                inner.with(place, at, |here, home, _| here.note_strays(home, now_ms));
            }
        }
        inner.places.iter_mut().for_each(SimThread::close);
        let places = inner.places.iter();
        let tenants: BTreeSet<Tenant> = places.map(|place| place.thread.tenant()).collect();
        for tenant in tenants.iter().filter(|_| self.limits.tenant.sandboxes > 0) {
            let places = inner.places.iter_mut();
            let mut of_tenant: Vec<_> =
                places.filter(|place| place.thread.tenant() == *tenant).collect();
            let times = of_tenant.iter().map(|place| place.home.sandboxes.len() as u64).sum();
            of_tenant[0].history.facts.push(Fact::Spent {
                what: "sandboxes of a tenant",
                times,
                bound: u64::from(self.limits.tenant.sandboxes),
            });
        }
    }
}
