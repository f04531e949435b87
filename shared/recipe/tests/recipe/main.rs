//! What repositories say, as files of our own after the traps of public ones, and the recipe of each.
#![allow(clippy::unwrap_used)]

mod devcontainers;
mod expected;
mod first;
mod fixture;
mod hostile;
mod own;
mod schema;
mod scripts;
mod shells;
mod versions;
mod workflows;
