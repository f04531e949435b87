//! `stop`, `start`, `destroy`, `snapshot`: sent to the sandbox's own group, then followed.
//!
//! The record is only read here. It may have changed by the time the message reaches the head of the group, so the
//! worker decides again by the same rules.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::Queues;
use bobbin_core::base::ids::{Ms, SandboxKey, ThreadKey, TurnId, digest};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::protocol::decide::operate::{Outlook, outlook};
use bobbin_core::records::control::{Control, ControlAction, Operation};
use bobbin_core::records::message::{Body, Message, Reply, Work};
use bobbin_core::records::sandbox::{Operated, SandboxRecord, Sharing};
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_core::shown::sandboxes::{Listed, losses};
use serde::Serialize;

use super::arguments::{Act, Destroy};
use super::line::stage;
use super::named;
use super::sandbox::{self, Chosen};
use super::stack::Stack;
use crate::columns::one_line;
use crate::output::{CommandError, ExitStatus, Output};
use crate::terminal::{answer, can_ask};
use crate::time::{pause, span};

/// Poll interval.
const POLL_MS: u64 = 500;
/// Name shown on a card when the operator ends a turn.
const OPERATOR: &str = "the operator";

/// The JSON answer.
#[derive(Serialize)]
struct Answer {
    /// The thread that was named; `None` if the sandbox was named.
    thread: Option<ThreadKey>,
    sandbox: SandboxKey,
    /// Display name at the time of the request.
    name: Option<String>,
    /// The operation, in the record's notation.
    want: &'static str,
    /// `done`, `failed`, or `waiting` (requested, but not finished within the wait).
    result: &'static str,
    /// Why it failed, in a sentence; set only if `result` is `failed`.
    trouble: Option<String>,
    /// Current phase of the sandbox.
    phase: &'static str,
    /// The first turn that was stopped for it.
    halted: Option<TurnId>,
    /// All turns that were stopped for it.
    all_halted: Vec<TurnId>,
    /// The new snapshot.
    snapshot: Option<String>,
}

/// `stop` and `start`.
pub async fn run(stack: &Stack, want: Operation, what: &Act) -> Result<Output, CommandError> {
    let chosen = sandbox::chosen(stack, &what.sandbox, what.tenant.as_ref()).await?;
    carried(stack, want, &chosen, what.even_if_busy, what.wait_ms).await
}

/// `destroy`: confirms once in a terminal; elsewhere a shared sandbox is deleted only with `--yes`.
pub async fn destroy(stack: &Stack, what: &Destroy, json: bool) -> Result<Output, CommandError> {
    let want = Operation::Destroy;
    let act = &what.act;
    let chosen = sandbox::chosen(stack, &act.sandbox, act.tenant.as_ref()).await?;
    if let Some(why) = pointless(&chosen.record, want) {
        return Err(nothing(want, why, &chosen.record));
    }
    let listed = Listed::of(&chosen.key, &chosen.record);
    let lost = || {
        let lines = losses(&listed, now_ms(), ToString::to_string);
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        lines.join("\n")
    };
    let mut ends_turns = act.even_if_busy;
    if !what.yes && can_ask() && !json {
        tell!("{} will be deleted with its files.\n{}", chosen.said, lost());
        let said = answer("Destroy it? (yes; anything else keeps it)")?;
        if said.as_deref() != Some("yes") {
            return Err("Nothing was done.".into());
        }
        // The prompt said that running turns end, and the person agreed.
        ends_turns = true;
    } else if !what.yes && chosen.record.is_shared() {
        return Err(format!(
            "{} has a name, and others may work in it. Nothing was done. --yes destroys it:\n{}",
            chosen.said,
            lost()
        )
        .into());
    }
    if !what.snapshot {
        return carried(stack, want, &chosen, ends_turns, act.wait_ms).await;
    }
    let kept = carried(stack, Operation::Snapshot, &chosen, false, act.wait_ms).await?;
    if kept.status != ExitStatus::Done {
        tell!("The sandbox was not destroyed: it has no snapshot yet.");
        return Ok(kept);
    }
    tell!("{}", kept.text);
    // The record may have changed during the prompt: read it again.
    let chosen = sandbox::chosen(stack, &act.sandbox, act.tenant.as_ref()).await?;
    let mut destroyed = carried(stack, want, &chosen, ends_turns, act.wait_ms).await?;
    destroyed.json["snapshot"] = kept.json["snapshot"].clone();
    Ok(destroyed)
}

