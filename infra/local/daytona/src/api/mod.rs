//! The HTTP surface: the control API below `/api`, the toolbox below `/toolbox/{id}`, a test's controls below
//! `/_control`. Anything else is 404 `Cannot METHOD path`.

mod account;
mod control;
mod create;
mod list;
mod manage;
mod previews;
mod shelf;
mod snapshots;

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post, put};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::confine::Confinement;
use crate::fail::{self, Fail};
use crate::faults::Fault;
use crate::lifecycle;
use crate::limits::BODY_BYTES_MAX;
use crate::serve::Cut;
use crate::shared::Context;
use crate::toolbox;

pub(crate) use snapshots::stock;

/// What a handler answers.
pub(crate) type Answer = Result<Response, Fail>;

/// The whole surface.
pub(crate) fn router(shared: &Context) -> Router {
    let sandbox = Router::new()
        .route("/sandbox", post(create::create).get(list::list))
        .route(
            "/sandbox/{sandbox}",
            get(manage::get).delete(manage::delete),
        )
        .route("/sandbox/{sandbox}/start", post(manage::start))
        .route("/sandbox/{sandbox}/stop", post(manage::stop))
        .route("/sandbox/{sandbox}/archive", post(manage::archive))
        .route("/sandbox/{sandbox}/recover", post(manage::recover))
        .route("/sandbox/{sandbox}/labels", put(manage::labels))
        .route("/sandbox/{sandbox}/secrets", put(manage::secrets))
        .route(
            "/sandbox/{sandbox}/autostop/{minutes}",
            post(manage::auto_stop),
        )
        .route(
            "/sandbox/{sandbox}/autoarchive/{minutes}",
            post(manage::auto_archive),
        )
        .route(
            "/sandbox/{sandbox}/autodelete/{minutes}",
            post(manage::auto_delete),
        )
        .route("/sandbox/{sandbox}/ttl/{minutes}", post(manage::ttl))
        .route(
            "/sandbox/{sandbox}/last-activity",
            post(manage::last_activity),
        )
        .route(
            "/sandbox/{sandbox}/toolbox-proxy-url",
            get(manage::toolbox_url),
        )
        .route(
            "/sandbox/{sandbox}/ports/{port}/preview-url",
            get(previews::preview),
        )
        .route(
            "/sandbox/{sandbox}/ports/{port}/signed-preview-url",
            get(previews::signed),
        )
        .route(
            "/sandbox/{sandbox}/ports/{port}/signed-preview-url/{token}/expire",
            post(previews::expire),
        );
    let shelf = Router::new()
        .route(
            "/snapshots",
            post(snapshots::create_snapshot).get(snapshots::list_snapshots),
        )
        .route(
            "/snapshots/{snapshot}",
            get(snapshots::get_snapshot).delete(snapshots::delete_snapshot),
        )
        .route(
            "/snapshots/{snapshot}/activate",
            post(snapshots::activate_snapshot),
        )
        .route(
            "/snapshots/{snapshot}/deactivate",
            post(snapshots::deactivate_snapshot),
        )
        .route(
            "/snapshots/{snapshot}/build-logs-url",
            get(snapshots::build_logs_url),
        )
        .route(
            "/snapshots/{snapshot}/build-logs",
            get(snapshots::build_logs),
        )
        .route("/api-keys/current", get(account::current_key))
        .route("/organizations", get(account::organizations))
        .route("/organizations/{organization}/usage", get(account::usage));
    let secrets = match shared.confinement {
        Confinement::Bubblewrap => Router::new()
            .route("/secret", post(shelf::create_secret))
            .route("/secret/paginated", get(shelf::list_secrets))
            .route(
                "/secret/{secret}",
                get(shelf::get_secret)
                    .patch(shelf::update_secret)
                    .delete(shelf::delete_secret),
            ),
        _ => Router::new()
            .route("/secret", any(shelf::no_secrets))
            .route("/secret/{*rest}", any(shelf::no_secrets)),
    };
    let limited = DefaultBodyLimit::max(BODY_BYTES_MAX);
    let control = Router::new()
        .route("/clock", post(control::clock))
        .route(
            "/faults",
            post(control::arm)
                .get(control::faults)
                .delete(control::clear),
        )
        .route("/lose", post(control::lose));
    Router::new()
        .nest(
            "/api",
            sandbox
                .merge(shelf)
                .merge(secrets)
                .route("/config", get(shelf::config))
                .layer(limited),
        )
        .nest("/_control", control.layer(limited))
        .nest("/toolbox/{sandbox}", toolbox::router())
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(from_fn_with_state(shared.clone(), misbehave))
        .layer(from_fn_with_state(shared.clone(), authorize))
        .layer(from_fn(fail::shape))
        .with_state(shared.clone())
}

/// A body of JSON; none at all counts as an empty object.
pub(crate) fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Fail> {
    let text: &[u8] = if body.iter().all(u8::is_ascii_whitespace) {
        b"{}"
    } else {
        body
    };
    serde_json::from_slice(text)
        .map_err(|error| Fail::bad(format!("the body is not as expected: {error}")))
}

