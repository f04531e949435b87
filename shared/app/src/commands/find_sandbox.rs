//! Finds the sandbox that somebody means: the thread's, a named one, or a button's. Everybody who may use Bobbin in
//! that place may do anything with it, as everybody may reset a thread; checked again on each click.

use std::collections::BTreeSet;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::{Control, WhichSandbox};
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::records::tool_sandbox;
use bobbin_core::tenant::commands::Command;

use crate::control::Lane;

const NO_SANDBOX: &str = "This thread has no sandbox yet. Send a task and it gets one, or name the sandbox that you mean.";

/// Reply if a button's sandbox does not exist any more.
fn gone(thread: &ThreadKey) -> String {
    let list = thread.command(Command::List);
    format!("That sandbox no longer exists. {list} shows those that do.")
}

/// The sandbox that somebody means, or a reply to them.
type MeantSandbox = Result<(SandboxKey, SandboxRecord), String>;

impl Lane<'_> {
    pub(super) async fn find_sandbox(
        &self,
        control: &Control,
        which: &WhichSandbox,
        found: &Loaded,
    ) -> Result<MeantSandbox, Failure> {
        let tenant = control.thread.tenant();
        let key = match which {
            WhichSandbox::Here => {
                let Some(session) = &found.session else {
                    return Ok(Err(NO_SANDBOX.to_owned()));
                };
                let is_there = session.sandbox.is_alive() || session.sandbox.is_shared();
                let meant = (session.sandbox_key(), session.sandbox.clone());
                return Ok(if is_there { Ok(meant) } else { Err(NO_SANDBOX.to_owned()) });
            }
            WhichSandbox::Named(name) => {
                let found = self.store.name(&tenant, name).await;
                match found.map_err(|e| e.failure())? {
                    Some(key) => key,
                    None => return Ok(Err(words::no_sandbox(name, &control.thread))),
                }
            }
            WhichSandbox::Exactly(key) if key.tenant() == tenant => key.clone(),
            WhichSandbox::Exactly(_) => return Ok(Err(gone(&control.thread))),
        };
        let keys = BTreeSet::from([key.clone()]);
        let mut records = self.store.sandboxes(&keys).await.map_err(|e| e.failure())?;
        let record = records.remove(&key).transpose().map_err(|e| e.failure())?;
        // An unnamed sandbox is only its own thread's business.
        let here = here(found);
        let record = record.flatten().filter(|record| match &record.sharing.name {
            Some(name) => tool_sandbox::is_seen_from(here.as_ref(), (name, &key)),
            None => here.as_ref() == Some(&key),
        });
        Ok(record.map(|record| (key, record)).ok_or_else(|| match which {
            WhichSandbox::Named(name) => words::no_sandbox(name, &control.thread),
            WhichSandbox::Here | WhichSandbox::Exactly(_) => gone(&control.thread),
        }))
    }
}

/// The sandbox that the thread works in.
pub(super) fn here(found: &Loaded) -> Option<SandboxKey> {
    found.session.as_ref().map(Session::sandbox_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn button_of_gone_sandbox_names_list_command() {
        let discord = ThreadKey::discord("1", "2").expect("a key");
        let slack = ThreadKey::slack("T1", "C1", "1.2").expect("a key");
        let words =
            |list: &str| format!("That sandbox no longer exists. {list} shows those that do.");
        assert_eq!(gone(&discord), words("/sandbox-list"));
        assert_eq!(gone(&slack), words("@Bobbin sandbox list"));
    }
}
