//! `stop`, `start`, `destroy`: asked for in the thread's own group, then waited for.
//!
//! The record is only read. What it says may be over by the time that the message comes to the head of the group, so the
//! worker decides again, by the same rules.

use std::time::{Duration, Instant};

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::Queues;
use bobbin_core::decide::operate::{Outlook, outlook};
use bobbin_core::ids::{ThreadKey, TurnId, digest};
use bobbin_core::message::{Body, Control, Message, Operation, Reply, Want, Work};
use bobbin_core::person::{Membership, Person};
use bobbin_core::sandbox::Operated;
use bobbin_core::session::{Session, Turn};
use serde::Serialize;

use super::arguments::Act;
use super::show;
use super::stack::Stack;
use super::threads::stage;
use crate::output::{CommandError, Output, Status};
use crate::time::{pause, span};

/// Between two looks at the record.
const POLL_MS: u64 = 500;
/// Who ends a turn, as its card names them.
const OPERATOR: &str = "the operator";

/// What came of it, as it is told to programs.
#[derive(Serialize)]
struct Answer {
    thread: String,
    /// `pause`, `resume`, `destroy` or `forget`.
    want: &'static str,
    /// `done`, `failed`, or `waiting`: it was asked for, and this command does not wait any longer.
    result: &'static str,
    /// Why it failed, in a sentence; there is none unless `result` is `failed`.
    trouble: Option<String>,
    /// Phase of the sandbox now.
    phase: &'static str,
    /// The turn that was ended for it.
    halted: Option<TurnId>,
}

/// Does one of the three.
pub async fn run(stack: &Stack, want: Operation, what: &Act) -> Result<Output, CommandError> {
    let (session, flags) = show::record(stack, &what.thread).await?;
    let queues = stack.queues()?;
    let mut halted = None;
    match (outlook(&session, want), &session.turn) {
        (Outlook::Pointless(why), _) => {
            return Err(CommandError::not_found(format!(
                "There is nothing to {}: {why}. It is {} now.",
                verb(want),
                session.sandbox.phase.word()
            )));
        }
        (Outlook::Busy, Some(turn)) if !what.even_if_busy => {
            return Err(busy(stack, want, &what.thread, turn).into());
        }
        (Outlook::Busy, Some(turn)) => {
            halt(&queues, &what.thread, turn).await?;
            halted = Some(turn.id.clone());
        }
        _ => {}
    }
    let behind = flags.waiting().len();
    if behind > 0 {
        eprintln!("{behind} prompts of this thread wait before it; they run first.");
    }
    let ended = ask(stack, &queues, want, &what.thread, what.wait_ms).await?;
    shown(stack, want, &what.thread, ended, halted)
}

fn busy(stack: &Stack, want: Operation, thread: &ThreadKey, turn: &Turn) -> String {
    format!(
        "A turn of {} is under way there ({}, for {}; {}). Nothing was done.\nTry again when it has ended, or end it first: bobbin {} sandbox {} {thread} --even-if-busy",
        turn.by.name,
        stage(&turn.stage),
        span(now_ms().saturating_sub(turn.accepted_at_ms)),
        turn.id,
        stack.said,
        verb(want),
    )
}

/// The word of the command line for it.
const fn verb(want: Operation) -> &'static str {
    match want {
        Operation::Pause => "stop",
        Operation::Resume => "start",
        Operation::Destroy => "destroy",
        Operation::Forget => "forget",
    }
}

/// Ends the turn as Stop does.
async fn halt(queues: &Queues, thread: &ThreadKey, turn: &Turn) -> Result<(), CommandError> {
    let control = Control {
        id: format!(
            "halt-{}",
            &digest(&["halt", &thread.to_string(), &turn.id])[..24]
        ),
        thread: thread.clone(),
        by: Person {
            id: String::new(),
            name: OPERATOR.to_owned(),
        },
        reply: Reply::Nobody,
        standing: Membership::default(),
        want: Want::Halt {
            turn: turn.id.clone(),
        },
    };
    let sent = queues.send(&Body::Control(control)).await;
    sent.map_err(|e| format!("{e}. Nothing was done: try again.").into())
}

/// Puts it into the thread's group and waits for what comes of it. None: not yet.
pub async fn ask(
    stack: &Stack,
    queues: &Queues,
    want: Operation,
    thread: &ThreadKey,
    wait_ms: u64,
) -> Result<(Session, Option<Operated>), CommandError> {
    let accepted_at_ms = now_ms();
    let id = TurnId::from(format!(
        "{}-{}-{accepted_at_ms}",
        want.word(),
        thread.short_hash()
    ));
    let message = Message {
        id: id.clone(),
        thread: thread.clone(),
        accepted_at_ms,
        work: Work::Operate { want },
    };
    let sent = queues.send(&Body::Message(message)).await;
    sent.map_err(|e| {
        format!(
            "{e}. Whether it was asked for is not known; what came of it is told by: bobbin {} thread show {thread}",
            stack.said
        )
    })?;
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let mut told = None;
    loop {
        let (session, _) = show::record(stack, thread).await?;
        let known = session
            .sandbox
            .operated
            .iter()
            .find(|one| one.id == id)
            .cloned();
        if known.is_some() || Instant::now() >= until {
            return Ok((session, known));
        }
        if told != Some(session.sandbox.phase) {
            eprintln!("{}: {}", thread, session.sandbox.phase.word());
            told = Some(session.sandbox.phase);
        }
        pause(POLL_MS).await;
    }
}

/// Says what came of it.
pub fn shown(
    stack: &Stack,
    want: Operation,
    thread: &ThreadKey,
    (session, operated): (Session, Option<Operated>),
    halted: Option<TurnId>,
) -> Result<Output, CommandError> {
    let phase = session.sandbox.phase.word();
    let done = match want {
        Operation::Pause => "It is stopped; its disk is kept, and the next message brings it back.",
        Operation::Resume => "It runs, and its server is healthy.",
        Operation::Destroy => {
            "It is deleted with its files, and the thread was told. The next message starts a fresh one."
        }
        Operation::Forget => "Names and reasons are taken out of the record.",
    };
    let (result, trouble, words, code) = match operated {
        None => (
            "waiting",
            None,
            format!(
                "It is asked for, and not done yet: the sandbox is {phase}. Look again with: bobbin {} thread show {thread}",
                stack.said
            ),
            Status::Failed,
        ),
        Some(Operated { trouble: None, .. }) => ("done", None, done.to_owned(), Status::Done),
        Some(Operated {
            trouble: Some(why), ..
        }) => (
            "failed",
            Some(why.clone()),
            format!(
                "It could not be done: {why}. The sandbox is {phase}. Its log and the worker's say more: bobbin {} thread show {thread}",
                stack.said
            ),
            Status::Failed,
        ),
    };
    let answer = Answer {
        thread: thread.to_string(),
        want: want.word(),
        result,
        trouble,
        phase,
        halted,
    };
    Output::new(words, &answer, code)
}
