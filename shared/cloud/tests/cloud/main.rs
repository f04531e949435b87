//! The clients of AWS against the embedded engine, set up from the project's own template.

#![allow(clippy::unwrap_used)]

mod breakers;
mod budgets;
mod calls;
mod forward;
mod sandboxes;
mod sealing;
mod secrets;
mod support;
mod sweeps;
mod table;
mod tenants;
mod wakes;
mod watched;
