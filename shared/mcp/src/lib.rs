//! The tools of a sandbox for an agent that runs elsewhere: an MCP server (streamable HTTP) as a function from a
//! request to its answer, on top of the provider trait.
//!
//! Promised: no state is kept between two calls, so a server may die between them. A call changes the sandbox once,
//! however often its request arrives, because the sandbox itself keeps a mark under the call's name. Every text and
//! wait is bounded. An error in a tool is a text that says what to do. Deliberately absent: authorisation (the
//! function's), the life cycle of the sandbox, resources, prompts and streams.

mod bounds;
mod changes;
mod command;
mod files;
mod place;
mod rpc;
mod tools;

pub use place::{OpenedSandbox, ToolPlace};
pub use rpc::{RpcAnswer, RpcRequest, answer};
