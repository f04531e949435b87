//! world.
