//! `dead`: lists dead letters and replays them.
//!
//! The worker takes dead letters away by itself and tells the people who wait. This lists those that it has not reached
//! yet. What people wrote is not shown.

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::dead_letters::{DeadLetter, DeadLetterQueues};
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::decide::replay::{self, Replay};
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::{Body, thread_of_group};
use serde::Serialize;

use super::arguments::Replay as ReplayWhat;
use super::stack::Stack;
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::when;

/// A dead letter in JSON.
#[derive(Serialize)]
struct DeadLetterLine {
    /// Deduplication id; for a prompt also the turn's id.
    id: String,
    /// Source queue: `messages` or `control`.
    queue: &'static str,
    /// Kind of message: `prompt`, `reset`, `stop`, ...
    what: String,
    /// The thread, or the group if it belongs to no thread.
    of: String,
    /// When it became a dead letter.
    dead_since_ms: Ms,
    /// State of its request: `open`, `ended`, `running`, `unreadable` or `over`.
    state: &'static str,
    /// The state in words, and what a replay would do.
    why: String,
    /// Result of the replay: `sent`, `left`, or `None` if not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<&'static str>,
}

#[derive(Serialize)]
struct DeadLettersAnswer {
    letters: Vec<DeadLetterLine>,
}

/// A received dead letter and its judgement.
struct JudgedLetter {
    dead_letter: DeadLetter,
    replay: Replay,
    line: DeadLetterLine,
}

pub async fn list(stack: &Stack) -> Result<Output, CommandError> {
    let (queues, judged) = taken(stack).await?;
    put_back(&queues, judged.iter().map(|one| &one.dead_letter)).await;
    listed(stack, judged)
}

/// Replays one dead letter, or all.
pub async fn replay(stack: &Stack, what: &ReplayWhat) -> Result<Output, CommandError> {
    let (queues, judged) = taken(stack).await?;
    let wanted = |one: &JudgedLetter| {
        what.all
            || what
                .id
                .as_ref()
                .is_some_and(|id| *id == one.dead_letter.id || *id == one.dead_letter.sqs_id)
    };
    // Letters that are not replayed go back, even on an error.
    let (wanted, others): (Vec<_>, Vec<_>) = judged.into_iter().partition(wanted);
    put_back(&queues, others.iter().map(|one| &one.dead_letter)).await;
    send(stack, &queues, wanted).await
}

/// Receives the dead letters and judges each.
async fn taken(stack: &Stack) -> Result<(DeadLetterQueues, Vec<JudgedLetter>), CommandError> {
    let queues = stack.dead_letters()?;
    let taken = queues.take().await.map_err(|e| {
        format!("{e}. Your credentials need sqs:ReceiveMessage, sqs:ChangeMessageVisibility, sqs:DeleteMessage and sqs:SendMessage.")
    })?;
    let mut judged = Vec::new();
    for dead_letter in taken {
        judged.push(judge(stack, dead_letter).await);
    }
    Ok((queues, judged))
}

/// Judges a dead letter by the record; if that cannot be read, the letter is left alone.
async fn judge(stack: &Stack, dead_letter: DeadLetter) -> JudgedLetter {
    let now_ms = now_ms();
    let about = match &dead_letter.body {
        Ok(Body::Message(message)) => Some((message.thread.clone(), message.about().to_owned())),
        _ => None,
    };
    let (replay, trouble) = match &about {
        None => (replay::replay(dead_letter.body.as_ref().ok(), None, false, now_ms), None),
        Some((thread, id)) => match stack.store.load(thread, id).await {
            Ok(found) => (
                replay::replay(
                    dead_letter.body.as_ref().ok(),
                    found.session.as_ref(),
                    found.in_ledger,
                    now_ms,
                ),
                None,
            ),
            Err(error) => (Replay::Unreadable, Some(format!("its thread's record: {error}"))),
        },
    };
    let (state, why) = words(&replay);
    let line = DeadLetterLine {
        id: dead_letter.id.clone(),
        queue: dead_letter.queue,
        what: dead_letter.body.as_ref().map_or_else(|_| "?".to_owned(), kind),
        of: thread_of_group(&dead_letter.group)
            .map_or_else(|| dead_letter.group.clone(), |thread| thread.to_string()),
        dead_since_ms: dead_letter.dead_since_ms,
        state,
        why: trouble.unwrap_or(why),
        done: None,
    };
    JudgedLetter { dead_letter, replay, line }
}

fn words(replay: &Replay) -> (&'static str, String) {
    match replay {
        Replay::Send => ("open", "it never ended: if sent again, it runs".to_owned()),
        Replay::Ended => {
            ("ended", "its turn has ended and was reported: nothing is left to do".to_owned())
        }
        Replay::UnderWay => ("running", "its turn is running: nothing is left to do".to_owned()),
        Replay::TooLate => {
            ("over", "it is too old to act on: give the command again in the chat".to_owned())
        }
        Replay::AsksItself => {
            ("over", "the sweeper or the next prompt does the same automatically".to_owned())
        }
        Replay::Unreadable => (
            "unreadable",
            "this version cannot read it: use the bobbin of the deployed commit".to_owned(),
        ),
    }
}

