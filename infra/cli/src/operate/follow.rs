//! Following a turn to its end, for `send --follow` and `thread follow`: how far it is by the record, the agent's words from
//! the agent itself, and the outcome by the record and the ledger. Who follows changes nothing: to stop following stops
//! nothing else.
//!
//! The words go to standard output and nothing else does, unless JSON is wanted; how far it is goes to standard error.

use std::time::{Duration, Instant};

use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::records::ledger::Entry;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::EndedTurn;
use bobbin_core::text::one_line;
use serde::Serialize;

use super::arguments::Follow;
use super::hear::Ear;
use super::progress::{Far, Words};
use super::show;
use super::stack::Stack;
use crate::output::{CommandError, Output, Status};
use crate::terminal::Screen;
use crate::time::span;

/// Between two looks at the record.
const POLL: Duration = Duration::from_millis(500);
/// One wait for the agent's words.
const TICK: Duration = Duration::from_millis(200);
/// Looks at the record that may fail one after another.
const FAILED_POLLS_MAX: u32 = 10;
/// After this long without a worker somebody is told where to look.
const TAKEN: Duration = Duration::from_secs(45);

/// The turn that is followed, and until when.
pub struct Wanted<'a> {
    pub thread: &'a ThreadKey,
    pub turn: &'a TurnId,
    pub within_ms: u64,
    /// It was sent just now: a worker may not have taken it yet.
    pub is_sent: bool,
}

/// A task in its thread, as it is told to programs.
#[derive(Serialize)]
pub struct Answer {
    /// The id of the turn.
    id: String,
    thread: String,
    /// Where people see the thread, if that is known.
    link: Option<String>,
    /// How the turn stands; none where it was not followed.
    turn: Option<TurnAnswer>,
}

/// How a turn that was followed stands.
#[derive(Serialize)]
pub struct TurnAnswer {
    /// `answered`, `failed`, `cancelled` or `lost`; `running` where the following ended before the turn.
    outcome: &'static str,
    /// Why it failed, or who stopped it.
    why: Option<String>,
    /// What the agent answered; where `whole` is false only its beginning, as the ledger keeps it.
    answer: String,
    whole: bool,
    /// From acceptance to its end, or to now.
    took_ms: u64,
}

impl Answer {
    pub fn of(
        thread: &ThreadKey,
        id: &TurnId,
        link: Option<String>,
        turn: Option<TurnAnswer>,
    ) -> Self {
        Self { id: id.to_string(), thread: thread.to_string(), link, turn }
    }
}

/// What is typed to follow it again.
pub fn command(stack: &Stack, thread: &ThreadKey, turn: &TurnId) -> String {
    format!("bobbin {} thread follow {thread} --turn {turn}", stack.said)
}

/// Runs `thread follow`: the turn that is named, else the one that runs, else the last.
pub async fn run(stack: &Stack, what: &Follow, json: bool) -> Result<Output, CommandError> {
    let thread = what.thread.key(stack).await?;
    let (session, flags) = show::record(stack, &thread).await?;
    let present = session.turn.as_ref().map(|turn| &turn.id);
    let last = session.ended.last().map(|ended| &ended.id);
    let turn = match &what.turn {
        Some(id) => TurnId::from(id.clone()),
        None => present
            .or(last)
            .cloned()
            .ok_or_else(|| CommandError::not_found(format!("Nothing has run in {thread} yet.")))?,
    };
    let known = session.turn.as_ref().is_some_and(|present| present.covers(&turn))
        || flags.queued.contains_key(&turn)
        || ended(stack, &session, &turn).await?.is_some();
    if !known {
        return Err(CommandError::not_found(format!(
            "There is no turn {turn} in {thread}. Its turns are listed by: bobbin {} thread show {thread}",
            stack.said
        )));
    }
    let wanted = Wanted { thread: &thread, turn: &turn, within_ms: what.within_ms, is_sent: false };
    follow(stack, wanted, None, json).await
}

