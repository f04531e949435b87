//! Vercel Sandbox's API: its shapes, read leniently, and what its states mean for us.
//!
//! A sandbox has a name and outlives its sessions; a session is one running machine of it. A stop, and the end of a session's
//! time, keep the disk as a snapshot; the next session begins with that, under another id and other addresses, and no process
//! of the last one is in it. Its time is of the wall clock, used or not, and is extended while work goes on.
//!
//! Source of the facts: Vercel's own client `@vercel/sandbox` 3.5.0 and the REST reference (vercel.com/docs/rest-api/sandboxes,
//! autumn 2026); nothing was tried against the live service. Deliberately absent: drives, users, regions, forks, and images of
//! one's own beyond their name.

mod client;
mod policy;
mod sandboxes;
mod secrets;
mod snapshots;
mod types;

pub use client::{LISTED_MAX, Vercel, VercelAccount, VercelError};
pub use sandboxes::{VercelSandboxes, VercelSettings};