/// Sends the operation and waits for its result.
pub async fn carried(
    stack: &Stack,
    want: Operation,
    chosen: &Chosen,
    ends_turns: bool,
    wait_ms: u64,
) -> Result<Output, CommandError> {
    let record = &chosen.record;
    if let Some(why) = pointless(record, want) {
        return Err(nothing(want, why, record));
    }
    if want == Operation::Snapshot
        && let Err(why) = stack.provider_of(record).await?.facts().snapshots()
    {
        return Err(nothing(want, &why, record));
    }
    let queues = stack.queues()?;
    let turns = at_work(stack, chosen).await?;
    // A snapshot waits, within a bound, for running turns to end.
    let waits = want == Operation::Snapshot;
    if !turns.is_empty() && !waits {
        if !ends_turns {
            return Err(busy(stack, want, &chosen.said, &turns).into());
        }
        for at_work in &turns {
            halt(&queues, at_work).await?;
        }
    }
    let halted = if waits { Vec::new() } else { turns };
    let halted: Vec<TurnId> = halted.into_iter().map(|at_work| at_work.turn).collect();
    let behind = chosen.thread.as_ref().map_or(0, |(_, flags)| flags.waiting().len());
    if behind > 0 {
        tell!(
            "{behind} prompts of this thread are waiting: they run afterwards, and start a sandbox again."
        );
    }
    let asked = ask(stack, &queues, want, &chosen.key.group()).await?;
    let came_of_it = followed(stack, &chosen.key, &asked.0, wait_ms, &chosen.said).await?;
    shown(stack, want, chosen, (&asked.1, came_of_it), halted)
}

/// Why the operation would have no effect, by the current record.
fn pointless(record: &SandboxRecord, want: Operation) -> Option<&'static str> {
    if record.sharing.closing.is_some() && want != Operation::Destroy {
        return Some("it is being destroyed");
    }
    // Destroying a sandbox that is gone frees its name.
    if want == Operation::Destroy && record.is_shared() {
        return None;
    }
    let none = ThreadKey::discord("0", "0").ok()?;
    let session = Session {
        sandbox: SandboxRecord {
            sharing: Sharing { in_use: Vec::new(), ..record.sharing.clone() },
            ..record.clone()
        },
        ..Session::new(none, 0)
    };
    match outlook(&session, want) {
        Outlook::Pointless(why) => Some(why),
        Outlook::Open | Outlook::Busy => None,
    }
}

fn nothing(want: Operation, why: &str, record: &SandboxRecord) -> CommandError {
    CommandError::not_found(format!(
        "There is nothing to {}: {why}. It is {} now.",
        verb(want),
        record.phase.word()
    ))
}

/// A turn that is under way in the sandbox.
struct AtWork {
    thread: ThreadKey,
    turn: TurnId,
    /// The turn in its thread's record; `None` if it is no longer there.
    found: Option<Turn>,
}

/// The turns that use a workspace, and the named thread's turn, which may not have one yet.
async fn at_work(stack: &Stack, chosen: &Chosen) -> Result<Vec<AtWork>, CommandError> {
    let in_use = chosen.record.sharing.in_use.iter();
    let mut turns: BTreeSet<(ThreadKey, TurnId)> =
        in_use.map(|one| (one.thread.clone(), one.turn.clone())).collect();
    if let Some((session, _)) = &chosen.thread
        && let Some(turn) = &session.turn
    {
        turns.insert((session.thread.clone(), turn.id.clone()));
    }
    let threads: BTreeSet<ThreadKey> = turns.iter().map(|(thread, _)| thread.clone()).collect();
    let threads: Vec<ThreadKey> = threads.into_iter().collect();
    let found = stack.store.records(&threads).await;
    let found = found.map_err(|e| named::unread(&e))?;
    let of = |(thread, turn): (ThreadKey, TurnId)| {
        let session = found.iter().find(|(session, _)| session.thread == thread);
        let present = session.and_then(|(session, _)| session.turn.clone());
        AtWork { found: present.filter(|present| present.id == turn), thread, turn }
    };
    Ok(turns.into_iter().map(of).collect())
}

fn busy(stack: &Stack, want: Operation, said: &str, turns: &[AtWork]) -> String {
    let one = |at_work: &AtWork| match &at_work.found {
        Some(turn) => format!(
            "A turn of {} is running there ({}, for {}; {})",
            turn.by.name,
            stage(&turn.stage),
            span(now_ms().saturating_sub(turn.accepted_at_ms)),
            turn.id,
        ),
        None => format!("The turn {} of {} is running there", at_work.turn, at_work.thread),
    };
    let all: Vec<String> = turns.iter().map(one).collect();
    let them = if turns.len() == 1 { "it" } else { "them" };
    format!(
        "{}. Nothing was done.\nTry again when {} ended, or end {them} first: bobbin {} sandbox {} {said} --even-if-busy",
        all.join(". "),
        if turns.len() == 1 { "it has" } else { "they have" },
        stack.said,
        verb(want),
    )
}

