//! DynamoDB by dynoxide, on a file of its own in the state folder.
//!
//! It is served on a loopback port of its own; the endpoint forwards requests to it. Its time to live goes by the
//! system's time: a clock that a test moved does not expire items (no program may rely on when AWS does that).
//!
//! An index lag can be asked for: then queries and scans of an index are answered by a copy of the tables as they were
//! that long ago, while reads of the table itself stay fresh, as on AWS. Copies are made at writes, only while a lag is
//! set. dynoxide knows no transaction in flight; what meets one is answered before it is asked (`conflicts`).

mod conflicts;
mod corrections;
mod deployment;
mod error;
mod index_lag;
mod server;
mod service;

pub(crate) use deployment::TableSettings;
pub(crate) use service::Dynamo;
