//! Proofs that need a processor and no patience. From the program's start they run behind the end-to-end tests, which spend
//! most of their time waiting, at the lowest priority; what is not begun when its turn comes, its test does itself.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use bobbin_tests::durations;
use libtest_mimic::{Arguments, Failed, Trial};

/// The priority at which nobody else is kept waiting.
const LOWEST_PRIORITY: i32 = 19;

type Test = Box<dyn FnOnce() -> Result<(), Failed> + Send>;

/// In the order in which they were named.
static NAMED: Mutex<Vec<(String, Arc<Proof>)>> = Mutex::new(Vec::new());

struct Proof {
    name: String,
    state: Mutex<State>,
    ended: Condvar,
}

enum State {
    Waiting(Test),
    Running,
    Ended(Result<(), Failed>),
}

/// A proof, as a test of this name.
pub fn proof(
    name: impl Into<String>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let name = name.into();
    let proof = Arc::new(Proof {
        name: name.clone(),
        state: Mutex::new(State::Waiting(Box::new(test))),
        ended: Condvar::new(),
    });
    lock(&NAMED).push((name.clone(), Arc::clone(&proof)));
    Trial::test(name, move || proof.outcome())
}

/// Begins those that were asked for, one on each processor.
pub fn begin(arguments: &Arguments) {
    if arguments.list {
        return;
    }
    let named = std::mem::take(&mut *lock(&NAMED));
    let wanted =
        named.into_iter().filter(|(name, _)| is_wanted(arguments, name)).map(|(_, proof)| proof);
    let queue = Arc::new(Mutex::new(wanted.collect::<Vec<_>>().into_iter()));
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            // Of this thread alone, on Linux. Where it is refused the proofs are only less polite.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
            while let Some(proof) = next(&queue) {
                proof.run();
            }
        });
    }
}

fn next<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    lock(queue).next()
}

/// As libtest filters.
fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    let fits = |filter: &String| {
        if arguments.exact { name == filter } else { name.contains(filter.as_str()) }
    };
    arguments.filter.as_ref().is_none_or(fits) && !arguments.skip.iter().any(fits)
}

impl Proof {
    /// Does it, unless somebody else has begun.
    fn run(&self) {
        let mut state = lock(&self.state);
        let test = match std::mem::replace(&mut *state, State::Running) {
            State::Waiting(test) => test,
            begun => {
                *state = begun;
                return;
            }
        };
        drop(state);
        let found = catch_unwind(AssertUnwindSafe(|| durations::measured(&self.name, test)))
            .unwrap_or_else(|panic| Err(words(panic.as_ref()).into()));
        *lock(&self.state) = State::Ended(found);
        self.ended.notify_all();
    }

    fn outcome(&self) -> Result<(), Failed> {
        self.run();
        let running = |state: &mut State| !matches!(state, State::Ended(_));
        let ended = self.ended.wait_while(lock(&self.state), running);
        match &*ended.unwrap_or_else(PoisonError::into_inner) {
            State::Ended(found) => found.clone(),
            State::Waiting(_) | State::Running => Err("a proof has no end".into()),
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked".to_owned())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
