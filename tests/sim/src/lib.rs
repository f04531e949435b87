//! A world that is made up, in virtual time, with the real `drive` in it: what the session protocol is proven with, and
//! what its own speed is measured with.

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
