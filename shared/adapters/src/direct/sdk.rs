//! The AWS SDK over our own connections: one HTTPS stack, one set of connections, and none of the time that the SDK's own
//! takes to read the machine's certificates.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http::header::HOST;
use http::{Request, Response, Uri};
use hyper::body::Bytes;

use super::Direct;
use super::connection::{Broken, Pool};

/// Largest answer: a page of a table, of 16 MB, most characters of it escaped.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

impl Direct {
    /// These connections, for clients of the SDK. The SDK signs and repeats by itself.
    #[must_use]
    pub fn for_sdk(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(Connector(Arc::clone(&self.0.pool)));
        http_client_fn(move |_, _| connector.clone())
    }
}

#[derive(Debug)]
struct Connector(Arc<Pool>);

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let pool = Arc::clone(&self.0);
        HttpConnectorFuture::new(async move { exchange(&pool, request).await })
    }
}

async fn exchange(pool: &Pool, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let unfit = |what: &'static str| ConnectorError::user(what.into());
    let request = request
        .try_into_http1x()
        .map_err(|_| unfit("the request is none of HTTP"))?;
    let (mut parts, body) = request.into_parts();
    let body = body.bytes().map(Bytes::copy_from_slice);
    let body = body.ok_or_else(|| unfit("the body is a stream"))?;
    let uri = std::mem::take(&mut parts.uri);
    let host = uri.authority().and_then(|host| host.as_str().parse().ok());
    parts
        .headers
        .insert(HOST, host.ok_or_else(|| unfit("the address has no host"))?);
    // What stands in the first line of the request.
    let path = uri.path_and_query().cloned();
    parts.uri = path.map(Uri::from).unwrap_or_default();
    let request = Request::from_parts(parts, body);
    let exchange = pool.exchange(&uri, request, ANSWER_BYTES_MAX).await;
    let (status, headers, body) = exchange.map_err(|broken| match broken {
        Broken::Lost => ConnectorError::io(broken.into()),
        Broken::TooLarge => ConnectorError::other(broken.into(), None),
    })?;
    let mut answer = Response::new(SdkBody::from(body));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    HttpResponse::try_from(answer).map_err(|e| ConnectorError::other(e.into(), None))
}