/// The command's verb for it.
const fn verb(want: Operation) -> &'static str {
    match want {
        Operation::Pause => "stop",
        Operation::Resume => "start",
        Operation::Destroy => "destroy",
        Operation::Forget => "forget",
        Operation::Snapshot => "snapshot",
        Operation::Create => "create",
    }
}

/// Stops the turn, as the Stop button does.
async fn halt(queues: &Queues, at_work: &AtWork) -> Result<(), CommandError> {
    let AtWork { thread, turn, .. } = at_work;
    let control = Control {
        id: format!("halt-{}", &digest(&["halt", &thread.to_string(), turn])[..24]),
        thread: thread.clone(),
        by: Person { id: String::new(), name: OPERATOR.to_owned() },
        reply: Reply::Nobody,
        membership: Membership::default(),
        want: ControlAction::Halt { turn: turn.clone() },
    };
    let sent = queues.send(&Body::Control(control)).await;
    sent.map_err(|e| format!("{e}. The sandbox is unchanged: try again.").into())
}

/// Sends the message; returns its id and time.
pub async fn ask(
    stack: &Stack,
    queues: &Queues,
    want: Operation,
    group: &ThreadKey,
) -> Result<(TurnId, Ms), CommandError> {
    let accepted_at_ms = now_ms();
    let id = TurnId::from(format!("{}-{}-{accepted_at_ms}", want.word(), group.short_hash()));
    let message = Message {
        id: id.clone(),
        thread: group.clone(),
        accepted_at_ms,
        work: Work::Operate { want, by: None },
    };
    let sent = queues.send(&Body::Message(message)).await;
    sent.map_err(|e| {
        format!(
            "{e}. It is unknown whether this was requested; see the state with: bobbin {} sandbox list",
            stack.said
        )
    })?;
    Ok((id, accepted_at_ms))
}

/// Polls the sandbox's record for the result; `None` if there is none yet.
pub async fn followed(
    stack: &Stack,
    key: &SandboxKey,
    id: &TurnId,
    wait_ms: u64,
    said: &str,
) -> Result<(SandboxRecord, Option<Operated>), CommandError> {
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let mut told = None;
    loop {
        let record = named::record(stack, key).await?.unwrap_or_default();
        let known = record.history.operated.iter().find(|one| one.id == *id).cloned();
        if known.is_some() || Instant::now() >= until {
            return Ok((record, known));
        }
        let stands = match record.sharing.in_use.len() {
            0 => match step(&record) {
                None => record.phase.word().to_owned(),
                Some(step) => format!("{}, {step}", record.phase.word()),
            },
            1 => format!("{}, a turn is running in it", record.phase.word()),
            n => format!("{}, {n} turns are running in it", record.phase.word()),
        };
        if told.as_ref() != Some(&stands) {
            tell!("{said}: {stands}");
            told = Some(stands);
        }
        pause(POLL_MS).await;
    }
}

/// The set-up step that runs.
fn step(record: &SandboxRecord) -> Option<String> {
    let set_up = record.project.set_up.as_ref().filter(|set_up| set_up.over_ms.is_none())?;
    let (nth, steps) = (set_up.ended.len(), &set_up.recipe.set_up);
    let name = one_line(&steps.get(nth)?.name);
    Some(format!("step {} of {}: {name}", nth + 1, steps.len()))
}

