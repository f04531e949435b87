//! What `cargo bench` measures with: a Lambda Runtime API and an endpoint of AWS on loopback, programs that are run in
//! turns, and figures with their runs and spread.
//!
//! Promised: programs that are compared are run in the same minutes, one after the other in changing order, and compared
//! pair by pair, so that a busy machine shifts them alike; every request that counts is checked to have been done
//! (signature verified, message on the queue, answer right). Deliberately absent: an opinion. No figure fails anything.

pub mod cloud;
pub mod command;
pub mod figures;
pub mod ingress;
pub mod process;
pub mod programs;
pub mod runtime;
pub mod start;
mod wire;
