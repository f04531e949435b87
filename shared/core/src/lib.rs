//! What Bobbin decides: pure, total, and free of clock, randomness, network, async runtime and AWS types.
//!
//! [`protocol::decide::decide`] maps (session, event, context) to (session', next step). [`protocol::machine::Machine`]
//! has the session saved under its version, then the step performed, and decides on the outcome.
//! [`protocol::drive::drive`] awaits both through [`protocol::ports::World`]. Time, identity and chance are arguments.
//! Deliberately absent: calls to outside services, and their wire formats.

pub mod base;
pub mod protocol;
pub mod records;
pub mod schema;
pub mod shown;
pub mod tenant;
pub mod text;
pub mod tokens;
