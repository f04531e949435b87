//! Git: the repositories, and what is served of them over HTTP.

pub(crate) mod backend;
pub(crate) mod commits;
pub(crate) mod diff;
pub(crate) mod merge;
pub(crate) mod packet;
pub(crate) mod receive;
pub(crate) mod refusal;
pub(crate) mod repository;
pub(crate) mod rules;
mod run;

pub(crate) use run::{Git, check_version};

/// The id that stands for nothing.
pub(crate) const ZEROS: &str = "0000000000000000000000000000000000000000";
