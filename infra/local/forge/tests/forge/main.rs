//! The forge through its public surface: GitHub's own client, git, and a browser's requests.
#![allow(clippy::unwrap_used, missing_docs)]
// One value holds all that the walk is to find.
#![recursion_limit = "512"]

mod checks;
mod client;
mod git;
mod graphql;
mod hooks;
mod merging;
mod octokit;
mod pages;
mod restart;
mod reviews;
mod rules;
mod world;
