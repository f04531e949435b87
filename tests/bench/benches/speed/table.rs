//! The table of sessions, in a program of its own (`tests/bench/table`), which ends with its value.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use crate::programs;

/// The name of the table.
pub const NAME: &str = "bench-table";

pub struct Table {
    child: Child,
    told: BufReader<ChildStdout>,
    orders: Option<ChildStdin>,
    /// Its message when it was up.
    pub ready: Ready,
    _folder: TempDir,
}

/// Its message when it is up.
#[derive(Debug, Deserialize)]
pub struct Ready {
    pub address: SocketAddr,
    /// The guild of all sessions.
    pub guild: String,
    /// The thread of the first session; those of the others follow.
    pub first_thread: u64,
}

/// Size and duration of the table.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Filled {
    /// Bytes of its file.
    pub file_bytes: u64,
    /// Bytes of one item, as they are billed; zero if none was written.
    pub item_bytes: u64,
    /// How long the filling took, in milliseconds.
    pub took_ms: u64,
}

impl Table {
    /// An empty one.
    ///
    /// # Errors
    /// A sentence with what failed.
    pub fn start() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut child = Command::new(programs::folder()?.join("table"))
            .arg(programs::root().join("template.yaml"))
            .arg(folder.path().join("table.sqlite"))
            .arg(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("the table could not be started: {e}"))?;
        let (orders, told) = (child.stdin.take(), child.stdout.take());
        let told = told.ok_or("the table has no output")?;
        let mut table = Self {
            child,
            told: BufReader::new(told),
            orders,
            ready: Ready {
                address: SocketAddr::from(([127, 0, 0, 1], 0)),
                guild: String::new(),
                first_thread: 0,
            },
            _folder: folder,
        };
        table.ready = table.line()?;
        Ok(table)
    }

    /// Fills it up to this many sessions and makes `due` of them due.
    ///
    /// # Errors
    /// What it did instead.
    pub fn fill(&mut self, sessions: u64, due: u64) -> Result<Filled, String> {
        let orders = self.orders.as_mut().ok_or("the table has no input")?;
        writeln!(orders, "{sessions} {due}").map_err(|e| e.to_string())?;
        self.line()
    }

    /// Makes the first `due` of these sessions due again, whatever was sent for them before.
    ///
    /// # Errors
    /// The table did not answer.
    pub fn due_anew(&mut self, sessions: u64, due: u64) -> Result<(), String> {
        self.fill(sessions, 0)?;
        self.fill(sessions, due).map(drop)
    }

    fn line<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T, String> {
        let mut line = String::new();
        self.told.read_line(&mut line).map_err(|e| e.to_string())?;
        serde_json::from_str(&line).map_err(|e| format!("the table said {line:?}: {e}"))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // It ends with its input.
        self.orders = None;
        let _ = self.child.wait();
    }
}
