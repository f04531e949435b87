//! The operator's command line as a test runs it: the real program, beside the stack, with nothing of the environment.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::binaries;
use crate::world::World;

/// What a command came to.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// What it printed.
    pub out: String,
    /// What it said beside that.
    pub err: String,
}

impl Ran {
    /// What it printed as JSON.
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
    let state_dir = world.state_dir.display().to_string();
    let place = ["--laptop", "--state-dir", &state_dir];
    let words: Vec<&str> = place.into_iter().chain(words.iter().copied()).collect();
    let ran = plainly(&words).await;
    let ready = &world.ready;
    for secret in [
        &ready.daytona_api_key,
        &ready.discord_bot_token,
        &ready.slack_bot_token,
        &ready.slack_signing_secret,
        &ready.discord_private_key,
    ] {
        let shown = [&ran.out, &ran.err]
            .iter()
            .any(|text| text.contains(secret));
        assert!(!shown, "{words:?} shows a credential");
    }
    ran
}

/// Runs it with these words alone.
///
/// # Panics
/// When it cannot be run.
pub async fn plainly(words: &[&str]) -> Ran {
    let mut command = Command::new(binaries::folder().join("bobbin"));
    command
        .args(words)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null());
    let run = tokio::task::spawn_blocking(move || command.output());
    let Output {
        status,
        stdout,
        stderr,
    } = run
        .await
        .expect("nothing panics there")
        .unwrap_or_else(|why| panic!("bobbin cannot be run: {why}"));
    Ran {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A text with its variable parts masked: the named ones by their names, spans of time by `TIME`, numbers of tokens by `N`;
/// and with one space where there were several.
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
