//! Names of calls: equal for equal steps of two threads.

use axum::extract::Request;

use crate::limits::ID_BYTES_MIN;

/// `dynamodb PutItem` for AWS's JSON protocol, else `SERVICE METHOD /path` with `*` for every id.
pub(crate) fn name(service: &str, request: &Request) -> String {
    let target = request.headers().get("x-amz-target");
    if let Some((api, action)) =
        target.and_then(|target| target.to_str().ok()).and_then(|target| target.split_once('.'))
    {
        let api = api.strip_prefix("Amazon").unwrap_or(api);
        let api = api.split('_').next().unwrap_or(api);
        return format!("{} {action}", api.to_lowercase());
    }
    let path: Vec<&str> =
        request.uri().path().split('/').map(|part| if is_id(part) { "*" } else { part }).collect();
    format!("{service} {} {}", request.method(), path.join("/"))
}

fn is_id(part: &str) -> bool {
    part.len() >= ID_BYTES_MIN && part.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(target: Option<&str>, path: &str) -> String {
        let mut request = axum::http::Request::post(path);
        if let Some(target) = target {
            request = request.header("x-amz-target", target);
        }
        name("chat", &request.body(axum::body::Body::empty()).expect("a valid request"))
    }

    #[test]
    fn call_name_ignores_ids() {
        let path = "/api/v10/channels/1290001112223334445/messages?limit=3";
        assert_eq!(named(None, path), "chat POST /api/v10/channels/*/messages");
        assert_eq!(named(Some("AmazonSQS.SendMessage"), "/"), "sqs SendMessage");
        assert_eq!(named(Some("DynamoDB_20120810.PutItem"), "/"), "dynamodb PutItem");
    }
}
