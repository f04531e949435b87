//! The session protocol, proven: an exhaustive model, seeded histories, crashes at every call, and its document.

mod chaos;
mod crash;
mod document;
mod hand;
mod model;
mod place;
mod promises;
mod transitions;
mod world;

use bobbin_tests::fuzz::dice;
use libtest_mimic::Trial;

/// All of them.
pub fn trials() -> Vec<Trial> {
    [
        promises::trials(),
        model::trials(),
        chaos::trials(),
        crash::trials(),
        document::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
