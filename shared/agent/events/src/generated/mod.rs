//! The types that typify made of `schemas/*.json` (`generator`); a test there holds the two against each other.
#![allow(
    missing_docs,
    dead_code,
    reason = "generated: a schema describes what its agent says, and not every field is read"
)]

#[rustfmt::skip]
pub(crate) mod acp;
#[rustfmt::skip]
pub(crate) mod amp;
#[rustfmt::skip]
pub(crate) mod claude;
#[rustfmt::skip]
pub(crate) mod codex;
#[rustfmt::skip]
pub(crate) mod opencode;
#[rustfmt::skip]
pub(crate) mod stream_json;
