//! Every order of events within bounds, explored over the product's own machine of a delivery.

mod driver;
mod faults;
mod graph;
mod system;

pub use graph::{transitions, trials};
