//! The protocol: the decisions ([`decide`]), and the loop that saves and performs them.

pub mod decide;
pub mod delivery;
pub mod drive;
pub mod effect;
pub mod event;
pub mod machine;
pub mod ports;
pub mod signals;
pub mod target;