/// Reports whether the request carries the key. Hashes are compared, so that time tells nothing about the key.
pub(crate) fn has_key(shared: &Context, headers: &HeaderMap) -> bool {
    let sent = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let sent = sent
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    Sha256::digest(sent.as_bytes()) == Sha256::digest(shared.api_key.as_bytes())
}

async fn unknown(method: Method, uri: Uri) -> Fail {
    Fail::new(404, format!("Cannot {method} {}", uri.path()))
}

async fn authorize(State(shared): State<Context>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // The configuration is public; the socket that SDKs try first is simply not there.
    let open = path == "/api/config" || path.starts_with("/api/socket.io");
    if open || has_key(&shared, request.headers()) {
        return next.run(request).await;
    }
    Fail::new(401, "Invalid credentials").into_response()
}

/// The word by which faults name a call, and the sandbox that it is about.
pub(crate) fn operation(method: &Method, path: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (word, sandbox) = match parts.as_slice() {
        ["api", "sandbox"] => (
            if *method == Method::POST {
                "create"
            } else {
                "list"
            },
            None,
        ),
        ["api", "sandbox", id] => (
            if *method == Method::DELETE {
                "delete"
            } else {
                "get"
            },
            Some(*id),
        ),
        ["api", "sandbox", id, "ports", _, word, ..] | ["api", "sandbox", id, word, ..] => {
            (*word, Some(*id))
        }
        ["toolbox", id, "process", "execute"] => ("exec", Some(*id)),
        ["toolbox", id, "process", word, ..] | ["toolbox", id, word, ..] => (*word, Some(*id)),
        ["api", word, ..] => (*word, None),
        _ => ("", None),
    };
    (word.to_owned(), sandbox.map(str::to_owned))
}

async fn misbehave(State(shared): State<Context>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path.starts_with("/_control") {
        return next.run(request).await;
    }
    let (word, sandbox) = operation(request.method(), path);
    let names = sandbox
        .as_deref()
        .map(|sandbox| shared.names(sandbox))
        .unwrap_or_default();
    let meant = |operation: &str| operation == "*" || operation == word;

    let vanish = shared.faults.take(&names, |fault| {
        matches!(fault, Fault::Vanish { operation } if meant(operation)).then_some(())
    });
    if let (Some(()), Some(id)) = (vanish, names.first()) {
        lifecycle::lose(&shared, id).await;
    }
    let before = shared.faults.take(&names, |fault| match fault {
        Fault::Answer {
            operation,
            status,
            retry_after,
        } if meant(operation) => {
            let mut fail = Fail::new(
                *status,
                if *status == 429 {
                    "Rate limit exceeded"
                } else {
                    "an armed fault"
                },
            );
            fail.retry_after = *retry_after;
            Some(fail.into_response())
        }
        Fault::Html { operation, status } if meant(operation) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
            let headers = [(header::CONTENT_TYPE, "text/html")];
            Some(
                (
                    status,
                    headers,
                    "<html><body><h1>Bad Gateway</h1></body></html>",
                )
                    .into_response(),
            )
        }
        Fault::RunnerInfo if path.starts_with("/toolbox/") => {
            Some(runner_info(&names).into_response())
        }
        _ => None,
    });
    if let Some(answer) = before {
        return answer;
    }
    let connection = request
        .extensions()
        .get::<ConnectInfo<Cut>>()
        .map(|ConnectInfo(cut)| cut.clone());
    let response = next.run(request).await;
    let delay = shared.faults.take(&names, |fault| match fault {
        Fault::Delay { operation, ms } if meant(operation) => Some(*ms),
        _ => None,
    });
    if let Some(ms) = delay {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let dropped = shared.faults.take(&names, |fault| {
        matches!(fault, Fault::Drop { operation } if meant(operation)).then_some(())
    });
    if let (Some(()), Some(connection)) = (dropped, connection) {
        connection.cut();
    }
    response
}

/// The proxy's complaint when its cache of where sandboxes live is stale.
pub(crate) fn runner_info(names: &[String]) -> Fail {
    let id = names.first().map_or("?", String::as_str);
    Fail::bad(format!(
        "bad request: failed to get runner info: sandbox {id}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_find_their_calls_by_word() {
        let cases = [
            (Method::POST, "/api/sandbox", "create", None),
            (Method::GET, "/api/sandbox", "list", None),
            (Method::GET, "/api/sandbox/a", "get", Some("a")),
            (Method::DELETE, "/api/sandbox/a", "delete", Some("a")),
            (Method::POST, "/api/sandbox/a/stop", "stop", Some("a")),
            (
                Method::GET,
                "/api/sandbox/a/ports/4096/preview-url",
                "preview-url",
                Some("a"),
            ),
            (
                Method::POST,
                "/toolbox/a/process/execute",
                "exec",
                Some("a"),
            ),
            (
                Method::POST,
                "/toolbox/a/files/bulk-upload",
                "files",
                Some("a"),
            ),
            (Method::GET, "/api/snapshots/x", "snapshots", None),
        ];
        for (method, path, word, sandbox) in cases {
            assert_eq!(
                operation(&method, path),
                (word.to_owned(), sandbox.map(str::to_owned)),
                "{path}"
            );
        }
    }
}
