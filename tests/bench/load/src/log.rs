//! The log of the functions, as the stack passes it on.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use bobbin_core::base::ids::Ms;
use chrono::DateTime;
use serde_json::Value;

/// A function's log line about a message.
pub struct Line {
    pub event: String,
    /// The turn of the message.
    pub turn: String,
    pub at_ms: Ms,
    pub delay_ms: u64,
}

/// A stack's output so far, which can be read on.
pub struct Log {
    file: PathBuf,
    read: u64,
}

impl Log {
    /// That of the stack in this folder, from its beginning.
    pub fn of(folder: &Path) -> Self {
        Self { file: folder.join("output.log"), read: 0 }
    }

    /// The lines since the last call.
    pub fn more(&mut self) -> Result<Vec<Line>, String> {
        let mut bytes = Vec::new();
        let mut file = File::open(&self.file).map_err(|e| e.to_string())?;
        let sought = file.seek(SeekFrom::Start(self.read));
        sought.map_err(|e| e.to_string())?;
        file.read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        // An incomplete line is read with the next ones.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(whole.map_or(0, |at| at + 1));
        self.read += bytes.len() as u64;
        Ok(String::from_utf8_lossy(&bytes).lines().filter_map(line).collect())
    }
}

fn line(text: &str) -> Option<Line> {
    let json = text.get(text.find('{')?..=text.rfind('}')?)?;
    let said: Value = serde_json::from_str(json).ok()?;
    let at = DateTime::parse_from_rfc3339(said["timestamp"].as_str()?).ok()?;
    Some(Line {
        event: said["event"].as_str()?.to_owned(),
        turn: said["correlation_id"].as_str()?.to_owned(),
        at_ms: Ms::try_from(at.timestamp_millis()).ok()?,
        delay_ms: said["delay_ms"].as_u64().unwrap_or(0),
    })
}
