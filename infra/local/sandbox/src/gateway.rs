//! Changes the headers of requests that leave a sandbox, by the host that they are for: above all, values of secrets come in.
//!
//! What a provider says of a host ([`Treatment`]) is looked up by the host that the connection was asked for: a request that
//! names another one inside is refused. Connections by TLS to such a host are opened ([`crate::tls`]), with an authority of the
//! provider's own that the sandbox is told to trust; all others go through as they are. Deliberately absent: changes of
//! bodies and addresses, HTTP/2, and WebSockets to such hosts.

use std::sync::Arc;

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::tls::Stream;

/// A change of a request's headers.
pub trait HeaderRule: Send + Sync {
    /// Changes what it is for; everything else stays as it is.
    fn apply(&self, method: &Method, path: &Uri, headers: &mut HeaderMap);
}

/// The headers in which services take keys: nothing is put into another one, which may end in a log or an answer.
const KEY_HEADERS: [HeaderName; 3] = [
    header::AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// What stands for a value in a header in which keys are sent ([`KEY_HEADERS`]) becomes the value.
pub struct Substitution {
    /// What a process inside sees.
    pub placeholder: String,
    /// What the host gets.
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

/// What becomes of a sandbox's requests to a host.
pub enum Treatment {
    /// They go through unread.
    Pass,
    /// They are read, and these rules applied one after the other.
    Rules(Vec<Box<dyn HeaderRule>>),
    /// They do not leave.
    Refuse,
}

impl Treatment {
    /// These rules; without any, requests go through unread.
    #[must_use]
    pub fn of(rules: Vec<Box<dyn HeaderRule>>) -> Self {
        if rules.is_empty() { Self::Pass } else { Self::Rules(rules) }
    }
}

/// What becomes of one sandbox's requests, by host, as it is now.
pub type Treatments = Arc<dyn Fn(&str) -> Treatment + Send + Sync>;

/// Answers the requests of a connection until it ends.
pub(crate) async fn serve<S, F, A>(stream: S, answer: F)
where
    S: Stream,
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
    // A client that goes away is no matter of the provider's.
    let _ = connection.await;
}

/// Asks a host, with the headers that the rules make.
pub(crate) async fn send<S: Stream>(
    outer: S,
    host: &Authority,
    mut request: Request<Incoming>,
    rules: &[Box<dyn HeaderRule>],
) -> Response<Body> {
    let unreachable = || text_response(StatusCode::BAD_GATEWAY, "The host did not answer.");
    let named = request.headers().get(header::HOST);
    let named = named.and_then(|name| name.to_str().ok()?.parse::<Authority>().ok());
    let is_it = named.as_ref().is_some_and(|named| named.host().eq_ignore_ascii_case(host.host()));
    // Hosts that share their addresses with others answer to the name inside.
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

/// An answer of this end's own, in a few words.
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
