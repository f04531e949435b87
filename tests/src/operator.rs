//! The operator's command line in a test: the real program beside the stack, with an empty environment.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Output, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::binaries;
use crate::world::World;

/// The result of a command.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Exit code of the program; -1 after a signal.
    pub code: i32,
    /// Everything on standard output.
    pub out: String,
    /// Everything on standard error.
    pub err: String,
}

impl Ran {
    /// Its output as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("no JSON ({why}): {self:?}"))
    }
}

/// Runs `bobbin` with these words on the world's stack. It never shows a credential of that stack.
///
/// # Panics
/// When it cannot be run, or shows one.
pub async fn operate(world: &World, words: &[&str]) -> Ran {
    begun(world, words).ended().await
}

/// A command that runs.
pub struct Running {
    child: Child,
    out: ChildStdout,
    said: Vec<u8>,
    err: BufReader<ChildStderr>,
    shown: String,
    words: Vec<String>,
    secrets: Vec<String>,
}

impl Running {
    /// The first line that it writes to standard error, without its end.
    ///
    /// # Panics
    /// When it ends without one.
    pub async fn first_line_of_err(&mut self) -> String {
        let read = self.err.read_line(&mut self.shown).await;
        assert!(read.is_ok_and(|bytes| bytes > 0), "{:?} says nothing", self.words);
        self.shown.trim_end().to_owned()
    }

    /// Waits until it has written these words to standard output.
    ///
    /// # Panics
    /// When it ends without them.
    pub async fn says(&mut self, words: &str) {
        while !String::from_utf8_lossy(&self.said).contains(words) {
            let read = self.out.read_buf(&mut self.said).await;
            let is_open = read.is_ok_and(|bytes| bytes > 0);
            assert!(is_open, "{:?} never says {words}", self.words);
        }
    }

    /// Presses Ctrl-C.
    ///
    /// # Panics
    /// When it has ended before.
    pub fn interrupt(&self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(Pid::from_raw).expect("it runs");
        kill_process(id, Signal::INT).expect("it is ours");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has shown a credential of the stack.
    pub async fn ended(mut self) -> Ran {
        let mut err = Vec::new();
        let read =
            tokio::join!(self.out.read_to_end(&mut self.said), self.err.read_to_end(&mut err));
        assert!(read.0.is_ok() && read.1.is_ok(), "{read:?}");
        let status = self.child.wait().await.expect("it is ours");
        let ran = Ran {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&self.said).into_owned(),
            err: self.shown + &String::from_utf8_lossy(&err),
        };
        for secret in &self.secrets {
            let shown = [&ran.out, &ran.err].iter().any(|text| text.contains(secret));
            assert!(!shown, "{:?} shows a credential", self.words);
        }
        ran
    }
}

/// Begins to run `bobbin` with these words on the world's stack.
///
/// # Panics
/// When it cannot be run.
#[must_use]
pub fn begun(world: &World, words: &[&str]) -> Running {
    let state_dir = world.state_dir.display().to_string();
    let place = ["--laptop", "--state-dir", &state_dir];
    let words: Vec<String> =
        place.into_iter().chain(words.iter().copied()).map(str::to_owned).collect();
    let mut child = command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|why| panic!("bobbin cannot be run: {why}"));
    let ready = &world.ready;
    Running {
        out: child.stdout.take().expect("it is piped"),
        said: Vec::new(),
        err: BufReader::new(child.stderr.take().expect("it is piped")),
        child,
        shown: String::new(),
        words,
        secrets: [
            &ready.daytona_api_key,
            &ready.discord_bot_token,
            &ready.slack_bot_token,
            &ready.slack_signing_secret,
            &ready.discord_private_key,
        ]
        .map(Clone::clone)
        .to_vec(),
    }
}

/// Runs `bobbin` with these words on the world's stack in a terminal with this many columns, with only these variables.
/// Returns its exit code and everything that it wrote to the terminal.
///
/// # Panics
/// When there is no terminal to be had, or it cannot be run.
pub async fn in_terminal(
    world: &World,
    words: &[&str],
    columns: u16,
    environment: &[(&str, &str)],
) -> (i32, String) {
    let state_dir = world.state_dir.display().to_string();
    let place = ["--laptop", "--state-dir", &state_dir];
    let words: Vec<&str> = place.into_iter().chain(words.iter().copied()).collect();
    let (controller, terminal) = terminal(columns).expect("the system has pseudo-terminals");
    let mut child = command(&words)
        .envs(environment.iter().copied())
        .stdout(terminal.try_clone().expect("a handle can be copied"))
        .stderr(terminal)
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|why| panic!("bobbin cannot be run: {why}"));
    let read = tokio::task::spawn_blocking(move || {
        let (mut shown, mut some) = (Vec::new(), [0; 4096]);
        // Reading fails once nobody has the terminal open.
        while let Ok(bytes) = rustix::io::read(&controller, &mut some[..])
            && bytes > 0
        {
            shown.extend_from_slice(&some[..bytes]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    });
    let status = child.wait().await.expect("it is ours");
    let shown = read.await.expect("nothing panics there");
    (status.code().unwrap_or(-1), shown)
}

/// A terminal of this width, by its two ends: a person's, and a program's.
fn terminal(columns: u16) -> rustix::io::Result<(OwnedFd, File)> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size)?;
    Ok((controller, File::from(terminal)))
}

/// The program, with nothing of the environment.
fn command(words: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(binaries::folder().join("bobbin"));
    command.args(words).env_clear().current_dir("/").stdin(Stdio::null());
    command
}

/// Runs it with only these words.
///
/// # Panics
/// When it cannot be run.
pub async fn plainly(words: &[&str]) -> Ran {
    let run = command(words).output().await;
    let Output { status, stdout, stderr } =
        run.unwrap_or_else(|why| panic!("bobbin cannot be run: {why}"));
    Ran {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A text with its variable parts masked: the named ones by their names, durations by `TIME`, token counts by `N`;
/// several spaces become one.
#[must_use]
pub fn masked(text: &str, names: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (value, name) in names.iter().filter(|(value, _)| !value.is_empty()) {
        text = text.replace(value, name);
    }
    let lines = text.lines().map(|line| {
        let mut shown: Vec<String> = Vec::new();
        let mut words = line.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let number = word.chars().all(|c| c.is_ascii_digit() || c == ',');
            let next = words.peek().copied().unwrap_or_default();
            let unit = next.trim_end_matches([',', ':', ';', ')']);
            if number && ["s", "min", "h", "d"].contains(&unit) {
                words.next();
                let rest = &next[unit.len()..];
                // Minutes and seconds are one time.
                if shown.last().is_some_and(|last| last == "TIME") {
                    shown.pop()
                } else {
                    None
                };
                shown.push(format!("TIME{rest}"));
            } else if number && unit == "tokens" {
                shown.push("N".to_owned());
            } else if word == "now" {
                shown.push("TIME ago".to_owned());
            } else {
                shown.push(word.to_owned());
            }
        }
        shown.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}
