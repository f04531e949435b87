//! Follows a test turn by its record, and deletes its sandbox.

use std::time::Duration;

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::deployed::Deployed;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Message, Reply, Work};
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::sandbox::{Phase, SandboxState};
use bobbin_core::records::session::Session;
use bobbin_core::records::stage::Stage;
use bobbin_sandbox::daytona::DaytonaError;
use tokio::time::Instant;

use super::{TestOptions, TestTask};
use crate::following::{NOT_TAKEN, POLL, TAKEN};
use crate::setup::report::Report;
use crate::target::StackTarget;

/// Consecutive failed polls before giving up.
const FAILED_POLLS_MAX: u32 = 5;
/// Time for stopping the turn and deleting its sandbox.
const TIDY_MS_MAX: u64 = 4 * 60_000;

/// A turn in its own thread.
pub struct TestTurn {
    /// The thread; nothing else happens in it.
    pub thread: ThreadKey,
    /// The test's author.
    pub by: Person,
    /// How the author is answered.
    pub reply: Reply,
    /// The author's channel, roles and permissions.
    pub membership: Membership,
}

/// Result of the test turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Followed {
    /// The agent's answer is in the thread.
    Answered,
    /// It ended otherwise or not at all; reported already.
    Otherwise,
}

/// Progress in words, and the outcome once there is one.
fn far(session: Option<&Session>) -> (&'static str, Option<&Outcome>) {
    let Some(session) = session else {
        return ("is waiting for a worker", None);
    };
    let Some(turn) = &session.turn else {
        let ended = session.ended.last().map(|ended| &ended.outcome);
        return ("has ended", ended);
    };
    let words = match (&turn.stage, session.sandbox.phase) {
        (Stage::Ending { .. }, _) => "is being posted in the thread",
        (Stage::Running(_), _) => "is running",
        (Stage::Prompting(_), _) => "is being sent to the agent",
        (Stage::Received { .. }, Phase::Active) => "has its sandbox, and a healthy server in it",
        (Stage::Received { .. }, Phase::Error) => "has no sandbox: creating one failed",
        (Stage::Received { .. }, _) => "is getting its sandbox",
    };
    (words, None)
}

/// Follows the turn and reports each stage.
///
/// # Errors
/// The record cannot be read; with advice.
pub async fn follow(
    stack: &Deployed,
    report: &mut Report,
    turn: &TestTurn,
    minutes: u64,
) -> Result<Followed, String> {
    let began = Instant::now();
    let (mut words, mut trouble, mut hinted) = ("", String::new(), false);
    while began.elapsed() < Duration::from_secs(minutes * 60) {
        let session = record(stack, &turn.thread).await?;
        let (now, end) = far(session.as_ref());
        let seconds = began.elapsed().as_secs_f64();
        if now != words {
            report.progress(&format!("{seconds:>6.1} s  the task {now}"));
            words = now;
        }
        let present = session.as_ref().and_then(|session| session.turn.as_ref());
        if let Some(why) = present.and_then(|turn| turn.trouble.as_ref())
            && *why != trouble
        {
            report.progress(&format!("{seconds:>6.1} s  trouble: {why}"));
            trouble.clone_from(why);
        }
        if session.is_none() && !hinted && began.elapsed() > TAKEN {
            hinted = true;
            report.note(NOT_TAKEN);
        }
        if let Some(outcome) = end {
            return Ok(told(report, outcome, seconds));
        }
        tokio::time::sleep(POLL).await;
    }
    report.wrong(
        &format!("After {minutes} minutes the task still {words}"),
        "The worker's log group in CloudWatch says what it is waiting for. The task is now stopped.",
    );
    stop(stack, turn).await?;
    Ok(Followed::Otherwise)
}

fn told(report: &mut Report, outcome: &Outcome, seconds: f64) -> Followed {
    match outcome {
        Outcome::Answered | Outcome::Joined { .. } => {
            report.right(&format!("The turn was answered after {seconds:.0} s"));
            return Followed::Answered;
        }
        Outcome::Failed { reason } => report.wrong(
            &format!("The turn failed: {reason}"),
            "bobbin check tries the keys; the worker's log group in CloudWatch has the details.",
        ),
        Outcome::OverBudget { reason, .. } => report.wrong(
            &format!("A budget stopped the turn: {reason}"),
            "Raise the budget, or wait until it is filled again.",
        ),
        Outcome::Cancelled { by } => report.wrong(&format!("The turn was stopped by {by}"), ""),
        Outcome::Lost => report.wrong(
            "The sandbox vanished while the agent worked",
            "Daytona's dashboard says why: its quota, or somebody who deleted it.",
        ),
    }
    Followed::Otherwise
}

