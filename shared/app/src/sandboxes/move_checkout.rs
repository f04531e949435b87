//! Moves a checkout to the newest commit of its branch, once the pull request of its work has ended.
//!
//! Promised: a checkout that holds more than was pushed stays as it is, to the byte; an interrupted move is finished by
//! its repeat.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::carried::Carried;
use bobbin_forge::Forge;

use super::carry::{checkout, store};
use super::{Sandboxes, WorkTarget};

const SCRIPT: &str = include_str!("move_checkout.sh");
/// Longest time for the script.
const WITHIN: Duration = Duration::from_secs(60);
/// Exit code of the script for "the checkout holds other work".
const HAS_WORK: i64 = 3;

impl Sandboxes {
    /// Moves the checkout, unless it holds more than `pushed`.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn move_checkout(
        &self,
        forge: &dyn Forge,
        target: WorkTarget<'_>,
        carried: &Carried,
        pushed: Option<&str>,
    ) -> Result<Event, Failure> {
        let not_moved = |seen: &str| Failure::Wait { after_ms: 0, seen: seen.to_owned() };
        let branch = &carried.repository.branch;
        let Some(newest) = self.bring_named(forge, target, carried, branch).await? else {
            return Err(not_moved("the newest commit of the branch could not be brought"));
        };
        let environment = BTreeMap::from([
            ("BOBBIN_WORKSPACE".to_owned(), checkout(target.workspace.path(), carried)),
            ("BOBBIN_STORE".to_owned(), store(carried)),
            ("BOBBIN_BASE".to_owned(), carried.base.clone().unwrap_or_default()),
            ("BOBBIN_PUSHED".to_owned(), pushed.unwrap_or_default().to_owned()),
            ("BOBBIN_BRANCH".to_owned(), branch.clone()),
            ("BOBBIN_COMMIT".to_owned(), newest.to_string()),
        ]);
        let sandbox = self.find_running(target.sandbox, target.generation).await?;
        let ran = self.provider.exec(&sandbox, SCRIPT, &environment, WITHIN).await;
        match ran.map_err(|error| error.failure)?.exit_code {
            0 => Ok(Event::CheckoutMoved { base: Some(newest.to_string()) }),
            HAS_WORK => Ok(Event::CheckoutMoved { base: None }),
            _ => Err(not_moved("git could not move the checkout")),
        }
    }
}
