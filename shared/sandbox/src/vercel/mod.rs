//! Vercel Sandbox's API: its shapes, parsed leniently, and how its states map to ours.
//!
//! A sandbox has a name and outlives its sessions; a session is one running machine of it. A stop, and the end of a
//! session's time, keep the disk as a snapshot; the next session starts from it, with another id and other addresses,
//! and without any process of the last one. A session's time is wall-clock time, used or not, and is extended during
//! work.
//!
//! Source of the facts: Vercel's own client `@vercel/sandbox` 3.5.0 and the REST reference
//! (vercel.com/docs/rest-api/sandboxes, autumn 2026); nothing was checked against the live service. Deliberately
//! absent: drives, users, regions, forks, and custom images beyond their name.

mod client;
mod policy;
mod sandboxes;
mod secrets;
mod snapshots;
mod types;

pub use client::{LISTED_MAX, Vercel, VercelAccount, VercelError};
pub use sandboxes::{VercelSandboxes, VercelSettings, configured};
