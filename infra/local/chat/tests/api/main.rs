//! The two APIs over HTTP, and what people do, against a small ingress that checks every signature.
#![allow(clippy::unwrap_used, missing_docs)]

mod discord;
mod forge;
mod harness;
mod page;
mod slack;
mod threads;
