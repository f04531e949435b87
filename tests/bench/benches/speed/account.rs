//! What a sweeper finds outside of itself, on loopback: the table (a program of its own, to which requests are handed
//! on), a queue, a secret, a provider that lists sandboxes. Every call is counted, and what it is billed as.
//!
//! Each answer can be made to take as long as a network does: on loopback alone, calls one after the other look cheap.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::capacity;
use crate::client::Client;
use crate::wire::{Request, Served};

/// The stack whose label sandboxes carry.
pub const STACK: &str = "bench";

/// What was asked for since it was asked last.
#[derive(Debug, Default, Clone)]
pub struct Asked {
    /// Calls by their name.
    pub calls: BTreeMap<String, u64>,
    /// Read units of the table by DynamoDB's documentation, from what was answered.
    pub units: f64,
    /// The same as the engine reports it.
    pub told_units: f64,
    /// Deduplication ids of what was put on the queue.
    pub messages: BTreeSet<String>,
}

impl Asked {
    /// All calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.values().sum()
    }
}

struct Shared {
    table: SocketAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Asked,
    answer_after: Duration,
    sandboxes: Vec<Value>,
}

/// The account.
pub struct Account {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Account {
    /// One whose table answers at this address.
    ///
    /// # Errors
    /// Without a port.
    pub fn start(table: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            table,
            state: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Arc::clone(&serving);
                // A client that is killed in the middle is one that has been measured.
                thread::spawn(move || serve(stream, &serving).ok());
            }
        });
        Ok(Self { address, shared })
    }

    /// The value of `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base of the provider's API.
    #[must_use]
    pub fn provider(&self) -> String {
        format!("http://{}/daytona", self.address)
    }

    /// Lets every answer take so long, on top of what it takes.
    pub fn answer_after(&self, wait: Duration) {
        self.shared.lock().answer_after = wait;
    }

    /// The provider has these threads' sandboxes, in the first generation.
    pub fn list(&self, threads: impl IntoIterator<Item = (String, String)>) {
        let sandbox = |(tenant, thread): (String, String)| {
            json!({
                "id": format!("id-{thread}"),
                "name": format!("{STACK}-{thread}"),
                "labels": {"bobbin": STACK, "thread": thread, "generation": "1", "tenant": tenant},
                "state": "started",
                "createdAt": "2026-01-01T00:00:00.000Z",
            })
        };
        self.shared.lock().sandboxes = threads.into_iter().map(sandbox).collect();
    }

    /// What was asked for since this was called last.
    pub fn asked(&self) -> Asked {
        std::mem::take(&mut self.shared.lock().asked)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut served = Served::new(stream);
    let mut table = Client::connect(shared.table)?;
    while let Some(request) = served.request()? {
        let target = request.header("x-amz-target").to_owned();
        let (status, body) = match target.rsplit_once('.') {
            Some(("DynamoDB_20120810", action)) => on_table(&mut table, &request, action, shared)?,
            Some((_, action)) => (200, beside(&request, action, shared)),
            None => (200, page(&request, shared)),
        };
        let name = match target.rsplit_once('.') {
            Some((_, action)) => action.to_owned(),
            None => "list of sandboxes".to_owned(),
        };
        let wait = {
            let mut state = shared.lock();
            *state.asked.calls.entry(name).or_default() += 1;
            state.answer_after
        };
        thread::sleep(wait);
        let kind = if target.is_empty() {
            "application/json"
        } else {
            "application/x-amz-json-1.0"
        };
        served.answer(status, &[("content-type", kind)], &body)?;
    }
    Ok(())
}

/// Hands it on to the table, and notes what it is billed as.
fn on_table(
    table: &mut Client,
    request: &Request,
    action: &str,
    shared: &Shared,
) -> io::Result<(u16, Vec<u8>)> {
    let mut asked: Value = serde_json::from_slice(&request.body)?;
    asked["ReturnConsumedCapacity"] = json!("TOTAL");
    let headers = [
        "x-amz-target",
        "content-type",
        "authorization",
        "x-amz-date",
    ]
    .map(|name| (name, request.header(name)));
    let (status, body) = table.post(&headers, asked.to_string().as_bytes())?;
    let answer: Value = serde_json::from_slice(&body)?;
    let mut state = shared.lock();
    state.asked.units += capacity::units(action, &asked, &answer);
    state.asked.told_units += capacity::told(&answer);
    Ok((status, body))
}

/// The queue and the secret.
fn beside(request: &Request, action: &str, shared: &Shared) -> Vec<u8> {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let take = |message: &Value| {
        let id = message["MessageDeduplicationId"].as_str();
        let id = id.unwrap_or_default().to_owned();
        shared.lock().asked.messages.insert(id);
    };
    let sent = |message: &Value| {
        take(message);
        let digest = md5::compute(message["MessageBody"].as_str().unwrap_or_default());
        json!({"Id": message["Id"], "MessageId": "5fea7756", "MD5OfMessageBody": format!("{digest:x}")})
    };
    let answer = match action {
        "SendMessage" => sent(&asked),
        "SendMessageBatch" => {
            let entries = asked["Entries"].as_array().cloned().unwrap_or_default();
            json!({"Successful": entries.iter().map(sent).collect::<Vec<_>>(), "Failed": []})
        }
        _ => json!({"SecretString": json!({"daytona_api_key": "a key of the bench"}).to_string()}),
    };
    answer.to_string().into_bytes()
}

/// A page of the provider's list.
fn page(request: &Request, shared: &Shared) -> Vec<u8> {
    let (_, query) = request.path.split_once('?').unwrap_or_default();
    let number = |name: &str| -> Option<usize> {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name)?.1.parse().ok()
    };
    let (start, limit) = (
        number("cursor").unwrap_or(0),
        number("limit").unwrap_or(100),
    );
    let state = shared.lock();
    let end = state.sandboxes.len().min(start + limit);
    let next = (end < state.sandboxes.len()).then(|| end.to_string());
    let items = state.sandboxes.get(start..end).unwrap_or_default();
    json!({"items": items, "nextCursor": next})
        .to_string()
        .into_bytes()
}
