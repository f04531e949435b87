//! `run_command`: started once per call name, polled, and requested again by that name.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::bounds::{
    CALLS_KEPT, COMMAND_BYTES_MAX, COMMAND_MS, COMMAND_MS_MAX, LOOK_MS_MAX, LOOKS_A_SECOND,
    OUTPUT_BYTES_MAX, TEXT_LINES_MAX, VARIABLE_BYTES_MAX, VARIABLES_MAX, WAIT_MS, WAIT_MS_MAX,
};
use crate::place::{CallResult, ToolOutput, ToolPlace, located, script, variables};

const RUN: &str = include_str!("scripts/run.sh");
/// Exit status of `timeout` when it has ended the command.
const TIMED_OUT: i64 = 124;

/// Variables with which a shell or the loader would run something other than the command that a person was shown,
/// besides `LD_*`.
const REFUSED: [&str; 5] = ["BASH_ENV", "BASHOPTS", "ENV", "PATH", "SHELLOPTS"];
/// Prefix of the command's own variables: they must not affect the script itself.
const OWN: &str = "BOBBIN_V_";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunCommand {
    cmd: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    wait_ms: Option<u64>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    background: bool,
    id: Option<String>,
}

/// A command to start, or one that was started.
enum What {
    Begin { cmd: String, cwd: String, env: BTreeMap<String, String>, timeout_ms: u64 },
    GoOn(String),
}

/// A validated call.
pub(crate) struct CheckedCall {
    what: What,
    wait_ms: u64,
}

/// Validates the arguments against the schema, which no agent does.
pub(crate) fn checked(run: RunCommand) -> Result<CheckedCall, String> {
    let wait_ms = if run.background { 0 } else { run.wait_ms.unwrap_or(WAIT_MS).min(WAIT_MS_MAX) };
    let what = match (run.cmd, run.id) {
        (Some(cmd), None) => {
            if cmd.len() > COMMAND_BYTES_MAX || cmd.contains('\0') {
                return Err(format!(
                    "A command has at most {COMMAND_BYTES_MAX} bytes, and no zero byte: write it into a file with write_file and run that."
                ));
            }
            if run.env.len() > VARIABLES_MAX {
                return Err(format!("A call sets at most {VARIABLES_MAX} variables."));
            }
            for (name, value) in &run.env {
                variable(name, value)?;
            }
            What::Begin {
                cmd,
                cwd: located(run.cwd.as_deref().unwrap_or("."))?,
                env: run.env,
                timeout_ms: run.timeout_ms.unwrap_or(COMMAND_MS).clamp(1_000, COMMAND_MS_MAX),
            }
        }
        (None, Some(id)) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
            What::GoOn(id)
        }
        (None, Some(id)) => return Err(unknown(&id)),
        _ => {
            return Err(
                "Give either `cmd`, to start a command, or `id`, to continue waiting for one."
                    .to_owned(),
            );
        }
    };
    Ok(CheckedCall { what, wait_ms })
}

fn variable(name: &str, value: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let is_name = !name.is_empty()
        && name.bytes().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.starts_with("BOBBIN_");
    if !is_name {
        return Err(format!("{name:?} cannot be the name of a variable."));
    }
    if REFUSED.contains(&name) || name.starts_with("LD_") {
        return Err(format!(
            "{name} cannot be set here, because it changes which programs run: set it within `cmd`."
        ));
    }
    if value.len() > VARIABLE_BYTES_MAX || value.contains('\0') {
        return Err(format!(
            "The value of {name} has more than {VARIABLE_BYTES_MAX} bytes, or a zero byte."
        ));
    }
    Ok(())
}

fn unknown(id: &str) -> String {
    format!(
        "There is no command {id:?} in this sandbox: it was never started here, or too long ago, or the sandbox has been created again."
    )
}

