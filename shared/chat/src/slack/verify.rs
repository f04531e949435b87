//! The signature of a request: HMAC-SHA256 with the signing secret over `v0:{timestamp}:{raw body}`.

use bobbin_core::base::ids::Ms;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::limits::CLOCK_SKEW_S_MAX;

/// Why a request is rejected. For the log; the sender learns only that it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// Without a secret anybody could sign.
    #[error("no signing secret is configured; set it from the app's Basic Information page")]
    NoSecret,
    /// Not ten ASCII digits, or too far from now.
    #[error("the timestamp is missing, not ten digits, or more than five minutes away")]
    Timestamp,
    /// Not `v0=` and 32 bytes of hex, or not made with our secret.
    #[error("the signature does not belong to this body")]
    Signature,
}

/// Whether a request looks signed: a current time and a well-formed signature. Otherwise the secret need not be read.
#[must_use]
pub(super) fn looks_signed(signature: &str, timestamp: &str, now_ms: Ms) -> bool {
    claimed(signature, timestamp, now_ms).is_ok()
}

/// The signature that a request claims.
///
/// The timestamp must be ten digits: the separator can occur in the body, so a looser rule lets one signature cover two
/// readings (`ts:a` with body `b`, and `ts` with body `a:b`).
fn claimed(signature: &str, timestamp: &str, now_ms: Ms) -> Result<[u8; 32], Unverified> {
    if timestamp.len() != 10 || !timestamp.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Unverified::Timestamp);
    }
    let signed_s: u64 = timestamp.parse().map_err(|_| Unverified::Timestamp)?;
    if signed_s.abs_diff(now_ms / 1_000) > CLOCK_SKEW_S_MAX {
        return Err(Unverified::Timestamp);
    }
    let mut expected = [0_u8; 32];
    let digits = signature.strip_prefix("v0=").ok_or(Unverified::Signature)?;
    hex::decode_to_slice(digits, &mut expected).map_err(|_| Unverified::Signature)?;
    Ok(expected)
}

/// Verifies a request's signature over its raw body.
///
/// # Errors
/// [`Unverified`], which names what was wrong and never the expected value.
pub fn verify(
    secret: &str,
    signature: &str,
    timestamp: &str,
    raw: &[u8],
    now_ms: Ms,
) -> Result<(), Unverified> {
    let expected = claimed(signature, timestamp, now_ms)?;
    if secret.is_empty() {
        return Err(Unverified::NoSecret);
    }
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    for part in [b"v0:", timestamp.as_bytes(), b":", raw] {
        mac.update(part);
    }
    mac.verify_slice(&expected).map_err(|_| Unverified::Signature)
}
