//! Links for entering keys: an item each in a separate partition (`thread = "setup:<id>"`, `item = "setup"`). Ingress
//! may write only there, so it cannot touch any record.
//!
//! `setup` (JSON) and `until_ms` are written with the link; `sealed` and `entered_at_ms` by the first entry, by
//! condition. After `expires_at` the table deletes the item.

use std::collections::HashMap;

use bobbin_core::base::ids::Ms;
use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_core::tenant::own_keys::{SetupLink, StoredLink};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s, text};

const SETUP: &str = "setup";
const SEALED: &str = "sealed";
const ENTERED: &str = "entered_at_ms";
const UNTIL: &str = "until_ms";
/// Seconds that the item is kept after the link's end, for the check of the entered key, which may have to wait for the
/// provider.
const KEPT_S: u64 = 3_600;

impl Store {
    /// Stores a link under its id, unless it exists: a repeat leaves its state alone. With `sealed`, a key was entered
    /// together with it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn make_link(
        &self,
        id: &str,
        link: &SetupLink,
        sealed: Option<(&str, Ms)>,
    ) -> Result<(), StoreError> {
        let body = schema::write(Shape::Setup, link, &UnknownFields::default())
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let mut item = key(id);
        item.insert(SETUP.to_owned(), s(body));
        item.insert(UNTIL.to_owned(), n(link.until_ms));
        item.insert("expires_at".to_owned(), n(link.until_ms / 1_000 + KEPT_S));
        item.insert("tenant".to_owned(), s(link.thread.tenant().as_str()));
        if let Some((sealed, entered_at_ms)) = sealed {
            item.insert(SEALED.to_owned(), s(sealed));
            item.insert(ENTERED.to_owned(), n(entered_at_ms));
        }
        let put = ItemWrite::put(item).condition("attribute_not_exists(#setup)");
        self.table.write(put.name("#setup", SETUP)).await?;
        Ok(())
    }

    /// Reads a link consistently, if it exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn link(&self, id: &str) -> Result<Option<StoredLink>, StoreError> {
        let Some(item) = self.table.get(key(id)).await? else {
            return Ok(None);
        };
        let body = text(&item, SETUP).ok_or_else(|| {
            StoreError::Damaged("there is no attribute with the setup".to_owned())
        })?;
        let (link, _) = schema::read::<SetupLink>(Shape::Setup, body)?;
        Ok(Some(StoredLink {
            link,
            sealed: text(&item, SEALED).map(str::to_owned),
            entered_at_ms: number(&item, ENTERED),
        }))
    }

    /// Stores a sealed key with a link. False: the link was already used, or has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn enter(&self, id: &str, sealed: &str, now_ms: Ms) -> Result<bool, StoreError> {
        let update = ItemWrite::update(key(id), "SET #sealed = :sealed, #entered = :now")
            .condition("attribute_not_exists(#sealed) AND #until > :now")
            .name("#sealed", SEALED)
            .name("#entered", ENTERED)
            .name("#until", UNTIL)
            .value(":sealed", s(sealed))
            .value(":now", n(now_ms));
        if self.table.write(update).await? {
            return Ok(true);
        }
        // A write whose answer was lost is repeated, and finds its own result.
        let found = self.link(id).await?;
        Ok(found.is_some_and(|found| found.sealed.as_deref() == Some(sealed)))
    }

    /// Removes the entered key, if it is still this one: nobody was told of it, so the link is open again.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reopen(&self, id: &str, sealed: &str) -> Result<(), StoreError> {
        let update = ItemWrite::update(key(id), "REMOVE #sealed, #entered")
            .condition("#sealed = :sealed")
            .name("#sealed", SEALED)
            .name("#entered", ENTERED)
            .value(":sealed", s(sealed));
        self.table.write(update).await?;
        Ok(())
    }
}

fn key(id: &str) -> TableItem {
    HashMap::from([("thread".to_owned(), s(format!("setup:{id}"))), (ITEM.to_owned(), s(SETUP))])
}
