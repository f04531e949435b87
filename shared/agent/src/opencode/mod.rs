//! OpenCode's HTTP API (v1, pinned to 1.18.33) and pure folds over it.
//!
//! [`Reading`] makes universal events from the data of one prompt's run, and [`conclude`] determines the state of the
//! run from the message list: the list, not the events, is the truth.
//! Deliberately absent: the experimental v2 API, whose messages are in another store.

mod agent;
mod answer;
mod changes;
mod client;
mod launch;
mod observe;
mod options;
mod order;
mod outside;
mod reading;
mod request;
mod runtime;
mod stop;
mod submit;
mod types;

#[cfg(test)]
mod tests;

pub use answer::conclude;
pub use client::{Events, OpenCode, OpenCodeError, Via};
pub use order::turn_of;
pub use outside::tools_config;
pub use reading::{Reading, RunSnapshot};
pub use request::{VERSION, WITHOUT_PROJECT_CONFIG};
pub use runtime::OpenCodeRuntime;
pub use submit::CORRELATION;
pub use types::{OpenCodeMessage, OpenCodeStatus, Role, drop_data};
