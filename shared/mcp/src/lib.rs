//! The tools of a sandbox for an agent that runs elsewhere: a server of the Model Context Protocol (streamable HTTP) as a
//! function from a request to its answer, over the seam of the providers.
//!
//! Promised: nothing is kept between two calls, so a server that dies between them is not missed; what a call changes in the
//! sandbox is done once, however often its request arrives, because the sandbox itself keeps a mark under the call's name;
//! every text and wait is bounded; what goes wrong in a tool is a text that says what to do. Deliberately absent: who may call
//! (the function's), the life of the sandbox, resources, prompts and streams.

mod bounds;
mod changes;
mod command;
mod files;
mod place;
mod rpc;
mod tools;

pub use place::{Opened, Place};
pub use rpc::{Answer, Request, answer};
