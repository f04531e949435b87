//! Commands and files of a sandbox, as its slot's user.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bobbin_core::records::sandbox::SandboxState;
use tokio::time::Instant;

use super::bounds::{BYTES_MAX, EXEC_MARGIN_MS, PACK_S_MAX, SCRIPT_MS_MAX, TRANSFER_MS_MAX};
use super::connection::Ran;
use super::error::SshError;
use super::registry::{failed, quoted};
use super::sandboxes::SshSandboxes;
use super::settings::is_word;
use super::slot::{ROOT, Slot};
use crate::provider::{InSandbox, Sandbox, ScriptOutput};

const SLOT_SCRIPT: &str = include_str!("scripts/slot.sh");
/// Exit status of `timeout` after terminating a command, and after killing it.
const TIMED_OUT: [u32; 2] = [124, 137];
/// Exit status and message of a command that does not start because its sandbox is stopped.
const NOT_RUNNING: (u32, &str) = (97, "bobbin: the sandbox is not running\n");
/// Exit status for a missing file or folder.
const NO_FILE: u32 = 66;

/// Result of a call into a sandbox.
type SlotResult<T> = Result<T, InSandbox<SshError>>;

/// Operation on a slot.
#[derive(Debug, Clone, Copy)]
pub(super) enum SlotVerb<'a> {
    /// Creates the sandbox's directory; or says how far it is unpacked, from a snapshot of this sandbox.
    Prepare { of: Option<&'a str> },
    /// Packs it into this pipe, in the background.
    Pack { pipe: &'a str },
    /// Unpacks a snapshot of that sandbox from this pipe, in the background.
    Unpack { of: &'a str, pipe: &'a str },
    /// Allows commands to start in it.
    Wake,
    /// Prevents commands from starting, asks running ones to end, and lists those that still run.
    Halt,
    /// Kills every process.
    Kill,
    /// Lists which of these processes still run.
    Left(&'a str),
    /// Removes everything that the slot's user has left.
    Wipe,
}

impl SshSandboxes {
    /// Runs the operation and returns its result, successful or not.
    pub(super) async fn slot(&self, slot: &Slot, verb: SlotVerb<'_>) -> Result<Ran, SshError> {
        let (word, before, of, pipe) = match verb {
            SlotVerb::Prepare { of } => ("prepare", "", of.unwrap_or_default(), ""),
            SlotVerb::Pack { pipe } => ("pack", "", "", pipe),
            SlotVerb::Unpack { of, pipe } => ("unpack", "", of, pipe),
            SlotVerb::Wake => ("wake", "", "", ""),
            SlotVerb::Halt => ("halt", "", "", ""),
            SlotVerb::Kill => ("kill", "", "", ""),
            SlotVerb::Left(before) => ("left", before, "", ""),
            SlotVerb::Wipe => ("wipe", "", "", ""),
        };
        if !is_word(&slot.name) || !(of.is_empty() || is_word(of)) {
            return Err(SshError::NotFound);
        }
        let input = format!(
            "verb={word}\nslot={}\nname={}\nbefore={}\nof={}\npipe={}\nseconds={PACK_S_MAX}\n{SLOT_SCRIPT}",
            slot.number,
            slot.name,
            quoted(before),
            quoted(of),
            quoted(pipe)
        );
        self.as_slot(slot, "exec sh", input.into_bytes(), SCRIPT_MS_MAX).await
    }

    async fn as_slot(
        &self,
        slot: &Slot,
        command: &str,
        input: Vec<u8>,
        ms_max: u64,
    ) -> Result<Ran, SshError> {
        let user = self.user(slot);
        let bounds = (Duration::from_millis(ms_max), BYTES_MAX);
        self.hosts.run((slot.host, &user), command, input, bounds).await
    }

    /// Access to a recently found sandbox, for commands and files.
    pub(super) fn inside(&self, found: &Sandbox) -> SlotResult<Inside<'_>> {
        if found.state != SandboxState::Running {
            return Err(SshError::NotRunning.into());
        }
        let read = || {
            let mut parts = found.exec_base.as_deref()?.split('/');
            let host = parts.next()?;
            let number = parts.next()?.parse().ok()?;
            let port = parts.next()?.parse().ok()?;
            let host = self.hosts.all().iter().position(|one| one.name == host)?;
            Some(Slot { host, number, port, name: found.name.clone() })
        };
        let slot = read().ok_or(SshError::NotFound)?;
        Ok(Inside { sandboxes: self, slot })
    }
}

/// A running sandbox.
pub(super) struct Inside<'a> {
    sandboxes: &'a SshSandboxes,
    slot: Slot,
}

