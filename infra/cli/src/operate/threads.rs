//! `threads`: lists threads, one per line.

use std::collections::BTreeSet;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::records::sandbox::Phase;
use bobbin_core::records::session::Session;
use serde::Serialize;

use super::arguments::ListThreads;
use super::line::{ThreadLine, line};
use super::named::all_named;
use super::stack::Stack;
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::{span, when};

/// Records per read.
const BATCH: usize = 100;
/// Most threads for `--all`.
const THREADS_MAX: usize = 100_000;

#[derive(Serialize)]
struct ThreadsAnswer {
    threads: Vec<ThreadLine>,
    /// Threads whose record this version cannot read.
    unreadable: Vec<String>,
    /// Start of the next page.
    next: Option<String>,
}

pub async fn run(stack: &Stack, what: &ListThreads) -> Result<Output, CommandError> {
    let now_ms = now_ms();
    let wanted = |session: &Session| {
        let tenant = what.tenant.as_ref();
        let idle_ms = now_ms.saturating_sub(session.sandbox.last_activity_ms);
        what.phase.is_none_or(|phase| phase == session.sandbox.phase)
            && tenant.is_none_or(|tenant| *tenant == session.thread.tenant())
            && what.idle.is_none_or(|least| session.turn.is_none() && idle_ms >= least)
            && (!what.due || session.due_at_ms().is_some_and(|due| due <= now_ms))
    };
    let most = if what.all { THREADS_MAX } else { what.limit.into() };
    // Threads without a sandbox are not in the index.
    let gone = matches!(what.phase, Some(Phase::Destroyed | Phase::Error));
    let answer = if what.gone || gone {
        everywhere(stack, what, most, wanted).await?
    } else {
        armed(stack, what, most, wanted).await?
    };
    let code = if answer.threads.is_empty() && answer.unreadable.is_empty() {
        ExitStatus::Notice
    } else {
        ExitStatus::Done
    };
    Output::new(words(&answer, &stack.said, now_ms), &answer, code)
}

/// Lists through the due index: cheap however long the table is.
async fn armed(
    stack: &Stack,
    what: &ListThreads,
    most: usize,
    wanted: impl Fn(&Session) -> bool,
) -> Result<ThreadsAnswer, CommandError> {
    let armed = stack.store.all_armed().await.map_err(|e| e.to_string())?;
    // A thread that shares a sandbox and has no turn is found through the sandbox; a sandbox that no thread created
    // counts as none.
    let shared = all_named(stack, what.tenant.as_ref()).await?.listed;
    let shared = shared.into_iter().flat_map(|one| one.threads);
    let all: BTreeSet<ThreadKey> = armed
        .into_iter()
        .chain(shared)
        .filter(|key| key.is_conversation() && key.sandbox().has_thread())
        .collect();
    let after = what.after.as_ref().map(ToString::to_string);
    let mut keys: Vec<ThreadKey> = all
        .into_iter()
        .filter(|key| after.as_ref().is_none_or(|after| key.to_string() > *after))
        .filter(|key| what.tenant.as_ref().is_none_or(|tenant| *tenant == key.tenant()))
        .collect();
    keys.sort_by_key(ToString::to_string);
    let (mut threads, mut unreadable) = (Vec::new(), Vec::new());
    while !keys.is_empty() && threads.len() < most {
        let batch: Vec<ThreadKey> = keys.drain(..keys.len().min(BATCH)).collect();
        let found = stack.store.records(&batch).await.map_err(|e| e.to_string())?;
        for (at, key) in batch.iter().enumerate() {
            match found.iter().find(|(session, _)| session.thread == *key) {
                None => unreadable.push(key.to_string()),
                Some((session, flags)) if wanted(session) => threads.push(line(session, flags)),
                Some(_) => {}
            }
            if threads.len() == most {
                let left = batch[at + 1..].iter().cloned();
                keys.splice(..0, left);
                break;
            }
        }
    }
    let next = if keys.is_empty() { None } else { threads.last().map(|line| line.thread.clone()) };
    Ok(ThreadsAnswer { threads, unreadable, next })
}

/// Lists by a scan of the table.
async fn everywhere(
    stack: &Stack,
    what: &ListThreads,
    most: usize,
    wanted: impl Fn(&Session) -> bool,
) -> Result<ThreadsAnswer, CommandError> {
    let mut answer = ThreadsAnswer { threads: Vec::new(), unreadable: Vec::new(), next: None };
    let mut after = what.after.clone();
    loop {
        // A page may hold too few matches: each asks for as many as are still missing.
        let page = stack
            .store
            .page(after.as_ref(), most - answer.threads.len())
            .await
            .map_err(|e| e.to_string())?;
        answer.unreadable.extend(page.unreadable);
        let found = page.threads.iter().filter(|(session, _)| wanted(session));
        answer.threads.extend(found.map(|(session, flags)| line(session, flags)));
        after = page.next;
        answer.next = after.as_ref().map(ToString::to_string);
        if after.is_none() || answer.threads.len() >= most {
            return Ok(answer);
        }
    }
}

fn words(answer: &ThreadsAnswer, said: &str, now_ms: Ms) -> String {
    let mut text = if answer.threads.is_empty() {
        "No thread matches. --gone also lists threads without a sandbox.".to_owned()
    } else {
        let rows: Vec<[String; 6]> = answer.threads.iter().map(|line| row(line, now_ms)).collect();
        let heads = ["THREAD", "SANDBOX", "TURN", "WAITING", "ACTIVE", "DUE"];
        table(heads, &rows, Style::of_output())
    };
    if !answer.unreadable.is_empty() {
        text.push_str(&format!(
            "\nThis version cannot read (use the bobbin of the deployed commit): {}",
            answer.unreadable.join(", ")
        ));
    }
    if let Some(next) = &answer.next {
        text.push_str(&format!(
            "\nThere are more: repeat it with --after {next}, or with --all (bobbin {said} …)."
        ));
    }
    text
}

fn row(line: &ThreadLine, now_ms: Ms) -> [String; 6] {
    let turn = line.turn.as_ref().map_or_else(
        || "-".to_owned(),
        |turn| {
            let word = match turn.asks {
                0 => turn.stage,
                _ => "asks",
            };
            format!("{word} {}", span(now_ms.saturating_sub(turn.accepted_at_ms)))
        },
    );
    let since = span(now_ms.saturating_sub(line.phase_since_ms));
    [
        line.thread.clone(),
        match &line.sandbox_name {
            Some(name) => format!("{} {since}, {name}", line.phase),
            None => format!("{} {since}", line.phase),
        },
        turn,
        match line.waiting {
            0 => "-".to_owned(),
            n => n.to_string(),
        },
        when(line.last_activity_ms, now_ms),
        line.due_at_ms.map_or_else(|| "-".to_owned(), |due| when(due, now_ms)),
    ]
}
