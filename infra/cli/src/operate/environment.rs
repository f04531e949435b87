//! `environment`: how repositories' projects are made ready, and their prebuilds.

mod ask;
pub mod checkout;
mod forget;
mod known;
mod list;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use bobbin_app::providers::PROVIDERS;
use bobbin_core::base::ids::{SandboxKey, Tenant};
use bobbin_core::records::prebuild::builder_of;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::tenant::settings::Settings;

use super::arguments::EnvironmentCommand;
use super::named::unread;
use super::stack::Stack;
use crate::output::{CommandError, Output};

pub async fn run(stack: &Stack, command: &EnvironmentCommand) -> Result<Output, CommandError> {
    match command {
        EnvironmentCommand::Show(what) => known::run(stack, what).await,
        EnvironmentCommand::Try(what) => ask::run(stack, what, false).await,
        EnvironmentCommand::Build(what) => ask::run(stack, what, true).await,
        EnvironmentCommand::List(what) => list::run(stack, what).await,
        EnvironmentCommand::Forget(what) => forget::run(stack, what).await,
    }
}

async fn settings(stack: &Stack, tenant: &Tenant) -> Result<Settings, CommandError> {
    let settings = stack.store.settings(tenant).await;
    settings.map_err(|e| unread(&e))
}

/// A commit for people.
fn short(commit: Option<&str>) -> &str {
    commit.map_or("-", |commit| commit.get(..7).unwrap_or(commit))
}

/// The builders of a repository that are on record, with their providers: `None` is that of threads that choose none.
async fn builders(
    stack: &Stack,
    tenant: &Tenant,
    repository: &str,
) -> Result<Vec<(Option<String>, SandboxKey, SandboxRecord)>, CommandError> {
    let at = std::iter::once(None).chain(PROVIDERS.map(Some));
    let keys = at.map(|at| (builder_of(tenant, repository, at), at));
    let mut keys: BTreeMap<SandboxKey, Option<&str>> = keys.collect();
    let all: BTreeSet<SandboxKey> = keys.keys().cloned().collect();
    let read = stack.store.sandboxes(&all).await.map_err(|e| unread(&e))?;
    let mut found = Vec::new();
    for (key, record) in read {
        if let Some(record) = record.map_err(|e| unread(&e))? {
            let at = keys.remove(&key).flatten().map(str::to_owned);
            found.push((at, key, record));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}
