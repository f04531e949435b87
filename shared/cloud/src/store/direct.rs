//! The thread of a direct message: an item each in the partition of its tenant (`thread = "tenant:<tenant>"`,
//! `item = "direct#<message>"`), with that thread in `place`, and `expires_at`, after which the table deletes it.
//!
//! Ingress chooses the thread. Slack may send a message again, and ingress may then choose the other thread: the
//! setting has changed, or the table did not answer in time. The queues accept both, because they recognise a repeat
//! only within a group. So a worker takes a message for its thread by condition, and works on it only if no other
//! thread has it.

use std::collections::HashMap;

use bobbin_core::base::ids::{Ms, Tenant, ThreadKey, TurnId};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, s, text};

const DIRECT: &str = "direct#";
const PLACE: &str = "place";
const EXPIRES: &str = "expires_at";

impl Store {
    /// Takes a direct message for this thread, unless another has it; returns whether this one has it now. The place of
    /// the message with which the thread began is kept as long.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn take_direct(
        &self,
        thread: &ThreadKey,
        message: &str,
        begun_by: Option<&TurnId>,
        expires_at_ms: Ms,
    ) -> Result<bool, StoreError> {
        let tenant = thread.tenant();
        let of = |message: &str, expression: &str, condition: &str| {
            ItemWrite::update(key(&tenant, message), expression)
                .condition(condition)
                .name("#place", PLACE)
                .name("#expires", EXPIRES)
                .value(":here", s(thread.to_string()))
                .value(":expires", n(expires_at_ms / 1_000))
        };
        let take = of(
            message,
            "SET #place = :here, #expires = :expires",
            "attribute_not_exists(#place) OR #place = :here",
        );
        let keep = async {
            match begun_by.filter(|first| first.as_str() != message) {
                Some(first) => {
                    self.table.write(of(first, "SET #expires = :expires", "#place = :here")).await
                }
                None => Ok(true),
            }
        };
        let (taken, _) = tokio::try_join!(self.table.write(take), keep)?;
        Ok(taken)
    }

    /// The thread that has taken a direct message, if one has.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn direct_place(
        &self,
        tenant: &Tenant,
        message: &TurnId,
    ) -> Result<Option<ThreadKey>, StoreError> {
        let Some(item) = self.table.get(key(tenant, message)).await? else {
            return Ok(None);
        };
        let place = text(&item, PLACE).and_then(|place| place.parse().ok());
        let damaged =
            || StoreError::Damaged("the place of a direct message is no thread".to_owned());
        place.map(Some).ok_or_else(damaged)
    }
}

fn key(tenant: &Tenant, message: &str) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("tenant:{tenant}"))),
        (ITEM.to_owned(), s(format!("{DIRECT}{message}"))),
    ])
}
