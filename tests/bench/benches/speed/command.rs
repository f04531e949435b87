//! Commands as Discord sends them, signed, in the event of a function URL.

use std::time::{SystemTime, UNIX_EPOCH};

use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

/// A task in a channel: verified, sent to the queue once, and answered as "thinking".
const COMMAND: &str = include_str!("../../../../events/discord/sandbox-in-channel.json");

/// Discord's side of an application.
pub struct Application {
    key: SigningKey,
    event: Value,
    interaction: Value,
}

impl Default for Application {
    fn default() -> Self {
        let event: Value = serde_json::from_str(COMMAND).expect("the event is JSON");
        let body = event["body"].as_str().unwrap_or_default();
        Self {
            interaction: serde_json::from_str(body).expect("its body is JSON"),
            event,
            // Any 32 bytes are a key.
            key: SigningKey::from_bytes(&[7; 32]),
        }
    }
}

impl Application {
    /// The public key, as hex digits.
    #[must_use]
    pub fn public_key(&self) -> String {
        hex::encode(self.key.verifying_key().as_bytes())
    }

    #[must_use]
    pub fn id(&self) -> &str {
        self.interaction["application_id"].as_str().unwrap_or_default()
    }

    /// The guild in which the command is given.
    #[must_use]
    pub fn guild(&self) -> &str {
        self.interaction["guild_id"].as_str().unwrap_or_default()
    }

    /// The event of the `number`-th command: each has an id of its own and is signed now.
    #[must_use]
    pub fn event(&self, number: u64) -> Vec<u8> {
        let mut interaction = self.interaction.clone();
        interaction["id"] = json!((1_240_000_000_000_000_000 + number).to_string());
        let body = interaction.to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let timestamp = now.expect("after 1970").as_secs().to_string();
        let signed = [timestamp.as_bytes(), body.as_bytes()].concat();
        let signature = hex::encode(self.key.sign(&signed).to_bytes());
        let mut event = self.event.clone();
        event["headers"]["x-signature-ed25519"] = json!(signature);
        event["headers"]["x-signature-timestamp"] = json!(timestamp);
        event["headers"]["content-length"] = json!(body.len().to_string());
        event["body"] = json!(body);
        event.to_string().into_bytes()
    }
}
