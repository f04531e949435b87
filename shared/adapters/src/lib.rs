//! The only crate of the functions that knows AWS and HTTP. One outside service, one file, one client, one error.

pub mod announce;
pub mod aws;
pub mod breaker;
pub mod catalogue;
pub mod chat;
pub mod config;
pub mod control;
pub mod daytona;
pub mod dead;
pub mod direct;
pub mod discord;
pub mod http;
pub mod metrics;
pub mod opencode;
pub mod opening;
pub mod overview;
pub mod queue;
pub mod sandbox;
pub mod secrets;
pub mod signing;
pub mod slack;
pub mod spans;
pub mod store;
pub mod telemetry;
pub mod wake;
pub mod world;
