//! Lambda: runs the real executables behind the real Runtime API.
//!
//! Promised: one process per concurrent invocation, kept warm and ended when idle; a cleared environment built from the
//! template; `Timeout` enforced; crashes, time-outs and failed starts reported in AWS's words; output logged line by
//! line with function and request id; no process outlives the engine, or its successor in the same state folder.
//!
//! Deliberately absent: limits on memory and processor, the freeze between invocations, layers, extensions, versions,
//! response streaming, roles.

mod api;
mod event;
mod functions;
mod mapping;
mod outcome;
mod pool;
mod process;
mod runtime_api;
mod traces;
mod url;

pub(crate) use api::PATH_PREFIX;
pub(crate) use functions::Functions;
pub(crate) use mapping::{Mapping, run as run_mapping};
pub(crate) use outcome::request_id;
pub(crate) use process::{FunctionLaunch, kill_leftovers};
pub use runtime_api::{Invoked, RuntimeApi};
pub(crate) use traces::Traces;
pub(crate) use url::{FunctionUrl, router as url_router};
