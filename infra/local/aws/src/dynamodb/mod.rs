//! DynamoDB through dynoxide, on its own file in the state folder.
//!
//! It listens on its own loopback port; the endpoint forwards requests to it. Time to live follows the system's time: a
//! clock that a test advanced does not expire items (no program may rely on when AWS does that).
//!
//! A test can set an index lag: queries and scans of an index are then answered from a copy of the tables that old,
//! while reads of the table itself stay fresh, as on AWS. Copies are made at writes, only while a lag is set. dynoxide
//! has no transactions in flight; conflicts with them are answered before it sees the request (`conflicts`).

mod conflicts;
mod corrections;
mod deployment;
mod error;
mod index_lag;
mod server;
mod service;

pub(crate) use deployment::TableSettings;
pub(crate) use error::DynamoError;
pub(crate) use service::Dynamo;
