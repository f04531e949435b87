//! The parts of the end-to-end tests: the real laptop stack in its own folder, clients for both chat platforms, the AWS
//! calls of either engine, the provider's and the model's records, a browser, and the promises as functions over the
//! observations.
//!
//! Promised: nothing is awaited by sleeping (every wait polls a condition within a bound); what a test starts it
//! ends, also when it is killed itself; secrets of a stack are development keys and live no longer than its folder.
//! Deliberately absent: knowledge of how the product works inside. What is read are the records, the platforms'
//! documented read calls, the provider's list and the model's call log.

pub mod aws;
pub mod binaries;
pub mod breakpoints;
pub mod browser;
pub mod chat;
pub mod failures;
pub mod forge;
pub mod function;
pub mod fuzz;
pub mod http;
pub mod judge;
pub mod limits;
pub mod ministack;
pub mod model;
pub mod namespace;
pub mod observed;
pub mod operator;
pub mod processes;
pub mod provider;
pub mod ready;
pub mod shared;
pub mod stack;
pub mod talk;
pub mod tenants;
pub mod tools;
pub mod wait;
pub mod world;
