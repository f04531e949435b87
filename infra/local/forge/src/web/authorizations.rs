//! The apps that a person allowed to act.

use std::collections::BTreeSet;

use super::{PageAnswer, PageRequest, html, see, signing_in};
use crate::api_error::ApiError;
use crate::record::TokenOf;

pub(super) fn page(visit: &PageRequest) -> PageAnswer {
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let inner = visit.engine.lock();
    let allowed = inner.tokens.values().filter_map(|token| match &token.of {
        TokenOf::Person { person: of, app: Some(app) } if *of == person => Some(*app),
        TokenOf::Refresh { person: of, app, .. } if *of == person => Some(*app),
        _ => None,
    });
    let allowed: BTreeSet<u64> = allowed.collect();
    let rows = allowed.iter().filter_map(|id| inner.apps.get(id)).map(|app| {
        let label = format!("Revoke {}", app.name);
        let form = html::form(
            "/settings/apps/authorizations",
            &html::button("app", &app.id.to_string(), &label),
        );
        format!("<li>{}{form}</li>", html::text(&app.name))
    });
    let rows: String = rows.collect();
    let content = if rows.is_empty() {
        "<p>You allowed no app to act for you.</p>".to_owned()
    } else {
        format!("<ul>{rows}</ul>")
    };
    Ok(html::page("Authorized apps", &content))
}

pub(super) fn revoke(visit: &PageRequest) -> PageAnswer {
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let app = visit.field("app").and_then(|id| id.parse().ok()).ok_or_else(ApiError::not_found)?;
    signing_in::revoke_grant(&visit.engine, person, app)?;
    Ok(see("/settings/apps/authorizations"))
}
