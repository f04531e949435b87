//! Commands as Discord sends them, signed, in the event of a function URL.

use std::time::{SystemTime, UNIX_EPOCH};

use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

/// A task in a channel: verified, sent to the queue once, and answered as "thinking".
const COMMAND: &str = include_str!("../../events/discord/sandbox-in-channel.json");

/// Discord's side of an application.
pub struct Application {
    key: SigningKey,
    interaction: Value,
}

impl Default for Application {
    fn default() -> Self {
        Self {
            // Any 32 bytes are a key.
            key: SigningKey::from_bytes(&[7; 32]),
            interaction: serde_json::from_str(COMMAND).expect("the event is JSON"),
        }
    }
}

impl Application {
    /// The public key, as hex digits.
    #[must_use]
    pub fn public_key(&self) -> String {
        hex::encode(self.key.verifying_key().as_bytes())
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.interaction["application_id"]
            .as_str()
            .unwrap_or_default()
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
        json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "/discord/interactions",
            "rawQueryString": "",
            "headers": {
                "x-signature-ed25519": signature,
                "x-signature-timestamp": timestamp,
                "content-type": "application/json",
                "content-length": body.len().to_string(),
                "host": "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-central-1.on.aws",
                "user-agent": "Discord-Interactions/1.0 (+https://discord.com)",
                "accept-encoding": "gzip",
                "x-amzn-trace-id": "Root=1-69218e3f-0123456789abcdef01234567",
                "x-amzn-tls-version": "TLSv1.3",
                "x-amzn-tls-cipher-suite": "TLS_AES_128_GCM_SHA256",
                "x-forwarded-proto": "https",
                "x-forwarded-port": "443",
                "x-forwarded-for": "192.0.2.1"
            },
            "requestContext": {
                "accountId": "anonymous",
                "apiId": "abcdefghijklmnopqrstuvwxyz012345",
                "domainName": "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-central-1.on.aws",
                "domainPrefix": "abcdefghijklmnopqrstuvwxyz012345",
                "http": {
                    "method": "POST",
                    "path": "/discord/interactions",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1",
                    "userAgent": "Discord-Interactions/1.0 (+https://discord.com)"
                },
                "requestId": "0b6e3c1e-8f0a-4a0c-9d6f-3c9f0d0f7b11",
                "routeKey": "$default",
                "stage": "$default",
                "time": "22/Nov/2026:08:00:00 +0000",
                "timeEpoch": 1_795_334_400_000_u64
            },
            "body": body,
            "isBase64Encoded": false
        })
        .to_string()
        .into_bytes()
    }
}
