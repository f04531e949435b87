//! Layout of the items of threads and sandboxes: keys, attributes, and the writes that create them.

use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, ThreadKey};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::schema::{self, Shape, UnknownFields};

use super::flags::{flags, names};
use super::layout::{
    ARMED, DIFF, DUE_AT, ENTRY, ITEM, PARKED, PATCH, SANDBOX, SESSION, SWEPT, key, ledger_item,
    record_of, sandbox_key,
};
use super::parked::parked;
use super::sandboxes::of_group;
use super::{StoreError, tenant};
use crate::aws::table::{ItemWrite, TableItem, n, s, text};

/// Write of a thread's record over version `expected`.
pub(super) fn thread_write(session: &Session, expected: u64, stale: &ControlFlags) -> ItemWrite {
    let stored = Session { version: expected + 1, ..session.clone() };
    let stale = names(stale);
    // Attributes that only items of shape 1 had.
    let mut removed = vec!["#phase".to_owned()];
    removed.extend((0..stale.len()).map(|index| format!("#m{index}")));
    let thread = &stored.thread;
    let due = (thread.due_shard(), stored.due_at_ms);
    let record = (stored.encode(), stored.version);
    let mut write = write_of(key(thread, SESSION), record, thread.tenant(), due, ("", removed))
        .name("#phase", "phase");
    for (index, name) in stale.into_iter().enumerate() {
        write = write.name(&format!("#m{index}"), name);
    }
    write.if_version(expected)
}

/// Write of a sandbox's record over version `expected`.
pub(super) fn sandbox_write(
    sandbox: &SandboxKey,
    record: &SandboxRecord,
    expected: u64,
) -> ItemWrite {
    let stored = SandboxRecord { version: expected + 1, ..record.clone() };
    let due = (sandbox.due_shard(), stored.due_at_ms);
    let record = (stored.encode(), stored.version);
    write_of(sandbox_key(sandbox), record, sandbox.tenant(), due, (", #phase = :phase", vec![]))
        .name("#phase", "phase")
        .value(":phase", s(stored.phase.word()))
        .if_version(expected)
}

/// Sets the attributes that every record has: version, tenant, and its position in the due index while something is
/// due; plus the given `set` and `removed`.
fn write_of(
    key: TableItem,
    (record, version): (String, u64),
    tenant: Tenant,
    (shard, due_at_ms): (u8, Option<Ms>),
    (set, mut removed): (&str, Vec<String>),
) -> ItemWrite {
    let mut expression =
        format!("SET #record = :record, #version = :version, #tenant = :tenant{set}");
    match due_at_ms {
        Some(_) => expression
            .push_str(", #shard = :shard, #armed = :due, #due = if_not_exists(#swept, :due)"),
        None => removed.extend(["#shard", "#armed", "#due"].map(str::to_owned)),
    }
    if !removed.is_empty() {
        expression.push_str(&format!(" REMOVE {}", removed.join(", ")));
    }
    // `#version` is defined by the condition.
    let write = ItemWrite::update(key, expression)
        .name("#record", "record")
        .name("#tenant", "tenant")
        .name("#shard", "due_shard")
        .name("#armed", ARMED)
        .name("#due", DUE_AT)
        .value(":record", s(record))
        .value(":version", n(version))
        .value(":tenant", s(tenant));
    match due_at_ms {
        Some(due_at_ms) => {
            write.name("#swept", SWEPT).value(":shard", n(shard)).value(":due", n(due_at_ms))
        }
        None => write,
    }
}

pub(super) fn entry_item(
    thread: &ThreadKey,
    entry: &LedgerEntry,
    expires_at_ms: Ms,
) -> Result<TableItem, StoreError> {
    let body = schema::write(Shape::Entry, entry, &UnknownFields::default())
        .map_err(|e| StoreError::Damaged(e.to_string()))?;
    let mut item = key(thread, &ledger_item(&entry.turn));
    item.insert(ENTRY.to_owned(), s(body));
    item.insert("tenant".to_owned(), s(thread.tenant()));
    // The table's time to live is in seconds.
    item.insert("expires_at".to_owned(), n(expires_at_ms / 1000));
    Ok(item)
}

pub(super) fn patch_item(
    thread: &ThreadKey,
    entry: &LedgerEntry,
    expires_at_ms: Ms,
) -> Option<TableItem> {
    let patch = entry.patch.clone()?;
    let mut item = key(thread, &format!("{DIFF}{}", entry.turn));
    item.insert(PATCH.to_owned(), s(patch));
    item.insert(schema::FIELD.to_owned(), n(Shape::Patch.writes()));
    item.insert("tenant".to_owned(), s(thread.tenant()));
    item.insert("expires_at".to_owned(), n(expires_at_ms / 1000));
    Some(item)
}

/// A thread's record, if it exists, and its control flags.
pub(super) type Stored = (Option<Session>, ControlFlags);

/// The loaded state of a thread.
pub(super) fn loaded(thread: &ThreadKey, items: &[TableItem]) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    if !thread.is_conversation() {
        let settings = items.iter().find(|item| text(item, ITEM) == Some(tenant::SETTINGS));
        loaded.session = of_group(thread, items)?;
        loaded.settings = settings.map(tenant::settings).transpose()?.unwrap_or_default();
        return Ok(loaded);
    }
    let sandbox = items.iter().find(|item| text(item, ITEM) == Some(SANDBOX));
    for item in items {
        match text(item, ITEM) {
            Some(SESSION) => (loaded.session, loaded.flags) = record(item, sandbox)?,
            Some(SANDBOX) => {}
            Some(PARKED) => loaded.parked = parked(item),
            Some(tenant::SETTINGS) => loaded.settings = tenant::settings(item)?,
            _ => loaded.in_ledger = true,
        }
    }
    // A sandbox created in its own group can exist before its thread has a record.
    if loaded.session.is_none()
        && let Some(item) = sandbox
    {
        loaded.session = Some(Session {
            sandbox: SandboxRecord::decode(record_of(item)?)?,
            ..Session::new(thread.clone(), 0)
        });
    }
    Ok(loaded)
}

/// Content of a thread's item: without a version there is no record, only control flags.
fn record(item: &TableItem, sandbox: Option<&TableItem>) -> Result<Stored, StoreError> {
    let stored = item.contains_key("version").then(|| {
        let sandbox = sandbox.map(record_of).transpose()?;
        Ok::<_, StoreError>(Session::decode(record_of(item)?, sandbox)?)
    });
    Ok((stored.transpose()?, flags(item)?))
}