fn kind(body: &Body) -> String {
    match body {
        Body::Message(message) => message.work.word(),
        Body::Open(_) => "new thread",
        Body::Announce(_) => "announcement",
        Body::Overview(_) => "overview",
        Body::DeadLetters(_) => "dead letters",
        Body::Forge(_) => "forge hint",
        Body::Control(control) => match control.want {
            ControlAction::Stop { .. } => "stop",
            ControlAction::StopAll => "stop all",
            ControlAction::Halt { .. } => "halt",
            ControlAction::Now { .. } => "send now",
            ControlAction::Withdraw { .. } => "withdraw",
            ControlAction::Diff { .. } => "diff",
            ControlAction::SetUpLog { .. } => "set-up log",
            ControlAction::Configure { .. } => "configure",
            ControlAction::OwnKey { .. } => "own key",
            ControlAction::Forge { .. } => "forge",
            ControlAction::Command { command } => command.row().name,
            ControlAction::Again { .. } => "run again",
            ControlAction::Help { .. } => "help",
            ControlAction::Say { .. } => "say",
            ControlAction::Settle { .. } => "decision",
            ControlAction::Sandboxes { .. } => "sandboxes",
            ControlAction::Connect { .. } => "connect",
            ControlAction::Publish { .. } => "pull request",
            ControlAction::AskDestroy { .. } => "destroy?",
            ControlAction::Operate { operation, .. } => operation.word(),
        },
    }
    .to_owned()
}

async fn put_back(queues: &DeadLetterQueues, all: impl Iterator<Item = &DeadLetter>) {
    for dead_letter in all {
        if let Err(error) = queues.put_back(dead_letter, 0).await {
            tell!("{error}; {} comes back automatically within a minute.", dead_letter.id);
        }
    }
}

fn listed(stack: &Stack, judged: Vec<JudgedLetter>) -> Result<Output, CommandError> {
    if judged.is_empty() {
        let answer = DeadLettersAnswer { letters: Vec::new() };
        let words = "There are no dead letters. (The worker removes them automatically and notifies their threads.)";
        return Output::new(words.to_owned(), &answer, ExitStatus::Notice);
    }
    let can = judged.iter().any(|one| one.replay == Replay::Send);
    let lines: Vec<DeadLetterLine> = judged.into_iter().map(|one| one.line).collect();
    let mut words = shown(&lines);
    if can {
        words.push_str(&format!(
            "\nSend one again with: bobbin {} dead replay ID (or --all)",
            stack.said
        ));
    }
    Output::new(words, &DeadLettersAnswer { letters: lines }, ExitStatus::Done)
}

async fn send(
    stack: &Stack,
    queues: &DeadLetterQueues,
    wanted: Vec<JudgedLetter>,
) -> Result<Output, CommandError> {
    if wanted.is_empty() {
        return Err(CommandError::not_found(format!(
            "There is no such dead letter. List them with: bobbin {} dead list",
            stack.said
        )));
    }
    let (mut lines, mut failed) = (Vec::new(), false);
    for mut one in wanted {
        one.line.done = Some("left");
        match one.replay {
            Replay::Send => match queues.send_again(&one.dead_letter).await {
                Ok(()) => {
                    one.line.done = Some("sent");
                    one.line.why = follow(stack, &one.dead_letter);
                }
                Err(error) => {
                    failed = true;
                    one.line.why = format!("{error}: repeat it, which is harmless");
                }
            },
            // Left in the queue: the worker tells the people who wait, and deletes it.
            _ => put_back(queues, [&one.dead_letter].into_iter()).await,
        }
        lines.push(one.line);
    }
    let sent = lines.iter().filter(|line| line.done == Some("sent")).count();
    let code = match sent {
        _ if failed => ExitStatus::Failed,
        0 => ExitStatus::Notice,
        _ => ExitStatus::Done,
    };
    let words = format!("{}\n{sent} of {} sent again.", shown(&lines), lines.len());
    Output::new(words, &DeadLettersAnswer { letters: lines }, code)
}

fn follow(stack: &Stack, dead_letter: &DeadLetter) -> String {
    match thread_of_group(&dead_letter.group) {
        Some(thread) => {
            format!("sent again; follow it with: bobbin {} thread follow {thread}", stack.said)
        }
        None => "sent again".to_owned(),
    }
}

fn shown(lines: &[DeadLetterLine]) -> String {
    let now_ms = now_ms();
    let row = |line: &DeadLetterLine| {
        [
            line.id.clone(),
            line.queue.to_owned(),
            line.what.clone(),
            line.of.clone(),
            when(line.dead_since_ms, now_ms),
            line.why.clone(),
        ]
    };
    let rows: Vec<[String; 6]> = lines.iter().map(row).collect();
    table(["ID", "QUEUE", "WHAT", "OF", "DEAD", "WHY"], &rows, Style::of_output())
}
