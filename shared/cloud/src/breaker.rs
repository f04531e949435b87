//! The breakers of providers, shared by all workers through the table.
//!
//! One item per provider (`thread = "provider:<name>"`, `item = "breaker"`): `breaker` (JSON) and `version`, written
//! only by condition. Promised: while the provider is healthy, a process reads at most once every `breaker_cache_ms`
//! and writes nothing. If the table does not answer, the breaker counts as closed, within 2 s per call. Deliberately
//! absent: what an outage is (the caller decides) and when a breaker opens (`bobbin_core::base::breaker`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bobbin_core::base::breaker::{Breaker, CallAdmission};
use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::Limits;
use bobbin_core::protocol::signals::BREAKER_OPENED;
use bobbin_core::schema::{self, Shape, UnknownFields, Unreadable};

use crate::aws::Aws;
use crate::aws::table::{ItemWrite, Table, TableItem, n, number, s, text};

/// Bound of a read from the table, or a write.
const TABLE_MS_MAX: u64 = 2_000;
/// Attempts of one change that may lose to other writers. Each lost attempt is another worker's successful write, so a
/// change that is given up is one of many of its kind.
const RACES_MAX: usize = 5;
const ITEM: &str = "breaker";

/// The breakers, with the copies that this process has cached. Clones share the cache.
#[derive(Debug, Clone)]
pub struct Breakers {
    table: Table,
    limits: Limits,
    known: Arc<Mutex<HashMap<String, Known>>>,
}

/// A breaker as last read or written.
#[derive(Debug, Clone, Default)]
struct Known {
    breaker: Breaker,
    /// Stored fields that this build does not know.
    unknown: UnknownFields,
    /// 0: the item does not exist.
    version: u64,
    at_ms: Ms,
}

impl Breakers {
    /// Breakers in this table.
    #[must_use]
    pub fn new(aws: &Aws, table: &str, limits: &Limits) -> Self {
        Self {
            table: Table::new(aws, table, TABLE_MS_MAX),
            limits: limits.clone(),
            known: Arc::default(),
        }
    }

    /// Whether the provider may be called. [`CallAdmission::Probe`] already holds the claim: the caller must report how
    /// the call went.
    pub async fn admit(&self, provider: &str, now_ms: Ms) -> CallAdmission {
        let mut known = match self.cached(provider) {
            Some(known) if self.is_fresh(&known, now_ms) => known,
            _ => match self.read(provider, now_ms).await {
                Some(known) => known,
                None => return CallAdmission::Yes,
            },
        };
        for _ in 0..RACES_MAX {
            let admission = known.breaker.admits(now_ms);
            if admission != CallAdmission::Probe {
                return admission;
            }
            let claimed = known.breaker.claimed(now_ms, &self.limits.breaker);
            match self.write(provider, &claimed, &known, now_ms).await {
                BreakerWrite::Yes => {
                    tracing::info!(
                        event = "provider.breaker.probed",
                        provider,
                        "provider.breaker.probed: one call checks whether the provider is back"
                    );
                    return CallAdmission::Probe;
                }
                // Nobody else can claim it either: every caller is admitted.
                BreakerWrite::NoAnswer => return CallAdmission::Yes,
                BreakerWrite::Lost => match self.read(provider, now_ms).await {
                    Some(newer) => known = newer,
                    None => return CallAdmission::Yes,
                },
            }
        }
        CallAdmission::No { retry_in_ms: self.limits.retry.backoff_ms.max(1) }
    }

    /// Records that a call found the provider out of order; `seen` goes into the log, and holds no secret. True: this
    /// opened the breaker.
    pub async fn failed(&self, provider: &str, seen: &str, now_ms: Ms) -> bool {
        let limits = &self.limits.breaker;
        let changed = self.change(provider, now_ms, |breaker| breaker.failed(now_ms, limits)).await;
        if let Some((before, after)) = changed
            && let Some(until_ms) = after.open_until_ms
            && before.open_until_ms != after.open_until_ms
        {
            tracing::warn!(
                event = BREAKER_OPENED,
                provider,
                open_ms = after.open_ms,
                until_ms,
                seen,
                "provider.breaker.opened: the provider is left alone for a while"
            );
            return true;
        }
        false
    }

    /// Records that a call was answered. Writes only if the breaker is not known to be closed.
    pub async fn succeeded(&self, provider: &str, now_ms: Ms) {
        let is_closed = |known: Known| known.breaker.is_closed();
        if self.cached(provider).is_none_or(is_closed) {
            return;
        }
        let changed = self.change(provider, now_ms, |breaker| breaker.succeeded(now_ms)).await;
        if let Some((before, after)) = changed
            && !before.is_closed()
            && after.is_closed()
        {
            tracing::info!(
                event = "provider.breaker.closed",
                provider,
                "provider.breaker.closed: the provider answers again"
            );
        }
    }

