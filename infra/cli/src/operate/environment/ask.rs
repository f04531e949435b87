//! `environment build` and `environment try`: a message into the builder's own group, then followed to its end.

use std::hash::{BuildHasher as _, RandomState};

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, TurnId};
use bobbin_core::records::message::{Body, Message, Work};
use bobbin_core::records::prebuild::{BuildPurpose, NewBuild, builder_of};
use bobbin_core::records::sandbox::{Operated, SandboxRecord};
use bobbin_core::records::set_up::SetUp;
use bobbin_core::tenant::repositories::Repositories;
use bobbin_core::tenant::settings::Settings;
use serde::Serialize;

use super::super::act::followed;
use super::super::arguments::AskBuild;
use super::super::kept::able;
use super::super::stack::Stack;
use super::super::task::TaskChannel;
use super::steps::{self, StepLine};
use super::{settings, short};
use crate::output::{CommandError, ExitStatus, Output};
use crate::time::span;

/// The JSON answer.
#[derive(Serialize)]
struct BuildAnswer {
    repository: String,
    tenant: String,
    /// The provider; `None`: the stack's first.
    provider: Option<String>,
    /// `build` or `try`.
    want: &'static str,
    /// `done`, `failed`, or `waiting` (requested, but not finished within the wait).
    result: &'static str,
    /// Why it failed, in a sentence.
    trouble: Option<String>,
    /// The commit of the default branch.
    commit: Option<String>,
    /// Where the recipe stands.
    by: Option<String>,
    took_ms: Option<u64>,
    steps: Vec<StepLine>,
    /// What the recipe asks for and does not get.
    refused: Vec<String>,
    /// The new prebuild.
    snapshot: Option<String>,
}

pub async fn run(stack: &Stack, what: &AskBuild, is_kept: bool) -> Result<Output, CommandError> {
    let purpose = if is_kept { BuildPurpose::Build } else { BuildPurpose::Try };
    let (tenant, repository) = (&what.tenant, &what.repository);
    let channel = channel(what.channel.as_ref(), tenant)?;
    let settings = settings(stack, tenant).await?;
    let provider = place(stack, what.provider.as_ref(), &settings, channel).await?;
    if is_kept {
        able(&*stack.provider_named(provider.as_deref()).await?)?;
    }
    if let Some(channels) = elsewhere(&settings.repositories, repository, channel) {
        return Err(format!(
            "{repository} is not open in {}, so nothing was done. Name a channel in which it is open with --channel: {channels}.",
            if channel.is_empty() { "all channels" } else { channel }
        )
        .into());
    }
    let key = builder_of(tenant, repository, provider.as_deref());
    let build = NewBuild {
        repo: repository.clone(),
        provider: provider.clone(),
        channel: channel.to_owned(),
        hash: String::new(),
        useless: None,
        purpose,
    };
    let asked = send(stack, &key, build).await?;
    let (record, operated) = followed(stack, &key, &asked.0, what.wait_ms, repository).await?;
    answer(stack, what, provider, (purpose, &asked), (&record, operated))
}

/// Sends the work into the builder's group; the message's id and time.
pub async fn send(
    stack: &Stack,
    key: &SandboxKey,
    build: NewBuild,
) -> Result<(TurnId, Ms), CommandError> {
    let accepted_at_ms = now_ms();
    let chance = (RandomState::new().hash_one(std::process::id()) >> 32) as u32;
    let id = TurnId::from(format!("{}-{accepted_at_ms}-{chance:08x}", build.purpose.word()));
    let look = format!("environment show {} --tenant {}", build.repo, key.tenant());
    let (thread, work) = (key.group(), Work::Build(build));
    let message = Message { id: id.clone(), thread, accepted_at_ms, work };
    let sent = stack.queues()?.send(&Body::Message(message)).await;
    sent.map_err(|e| {
        format!(
            "{e}. It is unknown whether this was requested; look with: bobbin {} {look}",
            stack.said
        )
    })?;
    Ok((id, accepted_at_ms))
}

/// The id of the channel; empty for none.
fn channel<'a>(channel: Option<&'a TaskChannel>, tenant: &Tenant) -> Result<&'a str, CommandError> {
    let (chat, id) = match channel {
        None => return Ok(""),
        Some(TaskChannel::Discord(id)) => ("discord", id),
        Some(TaskChannel::Slack(id)) => ("slack", id),
    };
    let is_there = tenant.as_str().split(':').next() == Some(chat);
    is_there
        .then_some(id.as_str())
        .ok_or_else(|| format!("{id} is not a channel of {tenant}. Nothing was done.").into())
}

/// The provider as threads record it that get this one: `None` is the stack's first.
async fn place(
    stack: &Stack,
    wanted: Option<&String>,
    settings: &Settings,
    channel: &str,
) -> Result<Option<String>, CommandError> {
    let default = settings.defaults_of(channel).provider;
    let Some(wanted) = wanted.or(default.as_ref()) else { return Ok(None) };
    stack.has_provider(Some(wanted)).await?;
    // Threads that choose none share the prebuild of the stack's first.
    let is_first = stack.provider_names().await?.first() == Some(wanted);
    let is_chosen = default.is_some() || !is_first;
    Ok(is_chosen.then(|| wanted.clone()))
}

