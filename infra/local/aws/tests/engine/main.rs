//! The engine through real HTTP with the real AWS SDK, its clock moved instead of slept through.
#![allow(clippy::unwrap_used, missing_docs)]

mod access;
mod delivery;
mod killed;
mod kms;
mod lambda;
mod mapping;
mod older;
mod queues;
mod redrive;
mod refusals;
mod rust_sdk;
mod schedules;
mod sdks;
mod stack;
mod stop;
mod support;
mod tables;
mod wire;