/// Starts it, if necessary, and waits for it.
pub(crate) async fn run(run: CheckedCall, key: &str, place: &dyn ToolPlace) -> CallResult {
    let CheckedCall { what, wait_ms } = run;
    let opened = place.open().await?;
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let looks = |ms: u64| (ms * LOOKS_A_SECOND / 1_000).to_string();
    let (id, mut env) = match what {
        What::Begin { cmd, cwd, env: own, timeout_ms } => {
            let names: Vec<&str> = own.keys().map(String::as_str).collect();
            let names = names.join(" ");
            let own = own.into_iter();
            let mut env: BTreeMap<String, String> =
                own.map(|(name, value)| (format!("{OWN}{name}"), value)).collect();
            env.extend(variables([
                ("NAMES", names),
                ("CMD", cmd),
                ("CWD", cwd),
                ("LIMIT", (timeout_ms / 1_000).to_string()),
                ("KEPT", (CALLS_KEPT + 1).to_string()),
            ]));
            (key.to_owned(), env)
        }
        What::GoOn(id) => (id, BTreeMap::new()),
    };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let look_ms = u64::try_from(left.as_millis()).unwrap_or(LOOK_MS_MAX).min(LOOK_MS_MAX);
        env.extend(variables([
            ("CALL", id.clone()),
            ("LOOKS", looks(look_ms)),
            ("BYTES", OUTPUT_BYTES_MAX.to_string()),
        ]));
        let output = script(&opened, RUN, &env, look_ms).await.map_err(|why| {
            format!("{why} Call run_command with the id {id} to see the state of the command.")
        })?;
        let seen = SeenOutput::read(&output.text)
            .ok_or_else(|| format!("The sandbox could not run it: {}", output.text.trim()))?;
        if seen.state != "running" || left.is_zero() {
            return seen.told(&id);
        }
        // It has started: from now on only poll.
        env = BTreeMap::new();
    }
}

/// Output of the script.
struct SeenOutput<'a> {
    state: &'a str,
    code: i64,
    seconds: u64,
    bytes: usize,
    /// Path of the complete output in the sandbox.
    file: &'a str,
    output: &'a str,
}

impl<'a> SeenOutput<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (head, output) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = head.trim_end().splitn(5, ' ');
        Some(Self {
            state: words.next()?,
            code: words.next()?.parse().ok()?,
            seconds: words.next()?.parse().ok()?,
            bytes: words.next()?.parse().ok()?,
            file: words.next()?,
            output,
        })
    }

    fn cut(&self, kept: &str) -> String {
        format!(
            "[Head and tail of {} bytes. The whole output is in {}]\n{kept}",
            self.bytes, self.file
        )
    }

    fn told(&self, id: &str) -> CallResult {
        let (seconds, kept) = (self.seconds, lines(self.output));
        let output = match kept {
            Some(kept) => self.cut(&kept),
            None if self.bytes > OUTPUT_BYTES_MAX => self.cut(self.output),
            None => self.output.to_owned(),
        };
        let output = output.trim_end_matches('\n');
        let text = match self.state {
            "done" if self.code == TIMED_OUT => format!(
                "It timed out and was ended after {seconds} s (exit code {TIMED_OUT}).\n{output}"
            ),
            "done" => format!("Exit code {} after {seconds} s.\n{output}", self.code),
            "running" => format!(
                "It has been running for {seconds} s. To continue waiting, call run_command with the id {id} alone. Its output so far:\n{output}"
            ),
            "lost" => {
                return Err(format!(
                    "It ended when the sandbox was stopped, after at most {seconds} s; how far it got is unknown. Its output:\n{output}"
                ));
            }
            "nofolder" => return Err("The folder to run it in does not exist.".to_owned()),
            _ => return Err(unknown(id)),
        };
        Ok(ToolOutput::Text(text))
    }
}

/// The first and the last lines of a text with too many lines; `None` if it has not.
fn lines(text: &str) -> Option<String> {
    let all: Vec<&str> = text.lines().collect();
    // The description of the output takes some, too.
    let most = TEXT_LINES_MAX - 10;
    if all.len() <= most {
        return None;
    }
    let (head, tail) = (&all[..most / 2], &all[all.len() - most / 2..]);
    Some(format!("{}\n[some lines are left out here]\n{}", head.join("\n"), tail.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_changing_variables_are_refused() {
        for name in ["BASH_ENV", "ENV", "PATH", "SHELLOPTS", "LD_PRELOAD", "LD_LIBRARY_PATH"] {
            let why = variable(name, "x").expect_err(name);
            assert!(why.starts_with(name) && why.contains("`cmd`"), "{why}");
        }
        assert_eq!(variable("LDFLAGS", "x"), Ok(()));
        assert_eq!(variable("GOPATH", "x"), Ok(()));
    }

    #[test]
    fn long_text_keeps_head_and_tail() {
        let long: String = (0..5_000).map(|n| format!("{n}\n")).collect();
        let kept = lines(&long).expect("it has too many");
        assert!(kept.starts_with("0\n1\n") && kept.ends_with("4998\n4999"));
        assert!(kept.contains("\n[some lines are left out here]\n"), "{kept}");
        assert!(kept.lines().count() < TEXT_LINES_MAX);
        assert_eq!(lines("a\nb\n"), None);
    }
}
