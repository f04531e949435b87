//! The two verifiers, against an oracle that has the keys.
//!
//! An input is a signature, a timestamp and a body, each on a line of its own; the body has the rest. The oracle signs
//! the same body itself: a verifier accepts what equals that and nothing else, and no single changed bit of it.

use bobbin_chat::{discord, slack};
use ed25519_dalek::{Signer, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The moment of every check.
pub(super) const NOW_S: u64 = 1_795_300_000;
/// Both platforms' signatures are valid for this many seconds.
const WINDOW_S: u64 = 300;
const SECRET: &str = "a-signing-secret-for-fuzzing";

pub(super) fn discord_key() -> SigningKey {
    SigningKey::from_bytes(&[11; 32])
}

pub(super) const fn slack_secret() -> &'static str {
    SECRET
}

pub(super) fn by_discord(timestamp: &[u8], body: &[u8]) -> String {
    hex::encode(discord_key().sign(&[timestamp, body].concat()).to_bytes())
}

pub(super) fn by_slack(timestamp: &[u8], body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("HMAC takes a key of any length");
    for part in [b"v0:", timestamp, b":", body] {
        mac.update(part);
    }
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}

pub(super) fn discord(input: &[u8]) {
    let key = discord_key().verifying_key();
    let accepts = |signature: &str, timestamp: &str, body: &[u8]| {
        discord::verify(&key, timestamp, signature, body, NOW_S)
    };
    // A signature is hex, in letters of either case.
    let same = |given: &str, right: &str| given.eq_ignore_ascii_case(right);
    verifier(input, &accepts, &by_discord, &same);
}

pub(super) fn slack(input: &[u8]) {
    let accepts = |signature: &str, timestamp: &str, body: &[u8]| {
        slack::verify(SECRET, signature, timestamp, body, NOW_S * 1_000).is_ok()
    };
    let same =
        |given: &str, right: &str| given.starts_with("v0=") && given.eq_ignore_ascii_case(right);
    verifier(input, &accepts, &by_slack, &same);
    let (signature, timestamp, body) = parts(input);
    assert!(
        slack::verify("", &signature, &timestamp, &body, NOW_S * 1_000).is_err(),
        "accepted without a secret"
    );
}

fn verifier(
    input: &[u8],
    accepts: &impl Fn(&str, &str, &[u8]) -> bool,
    sign: &impl Fn(&[u8], &[u8]) -> String,
    same: &impl Fn(&str, &str) -> bool,
) {
    let (signature, timestamp, body) = parts(input);
    let right = sign(timestamp.as_bytes(), &body);
    assert_eq!(
        accepts(&signature, &timestamp, &body),
        fresh(&timestamp) && same(&signature, &right),
        "the signature as given"
    );
    assert_eq!(
        accepts(&right, &timestamp, &body),
        fresh(&timestamp),
        "the right signature of this timestamp"
    );
    let now = NOW_S.to_string();
    let right = sign(now.as_bytes(), &body);
    assert!(accepts(&right, &now, &body), "the right signature of now");
    for shifted in [NOW_S - WINDOW_S - 1, NOW_S + WINDOW_S + 1] {
        let shifted = shifted.to_string();
        let right = sign(shifted.as_bytes(), &body);
        assert!(!accepts(&right, &shifted, &body), "outside of the window");
    }
    // One bit somewhere, chosen by the input.
    let chance = input
        .iter()
        .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let digits = right.strip_prefix("v0=").unwrap_or(&right);
    let mut bytes = hex::decode(digits).expect("a signature is hex");
    let at = chance % bytes.len();
    bytes[at] ^= 1 << (chance % 8);
    let forged = right.replace(digits, &hex::encode(bytes));
    assert!(!accepts(&forged, &now, &body), "a bit of the signature");
    let mut other = body.clone();
    if other.is_empty() {
        other.push(b' ');
    } else {
        let at = chance % other.len();
        other[at] ^= 1 << (chance % 8);
    }
    assert!(!accepts(&right, &now, &other), "a bit of the body");
    // Digits moved between timestamp and body, which nothing separates at Discord.
    let moved = [&now.as_bytes()[9..], &body].concat();
    assert!(!accepts(&right, &now[..9], &moved), "a digit that moved");
}

/// The rule that both platforms document: ten digits, at most five minutes away.
fn fresh(timestamp: &str) -> bool {
    timestamp.len() == 10
        && timestamp.bytes().all(|byte| byte.is_ascii_digit())
        && timestamp.parse::<u64>().is_ok_and(|at_s| at_s.abs_diff(NOW_S) <= WINDOW_S)
}

/// Signature, timestamp and body. Headers are text, so that anything else is made one.
fn parts(input: &[u8]) -> (String, String, Vec<u8>) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut header = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (signature, timestamp) = (header(), header());
    (signature, timestamp, lines.next().unwrap_or_default().to_vec())
}
