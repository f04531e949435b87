//! What the delivery that gave a turn's message back left for the next one: an item of its own beside the record
//! (`item = "parked"`), because every look writes it, and an item as large as a record costs as many units as that has KB.
//!
//! Beside it stands the receipt by which the queue knows the waiting message, so that whoever wants the thread looked at
//! can have it come at once. The table forgets the item after a day: a receipt is worth nothing after twelve hours.
//!
//! Whoever has set a flag says so here as well, and is answered with what was left. Both writes are of one item, so one of
//! them is the first: either the delivery that leaves something hears that it is wanted, or who wants it finds the receipt.

use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::records::parked::Parked;
use bobbin_core::schema::{self, Shape, UnknownFields};

use super::layout::{ITEM, PARKED, key};
use super::{Store, StoreError};
use crate::aws::table::{Item, Write, n, s, text};

const RECEIPT: &str = "receipt";
/// By what a nudge for the turn is known.
const NUDGE: &str = "nudge";
/// Since when somebody wants the thread looked at, whom no delivery has heard yet.
const WANTED: &str = "wanted";
const KEPT_MS: u64 = 24 * 60 * 60_000;

/// What came of leaving something for the next delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It was left, and nobody has said anything since the last time.
    Quiet,
    /// It was left, and somebody has set a flag since the last time.
    Wanted,
    /// A delivery that came later has left something of the same turn: it was not left.
    Overtaken,
}

impl Store {
    /// Leaves this for the next delivery, unless one that came later has left something of the same turn; with the receipt of
    /// the message, and the mark of the turn's nudge (empty: none is taken).
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
        let update = Write::update(key(thread, PARKED), expression)
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

    /// Says that somebody has set a flag of this thread. What was left of its turn last, with the receipt of its message.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn want_look(
        &self,
        thread: &ThreadKey,
        now_ms: Ms,
    ) -> Result<Option<(Parked, String)>, StoreError> {
        let expression = "SET #wanted = :wanted, #tenant = :tenant, #expires = if_not_exists(#expires, :expires)";
        let update = Write::update(key(thread, PARKED), expression)
            .name("#wanted", WANTED)
            .name("#tenant", "tenant")
            .name("#expires", "expires_at")
            .value(":wanted", n(now_ms))
            .value(":tenant", s(thread.tenant()))
            .value(":expires", n(expires_at_ms(now_ms) / 1000));
        let item = self.table.update(update).await?;
        Ok(item.and_then(|item| Some((parked(&item)?, text(&item, RECEIPT)?.to_owned()))))
    }

    /// What was left of the thread's turn last, with the receipt of its message, for a nudge with this mark. Nothing is written.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn parked(
        &self,
        thread: &ThreadKey,
        mark: &str,
    ) -> Result<Option<(Parked, String)>, StoreError> {
        // By the names of these attributes alone may ingress read an item of a thread's (`IngressRole` of the template).
        let own = [ITEM, PARKED, RECEIPT, NUDGE];
        let found = self.table.get_of(key(thread, PARKED), &own).await?;
        let found = found.filter(|item| text(item, NUDGE) == Some(mark));
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
