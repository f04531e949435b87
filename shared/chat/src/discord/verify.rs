//! Discord's signature: Ed25519 over the timestamp followed directly by the raw body.

use ed25519_dalek::{Signature, VerifyingKey};

use super::bounds::WINDOW_S;

/// Not a public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Discord public key must be the 64 hex digits that the developer portal shows under General Information"
)]
pub struct BadKey;

/// Parses an application's public key.
///
/// # Errors
/// [`BadKey`] unless it is 64 hex digits of a point on the curve.
pub fn verifying_key(hex_digits: &str) -> Result<VerifyingKey, BadKey> {
    let mut bytes = [0u8; 32];
    hex::decode_to_slice(hex_digits, &mut bytes).map_err(|_| BadKey)?;
    VerifyingKey::from_bytes(&bytes).map_err(|_| BadKey)
}

/// Whether Discord signed this body at this time, and that time is within [`WINDOW_S`] of `now_s`.
///
/// Nothing separates timestamp and body, so digits could be moved between them: the timestamp has exactly ten.
#[must_use]
pub fn verify(
    key: &VerifyingKey,
    timestamp: &str,
    signature_hex: &str,
    raw: &[u8],
    now_s: u64,
) -> bool {
    let mut signature = [0u8; 64];
    if !fresh(timestamp, now_s) || hex::decode_to_slice(signature_hex, &mut signature).is_err() {
        return false;
    }
    let signed = [timestamp.as_bytes(), raw].concat();
    key.verify_strict(&signed, &Signature::from_bytes(&signature)).is_ok()
}

