//! The session protocol, proven: an exhaustive model, seeded histories, crashes at every call, and its document.

mod broken;
mod chaos;
mod crash;
mod crowd;
mod document;
mod model;
mod outages;
mod quota;

use bobbin_tests::fuzz::dice;
use bobbin_tests::promises;
use bobbin_tests::sim::{plan, state, thread, transitions, world};
use libtest_mimic::Trial;

/// All of them.
pub fn trials() -> Vec<Trial> {
    [
        broken::trials(),
        model::trials(),
        chaos::trials(),
        crash::trials(),
        crowd::trials(),
        document::trials(),
        outages::trials(),
        quota::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