impl Inside<'_> {
    /// Runs a script in the sandbox. Neither the script nor its environment is on a command line, which every user of
    /// the host can read.
    pub(super) async fn exec(
        &self,
        script: &str,
        env: &BTreeMap<String, String>,
        time: Duration,
    ) -> SlotResult<ScriptOutput> {
        let slot = &self.slot;
        let seconds = time.as_secs().max(1);
        let mut input = "exec 2>&1\n".to_owned();
        input.push_str(&enter(slot));
        let own = [
            ("HOME", directory(slot)),
            ("TMPDIR", format!("{}/tmp", directory(slot))),
            (self.sandboxes.settings.agent.variable.as_str(), slot.port.to_string()),
        ];
        let given = env.iter().map(|(name, value)| (name.as_str(), value.clone()));
        for (name, value) in own.into_iter().chain(given) {
            if !is_variable(name) {
                let what = format!("{name:?} is not the name of a variable");
                return Err(SshError::Invalid { what }.into());
            }
            let _ = writeln!(input, "export {name}={}", quoted(&value));
        }
        input.push_str(script);
        input.push('\n');
        let began = Instant::now();
        let ms_max = seconds.saturating_mul(1000).saturating_add(EXEC_MARGIN_MS);
        let command = format!("exec timeout -k 5 {seconds} sh");
        let ran = self.sandboxes.as_slot(slot, &command, input.into_bytes(), ms_max).await?;
        let text = String::from_utf8_lossy(&ran.out).into_owned();
        let is_over = began.elapsed().as_secs() >= seconds;
        match ran.code {
            // If `timeout` has to kill, it dies together with the processes that it kills.
            None if is_over => Err(SshError::CommandTimeout.into()),
            Some(code) if TIMED_OUT.contains(&code) && is_over => {
                Err(SshError::CommandTimeout.into())
            }
            Some(code) if code == NOT_RUNNING.0 && text == NOT_RUNNING.1 => {
                Err(SshError::NotRunning.into())
            }
            code => Ok(ScriptOutput { exit_code: code.map_or(-1, i64::from), text }),
        }
    }

    /// Writes files as one archive, which `tar` unpacks below the sandbox's directory.
    pub(super) async fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> SlotResult<()> {
        let slot = &self.slot;
        let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        if bytes > BYTES_MAX {
            let what = format!("together these files have more than {BYTES_MAX} bytes");
            return Err(SshError::Invalid { what }.into());
        }
        for (path, _) in &files {
            inside(path)?;
        }
        let archive = archive(files).map_err(|error| SshError::Invalid {
            what: format!("the files cannot be packed: {error}"),
        })?;
        let command = format!("{}exec tar -xf - --no-same-owner", enter(slot).replace('\n', " ; "));
        let ran = self.sandboxes.as_slot(slot, &command, archive, TRANSFER_MS_MAX).await?;
        self.done(ran).map(drop)
    }

    /// The bytes of a file.
    pub(super) async fn get_file(&self, path: &str) -> SlotResult<Vec<u8>> {
        let slot = &self.slot;
        inside(path)?;
        let path = quoted(&format!("./{path}"));
        let script = format!(
            "{}[ -f {path} ] || exit {NO_FILE}\nexec head -c {} {path}\n",
            enter(slot),
            BYTES_MAX + 1
        );
        let ran =
            self.sandboxes.as_slot(slot, "exec sh", script.into_bytes(), TRANSFER_MS_MAX).await?;
        self.done(ran)
    }

    /// The files of a folder with their sizes in bytes.
    pub(super) async fn list_files(&self, path: &str) -> SlotResult<BTreeMap<String, u64>> {
        let slot = &self.slot;
        inside(path)?;
        let path = quoted(&format!("./{path}"));
        let script = format!(
            "{}[ -d {path} ] || exit {NO_FILE}\nexec find {path} -mindepth 1 -maxdepth 1 -type f -printf '%s\\t%f\\0'\n",
            enter(slot)
        );
        let ran =
            self.sandboxes.as_slot(slot, "exec sh", script.into_bytes(), TRANSFER_MS_MAX).await?;
        let out = self.done(ran)?;
        let text = String::from_utf8_lossy(&out);
        let file = |line: &str| {
            let (bytes, name) = line.split_once('\t')?;
            Some((name.to_owned(), bytes.parse().ok()?))
        };
        Ok(text.split('\0').filter_map(file).collect())
    }

    fn done(&self, ran: Ran) -> SlotResult<Vec<u8>> {
        Err(match ran.code {
            Some(0) => return Ok(ran.out),
            Some(NO_FILE) => SshError::NotFound,
            Some(code) if code == NOT_RUNNING.0 => SshError::NotRunning,
            _ => failed(self.sandboxes.host_name(self.slot.host), &ran),
        }
        .into())
    }
}

/// The directory of a sandbox on its host.
fn directory(slot: &Slot) -> String {
    format!("{ROOT}/{}/disk/{}", slot.number, slot.name)
}

/// Script lines that enter it, or report that it is stopped or gone.
fn enter(slot: &Slot) -> String {
    let directory = directory(slot);
    let (status, words) = (NOT_RUNNING.0, NOT_RUNNING.1.trim());
    format!(
        "if [ -e {ROOT}/{}/disk/.stopped ]; then echo '{words}'; exit {status}; fi\ncd {directory} || exit {}\numask 077\n",
        slot.number,
        super::registry::NO_DIRECTORY,
    )
}

/// Checks that a path stays below the directory that it is relative to.
fn inside(path: &str) -> Result<(), SshError> {
    let leaves = path.is_empty()
        || path.starts_with('/')
        || path.contains('\0')
        || path.split('/').any(|part| part == "..");
    if leaves {
        return Err(SshError::Invalid {
            what: "a path must be below the sandbox's directory".to_owned(),
        });
    }
    Ok(())
}

fn is_variable(name: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_plain)
}

fn archive(files: Vec<(String, Vec<u8>)>) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, &bytes[..])?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_sandbox() {
        for good in ["a", "project/a b.txt", ".bobbin/x", "a..b/c", "..a"] {
            assert_eq!(inside(good), Ok(()), "{good}");
        }
        for bad in ["", "/etc/passwd", "../a", "a/../../b", "a/..", "a\0b"] {
            assert!(inside(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn variable_names_are_validated() {
        assert!(is_variable("OPENCODE_PORT") && is_variable("_x1"));
        for bad in ["", "1x", "a b", "a;b", "a=b", "ä"] {
            assert!(!is_variable(bad), "{bad:?}");
        }
    }
}
