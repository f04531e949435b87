//! HTTP to the stack's own services.

use std::sync::Arc;
use std::time::Duration;

/// Time limit of one call on loopback.
const CALL_MS_MAX: u64 = 15_000;

/// A client for services on loopback.
///
/// # Errors
/// It cannot be built.
pub fn client() -> Result<reqwest::Client, String> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .map_err(|e| e.to_string())?
    .with_root_certificates(rustls::RootCertStore::empty())
    .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_millis(CALL_MS_MAX))
        .build()
        .map_err(|e| format!("the HTTP client could not be created: {e}"))
}
