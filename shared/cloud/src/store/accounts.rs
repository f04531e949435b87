//! The provider account that holds the stack's sandboxes: one item per provider (`thread = "provider:<name>"`,
//! `item = "account"`), `account` (JSON) and `version`, written only by condition.

use std::collections::HashMap;

use bobbin_core::records::account::AccountRecord;
use bobbin_core::schema::{self, Shape, UnknownFields};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s, text};

const ACCOUNT: &str = "account";

/// The stored account, and the version on which its next write is conditioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAccount {
    /// The stored record.
    pub record: AccountRecord,
    unknown: UnknownFields,
    version: u64,
}

impl Store {
    /// Reads the stored account of a provider consistently.
    ///
    /// # Errors
    /// [`StoreError`]. An unreadable record is an error: it may say that nothing is to be given up.
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

    /// Stores the account over the version that was read. False: another worker wrote first.
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
        Ok(self.table.write(ItemWrite::put(item).if_version(expected)).await?)
    }
}

fn key(provider: &str) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("provider:{provider}"))),
        (ITEM.to_owned(), s(ACCOUNT)),
    ])
}
