//! Daytona's v0 API: its shapes, parsed leniently, and how its states map to ours.
//!
//! Unknown fields are ignored, states are an open list, nearly everything is optional; only `id` and `name` are
//! required. Deliberately absent: everything of v2, whose creation, tokens and disks work differently.

mod client;
pub mod prepared;
mod sandboxes;
mod secrets;
mod snapshots;
mod types;

pub use client::{Daytona, DaytonaError, LISTED_MAX, execute_body};
pub use sandboxes::{DaytonaSandboxes, DaytonaSettings, configured};
pub use types::{DaytonaSandbox, ErrorBody, Executed, Page, PreviewLink, SourceImage};
