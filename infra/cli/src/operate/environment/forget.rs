//! `environment forget`: a message to each builder of a repository, so that it is in order with what is built.

use bobbin_core::base::ids::{SandboxKey, TurnId};
use bobbin_core::records::prebuild::{BuildPurpose, NewBuild};
use bobbin_core::records::sandbox::SandboxRecord;
use serde::Serialize;

use super::super::act::followed;
use super::super::arguments::ForgetPrebuilds;
use super::super::stack::Stack;
use super::{ask, builders};
use crate::output::{CommandError, ExitStatus, Output};

/// The JSON answer.
#[derive(Serialize)]
struct ForgetAnswer {
    repository: String,
    tenant: String,
    /// `done`, `failed`, or `waiting` (requested, but not finished within the wait).
    result: &'static str,
    /// Why it failed, in a sentence.
    trouble: Option<String>,
    /// Those that are deleted, as `environment list` showed them.
    forgotten: Vec<String>,
}

pub async fn run(stack: &Stack, what: &ForgetPrebuilds) -> Result<Output, CommandError> {
    let (tenant, repository) = (&what.tenant, &what.repository);
    stack.has_provider(what.provider.as_deref()).await?;
    let first = stack.provider_names().await?.into_iter().next();
    let is_meant = |at: &Option<String>| {
        let wanted = what.provider.as_ref();
        wanted.is_none_or(|wanted| at.as_ref().or(first.as_ref()) == Some(wanted))
    };
    // A build that is under way is forgotten once it has ended.
    let has_any = |record: &SandboxRecord| !record.snapshots.is_empty() || record.is_alive();
    let mut asked: Vec<(SandboxKey, TurnId, Vec<String>)> = Vec::new();
    for (at, key, record) in builders(stack, tenant, repository).await? {
        if !is_meant(&at) || !has_any(&record) {
            continue;
        }
        let build = NewBuild {
            repo: repository.clone(),
            provider: at,
            channel: String::new(),
            hash: String::new(),
            useless: None,
            purpose: BuildPurpose::Forget,
        };
        let (id, _) = ask::send(stack, &key, build).await?;
        asked.push((key, id, record.snapshots.into_iter().map(|kept| kept.name).collect()));
    }
    if asked.is_empty() {
        return Err(CommandError::not_found(format!(
            "There is no prebuild of {repository} in {tenant}. List them with: bobbin {} environment list",
            stack.said
        )));
    }
    let mut answer = ForgetAnswer {
        repository: repository.clone(),
        tenant: tenant.to_string(),
        result: "done",
        trouble: None,
        forgotten: Vec::new(),
    };
    for (key, id, before) in asked {
        let (record, operated) = followed(stack, &key, &id, what.wait_ms, repository).await?;
        let is_left = |name: &String| record.snapshots.iter().any(|kept| kept.name == *name);
        answer.forgotten.extend(before.into_iter().filter(|name| !is_left(name)));
        match operated.map(|operated| operated.trouble) {
            Some(None) => {}
            Some(trouble) => (answer.result, answer.trouble) = ("failed", trouble),
            None if answer.result == "done" => answer.result = "waiting",
            None => {}
        }
    }
    let (words, status) = match (answer.result, &answer.trouble) {
        ("done", _) => {
            let deleted = answer.forgotten.iter().map(|id| format!("\n  deleted  {id}"));
            let words = format!(
                "{repository} has no prebuild any more: new threads begin without one. A set-up on another day makes the next one, or: bobbin {} environment build {repository} --tenant {tenant}{}",
                stack.said,
                deleted.collect::<String>()
            );
            (words, ExitStatus::Done)
        }
        ("waiting", _) => {
            let words = format!(
                "It was requested, but has not ended yet. Look again with: bobbin {} environment list --tenant {tenant}",
                stack.said
            );
            (words, ExitStatus::Failed)
        }
        (_, why) => {
            let why = why.as_deref().unwrap_or_default();
            (format!("It failed: {why}. The worker's log says more."), ExitStatus::Failed)
        }
    };
    Output::new(words, &answer, status)
}
