//! API keys and organisations: each key opens one organisation, and sees only its sandboxes.
//!
//! A provider starts with one key. Tests add further keys, of the same organisation or another, and revoke them.
//! Deliberately absent: secrets and snapshots per organisation; these are shared by all.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

/// Number of an organisation, from the first.
pub(crate) type OrganizationNumber = u32;
/// Organisation of the provider's first key.
pub(crate) const FIRST: OrganizationNumber = 1;

tokio::task_local! {
    static CALLER: OrganizationNumber;
}

/// The accepted keys.
pub(crate) struct AcceptedKeys(Mutex<Vec<(String, OrganizationNumber)>>);

impl AcceptedKeys {
    pub(crate) fn new(key: &str) -> Self {
        Self(Mutex::new(vec![(key.to_owned(), FIRST)]))
    }

    /// Adds a key of an organisation.
    pub(crate) fn add(&self, key: &str, account: OrganizationNumber) {
        self.revoke(key);
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push((key.to_owned(), account));
    }

    /// Revokes a key.
    pub(crate) fn revoke(&self, key: &str) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|(known, _)| known != key);
    }

    /// The organisation of a request's key. Hashes are compared, so that timing reveals nothing about a key.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Option<OrganizationNumber> {
        let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let sent = Sha256::digest(sent.strip_prefix("Bearer ")?.as_bytes());
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys = keys.iter();
        let found = keys.find(|(known, _)| Sha256::digest(known.as_bytes()) == sent);
        found.map(|(_, account)| *account)
    }
}

/// Answers a request as this organisation.
pub(crate) async fn as_caller<F: Future>(account: OrganizationNumber, answer: F) -> F::Output {
    CALLER.scope(account, answer).await
}

/// The organisation of the current request; `None` outside of one.
pub(crate) fn caller() -> Option<OrganizationNumber> {
    CALLER.try_with(|account| *account).ok()
}

/// Whether the current request may see this organisation's resources.
pub(crate) fn may_see(account: OrganizationNumber) -> bool {
    caller().is_none_or(|caller| caller == account)
}

/// The id of an organisation.
pub(crate) fn organization(account: OrganizationNumber) -> String {
    format!("00000000-0000-4000-8000-{account:012}")
}
