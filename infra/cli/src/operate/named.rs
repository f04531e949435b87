//! Named sandboxes, from the table.

use std::collections::BTreeSet;

use bobbin_cloud::store::StoreError;
use bobbin_core::base::ids::{SandboxKey, SandboxName, Tenant, ThreadKey};
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::shown::sandboxes::Listed;

use super::stack::Stack;
use crate::output::CommandError;

/// The known tenants: those in the stack's lists, and those with live sandboxes.
///
/// # Errors
/// The table cannot be read.
pub async fn tenants(
    stack: &Stack,
    only: Option<&Tenant>,
) -> Result<BTreeSet<Tenant>, CommandError> {
    if let Some(tenant) = only {
        return Ok(BTreeSet::from([tenant.clone()]));
    }
    let armed = stack.store.all_armed().await.map_err(|e| unread(&e))?;
    let mut tenants = stack.tenants();
    tenants.extend(armed.iter().map(ThreadKey::tenant));
    Ok(tenants)
}

/// Named sandboxes.
#[derive(Default)]
pub struct NamedSandboxes {
    /// List entries.
    pub listed: Vec<Listed>,
    /// Names whose record this version cannot read.
    pub unreadable: Vec<SandboxName>,
}

/// Reads the named sandboxes of all tenants, or of one.
///
/// # Errors
/// The table cannot be read.
pub async fn all_named(
    stack: &Stack,
    tenant: Option<&Tenant>,
) -> Result<NamedSandboxes, CommandError> {
    let mut names = Vec::new();
    for tenant in tenants(stack, tenant).await? {
        let of_tenant = stack.store.names(&tenant).await;
        names.extend(of_tenant.map_err(|e| unread(&e))?);
    }
    let keys: BTreeSet<SandboxKey> = names.iter().map(|(_, key)| key.clone()).collect();
    let read = stack.store.sandboxes(&keys).await.map_err(|e| unread(&e))?;
    let mut named = NamedSandboxes::default();
    for (name, key) in names {
        match read.get(&key) {
            Some(Ok(Some(record))) => named.listed.push(Listed::of(&key, record)),
            // The name and the record are written in one transaction.
            Some(Ok(None)) | None => {}
            Some(Err(_)) => named.unreadable.push(name),
        }
    }
    Ok(named)
}

/// Reads a sandbox's record, if there is one.
///
/// # Errors
/// It cannot be read; with advice.
pub async fn record(
    stack: &Stack,
    key: &SandboxKey,
) -> Result<Option<SandboxRecord>, CommandError> {
    let keys = BTreeSet::from([key.clone()]);
    let mut read = stack.store.sandboxes(&keys).await.map_err(|e| unread(&e))?;
    let found = read.remove(key).transpose().map_err(|e| unread(&e))?;
    Ok(found.flatten())
}

/// The error for an unreadable record.
pub fn unread(error: &StoreError) -> CommandError {
    format!("{error}. If a newer version wrote it, use the bobbin of the deployed commit.").into()
}
