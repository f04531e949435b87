//! The HTTP surface: the control API below `/api`, the toolbox below `/toolbox/{id}`, test controls below `/_control`.
//! Anything else is 404 `Cannot METHOD path`.

mod account;
mod control;
mod create;
mod inject;
mod list;
mod manage;
mod page;
mod previews;
mod secrets;
mod snapshots;
mod validate;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post, put};

use crate::accounts::{FIRST, as_caller};
use crate::api_error::{self, ApiError};
use crate::confine::Confinement;
use crate::engine::SharedEngine;
use crate::http::EngineState;
use crate::limits::BODY_BYTES_MAX;
use crate::toolbox;

/// All routes of the provider's own port.
pub(crate) fn router(engine: &SharedEngine) -> Router {
    let api = sandbox_routes()
        .merge(snapshot_routes())
        .merge(secret_routes(&engine.machine.confinement))
        .merge(account_routes());
    let limited = DefaultBodyLimit::max(BODY_BYTES_MAX);
    Router::new()
        .nest("/api", api.layer(limited))
        .nest("/_control", control_routes().layer(limited))
        .nest("/toolbox/{sandbox}", toolbox::router())
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(from_fn_with_state(engine.clone(), inject::inject_faults))
        .layer(from_fn_with_state(engine.clone(), authorize))
        .layer(from_fn(api_error::write_body))
        .with_state(engine.clone())
}

fn sandbox_routes() -> Router<SharedEngine> {
    let all = Router::new().route("/sandbox", post(create::create).get(list::list));
    let one = Router::new()
        .route("/", get(manage::get).delete(manage::delete))
        .route("/start", post(manage::start))
        .route("/stop", post(manage::stop))
        .route("/archive", post(manage::archive))
        .route("/recover", post(manage::recover))
        .route("/snapshot", post(snapshots::of_sandbox))
        .route("/labels", put(manage::labels))
        .route("/secrets", put(manage::secrets))
        .route("/network-settings", post(manage::network))
        .route("/autostop/{minutes}", post(manage::auto_stop))
        .route("/autoarchive/{minutes}", post(manage::auto_archive))
        .route("/autodelete/{minutes}", post(manage::auto_delete))
        .route("/ttl/{minutes}", post(manage::ttl))
        .route("/last-activity", post(manage::last_activity))
        .route("/toolbox-proxy-url", get(manage::toolbox_url));
    let port = Router::new()
        .route("/preview-url", get(previews::preview))
        .route("/signed-preview-url", get(previews::signed))
        .route("/signed-preview-url/{token}/expire", post(previews::expire));
    all.nest("/sandbox/{sandbox}", one).nest("/sandbox/{sandbox}/ports/{port}", port)
}

fn snapshot_routes() -> Router<SharedEngine> {
    let one = Router::new()
        .route("/", get(snapshots::get).delete(snapshots::delete))
        .route("/activate", post(snapshots::activate))
        .route("/deactivate", post(snapshots::deactivate))
        .route("/build-logs-url", get(snapshots::build_logs_url))
        .route("/build-logs", get(snapshots::build_logs));
    Router::new()
        .route("/snapshots", post(snapshots::create).get(snapshots::list))
        .nest("/snapshots/{snapshot}", one)
}

fn secret_routes(confinement: &Confinement) -> Router<SharedEngine> {
    match confinement {
        Confinement::Bubblewrap => Router::new()
            .route("/secret", post(secrets::create))
            .route("/secret/paginated", get(secrets::list))
            .route(
                "/secret/{secret}",
                get(secrets::get).patch(secrets::update).delete(secrets::delete),
            ),
        _ => Router::new()
            .route("/secret", any(secrets::unsupported))
            .route("/secret/{*rest}", any(secrets::unsupported)),
    }
}

fn account_routes() -> Router<SharedEngine> {
    Router::new()
        .route("/config", get(account::config))
        .route("/api-keys/current", get(account::current_key))
        .route("/object-storage/push-access", get(account::push_access))
        .route("/organizations", get(account::organizations))
        .route("/organizations/{organization}/usage", get(account::usage))
}

fn control_routes() -> Router<SharedEngine> {
    let faults = post(control::arm).get(control::faults).delete(control::clear);
    Router::new()
        .route("/clock", post(control::clock))
        .route("/faults", faults)
        .route("/lose", post(control::lose))
        .route("/keys", post(control::add_key).delete(control::revoke_key))
}

async fn unknown(method: Method, uri: Uri) -> ApiError {
    ApiError::new(404, format!("Cannot {method} {}", uri.path()))
}

async fn authorize(State(engine): EngineState, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // The configuration is public; the socket that SDKs try first simply does not exist.
    let open = path == "/api/config" || path.starts_with("/api/socket.io");
    let account = engine.accounts.of(request.headers());
    if let Some(account) = account.or(open.then_some(FIRST)) {
        return as_caller(account, next.run(request)).await;
    }
    ApiError::new(401, "Invalid credentials").into_response()
}
