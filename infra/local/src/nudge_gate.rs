//! The only path of the stack that sandboxes can reach: their daemons' nudges, passed to the ingress function.
//! Everything else is not found.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use bobbin_core::tokens::nudge;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running gate; listens until it is stopped.
pub struct NudgeGate {
    /// URL for the daemons.
    pub url: String,
    to: Arc<Passage>,
    server: JoinHandle<()>,
}

struct Passage {
    client: reqwest::Client,
    /// URL of the function, once known.
    function_url: OnceLock<String>,
}

impl NudgeGate {
    /// Listens on a free loopback port. Passes nothing on before [`NudgeGate::open`].
    ///
    /// # Errors
    /// The port cannot be bound, or the client cannot be built.
    pub async fn start() -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(|e| format!("no loopback port is free for nudges: {e}"))?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let to =
            Arc::new(Passage { client: crate::loopback::client()?, function_url: OnceLock::new() });
        let router = Router::new().route(nudge::PATH, post(pass)).with_state(Arc::clone(&to));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the nudge gate ended");
            }
        });
        let url = format!("http://{address}{}", nudge::PATH);
        Ok(Self { url, to, server })
    }

    /// From now on nudges are passed to the function at this address.
    pub fn open(&self, function_url: &str) {
        let base = function_url.trim_end_matches('/');
        // The first address stays; there is one function.
        let _ = self.to.function_url.set(format!("{base}{}", nudge::PATH));
    }

    /// Stops listening; requests in flight are cut off.
    pub fn stop(self) {
        self.server.abort();
    }
}

/// Passes on the authorization header, and nothing else of the request.
async fn pass(State(to): State<Arc<Passage>>, headers: HeaderMap) -> StatusCode {
    let Some(url) = to.function_url.get() else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let mut request = to.client.post(url);
    if let Some(said) = headers.get(header::AUTHORIZATION) {
        request = request.header(header::AUTHORIZATION, said);
    }
    match request.send().await {
        Ok(answer) => answer.status(),
        Err(_) => StatusCode::BAD_GATEWAY,
    }
}
