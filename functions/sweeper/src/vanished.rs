//! Vanished sandboxes: each record whose sandbox the provider does not list is asked to reconcile
//! ([`Work::Reconcile`]).
//!
//! The sweeper decides nothing about them: a sandbox may have come or gone between listing and reading, so each record
//! is compared with the provider in its sandbox's own group.

use std::collections::BTreeSet;

use bobbin_app::providers::PROVIDERS;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::{BATCH_MAX, Queues};
use bobbin_cloud::store::{DUE_SHARDS, RECORDS_MAX, Store};
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::protocol::decide::orphan::is_unbelievable;
use bobbin_core::protocol::signals::VANISHED_HELD;
use bobbin_core::records::message::{Message, Work};
use bobbin_sandbox::Sandbox;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::tick::{BATCHES_AT_ONCE, SHARDS_AT_ONCE};

/// Interval of the sweeper's ticks: one tick in every `reconcile_ms` compares.
const TICK_MS: u64 = 60_000;
/// Maximum number of sandboxes asked in one tick; the next comparing tick asks the rest.
const ASKED_MAX: usize = 200;

/// How long sandboxes that a person gave up with an account are asked, however many they are.
const GIVEN_UP_MS: u64 = 24 * 60 * 60_000;

/// If it is time: asks sandboxes that exist by their records but are not `listed` to reconcile. If most sandboxes are
/// missing none is asked: that looks like a provider that lost its list. Sandboxes that a person gave up, because the
/// provider's account changed, are asked all the same.
///
/// # Errors
/// Most sandboxes are missing; or the last error, after everything else was tried.
pub async fn reconcile<'a>(
    config: &Config,
    (store, queues): (&Store, &Queues),
    (listed, is_whole): (impl Iterator<Item = &'a Sandbox>, bool),
    now_ms: Ms,
) -> Result<Value, String> {
    if now_ms % config.limits.sandbox.reconcile_ms.max(TICK_MS) >= TICK_MS {
        return Ok(json!({"looked": false}));
    }
    // An incomplete list cannot tell what is missing.
    if !is_whole {
        tracing::warn!(
            event = "sweep.reconciled",
            "there are more sandboxes than can be listed: vanished ones are found at their due times"
        );
        return Ok(json!({"looked": false}));
    }
    let there: BTreeSet<SandboxKey> =
        listed.filter_map(|sandbox| sandbox.owner().map(|(key, _)| key)).collect();
    let (armed, mut missing, unread) = missing(store, &there).await;
    let mut held = 0;
    if is_unbelievable(missing.len(), armed) {
        let known = missing_for_a_reason(config, store, &missing, now_ms).await?;
        let (elsewhere, ours): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|key| known.contains(key));
        let is_held = is_unbelievable(ours.len(), armed - elsewhere.len());
        missing = elsewhere;
        if is_held {
            held = ours.len();
            tracing::error!(
                event = VANISHED_HELD,
                armed,
                missing = held,
                "the providers do not list most of the sandboxes on record: no record is reconciled until a person has checked this (docs/RUNBOOK.md)"
            );
        } else {
            missing.extend(ours);
        }
    }
    missing.truncate(ASKED_MAX);
    let asked = missing.len();
    let unsent = ask_to_reconcile(queues, missing, now_ms).await;
    tracing::info!(
        event = "sweep.reconciled",
        asked,
        "records without a listed sandbox are being reconciled"
    );
    match unsent.or(unread) {
        None if held > 0 => Err(format!(
            "no provider lists {held} of {armed} sandboxes on record; their records are kept as they are until a person has checked this (docs/RUNBOOK.md, SweeperFails)"
        )),
        None => Ok(json!({"looked": true, "asked": asked})),
        Some(trouble) => Err(trouble),
    }
}

/// The missing sandboxes that say nothing about the others: sandboxes in a tenant's own account, which is not listed,
/// and those that a person gave up.
async fn missing_for_a_reason(
    config: &Config,
    store: &Store,
    keys: &[SandboxKey],
    now_ms: Ms,
) -> Result<BTreeSet<SandboxKey>, String> {
    let mut given_up = BTreeSet::new();
    for name in PROVIDERS {
        let kept = store.account(name).await.map_err(|e| e.to_string())?;
        let confirmed_at_ms = kept.and_then(|kept| kept.record.confirmed_at_ms);
        if confirmed_at_ms.is_some_and(|at_ms| now_ms < at_ms + GIVEN_UP_MS) {
            given_up.insert(name);
        }
    }
    let mut known = BTreeSet::new();
    for some in keys.chunks(RECORDS_MAX) {
        let read = store.sandboxes(&some.iter().cloned().collect()).await;
        for (key, record) in read.map_err(|e| e.to_string())? {
            // An unreadable record says nothing.
            let Ok(Some(record)) = record else { continue };
            let name = record.spec.provider.as_deref().unwrap_or(&config.providers.provider);
            if record.spec.credentials.is_some() || given_up.contains(name) {
                known.insert(key);
            }
        }
    }
    Ok(known)
}

/// The number of sandboxes on record, those that are not `there`, and the last read error. Sandboxes in use are not
/// counted: the turn that works in one would notice.
async fn missing(
    store: &Store,
    there: &BTreeSet<SandboxKey>,
) -> (usize, Vec<SandboxKey>, Option<String>) {
    let (mut all, mut missing, mut trouble) = (0, Vec::new(), None);
    let mut shards = stream::iter(0..DUE_SHARDS)
        .map(|shard| store.armed_sandboxes(shard))
        .buffer_unordered(SHARDS_AT_ONCE);
    while let Some(armed) = shards.next().await {
        match armed {
            Ok(armed) => {
                all += armed.len();
                missing.extend(armed.into_iter().filter(|key| !there.contains(key)));
            }
            Err(error) => trouble = Some(error.to_string()),
        }
    }
    (all, missing, trouble)
}

/// Asks each of these sandboxes, in its own group, to compare its record with the provider. Returns the last error.
pub async fn ask_to_reconcile(
    queues: &Queues,
    sandboxes: Vec<SandboxKey>,
    now_ms: Ms,
) -> Option<String> {
    let mut trouble = None;
    let groups = sandboxes.iter().map(SandboxKey::group);
    let looks: Vec<Message> = groups
        .map(|thread| Message {
            id: format!("look-{}-{}", thread.short_hash(), now_ms / TICK_MS).into(),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Reconcile,
        })
        .collect();
    let mut sending = stream::iter(looks.chunks(BATCH_MAX))
        .map(|batch| queues.send_messages(batch.to_vec()))
        .buffer_unordered(BATCHES_AT_ONCE);
    while let Some(answers) = sending.next().await {
        let failed = answers.into_iter().filter_map(Result::err).next_back();
        trouble = failed.map(|e| e.to_string()).or(trouble);
    }
    trouble
}
