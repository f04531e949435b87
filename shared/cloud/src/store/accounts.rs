//! In which account of each provider the stack's sandboxes are: one item a provider (`thread = "provider:<name>"`,
//! `item = "account"`), `account` (JSON) and `version`, written by condition only.

use std::collections::HashMap;

use bobbin_core::records::account::AccountRecord;
use bobbin_core::schema::{self, Shape, UnknownFields};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{Item, Write, n, number, s, text};

const ACCOUNT: &str = "account";

/// What is on record, and what the next write of it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAccount {
    /// What is on record.
    pub record: AccountRecord,
    unknown: UnknownFields,
    version: u64,
}

impl Store {
    /// What is on record of a provider's account, read consistently.
    ///
    /// # Errors
    /// [`StoreError`]. What cannot be read is an error: it may say that nothing is to be given up.
    pub async fn account(&self, provider: &str) -> Result<Option<KeptAccount>, StoreError> {
        let items = self.read([key(provider)]).await?;
        let Some(item) = items.first() else {
            return Ok(None);
        };
        let body = text(item, ACCOUNT).ok_or_else(|| {
            StoreError::Damaged("there is no attribute with the account".to_owned())
        })?;
        let (record, unknown) = schema::read(Shape::Account, body)?;
        let version = number(item, "version").unwrap_or(0);
        Ok(Some(KeptAccount { record, unknown, version }))
    }

    /// Puts it on record in the place of what was read. False: somebody else wrote first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn keep_account(
        &self,
        provider: &str,
        record: &AccountRecord,
        before: Option<&KeptAccount>,
    ) -> Result<bool, StoreError> {
        let nothing = UnknownFields::default();
        let unknown = before.map_or(&nothing, |before| &before.unknown);
        let expected = before.map_or(0, |before| before.version);
        let body = schema::write(Shape::Account, record, unknown)
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let mut item = key(provider);
        item.insert(ACCOUNT.to_owned(), s(body));
        item.insert("version".to_owned(), n(expected + 1));
        Ok(self.table.write(Write::put(item).if_version(expected)).await?)
    }
}

fn key(provider: &str) -> Item {
    HashMap::from([
        ("thread".to_owned(), s(format!("provider:{provider}"))),
        (ITEM.to_owned(), s(ACCOUNT)),
    ])
}
