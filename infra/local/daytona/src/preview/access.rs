//! Access to an exposed port, and the request as the server inside sees it.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Uri, Version, header};
use bobbin_local_breakpoint::{PREVIEW_COOKIE, remove_key_cookies};

use crate::engine::SharedEngine;

/// Header with the token; it is not passed on.
const TOKEN: &str = "x-daytona-preview-token";
/// Query parameter with the token, for people.
pub(crate) const QUERY_TOKEN: &str = PREVIEW_COOKIE;

/// Cookie with the token: one per sandbox and port, since a browser sends it to every port of this machine.
pub(super) fn cookie_name(exposed: &ExposedPort) -> String {
    format!("{PREVIEW_COOKIE}-{}-{}", exposed.id, exposed.port)
}

/// A sandbox port with a listener on this machine.
#[derive(Clone)]
pub(super) struct ExposedPort {
    pub(super) engine: SharedEngine,
    /// Sandbox id.
    pub(super) id: String,
    pub(super) port: u16,
}

/// Credential of a request.
pub(super) enum Credential {
    /// The API key, which is removed.
    Key,
    /// The token's header or cookie.
    Token,
    /// The query; a cookie keeps the browser logged in.
    Cookie(String),
}

/// The credential that admits this request, if any.
pub(super) fn authorize(
    exposed: &ExposedPort,
    headers: &HeaderMap,
    uri: &Uri,
) -> Option<Credential> {
    let ExposedPort { engine, id, port } = exposed;
    if engine.accounts.of(headers).is_some() {
        return Some(Credential::Key);
    }
    let now = engine.clock.now_ms();
    let inner = engine.store.lock();
    // A lost sandbox has no token; its listener is about to end.
    let entry = inner.sandboxes.get(id)?;
    let valid = |token: &str| match &entry.stale_token {
        Some((old, until)) if now < *until => token == old,
        _ => {
            let signed =
                entry.signed.get(token).is_some_and(|(of, until)| of == port && now < *until);
            token == entry.record.token || signed
        }
    };
    if let Some(token) = headers.get(TOKEN).and_then(|value| value.to_str().ok()) {
        return valid(token).then_some(Credential::Token);
    }
    let query = uri.query().unwrap_or_default().split('&');
    if let Some(token) =
        query.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == QUERY_TOKEN)
    {
        return valid(token.1).then(|| Credential::Cookie(token.1.to_owned()));
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let found =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let own = cookie_name(exposed);
    let mut tokens = found.filter(|(name, _)| *name == own);
    (entry.record.public || tokens.any(|(_, token)| valid(token))).then_some(Credential::Token)
}

/// The request for the server inside: its own host, the outer host in a separate header, and none of our credentials.
pub(super) fn rewrite(request: &mut Request, target: u16, credential: &Credential) {
    let path = request.uri().path_and_query().map_or("/", |whole| whole.as_str());
    let path = match credential {
        Credential::Cookie(_) => without_token(path),
        _ => path.to_owned(),
    };
    *request.uri_mut() = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    headers.remove(TOKEN);
    remove_key_cookies(headers);
    if matches!(credential, Credential::Key) {
        headers.remove(header::AUTHORIZATION);
    }
    if let Some(host) = headers.remove(header::HOST) {
        headers.insert("x-forwarded-host", host);
    }
    if let Ok(host) = HeaderValue::from_str(&format!("localhost:{target}")) {
        headers.insert(header::HOST, host);
    }
    if !headers.contains_key(header::UPGRADE) {
        headers.remove(header::CONNECTION);
    }
}

fn without_token(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with(QUERY_TOKEN)).collect();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) }
}
