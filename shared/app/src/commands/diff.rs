//! `diff`, and the button *View diff*: a turn's changes to files.

use bobbin_chat::Say;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::protocol::ports::Loaded;
use bobbin_core::records::control::Control;
use bobbin_core::records::ledger::LedgerEntry;

use crate::control::Lane;

impl Lane<'_> {
    /// A turn's changes to files (`None`: those of the last turn that changed some), from the ledger: its sandbox may
    /// be paused or gone.
    pub(super) async fn diff(
        &self,
        control: &Control,
        turn: Option<&TurnId>,
        found: &Loaded,
    ) -> Result<(), Failure> {
        let thread = &control.thread;
        let last = match turn {
            Some(_) => None,
            None => self.changed_last(thread, found).await?,
        };
        if last.as_ref().is_some_and(|last| last.usage.files == 0) {
            const UNKNOWN: &str = "Bobbin could not find out what the last task changed in the files. Ask the agent for git status and git diff.";
            return self.chat.answer(&control.reply, UNKNOWN).await;
        }
        let Some(turn) = turn.or(last.as_ref().map(|last| &last.turn)) else {
            const NOTHING: &str = "No task in this thread has changed files yet.";
            return self.chat.answer(&control.reply, NOTHING).await;
        };
        let patch = self.store.patch(thread, turn).await.map_err(|e| e.failure())?;
        match patch {
            Some(patch) => {
                let chat = self.chat.of(thread)?;
                chat.answer(&control.reply, Say::Diff { thread, turn, patch: &patch }).await
            }
            None => {
                const GONE: &str = "The changes of that task are no longer kept, or could not be read when it ended.";
                self.chat.answer(&control.reply, GONE).await
            }
        }
    }

    /// The last turn of the thread that changed files, or may have.
    async fn changed_last(
        &self,
        thread: &ThreadKey,
        found: &Loaded,
    ) -> Result<Option<LedgerEntry>, Failure> {
        let ended = found.session.iter().flat_map(|session| &session.ended);
        let turns: Vec<TurnId> = ended.map(|ended| ended.id.clone()).collect();
        Ok(last_that_changed(self.entries(thread, &turns).await?))
    }
}

fn last_that_changed(entries: Vec<LedgerEntry>) -> Option<LedgerEntry> {
    let may_have = |entry: &LedgerEntry| entry.usage.files > 0 || entry.usage.files_unknown;
    entries.into_iter().filter(may_have).max_by_key(|entry| entry.ended_at_ms)
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::person::Person;
    use bobbin_core::records::outcome::Outcome;
    use bobbin_core::records::usage::Usage;
    use bobbin_core::tenant::selection::Selection;

    use super::*;

    fn ended(at_ms: u64, files: u32, files_unknown: bool) -> LedgerEntry {
        LedgerEntry {
            turn: format!("t{at_ms}").into(),
            by: Person::default(),
            accepted_at_ms: 0,
            ended_at_ms: at_ms,
            outcome: Outcome::Answered,
            usage: Usage { files, files_unknown, ..Usage::default() },
            selection: Selection::default(),
            asked: String::new(),
            answered: String::new(),
            card: None,
            rolls: 0,
            posted: Vec::new(),
            again: None,
            patch: None,
        }
    }

    #[test]
    fn the_last_turn_that_changed_files_is_shown() {
        let last = |entries: &[LedgerEntry]| {
            last_that_changed(entries.to_vec()).map(|one| one.ended_at_ms)
        };
        let (changed, talked) = (ended(1, 2, false), ended(3, 0, false));
        assert_eq!(last(&[talked.clone(), changed.clone()]), Some(1));
        assert_eq!(last(&[changed, ended(2, 0, true), talked.clone()]), Some(2));
        assert_eq!(last(&[talked]), None);
    }
}
