//! The account behind the stack's key for a provider, compared with the account that the records name.
//!
//! Promised: a stack with no account on record remembers the first that answers. From another account nothing is
//! concluded, and nothing is created in it, until a person confirms that the sandboxes in the old one are given up.
//! Deliberately absent: tenants' own accounts, whose keys are compared when they are stored (`commands::setup`).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bobbin_cloud::store::{DUE_SHARDS, RECORDS_MAX, Store, StoreError};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::records::account::{Account, AccountRecord, AccountStanding};
use bobbin_core::records::sandbox::{Phase, SandboxRecord};
use bobbin_sandbox::{Provider, ProviderError};

/// Attempts lost to others who record an account at the same time.
const RACES_MAX: usize = 3;

/// Why the account could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// The provider did not name the account.
    #[error("{0}")]
    Provider(#[from] ProviderError),
    /// The account on record could not be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl NotCompared {
    /// The failure class of the error.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Provider(error) => error.failure.clone(),
            Self::Store(error) => error.failure(),
        }
    }
}

/// Recent comparisons of one process with the same keys. Clones share them.
#[derive(Clone, Default)]
pub struct Accounts {
    /// Until when each provider's account is trusted to be the one on record.
    same: Arc<Mutex<HashMap<String, Ms>>>,
}

impl Accounts {
    /// Whether the account is the one on record; a match is trusted for `age_ms`.
    ///
    /// # Errors
    /// [`NotCompared`].
    pub async fn is_same(
        &self,
        store: &Store,
        (name, provider): (&str, &dyn Provider),
        (now_ms, age_ms): (Ms, u64),
    ) -> Result<bool, NotCompared> {
        let until_ms = self.lock().get(name).copied();
        // A clock that went back makes the match stale.
        if until_ms.is_some_and(|until_ms| now_ms < until_ms && until_ms <= now_ms + age_ms) {
            return Ok(true);
        }
        let is_same = is_same(store, name, provider).await?;
        if is_same {
            self.lock().insert(name.to_owned(), now_ms + age_ms);
        }
        Ok(is_same)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Ms>> {
        self.same.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the account behind the provider's key is the one on record. The first account is recorded, and so is one
/// that has grown. If the provider does not name its account, nothing is compared.
///
/// # Errors
/// [`NotCompared`].
pub async fn is_same(
    store: &Store,
    name: &str,
    provider: &dyn Provider,
) -> Result<bool, NotCompared> {
    let Some(present) = provider.account().await? else {
        return Ok(true);
    };
    for _ in 0..RACES_MAX {
        let kept = store.account(name).await?;
        match AccountStanding::of(&present, kept.as_ref().map(|kept| &kept.record)) {
            AccountStanding::Same => return Ok(true),
            AccountStanding::Other => return Ok(false),
            AccountStanding::ToRemember => {
                let confirmed_at_ms = kept.as_ref().and_then(|kept| kept.record.confirmed_at_ms);
                let record = AccountRecord { account: present.clone(), confirmed_at_ms };
                if store.keep_account(name, &record, kept.as_ref()).await? {
                    tracing::info!(
                        event = "account.recorded",
                        provider = name,
                        "the provider account of the stack's sandboxes was recorded"
                    );
                    return Ok(true);
                }
            }
        }
    }
    Err(StoreError::Contended("another worker recorded an account on every try".to_owned()).into())
}

/// Replaces the account on record: sandboxes elsewhere are given up. False: it is already on record.
///
/// # Errors
/// [`StoreError`].
pub async fn confirm(
    store: &Store,
    name: &str,
    present: &Account,
    now_ms: Ms,
) -> Result<bool, StoreError> {
    for _ in 0..RACES_MAX {
        let kept = store.account(name).await?;
        if AccountStanding::of(present, kept.as_ref().map(|kept| &kept.record))
            != AccountStanding::Other
        {
            return Ok(false);
        }
        let record = AccountRecord { account: present.clone(), confirmed_at_ms: Some(now_ms) };
        if store.keep_account(name, &record, kept.as_ref()).await? {
            return Ok(true);
        }
    }
    Err(StoreError::Contended("another worker recorded an account on every try".to_owned()))
}

/// The sandboxes on record that use the stack's own key at a provider. `configured` is the provider of records that
/// name none.
///
/// # Errors
/// [`StoreError`].
pub async fn sandboxes_at(
    store: &Store,
    name: &str,
    configured: &str,
) -> Result<BTreeSet<SandboxKey>, StoreError> {
    let is_there = |record: &SandboxRecord| {
        let at = record.spec.provider.as_deref().unwrap_or(configured);
        // A sandbox that is still being created may not exist anywhere yet.
        let is_made = record.is_alive() && record.phase != Phase::Creating;
        is_made && record.spec.credentials.is_none() && at == name
    };
    let mut found = BTreeSet::new();
    for shard in 0..DUE_SHARDS {
        let armed = store.armed_sandboxes(shard).await?;
        for some in armed.chunks(RECORDS_MAX) {
            let read = store.sandboxes(&some.iter().cloned().collect()).await?;
            let there = read
                .into_iter()
                .filter(|(_, record)| matches!(record, Ok(Some(record)) if is_there(record)));
            found.extend(there.map(|(key, _)| key));
        }
    }
    // Sandboxes in which a turn works.
    for some in store.all_armed().await?.chunks(RECORDS_MAX) {
        for (session, _) in store.records(some).await? {
            if is_there(&session.sandbox) {
                found.insert(session.sandbox_key());
            }
        }
    }
    Ok(found)
}
