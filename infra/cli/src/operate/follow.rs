//! Follows a turn to its end, for `send --follow` and `thread follow`: progress from the record, text from the agent
//! itself, and the outcome from the record and the ledger. Following is read-only, and so is ending it.
//!
//! Only the agent's text goes to standard output (unless JSON is wanted); progress goes to standard error.

use std::time::{Duration, Instant};

use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::EndedTurn;
use bobbin_core::text::one_line;
use serde::Serialize;

use super::arguments::FollowTurn;
use super::hear::Ear;
use super::progress::{Far, Words};
use super::show;
use super::stack::Stack;
use crate::following::{NOT_TAKEN, POLL, TAKEN};
use crate::output::{CommandError, ExitStatus, Output};
use crate::terminal::Screen;
use crate::time::span;

/// Longest wait for the agent's text.
const TICK: Duration = Duration::from_millis(200);
/// Consecutive failed polls before giving up.
const FAILED_POLLS_MAX: u32 = 10;

/// The turn to follow, and the deadline.
pub struct WantedTurn<'a> {
    pub thread: &'a ThreadKey,
    pub turn: &'a TurnId,
    pub within_ms: u64,
    /// Just sent: a worker may not have taken it yet.
    pub is_sent: bool,
}

/// The JSON answer.
#[derive(Serialize)]
pub struct FollowAnswer {
    /// Turn id.
    id: String,
    thread: String,
    /// Link to the thread, if known.
    link: Option<String>,
    /// The turn's state; `None` if it was not followed.
    turn: Option<TurnAnswer>,
}

/// State of a followed turn.
#[derive(Serialize)]
pub struct TurnAnswer {
    /// `answered`, `failed`, `over_budget`, `cancelled` or `lost`; `running` if following ended first.
    outcome: &'static str,
    /// Why it failed, or who stopped it.
    why: Option<String>,
    /// The agent's answer; only its beginning, from the ledger, if `whole` is false.
    answer: String,
    whole: bool,
    /// From acceptance to the end, or until now.
    took_ms: u64,
}

impl FollowAnswer {
    pub fn of(
        thread: &ThreadKey,
        id: &TurnId,
        link: Option<String>,
        turn: Option<TurnAnswer>,
    ) -> Self {
        Self { id: id.to_string(), thread: thread.to_string(), link, turn }
    }
}

/// The command that follows it again.
pub fn command(stack: &Stack, thread: &ThreadKey, turn: &TurnId) -> String {
    format!("bobbin {} thread follow {thread} --turn {turn}", stack.said)
}

/// Runs `thread follow`: the named turn, else the running one, else the last.
pub async fn run(stack: &Stack, what: &FollowTurn, json: bool) -> Result<Output, CommandError> {
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
            "There is no turn {turn} in {thread}. List its turns with: bobbin {} thread show {thread}",
            stack.said
        )));
    }
    let wanted =
        WantedTurn { thread: &thread, turn: &turn, within_ms: what.within_ms, is_sent: false };
    follow(stack, wanted, None, json).await
}

/// Follows the turn until it ends, time runs out, or Ctrl-C.
pub async fn follow(
    stack: &Stack,
    wanted: WantedTurn<'_>,
    link: Option<String>,
    json: bool,
) -> Result<Output, CommandError> {
    let (thread, turn) = (wanted.thread, wanted.turn);
    let began = Instant::now();
    let mut following = FollowedTurn::new(stack, &wanted, json);
    let end = tokio::select! {
        end = following.until_its_end() => Some(end?),
        _ = tokio::time::sleep(Duration::from_millis(wanted.within_ms)) => None,
        _ = tokio::signal::ctrl_c() => {
            following.screen.clear();
            tell!("The turn continues. Follow it again with: {}", command(stack, thread, turn));
            let stands = following.stands(began);
            let answer = FollowAnswer::of(thread, turn, link, Some(stands));
            return Output::new(String::new(), &answer, ExitStatus::Interrupted);
        }
    };
    let (stands, status) = match end {
        Some((outcome, entry)) => following.ended(outcome, entry.as_ref(), began).await,
        None => {
            following.screen.clear();
            tell!(
                "The turn is still running after {}; following it ends here. Continue with: {}",
                span(wanted.within_ms),
                command(stack, thread, turn)
            );
            (following.stands(began), ExitStatus::StillRuns)
        }
    };
    let answer = FollowAnswer::of(thread, turn, link, Some(stands));
    Output::new(String::new(), &answer, status)
}

