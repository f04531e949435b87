//! A made-up world in virtual time with the real `drive` in it. It proves the session protocol and measures the
//! protocol's own speed.

#![expect(
    missing_docs,
    reason = "the parts of one machine, which are read together; what each does is said where it is not plain"
)]

pub mod agent;
pub mod announcer;
pub mod crowd;
pub mod dice;
pub mod due;
pub mod durations;
mod failing;
pub mod forge;
pub mod home;
pub mod plan;
pub mod project;
pub mod promises;
pub mod queue;
mod run;
pub mod sandbox;
pub mod services;
pub mod state;
mod sweeper;
mod task;
pub mod thread;
pub mod tools;
pub mod transitions;
pub mod worker;
pub mod world;
