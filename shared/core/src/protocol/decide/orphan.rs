//! Which sandboxes are orphans. The caller lists the provider first and reads the records after: a record only moves
//! forward, so it is at least as new as the listing.

use crate::base::ids::Ms;
use crate::base::limits::SandboxLimits;
use crate::records::sandbox::SandboxRecord;
use crate::tenant::capped_keys::CappedKeyName;

/// Verdict on a listed sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordVerdict {
    /// Left alone: it belongs to the live generation, or is too young to be judged.
    Spared,
    /// Its record gave it up as vanished not long ago, and a newer generation has replaced it.
    Kept,
    /// Its record gave it up as vanished, and nothing has replaced it: the record is asked to observe it again, and
    /// takes it back ([`crate::records::message::Work::Reconcile`]).
    TakenBack,
    /// It is an orphan.
    Orphan,
}

/// Grace periods, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Graces {
    /// After it was created.
    pub young_ms: u64,
    /// After its record gave it up as vanished, if a newer generation has replaced it.
    pub vanished_ms: u64,
}

impl From<&SandboxLimits> for Graces {
    fn from(limits: &SandboxLimits) -> Self {
        Self { young_ms: limits.stale_grace_ms, vanished_ms: limits.vanished_grace_ms }
    }
}

/// Judges a listed sandbox of this generation, created at `created_ms`. A deleted generation never comes back.
#[must_use]
pub fn fate(
    record: Option<&SandboxRecord>,
    generation: u32,
    created_ms: Ms,
    now_ms: Ms,
    graces: Graces,
) -> RecordVerdict {
    if !is_orphan(record, generation, created_ms, now_ms, graces.young_ms) {
        return RecordVerdict::Spared;
    }
    let vanished = record.and_then(|record| record.history.vanished);
    let Some(vanished) = vanished.filter(|one| one.generation == generation) else {
        return RecordVerdict::Orphan;
    };
    if record.is_some_and(|record| record.generation == generation) {
        RecordVerdict::TakenBack
    } else if now_ms < vanished.at_ms.saturating_add(graces.vanished_ms) {
        RecordVerdict::Kept
    } else {
        RecordVerdict::Orphan
    }
}

/// Whether a listed sandbox of this generation, created at `created_ms`, belongs to no live generation and is old
/// enough that this is not a matter of timing. A retired generation never comes back, so deleting it by name is safe.
#[must_use]
pub fn is_orphan(
    record: Option<&SandboxRecord>,
    generation: u32,
    created_ms: Ms,
    now_ms: Ms,
    grace_ms: u64,
) -> bool {
    let live = record.is_some_and(|record| record.generation == generation && record.is_alive());
    // A record cannot be behind the sandbox: its generation is saved before the sandbox is created.
    !live && now_ms >= created_ms.saturating_add(grace_ms)
}

/// Whether a listed capped key belongs to no live generation, by the record of the sandbox that it names. An expired
/// key is always an orphan: nobody can use it.
#[must_use]
pub fn is_orphan_key(
    record: Option<&SandboxRecord>,
    key: &CappedKeyName,
    now_ms: Ms,
    graces: Graces,
) -> bool {
    now_ms >= key.until_ms()
        || fate(record, key.generation, key.made_ms, now_ms, graces) == RecordVerdict::Orphan
}

/// This many orphans at once are always believed: crashes leave some behind.
const BELIEVED: usize = 2;

/// Whether there are too many orphans to be believed: more than half of what is listed. Also used for records whose
/// sandbox no provider lists: more than half of the records, as when a key belongs to another account. A table that was
/// restored to an earlier point, or is the wrong one, looks like that; then nothing is deleted before a person has
/// looked.
#[must_use]
pub const fn is_unbelievable(orphans: usize, listed: usize) -> bool {
    orphans > BELIEVED && orphans * 2 > listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::sandbox::Phase;

    fn record(phase: Phase, generation: u32) -> SandboxRecord {
        SandboxRecord { phase, generation, ..SandboxRecord::new(0) }
    }

    #[test]
    fn only_the_live_generation_is_spared() {
        let orphan = |record: Option<&SandboxRecord>, generation| {
            is_orphan(record, generation, 0, 600_000, 300_000)
        };
        assert!(!orphan(Some(&record(Phase::Active, 2)), 2));
        assert!(!orphan(Some(&record(Phase::Creating, 2)), 2));
        assert!(!orphan(Some(&record(Phase::Destroying, 2)), 2), "its own deletion is under way");
        assert!(orphan(Some(&record(Phase::Active, 2)), 1), "an older generation");
        assert!(orphan(Some(&record(Phase::Destroyed, 2)), 2));
        assert!(orphan(None, 1));
    }

    #[test]
    fn mostly_orphaned_listing_is_not_believed() {
        for (orphans, listed, unbelievable) in [
            (0, 0, false),
            (1, 1, false),
            (2, 2, false),
            (3, 3, true),
            (3, 5, true),
            (3, 6, false),
            (20, 1_000, false),
            (501, 1_000, true),
        ] {
            assert_eq!(is_unbelievable(orphans, listed), unbelievable, "{orphans} of {listed}");
        }
    }

    #[test]
    fn key_lives_with_its_generation() {
        let sandbox = crate::base::ids::ThreadKey::discord("1", "2").expect("valid").sandbox();
        let key = CappedKeyName::new(&sandbox, 2, 0);
        let graces = Graces { young_ms: 300_000, vanished_ms: 86_400_000 };
        let orphan =
            |record: Option<&SandboxRecord>, now_ms| is_orphan_key(record, &key, now_ms, graces);
        assert!(!orphan(Some(&record(Phase::Paused, 2)), 600_000));
        assert!(orphan(Some(&record(Phase::Active, 3)), 600_000));
        assert!(orphan(Some(&record(Phase::Destroyed, 2)), 600_000));
        assert!(orphan(None, 600_000) && !orphan(None, 299_999), "a young one may be of a start");
        assert!(orphan(Some(&record(Phase::Active, 2)), key.until_ms()), "it opens nothing");
    }

    #[test]
    fn a_young_sandbox_is_left_alone() {
        assert!(!is_orphan(None, 1, 500_000, 600_000, 300_000));
    }
}
