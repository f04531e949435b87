//! `sandbox connect`: moves a thread to another sandbox. The message goes into the thread's group, behind what runs.

use std::time::{Duration, Instant};

use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::records::message::Work;
use serde::Serialize;

use super::super::arguments::{Connect, GivenSandbox};
use super::super::request::{self, Request};
use super::super::show;
use super::super::stack::Stack;
use super::chosen;
use crate::output::{CommandError, ExitStatus, Output};

/// The JSON answer.
#[derive(Serialize)]
struct ConnectAnswer {
    thread: ThreadKey,
    /// Key of the thread's sandbox now.
    sandbox: SandboxKey,
    /// Its name.
    name: Option<String>,
    /// `done`, `failed`, or `waiting` (requested, but not finished within the wait).
    result: &'static str,
}

pub async fn run(stack: &Stack, what: &Connect) -> Result<Output, CommandError> {
    let thread = &what.thread.key(stack).await?;
    let (session, flags) = show::record(stack, thread).await?;
    let to = match &what.name {
        Some(name) => {
            let which = GivenSandbox::Named(name.clone());
            Some(chosen(stack, &which, Some(&thread.tenant())).await?.key)
        }
        None => None,
    };
    let wanted = to.clone().unwrap_or_else(|| thread.sandbox());
    if session.sandbox_key() == wanted {
        return Err(CommandError::not_found(format!(
            "Nothing was done: {thread} already works there."
        )));
    }
    if session.turn.is_some() || !flags.waiting().is_empty() {
        tell!(
            "A turn is running or waiting in the thread: the thread moves to the other sandbox after it."
        );
    }
    let (by, membership) = request::operator();
    let until = Instant::now() + Duration::from_millis(what.wait_ms);
    let asked = Request { name: "connect", look: "thread show", until };
    let work = Work::Connect { to, by, membership };
    let (session, is_over) = asked.carry_out(stack, thread, work).await?;
    let is_there = session.sandbox_key() == wanted;
    let name = session.sandbox.sharing.name.as_ref().map(ToString::to_string);
    let place = match &name {
        Some(name) => name.clone(),
        None => "its own sandbox".to_owned(),
    };
    let (result, words, status) = match (is_over, is_there) {
        (true, true) => {
            ("done", format!("From now on {thread} works in {place}."), ExitStatus::Done)
        }
        (true, false) => (
            "failed",
            format!("It failed: {thread} works in {place}. The thread shows why."),
            ExitStatus::Failed,
        ),
        (false, _) => (
            "waiting",
            format!(
                "It was requested, but is not done yet. Check again with: bobbin {} thread show {thread}",
                stack.said
            ),
            ExitStatus::Failed,
        ),
    };
    let answer =
        ConnectAnswer { thread: thread.clone(), sandbox: session.sandbox_key(), name, result };
    Output::new(words, &answer, status)
}
