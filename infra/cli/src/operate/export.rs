//! `export` and `forget`: data requests.

use bobbin_cloud::clock::now_ms;
use bobbin_core::protocol::decide::operate::{Outlook, outlook};
use bobbin_core::records::control::Operation;
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::{Export, Forget};
use super::sandbox::Chosen;
use super::stack::Stack;
use super::{act, show};
use crate::output::{CommandError, ExitStatus, Output};

#[derive(Serialize)]
struct Exported {
    stack: String,
    thread: String,
    tenant: String,
    exported_at_ms: u64,
    /// All items of the table as stored; JSON values are expanded.
    items: Vec<Value>,
    /// Its sandboxes at the provider: name, state, labels.
    sandboxes: Vec<Value>,
}

#[derive(Serialize)]
struct Forgotten {
    thread: String,
    /// Ledger items that were deleted.
    deleted: usize,
}

/// Exports everything stored about a thread; JSON with or without `--json`.
pub async fn export(stack: &Stack, what: &Export) -> Result<Output, CommandError> {
    let thread = what.thread.key(stack).await?;
    let items = stack.store.everything(&thread).await.map_err(|e| e.to_string())?;
    let mut listed = Vec::new();
    for provider in stack.providers().await? {
        let here = provider.list(None).await;
        listed.extend(here.map_err(|e| {
            format!("The sandboxes could not be listed: {e}. Try again in a minute.")
        })?);
    }
    let of_thread = listed
        .iter()
        .filter(|one| !one.is_foreign(&stack.id))
        .filter(|one| one.owner().is_some_and(|(key, _)| *key.thread() == thread));
    let exported = Exported {
        stack: stack.name.clone(),
        thread: thread.to_string(),
        tenant: thread.tenant().to_string(),
        exported_at_ms: now_ms(),
        items,
        sandboxes: of_thread
            .map(|one| json!({"name": one.name, "state": (!one.said.is_empty()).then_some(&one.said), "labels": one.labels}))
            .collect(),
    };
    if exported.items.is_empty() && exported.sandboxes.is_empty() {
        return Err(CommandError::not_found(format!(
            "Nothing is stored about {}. List the threads with: bobbin {} thread list --gone",
            thread, stack.said
        )));
    }
    let mut shown = Output::new(String::new(), &exported, ExitStatus::Done)?;
    shown.text = format!("{:#}", shown.json);
    Ok(shown)
}

/// Names and reasons are removed from the record through the thread's own group; then the ledger's items, which have no
/// other writer any more.
pub async fn forget(stack: &Stack, what: &Forget) -> Result<Output, CommandError> {
    let thread = &what.thread.key(stack).await?;
    let (session, flags) = show::record(stack, thread).await?;
    let waiting = flags.waiting().len();
    let refused = match outlook(&session, Operation::Forget) {
        Outlook::Pointless(why) => Some(why.to_owned()),
        Outlook::Busy => Some("a turn is running there".to_owned()),
        Outlook::Open if waiting > 0 => Some(format!("{waiting} prompts are waiting there")),
        Outlook::Open => None,
    };
    if let Some(why) = refused {
        // A shared sandbox is not deleted on behalf of one thread.
        let first = if session.sandbox.is_shared() {
            format!("sandbox connect {thread} --own")
        } else {
            format!("sandbox destroy {thread}")
        };
        return Err(format!(
            "Nothing was deleted: {why}. First run: bobbin {} {first}",
            stack.said
        )
        .into());
    }
    let queues = stack.queues()?;
    let want = Operation::Forget;
    let (id, asked_at_ms) = act::ask(stack, &queues, want, thread).await?;
    let chosen = Chosen {
        key: session.sandbox_key(),
        record: session.sandbox.clone(),
        thread: Some((session, flags)),
        said: thread.to_string(),
    };
    let came = act::followed(stack, &chosen.key, &id, what.wait_ms, &chosen.said).await?;
    if !matches!(&came.1, Some(one) if one.trouble.is_none()) {
        return act::shown(stack, want, &chosen, (&asked_at_ms, came), Vec::new());
    }
    let deleted = stack
        .store
        .forget_turns(thread)
        .await
        .map_err(|e| format!("{e}. Part of the ledger may be left: repeat the command."))?;
    let words = format!(
        "{deleted} items of the ledger are deleted, and the record no longer holds texts, names or reasons.\nKept: \
the ids of ended turns (so that a repeated message does not run twice) and the number of the last sandbox.\nNot \
deleted: the messages in the chat, pushed commits, backups of the table (35 days), logs (ids only)."
    );
    let forgotten = Forgotten { thread: thread.to_string(), deleted };
    Output::new(words, &forgotten, ExitStatus::Done)
}
