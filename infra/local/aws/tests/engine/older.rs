//! A state folder that an older version made.

use std::sync::Arc;

use crate::support::{Folder, Stack, bodies};

#[tokio::test]
async fn older_state_files_are_migrated() {
    let folder = Arc::new(Folder::new());
    let first = Stack::start_in(folder.clone()).await;
    let queue = first.engine.resource("Wakes").unwrap();
    first.post(&queue, "g", "stored").await;
    first.engine.stop().await;
    let file = rusqlite::Connection::open(folder.0.join("state/aws.sqlite")).unwrap();
    // The file as it was before these came.
    file.execute_batch(
        "ALTER TABLE messages DROP COLUMN receives_before;
         ALTER TABLE secrets DROP COLUMN created_ms;
         DROP TABLE deleted_queues;",
    )
    .unwrap();
    drop(file);

    let second = Stack::start_in(folder).await;
    let queue = second.engine.resource("Wakes").unwrap();
    assert_eq!(bodies(&second.take(&queue, 10).await), ["stored"]);
}