fn fresh(timestamp: &str, now_s: u64) -> bool {
    timestamp.len() == 10
        && timestamp.bytes().all(|b| b.is_ascii_digit())
        && timestamp.parse::<u64>().is_ok_and(|t| t.abs_diff(now_s) <= WINDOW_S)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, SigningKey};

    use super::*;

    const NOW_S: u64 = 1_795_300_000;
    const BODY: &[u8] = br#"{"type": 1, "id":"1"}"#;

    fn signing() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    fn sign(timestamp: &str, body: &[u8]) -> String {
        hex::encode(signing().sign(&[timestamp.as_bytes(), body].concat()).to_bytes())
    }

    fn accepts(timestamp: &str, signature: &str, body: &[u8]) -> bool {
        verify(&signing().verifying_key(), timestamp, signature, body, NOW_S)
    }

    #[test]
    fn signed_request_within_window_is_accepted() {
        for offset in [-300i64, 0, 300] {
            let timestamp = NOW_S.saturating_add_signed(offset).to_string();
            assert!(accepts(&timestamp, &sign(&timestamp, BODY), BODY));
        }
        let upper = sign(&NOW_S.to_string(), BODY).to_uppercase();
        assert!(accepts(&NOW_S.to_string(), &upper, BODY));
    }

    #[test]
    fn stale_or_future_request_is_refused() {
        for offset in [-301i64, 301, -86_400, 86_400] {
            let timestamp = NOW_S.saturating_add_signed(offset).to_string();
            assert!(!accepts(&timestamp, &sign(&timestamp, BODY), BODY), "{offset}");
        }
    }

    #[test]
    fn shifted_timestamp_boundary_is_refused() {
        let timestamp = NOW_S.to_string();
        let signature = sign(&timestamp, BODY);
        let (short, last) = timestamp.split_at(9);
        assert!(!accepts(short, &signature, &[last.as_bytes(), BODY].concat()));
        let signature = sign(&timestamp, b"12");
        assert!(!accepts(&format!("{timestamp}1"), &signature, b"2"));
    }

    #[test]
    fn timestamp_must_be_ten_digits() {
        for timestamp in [
            "+795300000",
            " 1795300000",
            "1795300000 ",
            "179530000",
            "17953000001",
            "1795300000000",
            "",
            "１７９５３０００００",
            "-795300000",
        ] {
            assert!(!accepts(timestamp, &sign(timestamp, BODY), BODY), "{timestamp:?}");
        }
    }

    #[test]
    fn malformed_or_mismatched_signature_is_refused() {
        let timestamp = NOW_S.to_string();
        let good = sign(&timestamp, BODY);
        assert!(!accepts(&timestamp, &good[..126], BODY), "63 bytes");
        assert!(!accepts(&timestamp, &format!("{good}00"), BODY), "65 bytes");
        assert!(
            !accepts(&timestamp, &good.replacen(|c: char| c.is_ascii_digit(), "g", 1), BODY),
            "not hex"
        );
        assert!(!accepts(&timestamp, "", BODY), "empty");
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key();
        assert!(!verify(&other, &timestamp, &good, BODY, NOW_S), "other key");
        let reserialised =
            serde_json::from_slice::<serde_json::Value>(BODY).expect("valid").to_string();
        assert!(!accepts(&timestamp, &good, reserialised.as_bytes()), "re-serialised body");
        let mut bytes = hex::decode(&good).expect("hex");
        // S + L gives the same point, and must not be a second valid signature.
        let order = hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
            .expect("hex");
        let mut carry = 0u16;
        for (byte, add) in bytes[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            *byte = (sum & 0xff) as u8;
            carry = sum >> 8;
        }
        assert!(!accepts(&timestamp, &hex::encode(bytes), BODY), "S + L");
    }

    #[test]
    fn bad_public_key_points_to_portal() {
        for key in ["", "00", &"zz".repeat(32), &"00".repeat(33)] {
            assert!(
                verifying_key(key).expect_err("no key").to_string().contains("developer portal")
            );
        }
        assert_eq!(
            verifying_key(&hex::encode(signing().verifying_key().as_bytes())),
            Ok(signing().verifying_key())
        );
    }

    /// Public test vectors, from the folder next to the one that `BOBBIN_SPECS` names.
    fn vectors(file: &str) -> Option<serde_json::Value> {
        let path = super::super::check::outside(&format!("payloads/vectors/{file}"))?;
        Some(serde_json::from_str(&std::fs::read_to_string(path).expect("readable")).expect("JSON"))
    }

    /// The vectors sign plain messages, so this tests the same call that `verify` makes.
    fn strict(key: &str, message: &str, signature: &str) -> bool {
        let mut bytes = [0u8; 64];
        hex::decode_to_slice(signature, &mut bytes).is_ok()
            && verifying_key(key).is_ok_and(|key| {
                key.verify_strict(
                    &hex::decode(message).expect("hex"),
                    &Signature::from_bytes(&bytes),
                )
                .is_ok()
            })
    }

    #[test]
    fn wycheproof_vectors_pass() {
        let Some(vectors) = vectors("ed25519_wycheproof.json") else {
            return;
        };
        let mut seen = 0;
        for group in vectors["testGroups"].as_array().expect("groups") {
            let key = group["publicKey"]["pk"].as_str().expect("key");
            for test in group["tests"].as_array().expect("tests") {
                let text = |name: &str| test[name].as_str().expect("text");
                assert_eq!(
                    strict(key, text("msg"), text("sig")),
                    text("result") == "valid",
                    "{test}"
                );
                seen += 1;
            }
        }
        assert_eq!(seen, 151);
    }

    #[test]
    fn small_order_vectors_are_refused() {
        let Some(vectors) = vectors("ed25519_speccheck.json") else {
            return;
        };
        let vectors = vectors.as_array().expect("list");
        let accepted: Vec<usize> = (0..vectors.len())
            .filter(|n| {
                let text = |name: &str| vectors[*n][name].as_str().expect("text");
                strict(text("pub_key"), text("message"), text("signature"))
            })
            .collect();
        // Vectors 3 and 4 have honest, merely mixed-order parts; the strict check is documented to accept only such.
        assert!(accepted.iter().all(|n| [3, 4].contains(n)), "{accepted:?}");
        assert!(!vectors.is_empty());
    }
}
