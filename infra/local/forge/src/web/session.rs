//! Who is signed in in a browser.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bobbin_local_breakpoint::FORGE_COOKIE;
use bobbin_local_sandbox::random::token;

use super::{PageAnswer, PageRequest, html, see};
use crate::api_error::ApiError;
use crate::limits::CODES_MAX;
use crate::record::Kind;
use crate::state::{Engine, hash};

/// Letters of a cookie or a ticket.
const LETTERS: usize = 40;

/// Two forges on one machine share their host's cookies.
fn cookie_name(engine: &Engine) -> String {
    let port = engine.addresses.web.rsplit(':').next().unwrap_or_default();
    format!("{FORGE_COOKIE}{port}")
}

/// The person of a browser's cookie.
pub(super) fn person(engine: &Engine, headers: &HeaderMap) -> Option<u64> {
    let name = cookie_name(engine);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    let said = named.find(|(found, _)| *found == name)?.1;
    engine.sessions().get(&hash(said)).copied()
}

fn keep(engine: &Engine, key: String, person: u64) {
    let mut sessions = engine.sessions();
    if sessions.len() >= CODES_MAX {
        sessions.clear();
    }
    sessions.insert(key, person);
}

/// Signs a browser in and sends it on.
fn enter(visit: &PageRequest, person: u64, to: &str) -> Response {
    let cookie = token(LETTERS);
    keep(&visit.engine, hash(&cookie), person);
    let mut response = see(own_path(to));
    let name = cookie_name(&visit.engine);
    let cookie = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Lax");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// A path of this forge; anything else is its start page.
fn own_path(to: &str) -> &str {
    let is_own = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\');
    if is_own { to } else { "/" }
}

/// The fields with which a person signs in.
pub(super) fn sign_in_fields(engine: &Engine) -> String {
    let inner = engine.lock();
    let people = inner.accounts.values().filter(|one| one.kind == Kind::User);
    let options: String =
        people.map(|one| format!("<option>{}</option>", html::text(&one.login))).collect();
    format!(
        "<label>Who are you? <select name=\"login\" autocomplete=\"username\">{options}</select></label><label>Password <input type=\"password\" name=\"password\" autocomplete=\"current-password\" required></label>"
    )
}

pub(super) fn page(visit: &PageRequest) -> PageAnswer {
    let back = html::hidden("return_to", visit.asked("return_to").unwrap_or("/"));
    let fields = sign_in_fields(&visit.engine);
    let content = html::form("/login", &format!("{back}{fields}<button>Sign in</button>"));
    Ok(html::page("Sign in", &content))
}

/// The person whose login and password a form has.
pub(super) fn checked(visit: &PageRequest) -> Result<u64, ApiError> {
    let wrong = || ApiError::unauthorized("Incorrect username or password.");
    let inner = visit.engine.lock();
    let account =
        inner.account_of(visit.field("login").unwrap_or_default()).map_err(|_| wrong())?;
    let said = visit.field("password").map(hash);
    let is_right = account.password.is_some() && account.password == said;
    if is_right { Ok(account.id) } else { Err(wrong()) }
}

pub(super) fn sign_in(visit: &PageRequest) -> PageAnswer {
    let person = checked(visit)?;
    Ok(enter(visit, person, visit.field("return_to").unwrap_or("/")))
}

pub(super) fn sign_out(visit: &PageRequest) -> PageAnswer {
    if let Some(person) = visit.person {
        visit.engine.sessions().retain(|_, other| *other != person);
    }
    Ok(see("/"))
}

/// A ticket opens no page but this, and only once.
fn key_of_ticket(ticket: &str) -> String {
    hash(&format!("ticket {ticket}"))
}

/// A ticket for signing a person in by an address.
pub(crate) fn ticket(engine: &Engine, person: u64) -> String {
    let ticket = token(LETTERS);
    keep(engine, key_of_ticket(&ticket), person);
    ticket
}

pub(super) fn by_ticket(visit: &PageRequest, ticket: &str) -> PageAnswer {
    let person = visit.engine.sessions().remove(&key_of_ticket(ticket));
    let person = person.ok_or_else(|| {
        ApiError::unauthorized("This address was opened before. Sign in instead.")
    })?;
    Ok(enter(visit, person, visit.asked("return_to").unwrap_or("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        assert_eq!(own_path("/a/b?c=d"), "/a/b?c=d");
        for elsewhere in ["//host/", "https://host/", "/\\host", "host", ""] {
            assert_eq!(own_path(elsewhere), "/", "{elsewhere}");
        }
    }
}
