//! The platforms' signatures: Discord's Ed25519 over timestamp and body, Slack's HMAC "v0".

use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Hex digits of `X-Signature-Ed25519`, over the timestamp followed directly by the raw body.
#[must_use]
pub fn discord(key: &SigningKey, timestamp: &str, body: &[u8]) -> String {
    hex::encode(key.sign(&[timestamp.as_bytes(), body].concat()).to_bytes())
}

/// Value of `X-Slack-Signature`: `v0=` and the HMAC-SHA256 of `v0:{timestamp}:{raw body}`.
#[must_use]
pub fn slack(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    for part in [b"v0:", timestamp.as_bytes(), b":", body] {
        mac.update(part);
    }
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}
