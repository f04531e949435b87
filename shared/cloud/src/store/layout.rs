//! Layout of the table: keys, and the names of items and attributes.

use std::collections::HashMap;

use bobbin_core::base::ids::{SandboxKey, ThreadKey, TurnId};

use super::StoreError;
use crate::aws::table::{TableItem, s, text};

pub(super) const ITEM: &str = "item";
pub(super) const SESSION: &str = "session";
pub(super) const SANDBOX: &str = "sandbox";
pub(super) const PARKED: &str = "parked";
pub(super) const TURN: &str = "turn#";
pub(super) const ENTRY: &str = "entry";
pub(super) const DIFF: &str = "diff#";
pub(super) const PATCH: &str = "patch";
/// Position of an item in the due index; its due time by the record alone; the outstanding sweep; and until when no
/// other is sent.
pub(super) const DUE_AT: &str = "due_at";
pub(super) const ARMED: &str = "armed";
pub(super) const SWEEP: &str = "sweep";
pub(super) const SWEPT: &str = "swept";
/// Items that are read for a thread's record: its own and its sandbox's.
pub(super) const ITEMS_A_RECORD: usize = 2;

pub(super) fn key(thread: &ThreadKey, item: &str) -> TableItem {
    HashMap::from([("thread".to_owned(), s(thread.to_string())), (ITEM.to_owned(), s(item))])
}

/// Key of a sandbox's record.
pub(super) fn sandbox_key(sandbox: &SandboxKey) -> TableItem {
    HashMap::from([("thread".to_owned(), s(sandbox.to_string())), (ITEM.to_owned(), s(SANDBOX))])
}

/// Keys of a thread's record and its sandbox's.
pub(super) fn record_keys(thread: &ThreadKey) -> [TableItem; ITEMS_A_RECORD] {
    [key(thread, SESSION), sandbox_key(&thread.sandbox())]
}

pub(super) fn ledger_item(turn: &TurnId) -> String {
    format!("{TURN}{turn}")
}

pub(super) fn record_of(item: &TableItem) -> Result<&str, StoreError> {
    text(item, "record")
        .ok_or_else(|| StoreError::Damaged("there is no record attribute".to_owned()))
}
