//! The crate's public surface, against real git behind HTTP and against GitHub's own description of its API.
#![allow(clippy::unwrap_used)]

mod carriage;
mod description;
mod git;
mod github;
mod hostile;
mod operator;
mod outgoing;
mod packs;
mod people;
mod polls;
mod reviews;
mod seeing_through;
mod streams;
mod webhooks;
mod world;
