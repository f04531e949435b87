//! The address that the world knows as ingress: passes everything to the function URL, unread.
//!
//! It does one thing more, which Discord's side does by itself: an interaction that somebody signed and sent with the
//! development key, past the chat page, becomes known to the local Discord, so that its token works there.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bobbin_local_chat::Chat;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Largest request that is passed on; the function URL has the same bound.
const BODY_BYTES_MAX: usize = 6 * 1024 * 1024;

/// The running front.
pub struct Front {
    /// Its address, without a slash at the end.
    pub address: String,
    server: JoinHandle<()>,
}

struct Passing {
    function_url: String,
    client: reqwest::Client,
    chat: Arc<Chat>,
}

impl Front {
    /// Serves on a free loopback port.
    ///
    /// # Errors
    /// What could not be bound or built.
    pub async fn start(function_url: &str, chat: Arc<Chat>) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(|e| format!("no loopback port is free for the ingress: {e}"))?;
        let address = format!("http://{}", listener.local_addr().map_err(|e| e.to_string())?);
        let client = crate::stack::loopback_client()?;
        let passing = Arc::new(Passing { function_url: function_url.trim_end_matches('/').to_owned(), client, chat });
        let router = Router::new().fallback(pass).with_state(passing);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the ingress address ended");
            }
        });
        Ok(Self { address, server })
    }

    /// Ends it.
    pub fn stop(self) {
        self.server.abort();
    }
}

async fn pass(State(passing): State<Arc<Passing>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 6 MB").into_response();
    };
    let target = format!("{}{}", passing.function_url, parts.uri.path_and_query().map_or("/", |path| path.as_str()));
    let mut headers = parts.headers;
    headers.remove("host");
    let sent = passing.client.request(parts.method, target).headers(headers).body(body.clone()).send().await;
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => return (StatusCode::BAD_GATEWAY, format!("the ingress function does not answer: {}", error.without_url())).into_response(),
    };
    let status = answer.status();
    let headers = answer.headers().clone();
    let answered = answer.bytes().await.unwrap_or_default();
    if parts.uri.path() == "/discord/interactions" && status.is_success() {
        adopt(&passing, &body, status.as_u16(), &answered);
    }
    let mut response = Response::new(Body::from(answered));
    *response.status_mut() = status;
    let passed = headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
    let hop = [HeaderName::from_static("transfer-encoding"), HeaderName::from_static("connection"), HeaderName::from_static("content-length")];
    response.headers_mut().extend(passed.filter(|(name, _)| !hop.contains(name)));
    response
}

fn adopt(passing: &Passing, interaction: &Bytes, status: u16, answer: &[u8]) {
    let Ok(interaction) = serde_json::from_slice::<serde_json::Value>(interaction) else { return };
    if let Err(error) = passing.chat.adopt_interaction(&interaction, status, answer) {
        tracing::warn!(%error, "an interaction from outside could not be made known to the local Discord");
    }
}
