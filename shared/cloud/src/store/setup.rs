//! Links for entering keys and for signing in: an item each in a separate partition (`thread = "setup:<id>"`,
//! `item = "setup"`). Ingress may write only there, so it cannot touch any record.
//!
//! `setup` (JSON) and `until_ms` are written with the link; `sealed` and `entered_at_ms` by the first entry, by
//! condition. A sign-in has `press` (its name), `code` (sealed) and `code_id`, from the worker `found` (JSON), and from
//! the first press `pressed` and `pressed_at_ms`. After `expires_at` the table deletes the item.

use std::collections::HashMap;

use bobbin_core::base::ids::Ms;
use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_core::tenant::setup_link::{SetupLink, StoredLink};
use bobbin_core::tenant::sign_in::{SignInFound, StoredSignIn};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s, text};

const SETUP: &str = "setup";
const SEALED: &str = "sealed";
const ENTERED: &str = "entered_at_ms";
const UNTIL: &str = "until_ms";
const PRESS: &str = "press";
const CODE: &str = "code";
const CODE_ID: &str = "code_id";
const FOUND: &str = "found";
const PRESSED: &str = "pressed";
const PRESSED_AT: &str = "pressed_at_ms";
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
            sign_in: sign_in(&item)?,
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

    /// Stores that somebody came back from the forge with this code, sealed; an earlier sign-in through the link that
    /// nobody pressed on is replaced. False: something was pressed, the link has expired, or the code came before.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn signed_in(
        &self,
        id: &str,
        press: &str,
        (code, code_id): (&str, &str),
        now_ms: Ms,
    ) -> Result<bool, StoreError> {
        let change = "SET #press = :press, #code = :code, #code_id = :code_id REMOVE #found";
        let update = ItemWrite::update(key(id), change)
            .condition("attribute_exists(#setup) AND #until > :now AND attribute_not_exists(#pressed) AND attribute_not_exists(#sealed) AND (attribute_not_exists(#code_id) OR #code_id <> :code_id)")
            .name("#setup", SETUP)
            .name("#until", UNTIL)
            .name("#sealed", SEALED)
            .name("#press", PRESS)
            .name("#code", CODE)
            .name("#code_id", CODE_ID)
            .name("#found", FOUND)
            .name("#pressed", PRESSED)
            .value(":press", s(press))
            .value(":code", s(code))
            .value(":code_id", s(code_id))
            .value(":now", n(now_ms));
        if self.table.write(update).await? {
            return Ok(true);
        }
        // A write whose answer was lost is repeated, and finds its own result.
        let found = self.link(id).await?.and_then(|found| found.sign_in);
        Ok(found.is_some_and(|found| found.press == press))
    }

    /// Removes a sign-in of which nobody was told: the same code can be brought again.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_sign_in(&self, id: &str, press: &str) -> Result<(), StoreError> {
        let update = ItemWrite::update(key(id), "REMOVE #press, #code, #code_id, #found")
            .condition("#press = :press AND attribute_not_exists(#pressed)")
            .name("#press", PRESS)
            .name("#code", CODE)
            .name("#code_id", CODE_ID)
            .name("#found", FOUND)
            .name("#pressed", PRESSED)
            .value(":press", s(press));
        self.table.write(update).await?;
        Ok(())
    }

    /// Stores what a sign-in brought, if it is still the newest one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_sign_in(
        &self,
        id: &str,
        press: &str,
        found: &SignInFound,
    ) -> Result<(), StoreError> {
        let body = schema::write(Shape::SignIn, found, &UnknownFields::default())
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let update = ItemWrite::update(key(id), "SET #found = :found")
            .condition("#press = :press AND attribute_not_exists(#pressed)")
            .name("#found", FOUND)
            .name("#press", PRESS)
            .name("#pressed", PRESSED)
            .value(":found", s(body))
            .value(":press", s(press));
        self.table.write(update).await?;
        Ok(())
    }

    /// Stores what was pressed on what a sign-in brought. False: something was pressed before, it is no longer the
    /// newest sign-in, or the link has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn press(
        &self,
        id: &str,
        press: &str,
        pressed: &str,
        now_ms: Ms,
    ) -> Result<bool, StoreError> {
        let update = ItemWrite::update(key(id), "SET #pressed = :pressed, #at = :now")
            .condition("#press = :press AND attribute_exists(#found) AND attribute_not_exists(#pressed) AND #until > :now")
            .name("#pressed", PRESSED)
            .name("#at", PRESSED_AT)
            .name("#press", PRESS)
            .name("#found", FOUND)
            .name("#until", UNTIL)
            .value(":pressed", s(pressed))
            .value(":press", s(press))
            .value(":now", n(now_ms));
        if self.table.write(update).await? {
            return Ok(true);
        }
        let found = self.link(id).await?.and_then(|found| found.sign_in);
        let is_same = |found: StoredSignIn| found.pressed == Some((pressed.to_owned(), now_ms));
        Ok(found.is_some_and(is_same))
    }

    /// Removes what a sign-in brought, after the press on it was carried out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn end_sign_in(&self, id: &str, at_ms: Ms) -> Result<(), StoreError> {
        let update = ItemWrite::update(key(id), "REMOVE #found")
            .condition("#at = :at")
            .name("#found", FOUND)
            .name("#at", PRESSED_AT)
            .value(":at", n(at_ms));
        self.table.write(update).await?;
        Ok(())
    }

    /// Takes a press back of which nobody was told.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn take_press_back(&self, id: &str, at_ms: Ms) -> Result<(), StoreError> {
        let update = ItemWrite::update(key(id), "REMOVE #pressed, #at")
            .condition("#at = :at")
            .name("#pressed", PRESSED)
            .name("#at", PRESSED_AT)
            .value(":at", n(at_ms));
        self.table.write(update).await?;
        Ok(())
    }
}

fn sign_in(item: &TableItem) -> Result<Option<StoredSignIn>, StoreError> {
    let (Some(press), Some(code)) = (text(item, PRESS), text(item, CODE)) else {
        return Ok(None);
    };
    let found = text(item, FOUND);
    let found = found.map(|body| schema::read::<SignInFound>(Shape::SignIn, body)).transpose()?;
    let pressed = text(item, PRESSED).map(str::to_owned);
    Ok(Some(StoredSignIn {
        press: press.to_owned(),
        code: code.to_owned(),
        found: found.map(|(found, _)| found),
        pressed: pressed.zip(number(item, PRESSED_AT)),
    }))
}

fn key(id: &str) -> TableItem {
    HashMap::from([("thread".to_owned(), s(format!("setup:{id}"))), (ITEM.to_owned(), s(SETUP))])
}
