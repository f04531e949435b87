//! Finds a sandbox by its name within a tenant, or by a thread that works in it.

pub mod connect;
pub mod create;
pub mod list;
pub mod setup;
pub mod snapshots;
pub mod tools;

use bobbin_core::base::ids::{SandboxKey, SandboxName, Tenant, ThreadKey};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;

use super::arguments::GivenSandbox;
use super::find_thread::GivenThread;
use super::named::{record, tenants, unread};
use super::show;
use super::stack::Stack;
use crate::output::{CommandError, ExitStatus};

/// The chosen sandbox.
pub struct Chosen {
    pub key: SandboxKey,
    pub record: SandboxRecord,
    /// The thread that named it, if one did.
    pub thread: Option<(Session, ControlFlags)>,
    /// How it was named, for commands to repeat.
    pub said: String,
}

impl Chosen {
    /// The thread that was named.
    pub fn thread(&self) -> Option<&ThreadKey> {
        self.thread.as_ref().map(|(session, _)| &session.thread)
    }
}

/// Finds the sandbox.
///
/// # Errors
/// None or several match; with advice.
pub async fn chosen(
    stack: &Stack,
    which: &GivenSandbox,
    tenant: Option<&Tenant>,
) -> Result<Chosen, CommandError> {
    let (key, said) = match which {
        GivenSandbox::Of(thread) if thread.is_conversation() && thread.sandbox().has_thread() => {
            return of_thread(stack, thread).await;
        }
        GivenSandbox::Of(group) => (group.sandbox(), group.to_string()),
        GivenSandbox::OfEnd(meant) => return of_thread(stack, &meant.key(stack).await?).await,
        GivenSandbox::Named(name) => match named(stack, name, tenant).await {
            Ok(key) => (key, name.to_string()),
            // The end of a thread's number looks like a name; names come first.
            Err(none) => match GivenThread::end(name) {
                Some(meant) if none.status == ExitStatus::Notice => {
                    return match meant.key(stack).await {
                        Ok(thread) => of_thread(stack, &thread).await,
                        Err(other) if other.status == ExitStatus::Notice => Err(none),
                        Err(several) => Err(several),
                    };
                }
                _ => return Err(none),
            },
        },
    };
    let record = record(stack, &key).await?.ok_or_else(|| {
        CommandError::not_found(format!(
            "There is no record of the sandbox {said}. List the sandboxes with: bobbin {} sandbox list",
            stack.said
        ))
    })?;
    Ok(Chosen { key, record, thread: None, said })
}

async fn of_thread(stack: &Stack, thread: &ThreadKey) -> Result<Chosen, CommandError> {
    let (session, flags) = show::record(stack, thread).await?;
    Ok(Chosen {
        key: session.sandbox_key(),
        record: session.sandbox.clone(),
        said: thread.to_string(),
        thread: Some((session, flags)),
    })
}

/// Finds a sandbox by name.
async fn named(
    stack: &Stack,
    name: &SandboxName,
    tenant: Option<&Tenant>,
) -> Result<SandboxKey, CommandError> {
    let mut found = Vec::new();
    for tenant in tenants(stack, tenant).await? {
        let key = stack.store.name(&tenant, name).await;
        found.extend(key.map_err(|e| unread(&e))?);
    }
    if let [key] = found.as_slice() {
        return Ok(key.clone());
    }
    if found.is_empty() {
        let place = tenant.map(|tenant| format!(" in {tenant}"));
        return Err(CommandError::not_found(format!(
            "There is no sandbox named {name}{}. List the sandboxes with: bobbin {} sandbox list",
            place.unwrap_or_default(),
            stack.said
        )));
    }
    let tenants: Vec<String> = found.iter().map(|key| key.tenant().to_string()).collect();
    Err(format!(
        "Several servers or workspaces have a sandbox named {name}: choose one with --tenant ({}).",
        tenants.join(", ")
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_argument_is_name_or_key() {
        let name = GivenSandbox::Named("frontend-2".parse().expect("a name"));
        assert_eq!("frontend-2".parse(), Ok(name));
        for key in ["discord:1:2", "slack:T1:C1:1.2", "sandbox:discord:1:2"] {
            let thread = key.parse().expect("a key");
            assert_eq!(key.parse(), Ok(GivenSandbox::Of(thread)), "{key}");
        }
        for (wrong, says) in [
            ("Frontend", "use 1 to 40 characters of a-z, 0-9 and -"),
            ("", "use 1 to 40 characters of a-z, 0-9 and -"),
            ("teams:1:2", "not a thread key"),
        ] {
            let refused = wrong.parse::<GivenSandbox>().expect_err(wrong);
            assert!(refused.contains(says), "{refused}");
        }
    }
}
