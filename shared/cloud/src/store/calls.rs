//! Tool calls in progress: an item for each bearer's sandbox in a separate partition (`thread = "tools:<sandbox>"`,
//! `item = "calls"`). The function that serves the tools may write only there, so it cannot touch any record.
//!
//! Each place has an attribute (`place#<n>`) that says until when it is taken, in case its holder never releases it.
//! After `expires_at` the table deletes the item.

use std::collections::HashMap;

use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::shown::tools::{CALL_MS_MAX, CALLS_MAX};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s};

const CALLS: &str = "calls";
/// Seconds that the item is kept after its last call.
const KEPT_S: u64 = 3_600;

/// A place among the concurrent calls, held until it is released.
#[derive(Debug)]
pub struct HeldCall {
    sandbox: SandboxKey,
    place: String,
    until_ms: Ms,
}

impl Store {
    /// Takes a place for a call. `None`: the maximum of concurrent calls is reached.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn begin_call(
        &self,
        sandbox: &SandboxKey,
        now_ms: Ms,
    ) -> Result<Option<HeldCall>, StoreError> {
        let read = self.read([key(sandbox)]).await?;
        let until = |place: &str| number::<Ms>(read.first()?, place);
        let until_ms = now_ms + CALL_MS_MAX;
        for place in (0..CALLS_MAX).map(|place| format!("place#{place}")) {
            if until(&place).is_some_and(|until_ms| until_ms > now_ms) {
                continue;
            }
            let update =
                ItemWrite::update(key(sandbox), "SET #place = :until, #expires = :expires")
                    .condition("attribute_not_exists(#place) OR #place <= :now")
                    .name("#place", &place)
                    .name("#expires", "expires_at")
                    .value(":until", n(until_ms))
                    .value(":expires", n(until_ms / 1_000 + KEPT_S))
                    .value(":now", n(now_ms));
            // Another call may have taken it since it was read.
            if self.table.write(update).await? {
                let sandbox = sandbox.clone();
                return Ok(Some(HeldCall { sandbox, place, until_ms }));
            }
        }
        Ok(None)
    }

    /// Releases a call's place.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn end_call(&self, held: &HeldCall) -> Result<(), StoreError> {
        let update = ItemWrite::update(key(&held.sandbox), "REMOVE #place")
            .condition("#place = :until")
            .name("#place", &held.place)
            .value(":until", n(held.until_ms));
        self.table.write(update).await?;
        Ok(())
    }
}

fn key(sandbox: &SandboxKey) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("tools:{sandbox}"))),
        (ITEM.to_owned(), s(CALLS)),
    ])
}
