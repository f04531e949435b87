//! Faults at exact places of the real thing: processes killed in the middle of a call, messages that cannot be read or
//! never end, a queue that does not answer, many threads at once. They cost time and nothing else.
//!
//! `BOBBIN_KILLS=all` kills at every call of the first-message scenario, `BOBBIN_KILLS=n` at so many a platform, spread
//! over all of them from `BOBBIN_SEED` on; otherwise a sample that takes less than three minutes on two processors.

mod dead_letters;
mod kills;
mod order;
mod publishing;
mod slow_queue;

use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    [
        kills::trials(),
        publishing::trials(),
        order::trials(),
        dead_letters::trials(),
        slow_queue::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
