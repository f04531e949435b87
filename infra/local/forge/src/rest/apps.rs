//! The app itself: its webhook, its deliveries, and its creation from a manifest.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{Call, created, json_answer, linked, ok};
use crate::api_error::{Answer, ApiError};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use crate::record::{CodeOf, HookDelivery};
use crate::state::hash;
use crate::webhooks;

pub(super) async fn get(call: &Call) -> Answer {
    let app = call.app()?;
    let inner = call.engine.lock();
    ok(call.show(&inner).app(&app))
}

pub(super) async fn hook_config(call: &Call) -> Answer {
    let app = call.app()?;
    let inner = call.engine.lock();
    ok(call.show(&inner).hook_config(&app))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AppHook {
    url: Option<String>,
    secret: Option<String>,
    content_type: Option<String>,
    insecure_ssl: Option<serde_json::Value>,
}

pub(super) async fn set_hook_config(call: &Call) -> Answer {
    let app = call.app()?;
    let hook: AppHook = call.read()?;
    if hook.content_type.as_deref().is_some_and(|kind| kind != "json") {
        return Err(ApiError::unprocessable("This forge sends JSON only"));
    }
    if hook.insecure_ssl.is_some_and(|value| value != "0" && value != 0) {
        return Err(ApiError::unprocessable("This forge checks certificates"));
    }
    let app = call.engine.change(|inner| {
        let app = inner.apps.get_mut(&app.id).ok_or_else(ApiError::not_found)?;
        if let Some(url) = hook.url {
            app.webhook = Some(url);
        }
        if let Some(secret) = hook.secret {
            app.webhook_secret = Some(secret);
        }
        Ok(app.clone())
    })?;
    let inner = call.engine.lock();
    ok(call.show(&inner).hook_config(&app))
}

/// Newest first; the cursor is the id of the last one that was told.
pub(super) async fn deliveries(call: &Call) -> Answer {
    let app = call.app()?;
    let size = call.asked("per_page").and_then(|text| text.parse().ok()).unwrap_or(PAGE_DEFAULT);
    let size = size.clamp(1, PAGE_MAX);
    let before = match call.asked("cursor") {
        None => u64::MAX,
        Some(cursor) => cursor.parse().map_err(|_| ApiError::bad("Invalid cursor"))?,
    };
    let is_wanted = |one: &&HookDelivery| match call.asked("status") {
        Some("success") => one.status == "OK",
        Some("failure") => one.status_code >= 400,
        _ => true,
    };
    let found: Vec<HookDelivery> = {
        let all = call.engine.deliveries();
        let own = all.iter().filter(|one| one.app == app.id && one.id < before).filter(is_wanted);
        let mut own: Vec<HookDelivery> = own.cloned().collect();
        own.sort_by_key(|one| std::cmp::Reverse(one.id));
        own
    };
    let inner = call.engine.lock();
    let told = found.iter().take(size).map(|one| call.show(&inner).delivery(one)).collect();
    let next = found.get(size).and_then(|_| found.get(size - 1)).map(|last| {
        let at = format!("{}/app/hook/deliveries", call.engine.addresses.api);
        format!("<{at}?per_page={size}&cursor={}>; rel=\"next\"", last.id)
    });
    linked(serde_json::Value::Array(told), next)
}

pub(super) async fn delivery(call: &Call) -> Answer {
    let app = call.app()?;
    let id = call.number("delivery_id")?;
    let found =
        call.engine.deliveries().iter().find(|one| one.id == id && one.app == app.id).cloned();
    let found = found.ok_or_else(ApiError::not_found)?;
    let inner = call.engine.lock();
    ok(call.show(&inner).delivery_whole(&found))
}

pub(super) async fn redeliver(call: &Call) -> Answer {
    let app = call.app()?;
    webhooks::sending::again(&call.engine, &app, call.number("delivery_id")?)?;
    json_answer(StatusCode::ACCEPTED, json!({}))
}

/// Trades the code of a manifest, once.
pub(super) async fn from_manifest(call: &Call) -> Answer {
    let key = hash(call.part("code"));
    let now = call.now();
    let (app, pem, client_secret) = call.engine.change(|inner| {
        let code = inner.codes.get(&key).filter(|code| code.expires_at > now).cloned();
        let Some(CodeOf::Manifest { app, pem, client_secret }) = code.map(|code| code.of) else {
            return Err(ApiError::not_found());
        };
        inner.codes.remove(&key);
        Ok((inner.app(app)?.clone(), pem, client_secret))
    })?;
    let told = {
        let inner = call.engine.lock();
        let mut told = call.show(&inner).app(&app);
        told["client_secret"] = client_secret.into();
        told["webhook_secret"] = app.webhook_secret.clone().into();
        told["pem"] = pem.into();
        told
    };
    webhooks::ping(&call.engine, &app);
    created(told)
}
