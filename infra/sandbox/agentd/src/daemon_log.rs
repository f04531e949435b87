//! The daemon's own log: bounded, because a sandbox's disk belongs to its agents.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::limits::DAEMON_LOG_BYTES_MAX;

/// Writes to a file that restarts when it has grown large; the previous one is kept as `<name>.1`.
#[derive(Debug)]
struct BoundedFile {
    path: PathBuf,
    open: Mutex<(File, u64)>,
}

impl BoundedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), open: Mutex::new((file, length)) })
    }
}

impl Write for &BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.1 + bytes.len() as u64 > DAEMON_LOG_BYTES_MAX {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            std::fs::rename(&self.path, older)?;
            let file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            *open = (file, 0);
        }
        let written = open.0.write(bytes)?;
        open.1 += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for BoundedFile {
    type Writer = &'a BoundedFile;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Begins logging to a file, or to standard error.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn begin(path: Option<&Path>) -> io::Result<()> {
    let filter =
        EnvFilter::try_from_env("BOBBIN_AGENTD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    match path {
        Some(path) => builder.with_writer(BoundedFile::open(path)?).init(),
        None => builder.with_writer(io::stderr).init(),
    }
    Ok(())
}
