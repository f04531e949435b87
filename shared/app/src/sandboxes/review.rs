//! Reads the review that an agent has written, out of its sandbox. What it says is anybody's words.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::records::drafted_review::{FILE, FILE_BYTES_MAX};

use super::workspace::WORKSPACE;
use super::{Sandboxes, WorkTarget};

const SCRIPT: &str = include_str!("review.sh");
/// Longest time for the script.
const WITHIN: Duration = Duration::from_secs(15);

impl Sandboxes {
    /// What the agent has written; `None`: nothing. `base` is the commit that was brought.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn written_review(
        &self,
        target: WorkTarget<'_>,
        base: &str,
    ) -> Result<Option<String>, Failure> {
        let sandbox = self.find_running(target.sandbox, target.generation).await?;
        let environment = BTreeMap::from([
            (WORKSPACE.to_owned(), target.workspace.path().to_owned()),
            ("BOBBIN_FILE".to_owned(), FILE.to_owned()),
            ("BOBBIN_BASE".to_owned(), base.to_owned()),
            ("BOBBIN_BYTES".to_owned(), FILE_BYTES_MAX.to_string()),
        ]);
        let ran = self.provider.exec(&sandbox, SCRIPT, &environment, WITHIN).await;
        let ran = ran.map_err(|error| error.failure)?;
        Ok(ran.text.strip_prefix("review\n").map(str::to_owned))
    }
}
