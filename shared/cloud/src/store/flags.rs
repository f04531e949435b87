//! The control flags: one attribute each beside the thread's record, so that they conflict with no write of it.

use std::collections::BTreeMap;

use bobbin_core::base::ids::{AskId, ThreadKey, TurnId};
use bobbin_core::base::person::Person;
use bobbin_core::records::ask::AskDecision;
use bobbin_core::records::flags::{ControlFlags, Queued, StoppedAll};
use bobbin_core::schema::{self, Shape, UnknownFields, Unreadable};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::layout::{SESSION, key};
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, s, text};

const CANCEL: &str = "cancel#";
const ASK: &str = "ask#";
const QUEUED: &str = "queued#";
const NOW: &str = "now#";
const STOP_ALL: &str = "stop_all#";

impl Store {
    /// Sets a cancel flag for a turn. The first one is kept.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_cancelled(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        by: &Person,
    ) -> Result<(), StoreError> {
        self.mark(thread, &format!("{CANCEL}{turn}"), flag_text(by)).await.map(|_| ())
    }

    /// Cancels everything of the thread that was accepted up to then, including work that is not announced yet; once
    /// per control message.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_stopped_all(
        &self,
        thread: &ThreadKey,
        control: &TurnId,
        all: &StoppedAll,
    ) -> Result<(), StoreError> {
        self.mark(thread, &format!("{STOP_ALL}{control}"), flag_text(all)).await.map(|_| ())
    }

    /// Settles an ask; false if another decision came first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_settled(
        &self,
        thread: &ThreadKey,
        ask: &AskId,
        settlement: &AskDecision,
    ) -> Result<bool, StoreError> {
        self.mark(thread, &format!("{ASK}{ask}"), flag_text(settlement)).await
    }

    /// Flags a prompt as waiting if the record is still at this version (0: none is stored), so that it cannot have
    /// begun meanwhile. False if the version differs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_queued(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        queued: &Queued,
        version: u64,
    ) -> Result<bool, StoreError> {
        let update = ItemWrite::update(key(thread, SESSION), "SET #mark = :mark")
            .name("#mark", format!("{QUEUED}{turn}"))
            .value(":mark", s(flag_text(queued)?))
            .if_version(version);
        Ok(self.table.write(update).await?)
    }

    /// Flags a waiting prompt to be sent into the running turn. Requires the waiting flag, so that no flag is left
    /// behind for a turn that has begun. False if the prompt no longer waits, or is already marked.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_now(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        by: &Person,
    ) -> Result<bool, StoreError> {
        let update = ItemWrite::update(key(thread, SESSION), "SET #mark = :mark")
            .condition("attribute_not_exists(#mark) AND attribute_exists(#queued)")
            .name("#queued", format!("{QUEUED}{turn}"));
        let (name, value) = (format!("{NOW}{turn}"), flag_text(by)?);
        self.stands(thread, &name, value, update).await
    }

    async fn mark(
        &self,
        thread: &ThreadKey,
        name: &str,
        value: Result<String, StoreError>,
    ) -> Result<bool, StoreError> {
        let update = ItemWrite::update(key(thread, SESSION), "SET #mark = :mark")
            .condition("attribute_not_exists(#mark)");
        self.stands(thread, name, value?, update).await
    }

    /// Whether the flag of this update is set. If its answer was lost, the SDK repeats the write and then sees a failed
    /// condition; so the stored flag is read, because it may be this very flag.
    async fn stands(
        &self,
        thread: &ThreadKey,
        name: &str,
        value: String,
        update: ItemWrite,
    ) -> Result<bool, StoreError> {
        let update = update.name("#mark", name).value(":mark", s(value.clone()));
        if self.table.write(update).await? {
            return Ok(true);
        }
        let items = self.read([key(thread, SESSION)]).await?;
        let standing = items.first().and_then(|item| text(item, name));
        Ok(standing == Some(value.as_str()))
    }
}

/// The control flags beside a record. A damaged one is ignored, as always; one of a newer shape must not be ignored.
pub(super) fn flags(item: &TableItem) -> Result<ControlFlags, StoreError> {
    let mut flags = ControlFlags::default();
    for (name, value) in item {
        let Ok(value) = value.as_s() else { continue };
        if let Some(turn) = name.strip_prefix(CANCEL) {
            note(&mut flags.cancelled, turn, value)?;
        } else if let Some(ask) = name.strip_prefix(ASK) {
            note(&mut flags.settled, ask, value)?;
        } else if let Some(turn) = name.strip_prefix(QUEUED) {
            note(&mut flags.queued, turn, value)?;
        } else if let Some(turn) = name.strip_prefix(NOW) {
            note(&mut flags.now, turn, value)?;
        } else if let Some(control) = name.strip_prefix(STOP_ALL) {
            note(&mut flags.stopped_all, control, value)?;
        }
    }
    Ok(flags)
}

fn note<K, T>(flags: &mut BTreeMap<K, T>, name: &str, text: &str) -> Result<(), StoreError>
where
    K: for<'a> From<&'a str> + Ord,
    T: DeserializeOwned + Serialize,
{
    match schema::read(Shape::Mark, text) {
        Ok((mark, _)) => {
            flags.insert(name.into(), mark);
            Ok(())
        }
        Err(newer @ Unreadable::Newer { .. }) => Err(newer.into()),
        Err(Unreadable::Damaged { .. }) => Ok(()),
    }
}

fn flag_text(mark: &impl Serialize) -> Result<String, StoreError> {
    schema::write(Shape::Mark, mark, &UnknownFields::default())
        .map_err(|e| StoreError::Damaged(e.to_string()))
}

pub(super) fn names(flags: &ControlFlags) -> Vec<String> {
    let cancelled = flags.cancelled.keys().map(|turn| format!("{CANCEL}{turn}"));
    cancelled
        .chain(flags.settled.keys().map(|ask| format!("{ASK}{ask}")))
        .chain(flags.queued.keys().map(|turn| format!("{QUEUED}{turn}")))
        .chain(flags.now.keys().map(|turn| format!("{NOW}{turn}")))
        .chain(flags.stopped_all.keys().map(|id| format!("{STOP_ALL}{id}")))
        .collect()
}
