//! The engine's ports.

use std::collections::BTreeMap;

use tokio::net::TcpListener;

use super::error::EngineError;
use crate::template::Template;

/// A listener for each function with a URL, by logical id.
pub(super) type UrlListeners = Vec<(String, TcpListener)>;

/// Listens for function URLs; returns the listeners and the URLs. The first one gets the requested port.
pub(super) async fn listen_for_urls(
    template: &Template,
    ingress_port: u16,
) -> Result<(UrlListeners, BTreeMap<String, String>), EngineError> {
    let mut listeners = Vec::new();
    let mut urls = BTreeMap::new();
    let mut port = ingress_port;
    for logical_id in template.functions_with_url() {
        let listener = listen(port).await?;
        port = 0;
        urls.insert(logical_id.clone(), format!("http://{}/", address(&listener)?));
        listeners.push((logical_id, listener));
    }
    Ok((listeners, urls))
}

/// Listens on a loopback port; 0 picks a free one.
pub(super) async fn listen(port: u16) -> Result<TcpListener, EngineError> {
    TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| EngineError::Port { port, error })
}

/// Host and port of a listener.
pub(super) fn address(listener: &TcpListener) -> Result<String, EngineError> {
    let address = listener.local_addr().map_err(|error| EngineError::Port { port: 0, error })?;
    Ok(address.to_string())
}