/// Follows it to its end, or to the end of the time, or until somebody presses Ctrl-C.
pub async fn follow(
    stack: &Stack,
    wanted: Wanted<'_>,
    link: Option<String>,
    json: bool,
) -> Result<Output, CommandError> {
    let (thread, turn) = (wanted.thread, wanted.turn);
    let began = Instant::now();
    let mut following = Following::new(stack, &wanted, json);
    let end = tokio::select! {
        end = following.until_its_end() => Some(end?),
        _ = tokio::time::sleep(Duration::from_millis(wanted.within_ms)) => None,
        _ = tokio::signal::ctrl_c() => {
            following.screen.clear();
            tell!("The turn goes on. Follow it again with: {}", command(stack, thread, turn));
            let stands = following.stands(began);
            let answer = Answer::of(thread, turn, link, Some(stands));
            return Output::new(String::new(), &answer, Status::Interrupted);
        }
    };
    let (stands, status) = match end {
        Some((outcome, entry)) => following.ended(outcome, entry.as_ref(), began).await,
        None => {
            following.screen.clear();
            tell!(
                "The turn still runs after {}, and the following ends here. Go on with: {}",
                span(wanted.within_ms),
                command(stack, thread, turn)
            );
            (following.stands(began), Status::StillRuns)
        }
    };
    let answer = Answer::of(thread, turn, link, Some(stands));
    Output::new(String::new(), &answer, status)
}

/// How the turn ended, if it has.
async fn ended(
    stack: &Stack,
    session: &Session,
    turn: &TurnId,
) -> Result<Option<(Outcome, Option<Entry>)>, CommandError> {
    let of_record = session.ended.iter().rev().find(|one| one.id == *turn);
    if of_record.is_none() && session.ended.is_empty() {
        return Ok(None);
    }
    let entries = stack.store.entries(&session.thread, std::slice::from_ref(turn)).await;
    let entry = entries.map_err(|e| e.to_string())?.pop();
    let outcome = of_record.map(|EndedTurn { outcome, .. }| outcome.clone());
    let outcome = outcome.or_else(|| entry.as_ref().map(|entry| entry.outcome.clone()));
    Ok(outcome.map(|outcome| (outcome, entry)))
}

/// A turn while it is followed.
struct Following<'a> {
    stack: &'a Stack,
    thread: &'a ThreadKey,
    turn: &'a TurnId,
    is_sent: bool,
    json: bool,
    ear: Ear<'a>,
    words: Words,
    screen: Screen,
    /// Looks at the record that failed one after another.
    failed_polls: u32,
}

impl<'a> Following<'a> {
    fn new(stack: &'a Stack, wanted: &Wanted<'a>, json: bool) -> Self {
        Self {
            stack,
            thread: wanted.thread,
            turn: wanted.turn,
            is_sent: wanted.is_sent,
            json,
            ear: Ear::new(stack),
            words: Words::default(),
            screen: Screen::new(),
            failed_polls: 0,
        }
    }

    async fn until_its_end(&mut self) -> Result<(Outcome, Option<Entry>), CommandError> {
        let began = Instant::now();
        let (mut polled, mut hinted, mut deaf) = (None::<Instant>, false, false);
        let mut far = Far::default();
        loop {
            if polled.is_none_or(|at| at.elapsed() >= POLL) {
                polled = Some(Instant::now());
                if let Some(end) = self.poll(&mut far).await? {
                    return Ok(end);
                }
            }
            if self.is_sent && far.is_untaken() && !hinted && began.elapsed() > TAKEN {
                hinted = true;
                self.screen.note("No worker has taken the task yet: look at the worker's log group in CloudWatch, and at docs/RUNBOOK.md, WorkerErrors and OldestMessage.");
            }
            let line = far.line(self.ear.step().as_deref());
            self.screen.progress(&line, &far.line(None), began.elapsed());
            self.ear.listen(TICK).await;
            let words = self.ear.words();
            self.say(&words);
            if let Some(why) = self.ear.trouble()
                && !std::mem::replace(&mut deaf, true)
            {
                let why = one_line(&why);
                self.screen.note(&format!(
                    "The agent's words cannot be had at the moment ({why}); that is tried again."
                ));
            }
        }
    }

