//! The program itself, against the laptop stack's AWS, Discord, Slack and Daytona: what it does, and every line that a
//! person sees.

#![allow(clippy::unwrap_used)]

mod check;
mod commands;
mod endpoint;
mod github;
mod invocation;
mod keys;
mod manifest;
mod snapshot;
mod support;
mod whole;
