//! Step "keys": tries each key at its service, and reports errors with advice. Nothing is changed, and no part of a key
//! is printed.

mod daytona;
mod deployment;
mod discord;
mod github;
mod models;
mod slack;
mod vercel;

use super::report::Report;
use crate::target::StackTarget;

/// Checks the keys. Without a stack those of the environment are checked.
pub async fn run(target: &StackTarget, report: &mut Report) {
    discord::check(target, report).await;
    slack::check(target, report).await;
    daytona::check(target, report).await;
    vercel::check(target, report).await;
    models::check(target, report).await;
    github::check(target, report).await;
    deployment::check(target, report).await;
}

/// Finds the stack and reports it; a missing one is only a note, because keys can be checked before there is one.
pub async fn stack(target: &StackTarget, report: &mut Report) {
    match target.stack().await {
        Ok(stack) => {
            report.right(&format!(
                "Stack {} in {} ({})",
                stack.name(),
                stack.region(),
                stack.status()
            ));
            if let Err(why) = target.stored().await {
                report.wrong(&format!("Its keys are unknown: {why}"), "");
            }
        }
        Err(why) => report
            .note(&format!("No stack, so only the keys of the environment are checked.\n{why}")),
    }
}

/// Whether a list parameter of the template contains an id.
pub fn lists(list: Option<&str>, id: &str) -> bool {
    list.unwrap_or_default().split(',').any(|one| one.trim() == id)
}
