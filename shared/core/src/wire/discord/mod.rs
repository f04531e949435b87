//! Discord: what comes in over HTTP, and what goes out as JSON. Pure: no clock, no network.
//!
//! Promised: a request is verified before it is parsed; every interaction is checked against the policy, clicks and
//! forms included; no body that is rendered here exceeds a bound of Discord or lets a model mention anybody.
//! Deliberately absent: the gateway, direct messages and user installs, and any call (see `bobbin-adapters`).

pub mod answer;
pub mod bounds;
pub mod commands;
mod completion;
mod configure;
mod content;
pub mod custom_id;
pub mod form;
mod intake;
pub mod interaction;
pub mod quoting;
pub mod render;
mod verify;

#[cfg(test)]
use bobbin_rules::discord as check;

pub use bounds::CHUNK_UNITS;
pub use commands::commands;
pub use completion::completed;
pub use intake::intake;
pub use verify::{BadKey, verify, verifying_key};

use ed25519_dalek::VerifyingKey;

use crate::access::Policy;
use crate::limits::Limits;

/// The application as ingress knows it.
#[derive(Debug, Clone)]
pub struct App {
    /// Verifies what Discord signed.
    pub key: VerifyingKey,
    /// The application's id, part of the routes that answer an interaction.
    pub application: String,
    /// Who may use it.
    pub policy: Policy,
    /// The product's bounds: length of a prompt, number and size of its files.
    pub limits: Limits,
}

impl App {
    /// From configuration; the key is 64 hex digits, as the developer portal and `verify_key` show it.
    ///
    /// # Errors
    /// [`BadKey`] when it is not one.
    pub fn new(
        public_key_hex: &str,
        application: &str,
        policy: Policy,
        limits: Limits,
    ) -> Result<Self, BadKey> {
        Ok(Self {
            key: verifying_key(public_key_hex)?,
            application: application.to_owned(),
            policy,
            limits,
        })
    }
}
