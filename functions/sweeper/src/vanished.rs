//! Records whose sandbox the provider does not list: each is asked to reconcile ([`Work::Reconcile`]).
//!
//! The sweeper itself decides nothing about them: between listing and reading a sandbox may have come or gone, so each
//! record is compared with the provider in its sandbox's own group.

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

/// The sweeper's tick: once in every `reconcile_ms` there is one that compares.
const TICK_MS: u64 = 60_000;
/// Sandboxes that are asked in one tick; the next tick that compares asks the rest.
const ASKED_MAX: usize = 200;

/// What a person gave up with an account is asked about for so long, however much it is.
const GIVEN_UP_MS: u64 = 24 * 60 * 60_000;

/// Asks the sandboxes whose records say that they are there and that are not `listed` to reconcile, when it is time
/// for that. Where that is most of them nobody is asked: so it looks when a provider has lost what it lists. What a person gave
/// up at a provider, whose account is another one now, is asked all the same.
///
/// # Errors
/// That it is most of them; the last thing that went wrong, after everything else was tried.
pub async fn reconcile<'a>(
    config: &Config,
    (store, queues): (&Store, &Queues),
    (listed, is_whole): (impl Iterator<Item = &'a Sandbox>, bool),
    now_ms: Ms,
) -> Result<Value, String> {
    if now_ms % config.limits.sandbox.reconcile_ms.max(TICK_MS) >= TICK_MS {
        return Ok(json!({"looked": false}));
    }
    // Of a list that is not whole it cannot be told what is missing from it.
    if !is_whole {
        tracing::warn!(
            event = "sweep.looked",
            "more sandboxes than can be listed: those that have vanished are left to their due times"
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
                "most of the sandboxes on record are not listed by the providers: none of their records is asked to look until somebody has looked (docs/RUNBOOK.md)"
            );
        } else {
            missing.extend(ours);
        }
    }
    missing.truncate(ASKED_MAX);
    let asked = missing.len();
    let unsent = ask_to_reconcile(queues, missing, now_ms).await;
    tracing::info!(
        event = "sweep.looked",
        asked,
        "records without a listed sandbox were asked to look"
    );
    match unsent.or(unread) {
        None if held > 0 => Err(format!(
            "{held} of {armed} sandboxes on record are listed by no provider; their records are kept as they are until somebody has looked (docs/RUNBOOK.md, SweeperFails)"
        )),
        None => Ok(json!({"looked": true, "asked": asked})),
        Some(trouble) => Err(trouble),
    }
}

/// Those of them that say nothing of the others: an account of a tenant's own is not listed, so its sandboxes are always
/// missing; and those that a person gave up are.
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
            // One that cannot be read says nothing.
            let Ok(Some(record)) = record else { continue };
            let name = record.provider.as_deref().unwrap_or(&config.provider);
            if record.credentials.is_some() || given_up.contains(name) {
                known.insert(key);
            }
        }
    }
    Ok(known)
}

/// How many sandboxes there are by the records, those of them that are not `there`, and the last thing that went wrong in
/// reading them. What is in use is not among them: whoever works in it would notice.
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

/// Asks each of these sandboxes, in its own group, to compare its record with the provider. The last thing that went wrong.
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
