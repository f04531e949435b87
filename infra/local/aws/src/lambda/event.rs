//! Events for functions, in AWS's format.

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::query::Query;
use crate::sqs::Received;

/// Records of one batch from a queue.
pub(crate) fn sqs_event(queue_arn: &str, region: &str, batch: &[Received]) -> Bytes {
    let records: Vec<Value> = batch
        .iter()
        .map(|message| {
            let attributes: Map<String, Value> = message
                .message_attributes
                .iter()
                .map(|(name, attribute)| {
                    let mut value = json!({
                        "dataType": attribute.data_type,
                        "stringListValues": [],
                        "binaryListValues": [],
                    });
                    if let Some(text) = &attribute.string_value {
                        value["stringValue"] = json!(text);
                    }
                    if let Some(base64) = &attribute.binary_value {
                        value["binaryValue"] = json!(base64);
                    }
                    (name.clone(), value)
                })
                .collect();
            json!({
                "messageId": message.id,
                "receiptHandle": message.receipt,
                "body": message.body,
                "attributes": message.system_attributes,
                "messageAttributes": attributes,
                "md5OfBody": format!("{:x}", md5::compute(&message.body)),
                "eventSource": "aws:sqs",
                "eventSourceARN": queue_arn,
                "awsRegion": region,
            })
        })
        .collect();
    json!({ "Records": records }).to_string().into()
}

/// A request to a function URL.
pub(crate) struct UrlRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    pub(crate) source_ip: &'a str,
    /// Host and port of the URL's listener.
    pub(crate) domain: &'a str,
    pub(crate) now_ms: i64,
    pub(crate) request_id: &'a str,
}

/// A request in payload format 2.0.
pub(crate) fn url_event(request: &UrlRequest<'_>) -> Bytes {
    let path = request.uri.path();
    let query = request.uri.query().unwrap_or_default();
    let header = |name: header::HeaderName| {
        request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let port = request.domain.rsplit(':').next().unwrap_or_default();
    let mut headers = joined_headers(request.headers);
    headers.insert("x-forwarded-for".to_owned(), json!(request.source_ip));
    headers.insert("x-forwarded-port".to_owned(), json!(port));
    headers.insert("x-forwarded-proto".to_owned(), json!("http"));
    let time = DateTime::<Utc>::from_timestamp_millis(request.now_ms).unwrap_or_default();
    let mut event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "local",
            "domainName": request.domain,
            "domainPrefix": "local",
            "http": {
                "method": request.method.as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.source_ip,
                "userAgent": header(header::USER_AGENT),
            },
            "requestId": request.request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": time.format("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": request.now_ms,
        },
        "isBase64Encoded": false,
    });
    let cookies = cookies(request.headers);
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    let parameters = Query::parse(query).joined();
    if !parameters.is_empty() {
        event["queryStringParameters"] = json!(parameters);
    }
    if !request.body.is_empty() {
        let (body, is_base64) = encoded(request.body, header(header::CONTENT_TYPE));
        event["isBase64Encoded"] = json!(is_base64);
        event["body"] = json!(body);
    }
    event.to_string().into()
}

/// An event's body, and whether it is base64.
fn encoded(body: &[u8], content_type: &str) -> (String, bool) {
    match std::str::from_utf8(body) {
        Ok(text) if is_text(content_type) => (text.to_owned(), false),
        _ => (STANDARD.encode(body), true),
    }
}

fn cookies(headers: &HeaderMap) -> Vec<&str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split("; "))
        .collect()
}

/// Content types whose body is passed as text; everything else is base64, including forms.
fn is_text(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || ["application/json", "application/javascript", "application/xml"]
            .contains(&kind.as_str())
}

fn joined_headers(headers: &HeaderMap) -> Map<String, Value> {
    headers
        .keys()
        .filter(|name| **name != header::COOKIE)
        .map(|name| {
            let values: Vec<_> = headers
                .get_all(name)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
                .collect();
            (name.as_str().to_owned(), json!(values.join(",")))
        })
        .collect()
}
