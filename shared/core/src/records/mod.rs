//! Stored data: the records of threads and sandboxes, messages, the ledger.

pub mod account;
pub mod artifacts;
pub mod ask;
pub mod card;
pub mod carried;
pub mod changes;
pub mod checks;
pub mod flags;
pub mod forge_hint;
pub mod images;
pub mod ledger;
pub mod message;
pub mod observations;
pub mod outcome;
pub mod outside;
pub mod parked;
pub mod publication;
pub mod pull_request;
pub mod run;
pub mod sandbox;
pub mod session;
pub mod stage;
pub mod turn;
pub mod untold;
pub mod usage;
pub mod workspace;
