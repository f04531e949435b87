//! The daemon as its clients see it: a process, its answers, its files, and what it leaves behind.

#![allow(clippy::unwrap_used)]

mod answers;
mod changes;
mod client;
mod description;
mod durable;
mod ending;
mod images;
mod installed;
mod named;
mod nudges;
mod opencode;
mod scripted;
mod turns;
mod world;
