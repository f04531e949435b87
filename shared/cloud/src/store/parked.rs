//! State that a delivery saves for the next one when it returns a turn's message to the queue. It is a separate item
//! beside the record (`item = "parked"`), because every poll writes it, and writing an item costs as many units as it
//! has KB.
//!
//! The item also holds the receipt of the waiting message, so that others can make it visible at once. The table
//! deletes the item after a day: a receipt is worthless after twelve hours.
//!
//! A writer of a flag also notes it here, and gets the saved state in return. Both writes are to one item, so one of
//! them is first: either the delivery learns that a poll is wanted, or the writer of the flag finds the receipt.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::records::parked::Parked;
use bobbin_core::schema::{self, Shape, UnknownFields};

use super::layout::{ITEM, PARKED, key};
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, s, text};

const RECEIPT: &str = "receipt";
/// Attribute with the mark of the turn's nudge.
const NUDGE: &str = "nudge";
/// Attribute with the time of a request to poll that no delivery has seen yet.
const WANTED: &str = "wanted";
const KEPT_MS: u64 = 24 * 60 * 60_000;

/// Result of saving state for the next delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Saved; no flag was set since the last time.
    Quiet,
    /// Saved; a flag was set since the last time.
    Wanted,
    /// Not saved: a later delivery has already saved state of the same turn.
    Overtaken,
}

impl Store {
    /// Saves this for the next delivery, unless a later delivery has already saved state of the same turn; with the
    /// receipt of the message, and the mark of the turn's nudge (empty: nudges are not accepted).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn park(
        &self,
        thread: &ThreadKey,
        parked: &Parked,
        (receipt, mark): (&str, &str),
    ) -> Result<Left, StoreError> {
        let body = schema::write(Shape::Parked, parked, &UnknownFields::default())
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let expression = "SET #parked = :parked, #receipt = :receipt, #nudge = :nudge, #turn = :turn, #receive = :receive, #tenant = :tenant, #expires = :expires REMOVE #wanted";
        let update = ItemWrite::update(key(thread, PARKED), expression)
            .condition("attribute_not_exists(#turn) OR #turn <> :turn OR #receive < :receive")
            .name("#parked", PARKED)
            .name("#receipt", RECEIPT)
            .name("#nudge", NUDGE)
            .name("#turn", "turn")
            .name("#receive", "receive")
            .name("#tenant", "tenant")
            .name("#expires", "expires_at")
            .name("#wanted", WANTED)
            .value(":parked", s(body))
            .value(":receipt", s(receipt))
            .value(":nudge", s(mark))
            .value(":turn", s(parked.turn.as_str()))
            .value(":receive", n(parked.receive))
            .value(":tenant", s(thread.tenant()))
            // The table's time to live is in seconds.
            .value(":expires", n(expires_at_ms(parked.at_ms) / 1000));
        Ok(match self.table.exchange(update).await? {
            None => Left::Overtaken,
            Some(before) if before.contains_key(WANTED) => Left::Wanted,
            Some(_) => Left::Quiet,
        })
    }

    /// Notes that a flag of this thread was set. Returns the last saved state of its turn, with the receipt of its
    /// message.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn want_poll(
        &self,
        thread: &ThreadKey,
        now_ms: Ms,
    ) -> Result<Option<(Parked, String)>, StoreError> {
        let expression = "SET #wanted = :wanted, #tenant = :tenant, #expires = if_not_exists(#expires, :expires)";
        let update = ItemWrite::update(key(thread, PARKED), expression)
            .name("#wanted", WANTED)
            .name("#tenant", "tenant")
            .name("#expires", "expires_at")
            .value(":wanted", n(now_ms))
            .value(":tenant", s(thread.tenant()))
            .value(":expires", n(expires_at_ms(now_ms) / 1000));
        let item = self.table.update(update).await?;
        Ok(item.and_then(|item| Some((parked(&item)?, text(&item, RECEIPT)?.to_owned()))))
    }

    /// The last saved state of the thread's turn, with the receipt of its message, for a nudge with this mark. Writes
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn parked(
        &self,
        thread: &ThreadKey,
        mark: &str,
    ) -> Result<Option<(Parked, String)>, StoreError> {
        // Ingress may read an item of a thread only by naming these attributes (`IngressRole` of the template).
        let own = [ITEM, PARKED, RECEIPT, NUDGE];
        let found = self.table.get_of(key(thread, PARKED), &own).await?;
        let found = found.filter(|item| text(item, NUDGE) == Some(mark));
        Ok(found.and_then(|item| Some((parked(&item)?, text(&item, RECEIPT)?.to_owned()))))
    }
}

const fn expires_at_ms(at_ms: Ms) -> Ms {
    at_ms + KEPT_MS
}

/// Content of an item. An unreadable one counts as missing: the next delivery polls as if for the first time.
pub(super) fn parked(item: &TableItem) -> Option<Parked> {
    debug_assert_eq!(text(item, ITEM), Some(PARKED));
    let (parked, _) = schema::read(Shape::Parked, text(item, PARKED)?).ok()?;
    Some(parked)
}