/// The channels in which a repository is open that is not open in this one; `None`: it is, or it is open nowhere, and
/// the worker finds out whether everybody may have it.
fn elsewhere(repositories: &Repositories, name: &str, channel: &str) -> Option<String> {
    if repositories.are_open(name, channel) {
        return None;
    }
    let channels = repositories.channels.keys();
    let open: Vec<&str> = channels
        .filter(|channel| repositories.are_open(name, channel))
        .map(String::as_str)
        .collect();
    (!open.is_empty()).then(|| open.join(", "))
}

fn answer(
    stack: &Stack,
    what: &AskBuild,
    provider: Option<String>,
    (purpose, (id, at_ms)): (BuildPurpose, &(TurnId, Ms)),
    (record, operated): (&SandboxRecord, Option<Operated>),
) -> Result<Output, CommandError> {
    let project = &record.project;
    let set_up = project.set_up.as_ref().filter(|_| project.builds.as_ref() == Some(id));
    let made = record.snapshots.iter().find(|kept| kept.at_ms == *at_ms);
    let snapshot = made.map(|kept| kept.name.clone());
    let look = format!(
        "bobbin {} environment show {} --tenant {}",
        stack.said, what.repository, what.tenant
    );
    let (result, trouble, status) = match operated {
        None => ("waiting", None, ExitStatus::Failed),
        Some(Operated { trouble: None, .. }) => ("done", None, ExitStatus::Done),
        Some(Operated { trouble, .. }) => ("failed", trouble, ExitStatus::Failed),
    };
    let head = match (result, &trouble) {
        ("waiting", _) => format!(
            "It was requested, but has not ended yet: the builder is {}. Look again with: {look}",
            record.phase.word()
        ),
        (_, Some(why)) => {
            let why = why.trim_end_matches('.');
            let left = match purpose {
                BuildPurpose::Try => "Nothing was kept.",
                BuildPurpose::Build | BuildPurpose::Forget => "No prebuild was made.",
            };
            format!("{}: {why}. {left}", said(&what.repository, set_up))
        }
        (_, None) => {
            let left = snapshot.as_ref().map_or_else(
                || "Nothing was kept.".to_owned(),
                |id| format!("New threads begin with {id}."),
            );
            format!("{} passed. {left}", said(&what.repository, set_up))
        }
    };
    let lines = set_up.into_iter().flat_map(steps::words);
    let words: Vec<String> = std::iter::once(head).chain(lines).collect();
    let answer = BuildAnswer {
        repository: what.repository.clone(),
        tenant: what.tenant.to_string(),
        provider,
        want: purpose.word(),
        result,
        trouble,
        commit: set_up.and_then(|set_up| set_up.commit.clone()),
        by: set_up.map(|set_up| steps::source(&set_up.recipe.from).to_owned()),
        took_ms: set_up.and_then(took_ms),
        steps: set_up.map(steps::all).unwrap_or_default(),
        refused: set_up.map(|set_up| set_up.recipe.refused.clone()).unwrap_or_default(),
        snapshot,
    };
    Output::new(words.join("\n"), &answer, status)
}

fn took_ms(set_up: &SetUp) -> Option<u64> {
    Some(set_up.over_ms?.saturating_sub(set_up.begun_ms))
}

/// What was set up, of which commit, by what, and for how long.
fn said(repository: &str, set_up: Option<&SetUp>) -> String {
    let Some(set_up) = set_up else { return repository.to_owned() };
    let took = took_ms(set_up).map(|ms| format!(", {}", span(ms))).unwrap_or_default();
    format!(
        "The set-up of {repository} at {} (by {}{took})",
        short(set_up.commit.as_deref()),
        steps::source(&set_up.recipe.from)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_open_elsewhere_names_its_channels() {
        let mut repositories = Repositories::default();
        assert_eq!(elsewhere(&repositories, "acme/api", ""), None);
        for channel in ["C1", "C2"] {
            repositories.open(Some(channel), "acme/api".to_owned());
        }
        for (channel, channels) in [("", Some("C1, C2")), ("C3", Some("C1, C2")), ("C1", None)] {
            let told = elsewhere(&repositories, "acme/api", channel);
            assert_eq!(told.as_deref(), channels, "{channel}");
        }
        repositories.open(None, "all".to_owned());
        assert_eq!(elsewhere(&repositories, "acme/api", ""), None);
    }

    #[test]
    fn channel_belongs_to_the_tenant() {
        let id = "123456789012345678";
        let given = TaskChannel::Discord(id.to_owned());
        assert_eq!(channel(None, &Tenant::slack("T1")).ok(), Some(""));
        assert_eq!(channel(Some(&given), &Tenant::discord("1")).ok(), Some(id));
        let told = channel(Some(&given), &Tenant::slack("T1")).expect_err("another chat").message;
        assert_eq!(told, format!("{id} is not a channel of slack:T1. Nothing was done."));
    }
}
