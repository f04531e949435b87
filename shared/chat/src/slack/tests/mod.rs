//! Tests of the Slack side through its public surface.
#![allow(clippy::unwrap_used)]

mod block_kit;
mod direct;
mod home;
mod inbound;
mod manifest;
mod recorded;
mod rendering;
mod signature;

use bobbin_core::tenant::access::Policy;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::{App, commands, events, interactivity};
use crate::Inbound;

const SECRET: &str = "a-signing-secret-for-tests";
const NOW_MS: u64 = 1_790_000_300_000;

fn app(teams: &str, channels: &str, people: &str) -> App {
    App {
        signing_secret: SECRET.to_owned(),
        policy: Policy::from_lists("", teams, channels, people),
    }
}

fn sign(secret: &str, timestamp: &str, raw: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("v0:{timestamp}:").as_bytes());
    mac.update(raw);
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

/// Sends a correctly signed raw body to an endpoint.
fn signed(endpoint: &str, raw: &[u8], app: &App) -> Inbound {
    let timestamp = (NOW_MS / 1_000).to_string();
    let signature = sign(SECRET, &timestamp, raw);
    let endpoint = match endpoint {
        "events" => events,
        "interactivity" => interactivity,
        "commands" => commands,
        other => panic!("no such endpoint: {other}"),
    };
    endpoint(raw, &signature, &timestamp, app, NOW_MS)
}

/// The endpoint and raw body of a stored request, which is split into parts or kept raw.
fn request(stored: &Value) -> (String, Vec<u8>) {
    let endpoint = stored["endpoint"].as_str().unwrap().to_owned();
    let form = |fields: Vec<(&str, String)>| {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes()
    };
    let raw = if let Some(raw) = stored.get("raw") {
        raw.as_str().unwrap().as_bytes().to_vec()
    } else if let Some(json) = stored.get("json") {
        json.to_string().into_bytes()
    } else if let Some(payload) = stored.get("payload") {
        form(vec![("payload", payload.to_string())])
    } else {
        let fields = stored["form"].as_object().unwrap();
        form(fields.iter().map(|(k, v)| (k.as_str(), v.as_str().unwrap().to_owned())).collect())
    };
    (endpoint, raw)
}
