//! A person's own account at the forge: an item each in a separate partition (`thread = "person:<tenant>:<person>"`,
//! `item = "linked"`), `linked` (JSON), `version` and `tenant`, written only by condition. Only the worker reads it.
//!
//! An account that is forgotten leaves its version behind, so that a renewal that was under way cannot bring it back.

use std::collections::HashMap;

use bobbin_core::base::ids::{Ms, Tenant};
use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_core::tenant::linked::LinkedAccount;

use super::layout::ITEM;
use super::webhook_targets::{Of, person_of};
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s, text};

const LINKED: &str = "linked";
/// Seconds for which the version of a forgotten account is kept: longer than any delivery that read it.
const KEPT_S: u64 = 86_400;

/// A person's item, and the version on which its next write is conditioned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptLinked {
    /// The account; `None`: the person has connected none.
    pub account: Option<LinkedAccount>,
    unknown: UnknownFields,
    version: u64,
}

impl Store {
    /// Reads a person's account consistently.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn linked(&self, tenant: &Tenant, person: &str) -> Result<KeptLinked, StoreError> {
        let Some(item) = self.table.get(key(tenant, person)).await? else {
            return Ok(KeptLinked::default());
        };
        let version = number(&item, "version").unwrap_or(0);
        let Some(body) = text(&item, LINKED) else {
            return Ok(KeptLinked { version, ..KeptLinked::default() });
        };
        let (account, unknown) = schema::read(Shape::Linked, body)?;
        Ok(KeptLinked { account: Some(account), unknown, version })
    }

    /// Stores an account over the version that was read, and returns what is stored then. `None`: another write came
    /// first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn keep_linked(
        &self,
        tenant: &Tenant,
        person: &str,
        account: LinkedAccount,
        before: &KeptLinked,
    ) -> Result<Option<KeptLinked>, StoreError> {
        let body = schema::write(Shape::Linked, &account, &before.unknown)
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let version = before.version + 1;
        let mut item = key(tenant, person);
        item.insert(LINKED.to_owned(), s(body));
        item.insert("version".to_owned(), n(version));
        item.insert("tenant".to_owned(), s(tenant.as_str()));
        let put = ItemWrite::put(item).if_version(before.version);
        let who = || person_of(tenant, person);
        let there = before.account.as_ref().map(|there| there.id);
        let is_written = if there == Some(account.id) {
            self.table.write(put).await?
        } else {
            let mut writes = vec![put, Of::Account(account.id).add(who())];
            writes.extend(there.map(|there| Of::Account(there).strike(who())));
            self.table.transact(writes).await?
        };
        let unknown = before.unknown.clone();
        Ok(is_written.then_some(KeptLinked { account: Some(account), unknown, version }))
    }

    /// Forgets an account, if it is still of the version that was read. False: another write came first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_linked(
        &self,
        tenant: &Tenant,
        person: &str,
        before: &KeptLinked,
        now_ms: Ms,
    ) -> Result<bool, StoreError> {
        let change = "SET #version = :next, #expires = :expires REMOVE #linked";
        let update = ItemWrite::update(key(tenant, person), change)
            .name("#linked", LINKED)
            .name("#expires", "expires_at")
            .value(":next", n(before.version + 1))
            .value(":expires", n(now_ms / 1_000 + KEPT_S));
        let mut writes = vec![update.if_version(before.version)];
        let there = before.account.as_ref();
        writes.extend(there.map(|there| Of::Account(there.id).strike(person_of(tenant, person))));
        Ok(self.table.transact(writes).await?)
    }
}

fn key(tenant: &Tenant, person: &str) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("person:{tenant}:{person}"))),
        (ITEM.to_owned(), s(LINKED)),
    ])
}
