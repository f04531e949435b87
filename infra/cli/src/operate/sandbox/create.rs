//! `sandbox create`: creates a named sandbox that no thread created.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{SandboxKey, SandboxName, Tenant, TurnId};
use bobbin_core::records::message::{Body, Message, NewSandbox, Work};
use bobbin_core::shown::sandboxes::SandboxOption;
use bobbin_core::tenant::settings::DefaultKind;
use serde::Serialize;

use super::super::act::followed;
use super::super::arguments::Create;
use super::super::send;
use super::super::stack::Stack;
use super::snapshots;
use crate::operate::named::{tenants, unread};
use crate::output::{CommandError, ExitStatus, Output};
use crate::terminal::{answer, can_ask};

/// Attempts per question.
const ASKED_MAX: u32 = 5;

/// The JSON answer.
#[derive(Serialize)]
struct CreateAnswer {
    sandbox: SandboxKey,
    name: SandboxName,
    tenant: String,
    provider: Option<String>,
    runtime: Option<String>,
    repo: Option<String>,
    snapshot: Option<String>,
    /// `done`, `failed`, or `waiting` (requested, but not finished within the wait).
    result: &'static str,
    /// Why it failed, in a sentence.
    trouble: Option<String>,
    /// Current phase.
    phase: &'static str,
}

pub async fn run(stack: &Stack, what: &Create, json: bool) -> Result<Output, CommandError> {
    let asks = !what.yes && !json && can_ask();
    let (tenant, new) = wanted(stack, what, asks).await?;
    stack.has_provider(new.provider.as_deref()).await?;
    let taken = stack.store.name(&tenant, &new.name).await;
    if let Some(key) = taken.map_err(|e| unread(&e))? {
        return Err(format!(
            "There is already a sandbox named {} in {tenant} ({key}). Nothing was created: choose another name, or send a task to that sandbox: bobbin {} send --channel ID --prompt … --sandbox {}",
            new.name, stack.said, new.name
        )
        .into());
    }
    if let Some(snapshot) = &new.snapshot {
        snapshots::look_at(stack, &tenant, snapshot, new.provider.as_deref()).await?;
    }
    let accepted_at_ms = now_ms();
    let chance = (RandomState::new().hash_one(std::process::id()) >> 32) as u32;
    let id = TurnId::from(format!("create-{accepted_at_ms}-{chance:08x}"));
    let key = SandboxKey::without_thread(&tenant, &id);
    let message = Message {
        id: id.clone(),
        thread: key.group(),
        accepted_at_ms,
        work: Work::Create(new.clone()),
    };
    let sent = stack.queues()?.send(&Body::Message(message)).await;
    sent.map_err(|e| {
        format!(
            "{e}. It is unknown whether this was requested; if so, it is listed soon: bobbin {} sandbox list",
            stack.said
        )
    })?;
    let (record, operated) = followed(stack, &key, &id, what.wait_ms, new.name.as_str()).await?;
    let phase = record.phase.word();
    let (result, trouble, words, status) = match operated {
        None => (
            "waiting",
            None,
            format!(
                "{} was requested, but is not ready yet: it is {phase}. Check again with: bobbin {} sandbox list",
                new.name, stack.said
            ),
            ExitStatus::Failed,
        ),
        Some(operated) => match operated.trouble {
            None => (
                "done",
                None,
                format!(
                    "{} is running, and its server is healthy ({key}).\nSend a task to it with: bobbin {} send --channel ID --prompt … --sandbox {}",
                    new.name, stack.said, new.name
                ),
                ExitStatus::Done,
            ),
            Some(why) => {
                let has_name = record.sharing.name.as_ref() == Some(&new.name);
                let more = has_name.then(|| {
                    format!(
                        " It keeps its name, and the next task in it tries again; give it up with: bobbin {} sandbox destroy {} --tenant {tenant}",
                        stack.said, new.name
                    )
                });
                let words = format!(
                    "{} could not be created: {}.{}",
                    new.name,
                    why.trim_end_matches('.'),
                    more.unwrap_or_default()
                );
                ("failed", Some(why), words, ExitStatus::Failed)
            }
        },
    };
    let answer = CreateAnswer {
        sandbox: key,
        tenant: tenant.to_string(),
        result,
        trouble,
        phase,
        name: new.name,
        provider: new.provider,
        runtime: new.runtime,
        repo: new.repo,
        snapshot: new.snapshot,
    };
    Output::new(words, &answer, status)
}

/// The options given, completed in a terminal by prompts.
async fn wanted(
    stack: &Stack,
    what: &Create,
    asks: bool,
) -> Result<(Tenant, NewSandbox), CommandError> {
    let name = match &what.name {
        Some(name) => name.clone(),
        None if asks => {
            let name = asked("Name (1 to 40 characters of a-z, 0-9 and -)", |word| {
                word.parse::<SandboxName>().map_err(|bad| bad.to_string())
            })?;
            name.ok_or("Nothing was created: a sandbox created from here needs a name.")?
        }
        None => {
            return Err("The sandbox needs a name: bobbin sandbox create NAME, with 1 to 40 characters of a-z, 0-9 and -.".into());
        }
    };
    let tenant = tenant(stack, what, asks).await?;
    let mut new = NewSandbox {
        name,
        provider: what.provider.clone(),
        runtime: what.runtime.clone(),
        repo: what.repo.clone(),
        snapshot: what.snapshot.clone(),
        agent: None,
    };
    if asks {
        if new.provider.is_none() {
            new.provider = asked("Provider (Enter: as set for the tenant or the stack)", |word| {
                super::super::arguments::provider(word)
            })?;
        }
        if new.repo.is_none() {
            new.repo = asked("Repository, owner/name or an https address (Enter: none)", |word| {
                DefaultKind::Repo.usable(word).map_err(|bad| bad.to_string())
            })?;
        }
        if new.snapshot.is_none() {
            new.snapshot = asked("Snapshot to start from (Enter: none)", |word| {
                SandboxOption::Snapshot.usable(word).map_err(|bad| bad.to_string())
            })?;
        }
    }
    Ok((tenant, new))
}

/// The tenant: from the option, from the channel, the only one known, or from a prompt.
async fn tenant(stack: &Stack, what: &Create, asks: bool) -> Result<Tenant, CommandError> {
    if let Some(tenant) = &what.tenant {
        return Ok(tenant.clone());
    }
    if let Some(channel) = &what.channel {
        return send::tenant_of(stack, channel).await;
    }
    let known: Vec<Tenant> = tenants(stack, None).await?.into_iter().collect();
    if let [only] = known.as_slice() {
        return Ok(only.clone());
    }
    let known: Vec<&str> = known.iter().map(Tenant::as_str).collect();
    let known = known.join(", ");
    if asks {
        let said = asked(&format!("Server or workspace ({known})"), |word| {
            word.parse::<Tenant>().map_err(|bad| bad.to_string())
        })?;
        return said.ok_or_else(|| "Nothing was created: the sandbox needs a tenant.".into());
    }
    Err(format!(
        "The sandbox needs a tenant: add --tenant (discord:GUILD or slack:TEAM{}), or --channel with the id of a channel.",
        if known.is_empty() { String::new() } else { format!("; known: {known}") }
    )
    .into())
}

/// Asks until the answer is valid; `None` for an empty line.
fn asked<T>(
    question: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, CommandError> {
    for _ in 0..ASKED_MAX {
        let Some(word) = answer(question)? else {
            return Ok(None);
        };
        match read(&word) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => tell!("{why}"),
        }
    }
    Err("Nothing was created: none of these can be used.".into())
}
