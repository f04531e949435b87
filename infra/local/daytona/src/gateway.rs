//! Puts the values of secrets into requests that leave a sandbox for the hosts that they are for.
//!
//! What stands for a value in any header is replaced, by the host that the connection was asked for: a request that names
//! another one inside is refused. Connections by TLS to such a host are opened ([`crate::tls`]), with an authority of the
//! provider's own that the sandbox is told to trust; all others go through as they are. Deliberately absent: values in
//! bodies and addresses, HTTP/2, and WebSockets to such hosts.

use std::sync::Arc;

use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::tls::Stream;

/// What stands for a value, and the value.
pub(crate) type Substitution = (String, String);
/// What a host's requests from one sandbox get, as it is now.
pub(crate) type Substitutions = Arc<dyn Fn(&str) -> Vec<Substitution> + Send + Sync>;

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

/// Asks a host, with the values in place of what stands for them.
pub(crate) async fn send<S: Stream>(
    outer: S,
    host: &Authority,
    mut request: Request<Incoming>,
    substitutions: &[Substitution],
) -> Response<Body> {
    let unreachable = || text_response(StatusCode::BAD_GATEWAY, "The host did not answer.");
    let named = request.headers().get(header::HOST);
    let named = named.and_then(|name| name.to_str().ok()?.parse::<Authority>().ok());
    let is_it = named
        .as_ref()
        .is_some_and(|named| named.host().eq_ignore_ascii_case(host.host()));
    // Hosts that share their addresses with others answer to the name inside.
    if !substitutions.is_empty() && named.is_some() && !is_it {
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
    for value in request.headers_mut().values_mut() {
        substitute(value, substitutions);
    }
    match sender.send_request(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(_) => unreachable(),
    }
}

fn substitute(header: &mut HeaderValue, substitutions: &[Substitution]) {
    let Ok(text) = header.to_str() else {
        return;
    };
    let mut filled = text.to_owned();
    for (placeholder, value) in substitutions {
        filled = filled.replace(placeholder.as_str(), value);
    }
    if filled != text
        && let Ok(mut value) = HeaderValue::from_str(&filled)
    {
        value.set_sensitive(true);
        *header = value;
    }
}

pub(crate) fn text_response(status: StatusCode, words: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::from(words));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stands_where_its_placeholder_did_and_nowhere_else() {
        let substitutions = [("dtn_secret_one".to_owned(), "sk-one".to_owned())];
        for (sent, becomes) in [
            ("Bearer dtn_secret_one", "Bearer sk-one"),
            ("dtn_secret_one", "sk-one"),
            ("Bearer dtn_secret_two", "Bearer dtn_secret_two"),
        ] {
            let mut header = HeaderValue::from_static(sent);
            substitute(&mut header, &substitutions);
            assert_eq!(header, becomes);
            assert_eq!(header.is_sensitive(), sent != becomes);
        }
    }
}
