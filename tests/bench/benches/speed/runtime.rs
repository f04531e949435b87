//! A Lambda Runtime API on loopback for one process, and when what happened at it.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::wire::Served;

/// How long a process may take for anything before the measurement is given up.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// The worker's, the longest of the three.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(900);

/// The answer to one event.
#[derive(Debug, Clone)]
pub struct Answered {
    /// When the process had the event: just before it was written.
    pub given: Instant,
    /// When its answer was here completely.
    pub answered: Instant,
    /// The answer.
    pub body: Vec<u8>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Vec<u8>>,
    given: Option<Instant>,
    first_asked: Option<Instant>,
    is_asking: bool,
    answers: Vec<Answered>,
    trouble: Option<String>,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The API of one process. What was not asked for when it is dropped is told to nobody.
pub struct RuntimeApi {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl RuntimeApi {
    /// Listens on a port of its own.
    ///
    /// # Errors
    /// Without a port.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.lock().is_over {
                    return;
                }
                let serving = Arc::clone(&serving);
                if let Ok(stream) = stream {
                    thread::spawn(move || {
                        if let Err(error) = serve(stream, &serving) {
                            serving.tell(|state| state.trouble = Some(error.to_string()));
                        }
                    });
                }
            }
        });
        Ok(Self { address, shared })
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Gives these events, one after the other.
    pub fn give(&self, events: impl IntoIterator<Item = Vec<u8>>) {
        self.shared.tell(|state| state.events.extend(events));
    }

    /// The answers, as soon as everything is answered and the process asks for more; none if that takes longer than
    /// this.
    ///
    /// # Errors
    /// What the process did instead.
    pub fn answers(&self, wait: Duration) -> Result<Option<Vec<Answered>>, String> {
        self.wait(wait, |state| {
            let is_done = state.events.is_empty() && state.is_asking && !state.answers.is_empty();
            is_done.then(|| std::mem::take(&mut state.answers))
        })
    }

    /// When the process asked for work for the first time; none if that takes longer than this.
    ///
    /// # Errors
    /// What the process did instead.
    pub fn first_asked(&self, wait: Duration) -> Result<Option<Instant>, String> {
        self.wait(wait, |state| state.first_asked)
    }

    fn wait<T>(
        &self,
        wait: Duration,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let deadline = Instant::now() + wait;
        let mut state = self.shared.lock();
        loop {
            if let Some(trouble) = state.trouble.take() {
                return Err(trouble);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let seen = look(&mut state);
            if seen.is_some() || left.is_zero() {
                return Ok(seen);
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.shared.tell(|state| state.is_over = true);
        // Wakes the listener, which looks whether it is over.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for an event; none when it is over.
    fn event(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        state.first_asked.get_or_insert_with(Instant::now);
        state.is_asking = true;
        self.changed.notify_all();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(event) = state.events.pop_front() {
                state.is_asking = false;
                state.given = Some(Instant::now());
                return Some(event);
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut served = Served::new(stream);
    while let Some(request) = served.request()? {
        let answered = Instant::now();
        let action = request.path.trim_start_matches("/2018-06-01/runtime/");
        match (request.method.as_str(), action) {
            ("GET", "invocation/next") => {
                let Some(event) = shared.event() else {
                    return Ok(());
                };
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let deadline = now.unwrap_or_default() + FUNCTION_TIMEOUT;
                let headers = [
                    (
                        "lambda-runtime-aws-request-id",
                        "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
                    ),
                    (
                        "lambda-runtime-deadline-ms",
                        &deadline.as_millis().to_string(),
                    ),
                    (
                        "lambda-runtime-invoked-function-arn",
                        "arn:aws:lambda:eu-central-1:123456789012:function:bench",
                    ),
                    (
                        "lambda-runtime-trace-id",
                        "Root=1-69218e3f-0123456789abcdef01234567;Parent=0123456789abcdef;Sampled=0",
                    ),
                    ("content-type", "application/json"),
                ];
                served.answer(200, &headers, &event)?;
            }
            ("POST", action) if action.ends_with("/response") => {
                let mut body = Some(request.body);
                shared.tell(|state| {
                    if let (Some(given), Some(body)) = (state.given.take(), body.take()) {
                        state.answers.push(Answered {
                            given,
                            answered,
                            body,
                        });
                    }
                });
                served.answer(202, &[], b"{}")?;
            }
            (_, action) => {
                let words = String::from_utf8_lossy(&request.body);
                return Err(io::Error::other(format!("{action}: {words}")));
            }
        }
    }
    Ok(())
}
