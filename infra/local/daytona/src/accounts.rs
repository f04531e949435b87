//! Keys and whose they are: each opens one organisation, and sees the sandboxes of that one alone.
//!
//! A provider starts with one key. Tests add further ones, of the same organisation or of another, and revoke them.
//! Deliberately absent: secrets and snapshots of one's own, which are there for every organisation.

use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

/// Counts the organisations, from the first.
pub(crate) type Account = u32;
/// That of the key which the provider is started with.
pub(crate) const FIRST: Account = 1;

tokio::task_local! {
    static CALLER: Account;
}

/// The keys that are accepted.
pub(crate) struct Accounts(Mutex<Vec<(String, Account)>>);

impl Accounts {
    pub(crate) fn new(key: &str) -> Self {
        Self(Mutex::new(vec![(key.to_owned(), FIRST)]))
    }

    /// Accepts a key for an organisation.
    pub(crate) fn add(&self, key: &str, account: Account) {
        self.revoke(key);
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push((key.to_owned(), account));
    }

    /// Accepts it no more.
    pub(crate) fn revoke(&self, key: &str) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|(known, _)| known != key);
    }

    /// Whose key a request carries. Hashes are compared, so that time tells nothing about a key.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Option<Account> {
        let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let sent = Sha256::digest(sent.strip_prefix("Bearer ")?.as_bytes());
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys = keys.iter();
        let found = keys.find(|(known, _)| Sha256::digest(known.as_bytes()) == sent);
        found.map(|(_, account)| *account)
    }
}

/// Answers a request as one of this organisation.
pub(crate) async fn as_caller<F: Future>(account: Account, answer: F) -> F::Output {
    CALLER.scope(account, answer).await
}

/// The organisation of the request that is being answered; none outside of one.
pub(crate) fn caller() -> Option<Account> {
    CALLER.try_with(|account| *account).ok()
}

/// Whether the request that is being answered may see what this organisation has.
pub(crate) fn may_see(account: Account) -> bool {
    caller().is_none_or(|caller| caller == account)
}

/// The id of an organisation.
pub(crate) fn organization(account: Account) -> String {
    format!("00000000-0000-4000-8000-{account:012}")
}
