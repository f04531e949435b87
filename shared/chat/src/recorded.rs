//! Texts that people see in the chats, as recorded files to review when a command is added or changed.

use std::path::PathBuf;

/// Compares with the file of this name in `tests/fixtures/commands`; `BOBBIN_SNAPSHOTS=write` updates it.
pub(crate) fn assert_recorded(name: &str, now: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/commands");
    let path = folder.join(name);
    if std::env::var_os("BOBBIN_SNAPSHOTS").is_some_and(|what| what == "write") {
        std::fs::write(&path, now).expect("it can be written");
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        recorded, now,
        "{name} comes out otherwise. BOBBIN_SNAPSHOTS=write writes what it is now."
    );
}
