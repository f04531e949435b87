//! `environment list`: the prebuilds, by the records and at the providers.

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_sandbox::SnapshotName;
use serde::Serialize;

use super::super::arguments::ListPrebuilds;
use super::super::kept::{self, FoundSnapshot, size};
use super::super::sandbox::snapshots::LISTED_MAX;
use super::super::stack::Stack;
use super::short;
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::when;

#[derive(Serialize)]
struct Listing {
    prebuilds: Vec<PrebuildLine>,
    /// The list was cut.
    more: bool,
}

/// A prebuild in JSON. Of one that no record has, only what its provider says is known.
#[derive(Serialize)]
struct PrebuildLine {
    repository: Option<String>,
    tenant: Option<String>,
    provider: String,
    /// The commit of the default branch.
    commit: Option<String>,
    made_ms: Ms,
    /// When it is deleted unless it was renewed.
    expires_ms: Option<Ms>,
    /// As in the list of snapshots.
    state: &'static str,
    /// Size at the provider in GiB, if known.
    gib: Option<f64>,
    /// Name at the provider.
    snapshot: String,
    /// Key of its builder.
    sandbox: Option<SandboxKey>,
}

pub async fn run(stack: &Stack, what: &ListPrebuilds) -> Result<Output, CommandError> {
    let tenant = what.tenant.as_ref();
    let mut records = kept::sources(stack, tenant).await?;
    records.retain(|_, record| record.is_builder());
    let tenants = super::super::named::tenants(stack, tenant).await?;
    let is_prebuild = |name: &SnapshotName, of: Option<&SandboxKey>| {
        of.is_some() || tenants.iter().any(|tenant| name.is_prebuild_of(tenant))
    };
    let found = kept::found(stack, &records, is_prebuild).await?;
    let ttl_ms = stack.limits.set_up.prebuild_ttl_ms;
    let mut lines: Vec<PrebuildLine> = found.into_iter().map(|one| line(one, ttl_ms)).collect();
    let more = lines.len() > LISTED_MAX;
    lines.truncate(LISTED_MAX);
    let status = if lines.is_empty() { ExitStatus::Notice } else { ExitStatus::Done };
    let text = words(&lines, more);
    Output::new(text, &Listing { prebuilds: lines, more }, status)
}

fn line(found: FoundSnapshot<'_>, ttl_ms: u64) -> PrebuildLine {
    let built = found.kept.and_then(|kept| kept.built.as_ref());
    PrebuildLine {
        repository: found.of.and_then(|(_, record)| record.project.repo.clone()),
        tenant: found.of.map(|(key, _)| key.tenant().to_string()),
        provider: found.provider,
        commit: built.and_then(|built| built.commit.clone()),
        made_ms: found.at_ms,
        expires_ms: found.kept.map(|kept| kept.at_ms + ttl_ms),
        state: found.state,
        gib: found.gib,
        snapshot: found.id,
        sandbox: found.of.map(|(key, _)| key.clone()),
    }
}

fn words(lines: &[PrebuildLine], more: bool) -> String {
    if lines.is_empty() {
        return "There are no prebuilds.".to_owned();
    }
    let now_ms = now_ms();
    let nothing = || "-".to_owned();
    let row = |line: &PrebuildLine| {
        [
            line.repository.clone().unwrap_or_else(nothing),
            line.tenant.clone().unwrap_or_else(nothing),
            line.provider.clone(),
            short(line.commit.as_deref()).to_owned(),
            when(line.made_ms, now_ms),
            line.expires_ms.map_or_else(nothing, |at_ms| when(at_ms, now_ms)),
            line.state.to_owned(),
            size(line.gib),
            line.snapshot.clone(),
        ]
    };
    let rows: Vec<[String; 9]> = lines.iter().map(row).collect();
    let heads = [
        "REPOSITORY",
        "TENANT",
        "PROVIDER",
        "COMMIT",
        "MADE",
        "EXPIRES",
        "STATE",
        "SIZE",
        "SNAPSHOT",
    ];
    let text = table(heads, &rows, Style::of_output());
    if more { format!("{text}\nThere are more. Choose a tenant with --tenant.") } else { text }
}