    /// Makes a change, and again on the newer state if another worker wrote first. `None`: nothing had to change, or
    /// the write failed.
    async fn change(
        &self,
        provider: &str,
        now_ms: Ms,
        change: impl Fn(&Breaker) -> Breaker,
    ) -> Option<(Breaker, Breaker)> {
        for _ in 0..RACES_MAX {
            let known = self.read(provider, now_ms).await?;
            let after = change(&known.breaker);
            if after == known.breaker {
                return None;
            }
            match self.write(provider, &after, &known, now_ms).await {
                BreakerWrite::Yes => return Some((known.breaker, after)),
                BreakerWrite::NoAnswer => return None,
                BreakerWrite::Lost => {}
            }
        }
        tracing::debug!(
            event = "provider.breaker.raced",
            provider,
            "others changed a breaker on every try"
        );
        None
    }

    fn cached(&self, provider: &str) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(provider).cloned()
    }

    fn is_fresh(&self, known: &Known, now_ms: Ms) -> bool {
        // A clock that went back makes it stale.
        now_ms.checked_sub(known.at_ms).is_some_and(|age_ms| age_ms < self.limits.breaker.cache_ms)
    }

    fn keep(&self, provider: &str, known: Known) -> Known {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(provider.to_owned(), known.clone());
        known
    }

    /// Reads a breaker consistently. `None`: the table did not answer; the breaker counts as closed until the next read
    /// is due.
    async fn read(&self, provider: &str, now_ms: Ms) -> Option<Known> {
        let seen = match self.table.get(key(provider)).await {
            Ok(item) => match item.as_ref().map_or_else(|| Ok(Known::default()), decode) {
                Ok(known) => {
                    let at_ms = now_ms;
                    return Some(self.keep(provider, Known { at_ms, ..known }));
                }
                Err(newer) => newer.to_string(),
            },
            Err(error) => error.with_remedy(),
        };
        tracing::warn!(
            event = "provider.breaker.unread",
            provider,
            seen,
            "a breaker could not be read; it counts as closed"
        );
        let at_ms = now_ms;
        self.keep(provider, Known { at_ms, ..Known::default() });
        None
    }

    /// Writes a breaker over the known version.
    async fn write(
        &self,
        provider: &str,
        breaker: &Breaker,
        known: &Known,
        now_ms: Ms,
    ) -> BreakerWrite {
        let expected = known.version;
        let text = match schema::write(Shape::Breaker, breaker, &known.unknown) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(event = "provider.breaker.unwritten", provider, %error, "a breaker could not be stored");
                return BreakerWrite::NoAnswer;
            }
        };
        let mut item = key(provider);
        item.insert(ITEM.to_owned(), s(text));
        item.insert("version".to_owned(), n(expected + 1));
        let put = ItemWrite::put(item).if_version(expected);
        let seen = match self.table.write(put).await {
            Ok(true) => {
                let written = Known {
                    breaker: breaker.clone(),
                    unknown: known.unknown.clone(),
                    version: expected + 1,
                    at_ms: now_ms,
                };
                self.keep(provider, written);
                return BreakerWrite::Yes;
            }
            Ok(false) => return BreakerWrite::Lost,
            Err(error) => error.with_remedy(),
        };
        tracing::warn!(
            event = "provider.breaker.unwritten",
            provider,
            seen,
            "a breaker could not be stored"
        );
        BreakerWrite::NoAnswer
    }
}

/// Result of a write.
enum BreakerWrite {
    Yes,
    /// Another worker wrote first.
    Lost,
    /// Whether it was written is unknown.
    NoAnswer,
}

fn key(provider: &str) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("provider:{provider}"))),
        ("item".to_owned(), s(ITEM)),
    ])
}

/// Decodes the stored breaker. A damaged one counts as closed and is written anew.
///
/// # Errors
/// It has a newer shape: it counts as closed too, and is not written.
fn decode(item: &TableItem) -> Result<Known, Unreadable> {
    let version = number(item, "version").unwrap_or(0);
    let (breaker, unknown) = match text(item, ITEM).map(|text| schema::read(Shape::Breaker, text)) {
        Some(Err(newer @ Unreadable::Newer { .. })) => return Err(newer),
        Some(Ok(stored)) => stored,
        Some(Err(Unreadable::Damaged { .. })) | None => Default::default(),
    };
    Ok(Known { breaker, unknown, version, at_ms: 0 })
}
