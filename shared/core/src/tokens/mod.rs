//! Signed tokens that others send back.

pub mod bearer;
pub mod nudge;
mod signed;
