//! The signature: Slack's documented vector, and everything that must be rejected.

use super::sign;
use crate::slack::{Unverified, verify};

const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const TIMESTAMP: &str = "1531420618";
const BODY: &[u8] = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
const NOW_MS: u64 = 1_531_420_618_000;

fn check(signature: &str, timestamp: &str, body: &[u8], now_ms: u64) -> Result<(), Unverified> {
    verify(SECRET, signature, timestamp, body, now_ms)
}

#[test]
fn documented_signature_holds_five_minutes() {
    for now_ms in [NOW_MS, NOW_MS - 300_000, NOW_MS + 300_999] {
        assert_eq!(check(SIGNATURE, TIMESTAMP, BODY, now_ms), Ok(()));
    }
    for now_ms in [NOW_MS - 301_000, NOW_MS + 301_000, 0, u64::MAX] {
        assert_eq!(check(SIGNATURE, TIMESTAMP, BODY, now_ms), Err(Unverified::Timestamp));
    }
}

#[test]
fn any_changed_part_is_refused() {
    let mut body = BODY.to_vec();
    body[10] ^= 1;
    assert_eq!(check(SIGNATURE, TIMESTAMP, &body, NOW_MS), Err(Unverified::Signature));
    assert_eq!(check(SIGNATURE, "1531420619", BODY, NOW_MS), Err(Unverified::Signature));
    assert_eq!(
        verify("another secret", SIGNATURE, TIMESTAMP, BODY, NOW_MS),
        Err(Unverified::Signature)
    );
    assert_eq!(
        verify("", &sign("", TIMESTAMP, BODY), TIMESTAMP, BODY, NOW_MS),
        Err(Unverified::NoSecret)
    );
}

#[test]
fn malformed_signature_is_refused() {
    let digits = &SIGNATURE[3..];
    let bad = [
        String::new(),
        "v0=".to_owned(),
        digits.to_owned(),
        format!("v1={digits}"),
        format!("V0={digits}"),
        format!(" v0={digits}"),
        format!("v0={digits} "),
        format!("v0={digits}00"),
        format!("v0={}", &digits[2..]),
        format!("v0={}", &digits[1..]),
        format!("v0={}", "z".repeat(64)),
        format!("v0={}", "0".repeat(64)),
        format!("v0=é{}", &digits[2..]),
    ];
    for signature in bad {
        assert_eq!(
            check(&signature, TIMESTAMP, BODY, NOW_MS),
            Err(Unverified::Signature),
            "{signature:?}"
        );
    }
}

#[test]
fn signed_timestamp_needs_ten_digits() {
    let bad = [
        "",
        "0",
        "+153142061",
        "153142061.",
        "1531420618000",
        " 1531420618",
        "1531420618 ",
        "-153142061",
        "1.53142e09",
        "15314206１8",
    ];
    for timestamp in bad {
        assert_eq!(
            check(&sign(SECRET, timestamp, BODY), timestamp, BODY, NOW_MS),
            Err(Unverified::Timestamp),
            "{timestamp:?}"
        );
    }
}

#[test]
fn separator_cannot_move_into_timestamp() {
    let signature = sign(SECRET, TIMESTAMP, b"a:b");
    assert_eq!(check(&signature, TIMESTAMP, b"a:b", NOW_MS), Ok(()));
    assert_eq!(check(&signature, "1531420618:a", b"b", NOW_MS), Err(Unverified::Timestamp));
}