/// The turn's outcome, once it has one.
async fn ended(
    stack: &Stack,
    session: &Session,
    turn: &TurnId,
) -> Result<Option<(Outcome, Option<LedgerEntry>)>, CommandError> {
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

/// A followed turn.
struct FollowedTurn<'a> {
    stack: &'a Stack,
    thread: &'a ThreadKey,
    turn: &'a TurnId,
    is_sent: bool,
    json: bool,
    ear: Ear<'a>,
    words: Words,
    screen: Screen,
    /// Consecutive failed polls.
    failed_polls: u32,
}

impl<'a> FollowedTurn<'a> {
    fn new(stack: &'a Stack, wanted: &WantedTurn<'a>, json: bool) -> Self {
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

    async fn until_its_end(&mut self) -> Result<(Outcome, Option<LedgerEntry>), CommandError> {
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
                self.screen.note(NOT_TAKEN);
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
                    "The agent's words cannot be read at the moment ({why}); trying again."
                ));
            }
        }
    }

    /// Polls the record for progress or the outcome. A bounded number of polls may fail.
    async fn poll(
        &mut self,
        far: &mut Far,
    ) -> Result<Option<(Outcome, Option<LedgerEntry>)>, CommandError> {
        let (session, flags) = match self.stack.store.record(self.thread).await {
            Ok(found) => found,
            Err(error) => {
                self.failed_polls += 1;
                if self.failed_polls < FAILED_POLLS_MAX {
                    return Ok(None);
                }
                self.screen.clear();
                let again = command(self.stack, self.thread, self.turn);
                let words =
                    format!("{error}. The turn continues anyway; follow it again with: {again}");
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

    /// The outcome. A turn that is still in the record is not over, even if an older ledger entry says so.
    async fn over(
        &self,
        session: &Session,
    ) -> Result<Option<(Outcome, Option<LedgerEntry>)>, CommandError> {
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

    /// Prints the remaining text and the outcome.
    async fn ended(
        mut self,
        outcome: Outcome,
        entry: Option<&LedgerEntry>,
        began: Instant,
    ) -> (TurnAnswer, ExitStatus) {
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
                    self.screen
                        .note("This is the beginning of the answer: the thread has all of it.");
                }
            }
        }
        self.screen.finish();
        let took = span(stands.took_ms);
        let (word, why, status, told) = told(outcome, &took);
        tell!("{told}");
        (stands.outcome, stands.why) = (word, why);
        (stands, status)
    }

    /// The state of a running turn.
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

/// How a turn ended: the word for JSON, why or by whom, the exit code, and a sentence.
fn told(outcome: Outcome, took: &str) -> (&'static str, Option<String>, ExitStatus, String) {
    match outcome {
        Outcome::Answered | Outcome::Joined { .. } => {
            ("answered", None, ExitStatus::Done, format!("Answered after {took}."))
        }
        Outcome::Failed { reason } => {
            let told = format!("The turn failed after {took}: {reason}");
            ("failed", Some(reason), ExitStatus::TurnFailed, told)
        }
        Outcome::OverBudget { reason, .. } => {
            let told = format!("A budget stopped the turn after {took}: {reason}");
            ("over_budget", Some(reason), ExitStatus::TurnFailed, told)
        }
        Outcome::Cancelled { by } => {
            let told = format!("The turn was stopped by {by} after {took}.");
            ("cancelled", Some(by), ExitStatus::Cancelled, told)
        }
        Outcome::Lost => (
            "lost",
            None,
            ExitStatus::Lost,
            format!(
                "The sandbox vanished while the agent worked, after {took}. Send the task again."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_page_lists_every_outcome() {
        let page = include_str!("../../../../docs/appendix/JSON.md");
        let outcomes = [
            Outcome::Answered,
            Outcome::Failed { reason: String::new() },
            Outcome::OverBudget { reason: String::new(), more: 0, by: None },
            Outcome::Cancelled { by: String::new() },
            Outcome::Lost,
        ];
        let words = outcomes.map(|outcome| told(outcome, "1 s").0);
        for word in words.into_iter().chain(["running"]) {
            assert!(page.contains(&format!("`{word}`")), "{word}");
        }
    }
}
