//! What is under way in a function.

use std::future::Future;
use std::pin::Pin;

use bobbin_core::drive::Verdict;
use bobbin_core::ids::Ms;

use super::queue::Group;

/// A worker's function is ended after this long.
pub(super) const FUNCTION_MS: u64 = 15 * 60_000;

/// A worker (or the orphan hunt) under way.
pub(super) struct Task {
    pub(super) work: Pin<Box<dyn Future<Output = Verdict> + Send>>,
    pub(super) token: u64,
    /// The group whose head it works on; none for the orphan hunt.
    pub(super) group: Option<Group>,
    pub(super) dies_at_ms: Ms,
}
