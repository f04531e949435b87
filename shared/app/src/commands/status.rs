//! `status`: the state of the thread's sandbox.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::shown::status;

use crate::control::Lane;

impl Lane<'_> {
    pub(super) async fn status(
        &self,
        control: &Control,
        found: &Loaded,
        now_ms: Ms,
    ) -> Result<(), Failure> {
        let wanted = found.session.as_ref().map(status::wanted).unwrap_or_default();
        let entries = self.entries(&control.thread, &wanted).await?;
        self.answer(control, &words(found, &entries, now_ms)).await
    }
}

fn words(found: &Loaded, entries: &[LedgerEntry], now_ms: Ms) -> String {
    let session = found.session.as_ref();
    let words = status::words(session, &found.flags, entries, now_ms);
    let shared = session.and_then(|session| status::shared(session, |thread| thread.shown()));
    match shared {
        Some(shared) => format!("{words}\n{shared}"),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::ThreadKey;
    use bobbin_core::records::sandbox::{Phase, SandboxRecord, Sharing};
    use bobbin_core::records::session::Session;

    use super::*;

    #[test]
    fn status_without_record_invites_prompt() {
        let words = words(&Loaded::default(), &[], 0);
        assert_eq!(words, "No sandbox yet. Send a task and this thread gets one.");
    }

    #[test]
    fn sharing_threads_are_shown_as_chat_links() {
        let discord = |id: &str| ThreadKey::discord("1", id).expect("a key");
        let sandbox = SandboxRecord {
            phase: Phase::Active,
            generation: 1,
            sharing: Sharing {
                name: Some("front".parse().expect("a name")),
                threads: [discord("2"), discord("3")].into(),
                ..Sharing::default()
            },
            ..SandboxRecord::new(0)
        };
        let session = Session { sandbox, ..Session::new(discord("2"), 0) };
        let found = Loaded { session: Some(session), ..Loaded::default() };
        let words = words(&found, &[], 0);
        assert!(words.contains("front") && words.contains("<#3>"), "{words}");
    }
}
