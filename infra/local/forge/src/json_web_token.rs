//! The token that an app signs itself.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use crate::limits::{APP_TOKEN_MS_MAX, CLOCK_SKEW_MS};

/// A token whose signature is not checked yet.
pub(crate) struct Signed {
    /// Client id, or the app's id as text.
    pub(crate) issuer: String,
    issued_at: Option<i64>,
    expires_at: Option<i64>,
    message: String,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    iss: Value,
    iat: Option<Value>,
    exp: Option<Value>,
}

impl Signed {
    /// `None` if this is no such token.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decoded(header)?).ok()?;
        let claims: Claims = serde_json::from_slice(&decoded(claims)?).ok()?;
        if header.alg != "RS256" {
            return None;
        }
        let issuer = match claims.iss {
            Value::String(text) => text,
            other => other.as_u64()?.to_string(),
        };
        // GitHub ignores a time with fractions of a second.
        let ms = |value: Option<Value>| Some(value?.as_i64()?.saturating_mul(1_000));
        Some(Self {
            issuer,
            issued_at: ms(claims.iat),
            expires_at: ms(claims.exp),
            message: message.to_owned(),
            signature: decoded(signature)?,
        })
    }

    pub(crate) fn is_signed_by(&self, public: &[u8]) -> bool {
        crate::rsa::is_signed(public, self.message.as_bytes(), &self.signature)
    }

    /// Why it is not valid at this time, in GitHub's words.
    pub(crate) fn refusal(&self, now: i64) -> Option<&'static str> {
        match (self.issued_at, self.expires_at) {
            (None, _) => Some(ISSUED),
            (Some(issued), _) if issued > now + CLOCK_SKEW_MS => Some(ISSUED),
            (_, Some(end)) if end > now + APP_TOKEN_MS_MAX + CLOCK_SKEW_MS => Some(TOO_FAR),
            (_, Some(end)) if end > now => None,
            _ => Some(EXPIRED),
        }
    }
}

const ISSUED: &str = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
const EXPIRED: &str = "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
const TOO_FAR: &str = "'Expiration time' claim ('exp') is too far in the future";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_800_000_000_000;

    fn token(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode("signature"))
    }

    fn refusal(claims: &Value) -> Option<&'static str> {
        let text = token(&json!({"alg": "RS256", "typ": "JWT"}), claims);
        Signed::parse(&text).expect("a token").refusal(NOW)
    }

    #[test]
    fn times_are_checked_as_github_does() {
        let now = NOW / 1_000;
        let claims = |iat: i64, exp: i64| json!({"iss": "Iv1", "iat": now + iat, "exp": now + exp});
        assert_eq!(refusal(&claims(-60, 540)), None);
        assert_eq!(refusal(&claims(-60, 601)), None);
        assert_eq!(refusal(&claims(-60, 700)), Some(TOO_FAR));
        assert_eq!(refusal(&claims(-700, 0)), Some(EXPIRED));
        assert_eq!(refusal(&claims(120, 540)), Some(ISSUED));
        assert_eq!(refusal(&json!({"iss": 7, "exp": now + 60})), Some(ISSUED));
        assert_eq!(refusal(&json!({"iss": 7, "iat": now})), Some(EXPIRED));
    }

    #[test]
    fn only_rs256_is_read() {
        let claims = json!({"iss": 7, "iat": 1, "exp": 2});
        assert!(Signed::parse(&token(&json!({"alg": "none"}), &claims)).is_none());
        assert!(Signed::parse(&token(&json!({"alg": "HS256"}), &claims)).is_none());
        assert!(Signed::parse("ghs_abc").is_none());
        assert!(Signed::parse("a.b.c").is_none());
        let read = Signed::parse(&token(&json!({"alg": "RS256"}), &claims)).expect("a token");
        assert_eq!(read.issuer, "7");
    }
}
