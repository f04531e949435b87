//! The public ingress address: passes everything to the function URL, unchanged.
//!
//! It also does what the platforms do by themselves: requests that were signed with the development keys and bypass the
//! chat page are registered with the local platforms, so that their token or thread works there.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bobbin_local_chat::LocalChat;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Largest request passed on; the function URL has the same limit.
const BODY_BYTES_MAX: usize = 6 * 1024 * 1024;

/// A running proxy; listens until it is stopped.
pub struct IngressProxy {
    /// Its address, without a trailing slash.
    pub address: String,
    server: JoinHandle<()>,
}

struct Proxied {
    function_url: String,
    client: reqwest::Client,
    chat: Arc<LocalChat>,
}

impl IngressProxy {
    /// Serves on a free loopback port.
    ///
    /// # Errors
    /// The port cannot be bound, or the client cannot be built.
    pub async fn start(function_url: &str, chat: Arc<LocalChat>) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(|e| format!("no loopback port is free for the ingress: {e}"))?;
        let address = format!("http://{}", listener.local_addr().map_err(|e| e.to_string())?);
        let client = crate::loopback::client()?;
        let proxied = Arc::new(Proxied {
            function_url: function_url.trim_end_matches('/').to_owned(),
            client,
            chat,
        });
        let router = Router::new().fallback(forward).with_state(proxied);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the ingress address ended");
            }
        });
        Ok(Self { address, server })
    }

    /// Stops listening; requests in flight are cut off.
    pub fn stop(self) {
        self.server.abort();
    }
}

async fn forward(State(proxied): State<Arc<Proxied>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 6 MB").into_response();
    };
    let target = format!(
        "{}{}",
        proxied.function_url,
        parts.uri.path_and_query().map_or("/", |path| path.as_str())
    );
    let path = parts.uri.path();
    let interaction = (path == "/discord/interactions")
        .then(|| serde_json::from_slice::<Value>(&body).ok())
        .flatten();
    match &interaction {
        Some(interaction) => note(proxied.chat.announce_interaction(interaction)),
        None if path == "/slack/events" => {
            if let Ok(event) = serde_json::from_slice::<Value>(&body) {
                note(proxied.chat.announce_slack(&event));
            }
        }
        None => {}
    }
    let mut headers = parts.headers.clone();
    headers.remove("host");
    let sent =
        proxied.client.request(parts.method, target).headers(headers).body(body).send().await;
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => {
            return (
                StatusCode::BAD_GATEWAY,
                format!("the ingress function does not answer: {}", error.without_url()),
            )
                .into_response();
        }
    };
    let status = answer.status();
    let headers = answer.headers().clone();
    let answered = answer.bytes().await.unwrap_or_default();
    if let Some(interaction) = &interaction {
        note(proxied.chat.adopt_interaction(interaction, status.as_u16(), &answered));
    }
    let mut response = Response::new(Body::from(answered));
    *response.status_mut() = status;
    let passed = headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
    let hop = [
        HeaderName::from_static("transfer-encoding"),
        HeaderName::from_static("connection"),
        HeaderName::from_static("content-length"),
    ];
    response.headers_mut().extend(passed.filter(|(name, _)| !hop.contains(name)));
    response
}

fn note<T, E: std::fmt::Display>(made_known: Result<T, E>) {
    if let Err(error) = made_known {
        tracing::warn!(%error, "a request from outside could not be announced to the local platforms");
    }
}
