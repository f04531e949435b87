//! Sandboxes that threads share, wanted in the chat: listed, connected, stopped, started, kept as a snapshot, destroyed.
//!
//! Promised: what is wanted travels in the group that decides it (a sandbox's own, or the thread's), under the id of what
//! was pressed, so a repeat does nothing; turns that have to end are told so before it is sent; whoever asks hears what
//! happens next. Who may use Bobbin where they ask may do all of it, as everybody may reset a thread; checked with each
//! click. Deliberately absent: what is decided about it, which is the core's.

use std::collections::BTreeSet;

use bobbin_chat::Say;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey, ThreadKey};
use bobbin_core::protocol::decide::words;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::message::{Body, Control, Message, Operation, Which, Work};
use bobbin_core::records::outside;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::shown::commands::Command;
use bobbin_core::shown::sandboxes::{ListContext, Listed, PAGE_SANDBOXES, Page, asked_for};

use super::Lane;

/// Sandboxes whose records are read for one list.
const LISTED_MAX: usize = 200;
const NO_SANDBOX: &str = "This thread has no sandbox yet. Send a task and it gets one, or name the sandbox that you mean.";

/// Said where a button is of a sandbox that is not there any more.
fn gone(thread: &ThreadKey) -> String {
    let list = thread.command(Command::List);
    format!("That sandbox does not exist any more. {list} shows those that do.")
}

/// The sandbox that somebody means, or words for them.
type Meant = Result<(SandboxKey, SandboxRecord), String>;

