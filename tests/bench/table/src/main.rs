//! The table of sessions, on a file, served on loopback, filled as it is told on its standard input.
//!
//! `table TEMPLATE FILE NAME` makes the table that `template.yaml` declares and prints its address. Each line of its
//! input is `SESSIONS DUE`: then the table holds so many sessions, of which the first `DUE` are due and all others are
//! in the due index with a later time, which is the hardest case: in truth a session without a sandbox is not in the
//! index. It prints what the table takes then. It ends with its input.
//!
//! The engine is the laptop stack's own. An item has what the store writes (`shared/cloud/src/store.rs`), with the
//! record of a thread after five turns; the programs that are measured read it, so that one of another shape would
//! show.

mod sessions;

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dynoxide::{Database, ImportOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::sessions::{Due, items};

/// Items in one transaction.
const ITEMS_AT_ONCE: usize = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [template, file, name] = &arguments[..] else {
        eprintln!("usage: table TEMPLATE FILE NAME");
        return ExitCode::from(2);
    };
    match serve(Path::new(template), file, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(template: &Path, file: &str, name: &str) -> Result<(), String> {
    let database = Database::new(file).map_err(|e| e.to_string())?;
    let request = serde_json::from_value(declared(template, name)?).map_err(|e| e.to_string())?;
    database.create_table(request).map_err(|e| e.to_string())?;
    let runtime = Runtime::new().map_err(|e| e.to_string())?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)));
    let listener = listener.map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let serving = dynoxide::server::serve_on(listener, database.clone());
    runtime.spawn(serving);
    tell(&json!({
        "address": address.to_string(),
        "guild": sessions::GUILD,
        "first_thread": sessions::FIRST_THREAD,
    }))?;

    let (mut sessions, mut due) = (0, 0);
    for line in stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let numbers: Vec<usize> = line.split(' ').filter_map(|one| one.parse().ok()).collect();
        let [wanted, wanted_due] = numbers[..] else {
            return Err(format!("{line:?} is not a number of sessions and one of those due"));
        };
        if wanted < sessions || wanted_due > wanted {
            return Err(format!("{line:?}: sessions do not get fewer, and due are some of them"));
        }
        let began = Instant::now();
        let now_ms = now_ms();
        // First the changes among the existing ones, then the new ones.
        let changed = due.min(wanted_due)..due.max(wanted_due).min(sessions);
        let written = changed.chain(sessions..wanted);
        let bytes = fill(&database, name, written, wanted_due, now_ms)?;
        (sessions, due) = (wanted, wanted_due);
        tell(&json!({
            "file_bytes": database.db_size_bytes().map_err(|e| e.to_string())?,
            "item_bytes": bytes,
            "took_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }))?;
    }
    Ok(())
}

/// Writes these sessions; returns the bytes of an item.
fn fill(
    database: &Database,
    table: &str,
    numbers: impl Iterator<Item = usize>,
    due: usize,
    now_ms: u64,
) -> Result<u64, String> {
    let mut numbers = numbers.peekable();
    let mut bytes = 0;
    while numbers.peek().is_some() {
        let some = numbers.by_ref().take(ITEMS_AT_ONCE);
        let items: Vec<_> = some
            .flat_map(|number| {
                let when = if number < due { Due::Now } else { Due::Later };
                items(number, when, now_ms)
            })
            .collect();
        let count = items.len();
        let done = database
            .import_items(table, items, ImportOptions::default())
            .map_err(|e| e.to_string())?;
        if done.items_imported != count {
            return Err(format!("{} of {count} items were taken", done.items_imported));
        }
        bytes = done.bytes_imported as u64 / count as u64;
    }
    Ok(bytes)
}

/// `CreateTable` of the table that the template declares, with its index.
fn declared(template: &Path, name: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(template).map_err(|e| e.to_string())?;
    let read: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).map_err(|e| e.to_string())?;
    let properties = &read["Resources"]["Table"]["Properties"];
    let mut request = json!({"TableName": name});
    for field in ["BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes"] {
        request[field] = serde_json::to_value(&properties[field]).map_err(|e| e.to_string())?;
    }
    Ok(request)
}

fn tell(line: &Value) -> Result<(), String> {
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| e.to_string())
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
