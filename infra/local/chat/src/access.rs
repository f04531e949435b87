//! Who may see and act as a person: a program with the stack's key, and a browser that opened the login address and has
//! its cookie.

use crate::hub::Hub;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bobbin_local_breakpoint::{ControlKey, KEY_COOKIE};
use std::sync::Arc;

/// The login address of a browser: the page with the stack's key, traded for a cookie.
#[must_use]
pub fn login_url(page: &str, control_key: &str) -> String {
    format!("{page}/?{QUERY}={control_key}")
}

/// Query parameter of the key.
const QUERY: &str = "key";

const KEY_IS_MISSING: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Bobbin · chat</title></head><body><p>This page needs the key of your stack. Open the whole address that <code>cargo run</code> printed as “Chat page”; it ends in <code>?key=…</code>.</p></body></html>";

/// Admits requests with the key, and logs in a browser with the key in its address.
pub async fn require_key(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    let key = &hub.control_key;
    let (headers, at) = (request.headers(), request.uri());
    let name = cookie_name(&hub);
    if key.is_said(headers) || cookie(headers, &name).is_some_and(|said| key.is(said)) {
        return next.run(request).await;
    }
    if at.path() != "/" {
        return ControlKey::refusal();
    }
    let said = at
        .query()
        .and_then(|query| form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == QUERY));
    let Some((_, said)) = said.filter(|(_, said)| key.is(said)) else {
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
        ];
        return (StatusCode::UNAUTHORIZED, headers, KEY_IS_MISSING).into_response();
    };
    // An address without the key can be shared.
    let cookie = format!("{name}={said}; Path=/; HttpOnly; SameSite=Strict");
    let headers = [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Contains the port: two stacks on one machine share their host's cookies.
fn cookie_name(hub: &Hub) -> String {
    let port = hub.base.rsplit(':').next().unwrap_or_default();
    format!("{KEY_COOKIE}{port}")
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    named.find(|(found, _)| *found == name).map(|(_, value)| value)
}
