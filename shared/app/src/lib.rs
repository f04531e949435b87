//! Use cases of the functions: chats, sandboxes, agents and the cloud brought together.

pub mod accounts;
pub mod agent_log;
pub mod agents;
pub mod announce;
pub mod arrival;
pub mod catalogue;
pub mod clients;
mod commands;
pub mod control;
pub mod dead;
pub mod forge;
pub mod forge_hints;
pub mod keyed;
pub mod linked;
pub mod model_keys;
pub mod opening;
pub mod orphans;
mod outside;
pub mod overview;
mod performing;
pub mod providers;
pub mod runtimes;
pub mod sandboxes;
mod sign_in;
pub mod tenants;
pub mod visibility;
pub mod world;
