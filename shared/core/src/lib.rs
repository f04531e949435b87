//! What Bobbin decides: pure, total, and free of clock, randomness, network, async runtime and AWS types.
//!
//! [`decide::decide`] maps (session, event, context) to (session', next step); [`machine::Machine`] has the session saved
//! under its version, then the step performed, and decides on the outcome; [`drive::drive`] awaits both through
//! [`ports::World`]. Time, identity and chance come in as arguments. Deliberately absent: any call to an outside service,
//! and the shape of anything that one says.

pub mod access;
pub mod account;
pub mod artifacts;
pub mod ask;
pub mod asks;
pub mod bearer;
pub mod breaker;
pub mod card;
pub mod changes;
pub mod commands;
pub mod credentials;
pub mod decide;
pub mod delivery;
pub mod drive;
pub mod effect;
pub mod endpoint;
pub mod event;
pub mod failure;
pub mod glance;
pub mod ids;
pub mod images;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod machine;
pub mod message;
pub mod nudge;
pub mod outcome;
pub mod outside;
pub mod overrides;
pub mod overview;
pub mod own_keys;
pub mod parked;
pub mod person;
pub mod ports;
pub mod reply;
pub mod run;
pub mod runtime_mode;
pub mod sandbox;
pub mod sandboxes;
pub mod schema;
pub mod secret;
pub mod selection;
pub mod session;
pub mod settings;
pub mod signals;
mod signed;
pub mod stage;
pub mod status;
pub mod text;
pub mod tools;
pub mod untold;
pub mod usage;
pub mod workspace;