/// Deletes the sandbox through the product's own reset, and checks that it is gone.
///
/// # Errors
/// What is left, and how to delete it by hand.
pub async fn tidy(
    target: &StackTarget,
    stack: &Deployed,
    report: &mut Report,
    turn: &TestTurn,
    options: &TestOptions,
) -> Result<(), String> {
    if options.keep {
        report.note("The sandbox is kept; it pauses and ends automatically.");
        return Ok(());
    }
    let before = record(stack, &turn.thread).await?;
    let generation = before.as_ref().map_or(0, |session| session.sandbox.generation);
    let reset = Message {
        id: format!("setup-reset-{}", now_ms()).into(),
        thread: turn.thread.clone(),
        accepted_at_ms: now_ms(),
        work: Work::Reset {
            by: turn.by.clone(),
            membership: turn.membership.clone(),
            keeps_files: false,
        },
    };
    stack.send(&Body::Message(reset)).await?;
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(TIDY_MS_MAX) {
        let session = record(stack, &turn.thread).await?;
        let gone = session.is_some_and(|session| {
            session.sandbox.phase == Phase::Destroyed
                && session.turn.is_none()
                && session.sandbox.generation >= generation
        });
        if gone && gone_at_provider(target, stack, &turn.thread, generation).await {
            report.right("The test's sandbox is deleted; its thread stays as proof");
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Err(format!(
        "The test's sandbox {} is not gone after {} s. It ends automatically after some hours; to end it now, say reset in the thread, or delete it at https://app.daytona.io/dashboard/sandboxes.",
        sandbox_name(stack.name(), &turn.thread.sandbox(), generation),
        TIDY_MS_MAX / 1_000
    ))
}

/// Asks the provider; without a key here or an answer, the record decides.
async fn gone_at_provider(
    target: &StackTarget,
    stack: &Deployed,
    thread: &ThreadKey,
    generation: u32,
) -> bool {
    let Some(key) = target.key("daytona_api_key").await else {
        return true;
    };
    let Ok(daytona) = target.daytona(&key.value) else {
        return true;
    };
    let name = sandbox_name(stack.name(), &thread.sandbox(), generation);
    match daytona.observe(&name).await {
        Ok(sandbox) => sandbox.sandbox_state() == SandboxState::Gone,
        Err(DaytonaError::NotFound) | Err(_) => true,
    }
}

async fn stop(stack: &Deployed, turn: &TestTurn) -> Result<(), String> {
    let control = Control {
        id: format!("setup-stop-{}", now_ms()),
        thread: turn.thread.clone(),
        by: turn.by.clone(),
        reply: turn.reply.clone(),
        membership: turn.membership.clone(),
        want: ControlAction::Stop { turn: None },
    };
    stack.send(&Body::Control(control)).await
}

/// Reads the record, with retries.
async fn record(stack: &Deployed, thread: &ThreadKey) -> Result<Option<Session>, String> {
    let store = stack.store()?;
    let mut failed = 0;
    loop {
        match store.record(thread).await {
            Ok((session, _)) => return Ok(session),
            Err(error) => {
                failed += 1;
                if failed >= FAILED_POLLS_MAX {
                    return Err(format!(
                        "The record of the test's thread cannot be read: {error}. The credentials need dynamodb:BatchGetItem on the stack's table."
                    ));
                }
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Reports whether the answer is in the thread.
pub fn tell_answer(target: &StackTarget, report: &mut Report, task: &TestTask, is_there: bool) {
    if is_there {
        report.right(&format!("The answer is in the thread: {}", task.word));
    } else {
        report.wrong(
            &format!("The turn has ended, but its thread does not contain {}", task.word),
            &format!(
                "Read the thread: the model may have answered in its own words; set another model with {}",
                target.sam_deploy("Model=provider/model")
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_ends_at_recorded_outcome() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        assert_eq!(far(None), ("is waiting for a worker", None));
        let mut session = Session::new(thread, 1);
        assert_eq!(far(Some(&session)), ("has ended", None));
        session.ended.push(bobbin_core::records::turn::EndedTurn {
            id: "t".into(),
            outcome: Outcome::Answered,
            at_ms: 2,
        });
        assert_eq!(far(Some(&session)), ("has ended", Some(&Outcome::Answered)));
    }
}
