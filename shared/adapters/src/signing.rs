//! Signature version 4, as far as AWS's services that speak JSON need it: a method, a path, headers and a body.
//!
//! Promised: for such a request the same signature as the `aws-sigv4` crate makes (tests/signing.rs compares the two on
//! generated requests). Deliberately absent: queries, which no call of ours has; signed addresses; streamed bodies; paths
//! with `.` and `..`, and the single encoding of paths that S3 alone has.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::calendar::Moment;
use crate::secrets::Secret;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Who signs.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Goes with every request, readable.
    pub access_key_id: String,
    /// Never goes anywhere.
    pub secret_access_key: Secret,
    /// Of temporary keys, which those of a function are; a header of the request.
    pub session_token: Option<Secret>,
}

/// What a signature is good for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Such as `eu-central-1`.
    pub region: &'a str,
    /// AWS's short name of the service, such as `sqs`.
    pub service: &'a str,
}

/// What is signed of a request.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// As it stands in the first line of the request, from the `/` on.
    pub path: &'a str,
    /// In the order of their lower-case names; with `host` and `x-amz-date`.
    pub headers: &'a [(&'a str, &'a str)],
    /// All of it.
    pub body: &'a [u8],
}

/// Percent-encoded, all but letters, digits and `-._~`: as part of a path, or as a value of a form.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            // Writing into a text cannot fail.
            _ => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

/// The value of `x-amz-date` for a time in seconds since the Unix epoch: `20260131T235959Z`.
#[must_use]
pub fn date(at_s: u64) -> String {
    let Moment {
        year,
        month,
        day,
        hour,
        minute,
        second,
    } = Moment::of(at_s);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The value of `authorization` for this request, whose header `x-amz-date` is `date`.
#[must_use]
pub fn authorization(keys: &Keys, scope: Scope<'_>, date: &str, request: &Signed<'_>) -> String {
    let mut canonical = format!("{}\n", request.method);
    // A path is signed encoded once more than it is sent.
    for (index, segment) in request.path.split('/').enumerate() {
        if index > 0 {
            canonical.push('/');
        }
        canonical.push_str(&escaped(segment));
    }
    canonical.push_str("\n\n");
    let mut names = String::new();
    for (name, value) in request.headers {
        for part in [name, ":", value.trim(), "\n"] {
            canonical.push_str(part);
        }
        if !names.is_empty() {
            names.push(';');
        }
        names.push_str(name);
    }
    canonical.push('\n');
    canonical.push_str(&names);
    canonical.push('\n');
    canonical.push_str(&hex::encode(Sha256::digest(request.body)));

    let day = date.split('T').next().unwrap_or(date);
    let credential = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let hash = hex::encode(Sha256::digest(canonical.as_bytes()));
    let to_sign = format!("{ALGORITHM}\n{date}\n{credential}\n{hash}");

    let secret = format!("AWS4{}", keys.secret_access_key.expose());
    let mut key = mac(secret.as_bytes(), day);
    for part in [scope.region, scope.service, "aws4_request"] {
        key = mac(&key, part);
    }
    let signature = hex::encode(mac(&key, &to_sign));
    let mut value = format!("{ALGORITHM} Credential={}/{credential}", keys.access_key_id);
    // Writing into a text cannot fail.
    let _ = write!(value, ", SignedHeaders={names}, Signature={signature}");
    value
}

fn mac(key: &[u8], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_right_on_the_days_on_which_calendars_go_wrong() {
        for (at_s, written) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_735_689_599, "20241231T235959Z"),
            (1_772_323_200, "20260301T000000Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(date(at_s), written);
        }
    }

    #[test]
    fn keys_do_not_show_themselves() {
        let keys = Keys {
            access_key_id: "AKID".to_owned(),
            secret_access_key: Secret::from("canary".to_owned()),
            session_token: Some(Secret::from("canary".to_owned())),
        };
        assert!(!format!("{keys:?}").contains("canary"));
    }
}
