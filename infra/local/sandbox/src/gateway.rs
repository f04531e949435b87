//! Rewrites the headers of requests that leave a sandbox, by host: above all, inserts secret values.
//!
//! A provider's [`Treatment`] of a host is looked up by the connection's target: a request that names another host
//! inside it is refused. TLS connections to such a host are intercepted ([`crate::tls`]), with the provider's own
//! authority, which the sandbox trusts; all others pass through unchanged. Deliberately absent: changes of bodies and
//! addresses, HTTP/2, and WebSockets to such hosts.

use std::sync::Arc;

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::tls::ByteStream;

/// A rewrite of a request's headers.
pub trait HeaderRule: Send + Sync {
    /// Changes the headers it is for; leaves the rest alone.
    fn apply(&self, method: &Method, path: &Uri, headers: &mut HeaderMap);
}

/// Headers in which services accept keys: nothing is inserted into others, which may end up in a log or an answer.
const KEY_HEADERS: [HeaderName; 3] = [
    header::AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// Replaces a placeholder by its value in headers for keys ([`KEY_HEADERS`]).
pub struct Substitution {
    /// Placeholder seen inside.
    pub placeholder: String,
    /// Value for the host.
    pub value: String,
}

impl HeaderRule for Substitution {
    fn apply(&self, _: &Method, _: &Uri, headers: &mut HeaderMap) {
        for (_, header) in headers.iter_mut().filter(|(name, _)| KEY_HEADERS.contains(name)) {
            if let Ok(text) = header.to_str()
                && text.contains(&self.placeholder)
                && let Ok(mut filled) =
                    HeaderValue::from_str(&text.replace(&self.placeholder, &self.value))
            {
                filled.set_sensitive(true);
                *header = filled;
            }
        }
    }
}

/// Treatment of a sandbox's requests to a host.
pub enum Treatment {
    /// Passed through unread.
    Pass,
    /// Read and rewritten by these rules, in order.
    Rules(Vec<Box<dyn HeaderRule>>),
    /// Refused.
    Refuse,
}

impl Treatment {
    /// The treatment for these rules; without rules, requests pass unread.
    #[must_use]
    pub fn of(rules: Vec<Box<dyn HeaderRule>>) -> Self {
        if rules.is_empty() { Self::Pass } else { Self::Rules(rules) }
    }
}

/// The current treatment of a sandbox's requests, by host.
pub type Treatments = Arc<dyn Fn(&str) -> Treatment + Send + Sync>;

/// Answers the requests of a connection until it ends.
pub(crate) async fn serve<S, F, A>(stream: S, answer: F)
where
    S: ByteStream,
    F: Fn(Request<Incoming>) -> A + Send + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A client that disconnects is not the provider's error.
    let _ = connection.await;
}

/// Sends a request to a host with rewritten headers.
pub(crate) async fn send<S: ByteStream>(
    outer: S,
    host: &Authority,
    mut request: Request<Incoming>,
    rules: &[Box<dyn HeaderRule>],
) -> Response<Body> {
    let unreachable = || text_response(StatusCode::BAD_GATEWAY, "The host did not answer.");
    let named = request.headers().get(header::HOST);
    let named = named.and_then(|name| name.to_str().ok()?.parse::<Authority>().ok());
    let is_it = named.as_ref().is_some_and(|named| named.host().eq_ignore_ascii_case(host.host()));
    // Hosts that share an address answer to the name inside the request.
    if !rules.is_empty() && named.is_some() && !is_it {
        return text_response(
            StatusCode::MISDIRECTED_REQUEST,
            "The request names another host than its connection.",
        );
    }
    let Ok((mut sender, connection)) =
        hyper::client::conn::http1::handshake(TokioIo::new(outer)).await
    else {
        return unreachable();
    };
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |at| at.as_str());
    let Ok(path) = path.parse::<Uri>() else {
        return unreachable();
    };
    *request.uri_mut() = path;
    if !is_it && let Ok(host) = HeaderValue::from_str(host.as_str()) {
        request.headers_mut().insert(header::HOST, host);
    }
    for own in [
        HeaderName::from_static("proxy-connection"),
        header::PROXY_AUTHORIZATION,
        header::CONNECTION,
    ] {
        request.headers_mut().remove(own);
    }
    let (mut head, body) = request.into_parts();
    for rule in rules {
        rule.apply(&head.method, &head.uri, &mut head.headers);
    }
    let request = Request::from_parts(head, body);
    match sender.send_request(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(_) => unreachable(),
    }
}

/// A short answer of the gateway itself.
pub(crate) fn text_response(status: StatusCode, words: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(words));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_is_replaced_only_in_credentials() {
        let one = Substitution { placeholder: "secret_one".to_owned(), value: "sk-one".to_owned() };
        for (name, sent, becomes) in [
            ("authorization", "Bearer secret_one", "Bearer sk-one"),
            ("x-api-key", "secret_one", "sk-one"),
            ("x-goog-api-key", "secret_one", "sk-one"),
            ("authorization", "Bearer secret_two", "Bearer secret_two"),
            ("x-debug", "secret_one", "secret_one"),
            ("cookie", "key=secret_one", "key=secret_one"),
            ("user-agent", "secret_one", "secret_one"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(sent));
            one.apply(&Method::GET, &Uri::from_static("/"), &mut headers);
            let header = &headers[name];
            assert_eq!(header, becomes);
            assert_eq!(header.is_sensitive(), sent != becomes);
        }
    }
}
