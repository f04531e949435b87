//! `log`: shows the OpenCode server's log.

use std::time::{Duration, Instant};

use bobbin_app::agent_log::{self, LogError, Position, ReadFrom, WhichLog};
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_sandbox::{ErrorKind, Provider, Sandbox};
use serde::Serialize;

use super::arguments::SandboxLog;
use super::sandbox::{self, Chosen};
use super::stack::Stack;
use crate::columns::visible;
use crate::output::{CommandError, ExitStatus, Output};
use crate::time::pause;

/// Poll interval while following.
const POLL_MS: u64 = 2_000;
/// Consecutive failed polls before giving up.
const FAILURES_MAX: u32 = 5;

#[derive(Serialize)]
struct LogAnswer<'a> {
    /// The thread, if the sandbox was named by one.
    thread: Option<String>,
    sandbox: &'a str,
    file: &'a str,
    lines: Vec<&'a str>,
}

/// Prints the log, and follows it if wanted.
pub async fn run(stack: &Stack, what: &SandboxLog) -> Result<Output, CommandError> {
    let chosen = sandbox::chosen(stack, &what.sandbox, what.tenant.as_ref()).await?;
    let name = sandbox_name(&stack.name, &chosen.key, chosen.record.generation);
    let provider = stack.provider_of(&chosen.record).await?;
    let sandbox = running(stack, &*provider, &name, &chosen).await?;
    let which = if what.server { WhichLog::Server } else { WhichLog::Agent };
    let end = ReadFrom::End { lines: what.lines };
    let (text, position) =
        agent_log::read(&*provider, &sandbox, which, end).await.map_err(|why| trouble(&why))?;
    if what.follow {
        return follow(&*provider, &sandbox, which, what, (text, position)).await;
    }
    let answer = LogAnswer {
        thread: chosen.thread().map(ToString::to_string),
        sandbox: &name,
        file: &position.file,
        lines: text.lines().collect(),
    };
    let code = if answer.lines.is_empty() { ExitStatus::Notice } else { ExitStatus::Done };
    let words = if answer.lines.is_empty() {
        format!("{} is empty.", position.file)
    } else {
        visible(&text)
    };
    Output::new(words, &answer, code)
}

/// The sandbox, if it runs; a log request never starts one.
async fn running(
    stack: &Stack,
    provider: &dyn Provider,
    name: &str,
    chosen: &Chosen,
) -> Result<Sandbox, CommandError> {
    let sandbox = match provider.observe(name).await {
        Ok(sandbox) => sandbox,
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Err(CommandError::not_found(format!(
                "There is no sandbox now, so there is no log. List the sandboxes with: bobbin {} sandbox list",
                stack.said
            )));
        }
        Err(error) => {
            return Err(
                format!("The sandbox could not be read: {error}. Try again in a minute.").into()
            );
        }
    };
    match sandbox.state {
        SandboxState::Running => Ok(sandbox),
        _ => Err(format!(
            "The sandbox is {}, and a log can be read only while it runs. Start it with: bobbin {} sandbox start {}",
            if sandbox.said.is_empty() { "in an unknown state" } else { &sandbox.said },
            stack.said,
            chosen.said
        )
        .into()),
    }
}

async fn follow(
    provider: &dyn Provider,
    sandbox: &Sandbox,
    which: WhichLog,
    what: &SandboxLog,
    (text, mut position): (String, Position),
) -> Result<Output, CommandError> {
    let until = Instant::now() + Duration::from_millis(what.within_ms);
    let mut failures = 0;
    let mut shown = crate::output::print(&visible(&text));
    // Until the pipe closes or the time is over.
    while shown.is_ok() && Instant::now() < until {
        pause(POLL_MS).await;
        match agent_log::read(provider, sandbox, which, ReadFrom::Position(&position)).await {
            Ok((text, now)) => {
                (failures, position) = (0, now);
                shown = crate::output::print(&visible(&text));
            }
            Err(why) => {
                failures += 1;
                if failures == FAILURES_MAX {
                    return Err(trouble(&why));
                }
            }
        }
    }
    Output::new(String::new(), &serde_json::Value::Null, ExitStatus::Done)
}

fn trouble(why: &LogError) -> CommandError {
    match why {
        LogError::None => CommandError::not_found(
            "The sandbox has no such log yet: its server has not started. --server shows what the program wrote to its terminal.",
        ),
        other => format!("The log could not be read: {other}. Try again in a minute.").into(),
    }
}
