//! The Discord application: what ingress needs of it.

use bobbin_core::base::limits::Limits;
use bobbin_core::tenant::access::Policy;
use ed25519_dalek::VerifyingKey;

use super::verify::{BadKey, verifying_key};

/// The application: what ingress needs of it.
#[derive(Debug, Clone)]
pub struct App {
    /// Verifies Discord's signatures.
    pub key: VerifyingKey,
    /// The application's id, part of the routes that answer an interaction.
    pub application: String,
    /// Who may use the application.
    pub policy: Policy,
    /// The product's bounds: length of a prompt, number and size of its files.
    pub limits: Limits,
    /// A server's own keys are entered in a form here, and not on a page.
    pub keys_by_form: bool,
}

impl App {
    /// From configuration; the key is 64 hex digits, as the developer portal and `verify_key` show it.
    ///
    /// # Errors
    /// [`BadKey`] if it is not.
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
            keys_by_form: false,
        })
    }
}
