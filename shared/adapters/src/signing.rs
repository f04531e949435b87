//! Signature version 4, as far as AWS's JSON services need it: `POST /` without a query.
//!
//! Promised: for such a request the same signature as the `aws-sigv4` crate makes (tests/signing.rs compares the two on
//! generated requests). Deliberately absent: signed addresses, streamed bodies, and other methods and paths.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::secrets::Secret;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SECONDS_A_DAY: u64 = 86_400;

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

/// The value of `x-amz-date` for a time in seconds since the Unix epoch: `20260131T235959Z`.
#[must_use]
pub fn date(at_s: u64) -> String {
    let (days, second) = (at_s / SECONDS_A_DAY, at_s % SECONDS_A_DAY);
    // The calendar repeats every 400 years of 146,097 days; counted from the 1st of March of the year 0, a leap day comes
    // last in its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = match month_from_march {
        0..=9 => month_from_march + 3,
        _ => month_from_march - 9,
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The value of `authorization` for `POST /` with this body and these headers, which must be in the order of their
/// lower-case names and hold `host` and `x-amz-date`, the latter being `date`.
#[must_use]
pub fn authorization(
    keys: &Keys,
    scope: Scope<'_>,
    date: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> String {
    let mut canonical = "POST\n/\n\n".to_owned();
    let mut names = String::new();
    for (name, value) in headers {
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
    canonical.push_str(&hex::encode(Sha256::digest(body)));

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
