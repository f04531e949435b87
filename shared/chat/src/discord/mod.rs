//! Discord: what comes in over HTTP, what goes out as JSON, and in `client` the calls. All but `client` is pure.
//!
//! Promised: a request is verified before it is parsed; every interaction is checked against the policy, clicks and
//! forms included; no body that is rendered here exceeds a bound of Discord or lets a model mention anybody.
//! Deliberately absent: the gateway, direct messages and user installs.

pub mod answer;
pub mod bounds;
mod client;
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
mod seam;
mod verify;

#[cfg(test)]
use bobbin_rules::discord as check;

pub use bounds::CHUNK_UNITS;
pub use client::{
    Application, Channel, Discord, DiscordError, ORIGINAL_WAIT_MS_MAX, RATE_WAIT_MS_MAX,
    application,
};
pub use commands::commands;
pub use completion::completed;
pub use intake::intake;
pub(crate) use seam::{off, split};
pub use verify::{BadKey, verify, verifying_key};

use bobbin_core::access::Policy;
use bobbin_core::limits::Limits;
use ed25519_dalek::VerifyingKey;

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