    /// Looks at the record: how far the turn is, or how it ended. Some looks may fail.
    async fn poll(
        &mut self,
        far: &mut Far,
    ) -> Result<Option<(Outcome, Option<Entry>)>, CommandError> {
        let (session, flags) = match self.stack.store.record(self.thread).await {
            Ok(found) => found,
            Err(error) => {
                self.failed_polls += 1;
                if self.failed_polls < FAILED_POLLS_MAX {
                    return Ok(None);
                }
                self.screen.clear();
                let again = command(self.stack, self.thread, self.turn);
                let words = format!(
                    "{error}. The turn goes on all the same; follow it again with: {again}"
                );
                return Err(words.into());
            }
        };
        self.failed_polls = 0;
        if let Some(session) = &session {
            if let Some(end) = self.over(session).await? {
                return Ok(Some(end));
            }
            let present = session.turn.as_ref();
            if let Some(turn) = present.filter(|turn| turn.covers(self.turn)) {
                self.ear.attend(session, turn);
            }
        }
        *far = Far::of(session.as_ref(), &flags, self.turn);
        Ok(None)
    }

    /// How it ended. A turn that the record still has is not over, whatever the ledger of an earlier time says.
    async fn over(
        &self,
        session: &Session,
    ) -> Result<Option<(Outcome, Option<Entry>)>, CommandError> {
        if session.turn.as_ref().is_some_and(|turn| turn.covers(self.turn)) {
            return Ok(None);
        }
        ended(self.stack, session, self.turn).await
    }

    fn say(&mut self, words: &[String]) {
        let more = self.words.more(words);
        if !self.json {
            self.screen.words(&more);
        }
    }

    /// Says the rest of the words, and how it ended.
    async fn ended(
        mut self,
        outcome: Outcome,
        entry: Option<&Entry>,
        began: Instant,
    ) -> (TurnAnswer, Status) {
        let mut stands = self.stands(began);
        if let Some((words, answer)) = self.ear.last().await {
            self.say(&words);
            if !answer.is_empty() {
                (stands.answer, stands.whole) = (answer, true);
            }
        }
        if let Some(entry) = entry {
            stands.took_ms = entry.took_ms();
            if !stands.whole && stands.answer.is_empty() {
                stands.answer.clone_from(&entry.answered);
                if !entry.answered.is_empty() && self.words.is_empty() {
                    self.say(std::slice::from_ref(&entry.answered));
                    self.screen.note("This is the beginning of the answer: the whole of it stands in the thread.");
                }
            }
        }
        self.screen.finish();
        let took = span(stands.took_ms);
        let (word, why, status, told) = match outcome {
            Outcome::Answered | Outcome::Joined { .. } => {
                ("answered", None, Status::Done, format!("Answered after {took}."))
            }
            Outcome::Failed { reason } => {
                let told = format!("The turn has failed after {took}: {reason}");
                ("failed", Some(reason), Status::TurnFailed, told)
            }
            Outcome::Cancelled { by } => {
                let told = format!("The turn was stopped by {by} after {took}.");
                ("cancelled", Some(by), Status::Cancelled, told)
            }
            Outcome::Lost => (
                "lost",
                None,
                Status::Lost,
                format!(
                    "The sandbox vanished while the agent worked, after {took}. Send the task again."
                ),
            ),
        };
        tell!("{told}");
        (stands.outcome, stands.why) = (word, why);
        (stands, status)
    }

    /// How it stands while it runs.
    fn stands(&self, began: Instant) -> TurnAnswer {
        TurnAnswer {
            outcome: "running",
            why: None,
            answer: self.words.all(),
            whole: false,
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(Ms::MAX),
        }
    }
}