impl Lane<'_> {
    /// The sandboxes of the tenant that have a name, a page of them, for who asks alone.
    pub(super) async fn list(
        &self,
        control: &Control,
        (page, in_thread): (u32, bool),
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let tenant = control.thread.tenant();
        let names = self.store.names(&tenant).await.map_err(|e| e.failure())?;
        let here = here(found);
        let keys: BTreeSet<_> = names
            .iter()
            .filter(|(name, key)| outside::is_seen_from(here.as_ref(), (name, key)))
            .take(LISTED_MAX)
            .map(|(_, key)| key.clone())
            .collect();
        let records = self.store.sandboxes(&keys).await.map_err(|e| e.failure())?;
        let mut all = Vec::new();
        for (key, record) in records {
            match record {
                Ok(Some(record)) if record.name.is_some() => all.push(self.listed(&key, &record)),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(event = "sandbox.unlisted", %tenant, %key, %error, "a sandbox with a name cannot be read, so it is not listed");
                }
            }
        }
        let place = ListContext { thread: control.thread.clone(), in_thread, here };
        let page = usize::try_from(page).unwrap_or(LISTED_MAX / PAGE_SANDBOXES);
        let page = Page::of(all, page, place, now_ms);
        self.chat.tell(&control.reply, Say::Sandboxes(&page)).await
    }

    /// A sandbox, with what its provider lacks.
    fn listed(&self, key: &SandboxKey, record: &SandboxRecord) -> Listed {
        let provider = self.tenants.set_up().named(record.provider.as_deref());
        let why = provider.ok().and_then(|one| one.facts().snapshots().err());
        Listed::of(key, record).without_snapshots(why)
    }

    /// Behind what runs in the thread: the word travels in its group.
    pub(super) async fn connect(
        &self,
        control: &Control,
        to: Option<&Which>,
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let meant = match to {
            None | Some(Which::Here) => None,
            Some(which) => match self.meant(control, which, found).await? {
                Ok((key, _)) => Some(key),
                Err(words) => return self.chat.tell(&control.reply, &words).await,
            },
        };
        let work = Work::Connect {
            to: meant,
            by: control.by.clone(),
            membership: control.membership.clone(),
        };
        self.send(control, work, None, now_ms).await?;
        let runs = found.session.as_ref().is_some_and(|session| session.turn.is_some());
        let words = if runs {
            "This has been asked for: the thread goes there when what runs and waits here is done, and says so."
        } else {
            "This has been asked for: the thread says when it is connected."
        };
        self.chat.tell(&control.reply, words).await
    }

    /// Asks once, with what would be lost.
    pub(super) async fn ask_destroy(
        &self,
        control: &Control,
        which: &Which,
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let (key, record) = match self.meant(control, which, found).await? {
            Ok(meant) => meant,
            Err(words) => return self.chat.tell(&control.reply, &words).await,
        };
        let listed = Listed::of(&key, &record);
        if let Some(why) = pointless(&listed, Operation::Destroy) {
            return self.chat.tell(&control.reply, &why).await;
        }
        let thread = &control.thread;
        let say = Say::AskDestroy { thread, sandbox: &listed, now_ms };
        self.chat.tell(&control.reply, say).await
    }

    /// The turns that have to end are told so first, and then it travels in the sandbox's group.
    pub(super) async fn operate(
        &self,
        control: &Control,
        (which, want): (&Which, Operation),
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let (key, record) = match self.meant(control, which, found).await? {
            Ok(meant) => meant,
            Err(words) => return self.chat.tell(&control.reply, &words).await,
        };
        let listed = self.listed(&key, &record);
        if let Some(why) = pointless(&listed, want) {
            return self.chat.tell(&control.reply, &why).await;
        }
        if matches!(want, Operation::Pause | Operation::Destroy) {
            for in_use in &record.in_use {
                self.mark(&in_use.thread, &in_use.turn, control).await?;
            }
        }
        let work = Work::Operate { want, by: Some(control.by.clone()) };
        self.send(control, work, Some(&key), now_ms).await?;
        tracing::info!(event = "sandbox.operation", sandbox = %key, by = control.by.id, want = want.word(), "an operation on a shared sandbox was asked for in the chat");
        self.chat.tell(&control.reply, &asked_for(&listed, want, &control.thread)).await
    }

    async fn send(
        &self,
        control: &Control,
        work: Work,
        sandbox: Option<&SandboxKey>,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let message = Body::Message(Message {
            id: control.id.as_str().into(),
            thread: sandbox.map_or_else(|| control.thread.clone(), SandboxKey::group),
            accepted_at_ms: now_ms,
            work,
        });
        let sent = self.queues.send(&message).await;
        sent.map(drop).map_err(|e| Failure::Wait { after_ms: 0, seen: e.to_string() })
    }

    async fn meant(
        &self,
        control: &Control,
        which: &Which,
        found: &Loaded,
    ) -> Result<Meant, Failure> {
        let tenant = control.thread.tenant();
        let key = match which {
            Which::Here => {
                let Some(session) = &found.session else {
                    return Ok(Err(NO_SANDBOX.to_owned()));
                };
                let is_there = session.sandbox.is_alive() || session.sandbox.is_shared();
                let meant = (session.sandbox_key(), session.sandbox.clone());
                return Ok(if is_there { Ok(meant) } else { Err(NO_SANDBOX.to_owned()) });
            }
            Which::Named(name) => {
                let found = self.store.name(&tenant, name).await;
                match found.map_err(|e| e.failure())? {
                    Some(key) => key,
                    None => return Ok(Err(words::no_sandbox(name, &control.thread))),
                }
            }
            Which::Exactly(key) if key.tenant() == tenant => key.clone(),
            Which::Exactly(_) => return Ok(Err(gone(&control.thread))),
        };
        let keys = BTreeSet::from([key.clone()]);
        let mut records = self.store.sandboxes(&keys).await.map_err(|e| e.failure())?;
        let record = records.remove(&key).transpose().map_err(|e| e.failure())?;
        // What nobody named is no business of other threads than its own.
        let here = here(found);
        let record = record.flatten().filter(|record| match &record.name {
            Some(name) => outside::is_seen_from(here.as_ref(), (name, &key)),
            None => here.as_ref() == Some(&key),
        });
        Ok(record.map(|record| (key, record)).ok_or_else(|| match which {
            Which::Named(name) => words::no_sandbox(name, &control.thread),
            Which::Here | Which::Exactly(_) => gone(&control.thread),
        }))
    }
}

/// The sandbox that the thread works in.
fn here(found: &Loaded) -> Option<SandboxKey> {
    found.session.as_ref().map(Session::sandbox_key)
}

fn pointless(sandbox: &Listed, want: Operation) -> Option<String> {
    let why = sandbox.pointless(want)?;
    Some(format!("Nothing to do with {}: {why}.", sandbox.called()))
}
