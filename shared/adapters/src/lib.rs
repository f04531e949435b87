//! The only crate of the functions that knows AWS and HTTP. One outside service, one file, one client, one error.

pub mod agent_log;
pub mod announce;
pub mod aws;
pub mod breaker;
pub mod catalogue;
pub mod chat;
pub mod config;
pub mod control;
pub mod daytona;
pub mod dead;
#[cfg(feature = "deployed")]
pub mod deployed;
pub mod direct;
pub mod discord;
pub mod http;
mod http1;
pub mod lambda;
pub mod letters;
pub mod metrics;
#[cfg(feature = "deployed")]
pub mod model_keys;
pub mod opencode;
pub mod opening;
pub mod orphans;
pub mod overview;
pub mod queue;
pub mod sandbox;
pub mod secrets;
pub mod signing;
pub mod slack;
pub mod spans;
pub mod startup;
pub mod store;
pub mod telemetry;
pub mod wake;
pub mod world;
