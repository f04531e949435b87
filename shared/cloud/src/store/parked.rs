//! What the delivery that gave a turn's message back left for the next one: an item of its own beside the record
//! (`item = "parked"`), because every look writes it, and an item as large as a record costs as many units as that has KB.
//!
//! Beside it stands the receipt by which the queue knows the waiting message, so that whoever wants the thread looked at
//! can have it come at once. The table forgets the item after a day: a receipt is worth nothing after twelve hours.

use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::parked::Parked;
use bobbin_core::schema::{self, Shape, UnknownFields};

use super::layout::{ITEM, PARKED, key};
use super::{Store, StoreError};
use crate::aws::table::{Item, Write, n, s, text};

const RECEIPT: &str = "receipt";
const KEPT_MS: u64 = 24 * 60 * 60_000;

impl Store {
    /// Leaves this for the next delivery, unless one that came later has left something of the same turn. False then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn park(
        &self,
        thread: &ThreadKey,
        parked: &Parked,
        receipt: &str,
    ) -> Result<bool, StoreError> {
        let body = schema::write(Shape::Parked, parked, &UnknownFields::default())
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let expression = "SET #parked = :parked, #receipt = :receipt, #turn = :turn, #receive = :receive, #tenant = :tenant, #expires = :expires";
        let update = Write::update(key(thread, PARKED), expression)
            .condition("attribute_not_exists(#turn) OR #turn <> :turn OR #receive < :receive")
            .name("#parked", PARKED)
            .name("#receipt", RECEIPT)
            .name("#turn", "turn")
            .name("#receive", "receive")
            .name("#tenant", "tenant")
            .name("#expires", "expires_at")
            .value(":parked", s(body))
            .value(":receipt", s(receipt))
            .value(":turn", s(parked.turn.as_str()))
            .value(":receive", n(parked.receive))
            .value(":tenant", s(thread.tenant()))
            // The table's time to live is in seconds.
            .value(":expires", n(expires_at_ms(parked.at_ms) / 1000));
        Ok(self.table.write(update).await?)
    }

    /// What was left of a thread's turn last, with the receipt of its message.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn parked(&self, thread: &ThreadKey) -> Result<Option<(Parked, String)>, StoreError> {
        // By the names of these attributes alone may ingress read an item of a thread's (`IngressRole` of the template).
        let own = [ITEM, PARKED, RECEIPT];
        let found = self.table.get_of(key(thread, PARKED), &own).await?;
        Ok(found.and_then(|item| Some((parked(&item)?, text(&item, RECEIPT)?.to_owned()))))
    }
}

const fn expires_at_ms(at_ms: Ms) -> Ms {
    at_ms + KEPT_MS
}

/// What an item holds. One that cannot be read counts as none: the next delivery looks as if for the first time.
pub(super) fn parked(item: &Item) -> Option<Parked> {
    debug_assert_eq!(text(item, ITEM), Some(PARKED));
    let (parked, _) = schema::read(Shape::Parked, text(item, PARKED)?).ok()?;
    Some(parked)
}
