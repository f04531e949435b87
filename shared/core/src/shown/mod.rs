//! Presentation: status, lists, asks.

pub mod asks;
pub mod overview;
pub mod sandboxes;
pub mod status;
pub mod tools;
pub mod usage;
