//! Every order of events within bounds, explored over the product's own `decide`.

mod driver;
mod faults;
mod graph;
mod machine;

pub use graph::{transitions, trials};
