//! AWS through its own SDK: table, queues, schedules, secrets, events and telemetry. The only crate that knows AWS.

pub mod aws;
pub mod breaker;
pub mod clock;
pub mod config;
pub mod dead_letters;
#[cfg(feature = "deployed")]
pub mod deployed;
pub mod events;
pub mod forward;
pub mod metrics;
pub mod queue;
pub mod sealing;
pub mod secrets;
pub mod spans;
pub mod startup;
pub mod store;
pub mod telemetry;
pub mod wake;
