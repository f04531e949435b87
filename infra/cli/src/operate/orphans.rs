//! `orphans`: sandboxes without an owner, by the sweeper's own rule.

use bobbin_app::orphans::{OrphanVerdict, judge};
use bobbin_cloud::clock::now_ms;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_sandbox::{Deletion, ErrorKind};
use serde::Serialize;

use super::arguments::Orphans;
use super::sandboxes::{self, FoundSandbox, SandboxLine};
use super::stack::Stack;
use crate::output::{CommandError, ExitStatus, Output};

/// Sandboxes that one command deletes; the next one finds the rest.
const DESTROYED_MAX: usize = 200;

#[derive(Serialize)]
struct OrphansAnswer<'a> {
    orphans: Vec<&'a SandboxLine>,
    /// Names of deleted sandboxes.
    destroyed: Vec<&'a str>,
    /// Names of sandboxes that were not deleted, and why.
    failed: Vec<(&'a str, String)>,
}

/// Finds orphans, and deletes them on request.
pub async fn run(stack: &Stack, what: &Orphans) -> Result<Output, CommandError> {
    let mut found = sandboxes::found(stack, None).await?;
    found.retain(|one| {
        one.judged == OrphanVerdict::Orphan && one.sandbox.state != SandboxState::Gone
    });
    let mut answer = OrphansAnswer {
        orphans: found.iter().map(|one| &one.line).collect(),
        destroyed: Vec::new(),
        failed: Vec::new(),
    };
    if found.is_empty() {
        let code = if what.destroy { ExitStatus::Notice } else { ExitStatus::Done };
        return Output::new("There are no orphans.".to_owned(), &answer, code);
    }
    if !what.destroy {
        let words = format!(
            "{}\nThis was a dry run. Delete them with: bobbin {} sandbox orphans --destroy",
            sandboxes::shown(&found),
            stack.said
        );
        return Output::new(words, &answer, ExitStatus::Notice);
    }
    for one in found.iter().take(DESTROYED_MAX) {
        match destroy(stack, one).await {
            Ok(true) => answer.destroyed.push(&one.sandbox.name),
            Ok(false) => {}
            Err(why) => answer.failed.push((&one.sandbox.name, why)),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    lines.extend(answer.destroyed.iter().map(|name| format!("{name}: deleted")));
    lines.extend(answer.failed.iter().map(|(name, why)| {
        format!("{name}: not deleted: {why}. Try again; the sweeper keeps trying too.")
    }));
    if found.len() > DESTROYED_MAX {
        lines.push(format!("{} are left: repeat the command.", found.len() - DESTROYED_MAX));
    }
    let code = if answer.failed.is_empty() { ExitStatus::Done } else { ExitStatus::Failed };
    Output::new(lines.join("\n"), &answer, code)
}

/// Checks once more just before deleting, like the sweeper; false if it has an owner by now.
async fn destroy(stack: &Stack, one: &FoundSandbox) -> Result<bool, String> {
    let judged =
        judge(&stack.store, &stack.id, &one.sandbox, now_ms(), (&stack.limits.sandbox).into())
            .await;
    if judged.map_err(|e| e.to_string())? != OrphanVerdict::Orphan {
        return Ok(false);
    }
    match one.provider.delete(Deletion::Found(&one.sandbox)).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error.to_string()),
    }
}
