//! Who the app is: its key, the signatures made with it, and the permissions that it asks for.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bobbin_core::base::secret::Secret;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use serde::Deserialize;
use serde_json::json;

use super::repositories::AccountBody;
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};

/// The permissions that the app asks for, from the first day: another one would have to be accepted by each owner.
pub const PERMISSIONS: [(&str, &str); 8] = [
    ("contents", "write"),
    ("pull_requests", "write"),
    ("metadata", "read"),
    ("checks", "read"),
    ("statuses", "read"),
    ("actions", "read"),
    ("issues", "read"),
    ("members", "read"),
];

/// How far the beginning of a signature lies in the past, in seconds: clocks differ.
const EARLY_S: u64 = 60;
/// How long a signature is good from now, in seconds; GitHub takes ten minutes at most.
const GOOD_S: u64 = 540;

/// The app, as GitHub describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct App {
    /// Its id.
    pub id: u64,
    /// Its name in addresses.
    #[serde(default)]
    pub slug: String,
    /// Its name for people.
    #[serde(default)]
    pub name: String,
    /// Its client id.
    #[serde(default)]
    pub client_id: String,
    /// What it asks for, by name and level.
    #[serde(default)]
    pub permissions: BTreeMap<String, String>,
    #[serde(default)]
    owner: AccountBody,
}

impl App {
    /// The login of its owner; empty if it is an enterprise's.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner.login
    }

    /// Permissions that Bobbin needs and that the app does not ask for, each as `name: level`.
    #[must_use]
    pub fn lacks(&self) -> Vec<String> {
        lacking(&self.permissions, &PERMISSIONS)
    }

    /// Permissions that the app asks for beyond what Bobbin needs, each as `name: level`.
    #[must_use]
    pub fn surplus(&self) -> Vec<String> {
        let needed: BTreeMap<&str, &str> = PERMISSIONS.into_iter().collect();
        let is_more = |(name, level): &(&String, &String)| {
            needed.get(name.as_str()).is_none_or(|needed| *needed == "read" && *level != "read")
        };
        let more = self.permissions.iter().filter(is_more);
        more.map(|(name, level)| format!("{name}: {level}")).collect()
    }
}

/// Those of the permissions that are not granted, each as `name: level`.
pub(super) fn lacking(granted: &BTreeMap<String, String>, wanted: &[(&str, &str)]) -> Vec<String> {
    let is_granted = |(name, level): &(&str, &str)| {
        let granted = granted.get(*name).map(String::as_str);
        granted.is_some_and(|granted| granted == *level || granted != "read")
    };
    let lacking = wanted.iter().filter(|one| !is_granted(one));
    lacking.map(|(name, level)| format!("{name}: {level}")).collect()
}

/// The app's private key.
pub(super) struct AppKey(Option<KeyPair>);

impl AppKey {
    /// From PEM: PKCS#1, as GitHub gives it, or PKCS#8. One that cannot be read is told when it is needed.
    pub(super) fn of(stored: &Secret) -> Self {
        let text = stored.expose().trim();
        // Base64 of the PEM is one line, which can be pasted at a prompt.
        let decoded = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        // Whoever puts it into a variable or a JSON document may have kept its lines apart so.
        Self(read(&decoded.unwrap_or_else(|| text.replace("\\n", "\n"))))
    }

    /// Signs as this issuer (RFC 7519 with RS256).
    pub(super) fn sign(&self, issuer: &str, now_s: u64) -> ForgeResult<Secret> {
        let key = self.0.as_ref().ok_or_else(unusable)?;
        let header = json!({"alg": "RS256", "typ": "JWT"});
        let claims =
            json!({"iat": now_s.saturating_sub(EARLY_S), "exp": now_s + GOOD_S, "iss": issuer});
        let part = |part: serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| unusable())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
    }
}

fn read(pem: &str) -> Option<KeyPair> {
    let lines = pem.lines().map(str::trim).filter(|line| !line.starts_with('-'));
    let der = STANDARD.decode(lines.collect::<String>()).ok()?;
    if pem.contains("BEGIN PRIVATE KEY") {
        KeyPair::from_pkcs8(&der).ok()
    } else {
        KeyPair::from_der(&der).ok()
    }
}

fn unusable() -> ForgeError {
    ForgeError::lasting(
        ForgeErrorKind::Other,
        "The private key of the GitHub app is missing or cannot be read. The operator stores it as github_private_key with `bobbin secrets`.",
    )
}
