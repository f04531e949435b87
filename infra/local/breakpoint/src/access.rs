//! Access to a local service: for programs on this machine, and for holders of the stack's key.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Refuses requests that a foreign web page could make a browser send: a foreign `Host` (DNS rebinding) or `Origin`.
/// `also` is this machine's name for callers that do not share its loopback.
pub fn own_only<S>(router: Router<S>, also: Option<String>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    router.layer(from_fn(move |request: Request, next: Next| {
        let is_own = is_own(request.headers(), also.as_deref());
        async move {
            if is_own {
                return next.run(request).await;
            }
            let told = "This local server answers only its own page and programs on this machine.";
            let body = json!({ "message": told }).to_string();
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (StatusCode::FORBIDDEN, kind, body).into_response()
        }
    }))
}

/// `Host` can be in the URI only with HTTP/2, which no local service speaks.
fn is_own(headers: &HeaderMap, also: Option<&str>) -> bool {
    let origin = text(headers, header::ORIGIN);
    let host = text(headers, header::HOST);
    has_own_host(headers, also)
        && (origin.is_empty() || origin.strip_prefix("http://") == Some(host))
}

/// Whether a request names this machine rather than a foreign name that resolves to it.
#[must_use]
pub fn has_own_host(headers: &HeaderMap, also: Option<&str>) -> bool {
    let host = text(headers, header::HOST);
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    ["127.0.0.1", "localhost", "[::1]"].contains(&name) || also == Some(name)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    let value = headers.get(name);
    value.and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Name prefix of the cookie with a stack's key; the port follows. Browsers send cookies to every port of a host, so a
/// relay to a sandbox removes it.
pub const KEY_COOKIE: &str = "bobbin-key-";

/// Name prefix of the cookie with the token of a sandbox's port; sandbox and port follow.
pub const PREVIEW_COOKIE: &str = "DAYTONA_SANDBOX_AUTH_KEY";

/// Name prefix of the cookie with a person's session at the forge; the port follows.
pub const FORGE_COOKIE: &str = "forge-session-";

/// Removes the cookies with stacks' keys, with tokens of sandbox ports and with sessions at the forge: browsers send
/// them to every port.
pub fn remove_key_cookies(headers: &mut HeaderMap) {
    let lines: Vec<HeaderValue> = headers.get_all(header::COOKIE).iter().cloned().collect();
    headers.remove(header::COOKIE);
    for line in lines.iter().filter_map(|line| line.to_str().ok()) {
        let pairs = line.split(';').map(str::trim);
        let ours = [KEY_COOKIE, PREVIEW_COOKIE, FORGE_COOKIE];
        let is_key = |pair: &str| ours.iter().any(|it| pair.starts_with(it));
        let rest: Vec<&str> = pairs.filter(|pair| !is_key(pair)).collect();
        if let Ok(line) = HeaderValue::from_str(&rest.join("; "))
            && !line.is_empty()
        {
            headers.append(header::COOKIE, line);
        }
    }
}

/// The stack's control key: moving clocks, playing people and reading what they see require it.
#[derive(Clone)]
pub struct ControlKey(String);

impl From<String> for ControlKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl std::fmt::Debug for ControlKey {
    /// Omits the secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ControlKey")
    }
}

impl ControlKey {
    /// Whether this is the key. Hashes are compared, so that timing reveals nothing.
    #[must_use]
    pub fn is(&self, said: &str) -> bool {
        Sha256::digest(said.as_bytes()) == Sha256::digest(self.0.as_bytes())
    }

    /// Whether a request carries it, as `Authorization: Bearer KEY`.
    #[must_use]
    pub fn is_said(&self, headers: &HeaderMap) -> bool {
        let said = text(headers, header::AUTHORIZATION).strip_prefix("Bearer ");
        said.is_some_and(|said| self.is(said))
    }

    /// The answer to a request without it.
    #[must_use]
    pub fn refusal() -> Response {
        let told = "This call needs the stack's own key: Authorization: Bearer with control_key of the ready file (--ready-file).";
        let body = json!({ "message": told }).to_string();
        let headers =
            [(header::CONTENT_TYPE, "application/json"), (header::WWW_AUTHENTICATE, "Bearer")];
        (StatusCode::UNAUTHORIZED, headers, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn foreign_hosts_and_origins_are_refused() {
        let also = Some("host.docker.internal");
        for (own, pairs) in [
            (true, vec![("host", "127.0.0.1:80")]),
            (true, vec![("host", "localhost:80")]),
            (true, vec![("host", "host.docker.internal:80")]),
            (true, vec![("host", "127.0.0.1:80"), ("origin", "http://127.0.0.1:80")]),
            (false, vec![("host", "127.0.0.1:80"), ("origin", "http://127.0.0.1:81")]),
            (false, vec![("host", "127.0.0.1:80"), ("origin", "null")]),
            (false, vec![("host", "rebound.example:80")]),
            (false, vec![("host", "127.0.0.1.example")]),
            (false, vec![]),
        ] {
            assert_eq!(is_own(&headers(&pairs), also), own, "{pairs:?}");
        }
        assert!(!is_own(&headers(&[("host", "host.docker.internal:80")]), None));
    }

    #[test]
    fn cookies_carry_no_key_to_sandboxes() {
        let mut headers = headers(&[(
            "cookie",
            "a=1; bobbin-key-4100=k; DAYTONA_SANDBOX_AUTH_KEY=t; DAYTONA_SANDBOX_AUTH_KEY-id-3000=t; forge-session-4200=s; b=2",
        )]);
        remove_key_cookies(&mut headers);
        assert_eq!(headers["cookie"], "a=1; b=2");
    }

    #[test]
    fn only_exact_control_key_matches() {
        let key = ControlKey::from("abc".to_owned());
        for (is_it, said) in
            [("Bearer abc", true), ("Bearer ab", false), ("abc", false), ("", false)]
                .map(|(said, is_it)| (is_it, said))
        {
            let headers = headers(&[("authorization", said)]);
            assert_eq!(key.is_said(&headers), is_it, "{said}");
        }
        assert_eq!(format!("{key:?}"), "ControlKey");
    }
}
