//! Every order of events within bounds, explored over the product's own machine of a delivery.

mod driver;
mod faults;
mod graph;
mod shared;
mod system;
mod walk;

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};

use super::transitions::Transition;

/// What was decided in the smaller rows, for the document.
///
/// # Errors
/// As the row's test.
pub fn transitions() -> Result<BTreeSet<Transition>, Failed> {
    let mut all = graph::transitions()?;
    all.extend(shared::transitions()?);
    Ok(all)
}

pub fn trials() -> Vec<Trial> {
    let mut all = graph::trials();
    all.extend(shared::trials());
    all
}
