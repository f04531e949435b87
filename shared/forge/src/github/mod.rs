//! GitHub, as an app of it: its REST API, its tokens, its sign-in, its webhooks, and git on its hosts.
//!
//! Sources of the facts: GitHub's OpenAPI description (API version 2022-11-28) and documentation, autumn 2026; nothing
//! was checked against github.com. GitHub Enterprise Server and GHE.com are another [`Addresses`]. Deliberately absent:
//! the device flow (a code does not say who types it), caching by `ETag` (which belong to a token, and no token lives
//! for two calls), and files in LFS.

mod app;
mod carry;
mod client;
mod failures;
mod finishing;
mod job_log;
pub mod manifest;
mod operator;
mod people;
mod poll;
mod pulls;
mod remarks;
mod repositories;
mod required;
mod rest;
mod reviews;
mod seeing_through;
mod settings;
mod token;
mod trees;
pub mod webhook;

pub use app::{App, PERMISSIONS};
pub use client::GitHub;
pub use operator::{Hook, LostWebhook, NotTheApp};
pub use settings::{Addresses, GitHubSettings};
