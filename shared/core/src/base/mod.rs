//! The basis of everything else: ids, limits, failures, people, secrets.

pub mod breaker;
pub mod credentials;
pub mod endpoint;
pub mod failure;
pub mod flat;
pub mod ids;
pub mod limits;
pub mod names;
pub mod person;
pub mod reply;
pub mod secret;