/// Formats the result.
pub fn shown(
    stack: &Stack,
    want: Operation,
    chosen: &Chosen,
    (asked_at_ms, (record, operated)): (&Ms, (SandboxRecord, Option<Operated>)),
    halted: Vec<TurnId>,
) -> Result<Output, CommandError> {
    let phase = record.phase.word();
    let made = record.snapshots.iter().find(|one| one.at_ms == *asked_at_ms);
    let made = made.filter(|_| want == Operation::Snapshot);
    let snapshot = made.map(|one| one.name.clone());
    let look = match chosen.thread() {
        Some(thread) => format!("bobbin {} thread show {thread}", stack.said),
        None => format!("bobbin {} sandbox list", stack.said),
    };
    let (result, trouble, words, code) = match operated {
        None => (
            "waiting",
            None,
            format!(
                "It was requested, but is not done yet: the sandbox is {phase}. Check again with: {look}"
            ),
            ExitStatus::Failed,
        ),
        Some(Operated { trouble: None, .. }) => {
            let done = done(stack, want, &chosen.record, snapshot.as_deref());
            ("done", None, done, ExitStatus::Done)
        }
        Some(Operated { trouble: Some(why), .. }) => (
            "failed",
            Some(why.clone()),
            format!(
                "It failed: {why}. The sandbox is {phase}. Its log and the worker's log say more: {look}"
            ),
            ExitStatus::Failed,
        ),
    };
    let answer = Answer {
        thread: chosen.thread().cloned(),
        sandbox: chosen.key.clone(),
        name: chosen.record.sharing.name.as_ref().map(ToString::to_string),
        want: want.word(),
        result,
        trouble,
        phase,
        halted: halted.first().cloned(),
        all_halted: halted,
        snapshot,
    };
    Output::new(words, &answer, code)
}

/// Describes the completed operation; `before` is the record at the time of the request.
fn done(stack: &Stack, want: Operation, before: &SandboxRecord, snapshot: Option<&str>) -> String {
    match (want, before.sharing.threads.len()) {
        (Operation::Pause, _) => {
            "It is stopped; its disk is kept, and the next message starts it again.".to_owned()
        }
        (Operation::Resume, _) => "It is running, and its server is healthy.".to_owned(),
        (Operation::Destroy, _) if !before.is_shared() => {
            "It is deleted with its files, and the thread is notified. The next message starts a fresh one."
                .to_owned()
        }
        (Operation::Destroy, 0) => "It is deleted with its files, and its name is free again.".to_owned(),
        (Operation::Destroy, 1) => {
            "It is deleted with its files, and its name is free again. The thread that worked in it is notified."
                .to_owned()
        }
        (Operation::Destroy, n) => format!(
            "It is deleted with its files, and its name is free again. The {n} threads that worked in it are notified."
        ),
        (Operation::Forget, _) => "Names and reasons are removed from the record.".to_owned(),
        (Operation::Snapshot, _) => match snapshot {
            Some(id) => format!(
                "The snapshot is ready: {id}\nStart a sandbox from it with: bobbin {} sandbox create NAME --snapshot {id}",
                stack.said
            ),
            None => "The snapshot is ready.".to_owned(),
        },
        (Operation::Create, _) => "It is created, and its server is healthy.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bobbin_core::records::recipe::{Recipe, RecipeSource, RecipeStep};
    use bobbin_core::records::sandbox::Phase;
    use bobbin_core::records::set_up::{SetUp, StepEnd};

    use super::*;

    #[test]
    fn pointless_operations_are_recognised() {
        let own = |phase| SandboxRecord { phase, ..SandboxRecord::default() };
        let named = |phase| SandboxRecord {
            sharing: Sharing {
                name: Some("frontend".parse().expect("a name")),
                ..own(phase).sharing
            },
            ..own(phase)
        };
        let why = pointless(&own(Phase::Paused), Operation::Pause);
        assert_eq!(why, Some("it is already paused"));
        let why = pointless(&own(Phase::Destroyed), Operation::Destroy);
        assert_eq!(why, Some("the thread has no sandbox"));
        // A name can be destroyed, too.
        assert_eq!(pointless(&named(Phase::Destroyed), Operation::Destroy), None);
        let closing = SandboxRecord {
            sharing: Sharing { closing: Some(Person::default()), ..named(Phase::Active).sharing },
            ..named(Phase::Active)
        };
        let why = pointless(&closing, Operation::Snapshot);
        assert_eq!(why, Some("it is being destroyed"));
        assert_eq!(pointless(&closing, Operation::Destroy), None);
    }

    #[test]
    fn running_step_is_named() {
        let mut record = SandboxRecord::default();
        assert_eq!(step(&record), None);
        let named = |name: &str| RecipeStep { name: name.to_owned(), run: String::new() };
        let recipe = Recipe {
            set_up: vec![named("npm ci"), named("createdb\nshop")],
            ..Recipe::empty(RecipeSource::Settings)
        };
        let mut set_up = SetUp::begin(recipe, None, 0, 0);
        set_up.ended.push(StepEnd::Done);
        record.project.set_up = Some(set_up.clone());
        assert_eq!(step(&record).as_deref(), Some("step 2 of 2: createdb shop"));
        record.project.set_up = Some(SetUp { over_ms: Some(1), ..set_up });
        assert_eq!(step(&record), None);
    }
}
