//! Signed words that others hand back.

pub mod bearer;
pub mod nudge;
mod signed;
