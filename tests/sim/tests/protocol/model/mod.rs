//! Every order of events within bounds, explored over the product's own machine of a delivery.

mod build;
mod driver;
mod faults;
mod graph;
mod publish;
mod shared;
mod system;
mod walk;

use std::collections::BTreeSet;

use libtest_mimic::Trial;

use super::transitions::Transition;

/// What happens in each row that is explored in seconds.
pub fn transitions_of_few_states() -> impl Iterator<Item = Result<BTreeSet<Transition>, String>> {
    let one_thread = graph::transitions_of_few_states();
    one_thread
        .chain(shared::transitions_of_few_states())
        .chain(publish::transitions_of_few_states())
        .chain(build::transitions_of_few_states())
}

pub fn trials() -> Vec<Trial> {
    let mut all = graph::trials();
    all.extend(shared::trials());
    all.extend(publish::trials());
    all.extend(build::trials());
    all
}
