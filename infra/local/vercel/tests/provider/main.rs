//! The provider through its public surface: Vercel's own client, Bobbin's, and the library's few calls.
#![allow(clippy::unwrap_used, missing_docs)]
// One value holds all that the walk is to find.
#![recursion_limit = "512"]

mod client;
mod sdk;
mod world;
