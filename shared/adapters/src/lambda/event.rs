//! The events that the functions are invoked with, as far as they read them: a request of a function URL (payload format
//! 2.0), records of a queue, and a schedule's tick. What else is in them is left out.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_core::wire::HttpAnswer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A request to a function URL. Its texts are borrowed from the event where they stand there unescaped.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UrlRequest<'a> {
    #[serde(borrow)]
    raw_path: Cow<'a, str>,
    #[serde(borrow)]
    request_context: Context<'a>,
    #[serde(borrow, default)]
    headers: Headers<'a>,
    #[serde(borrow, default)]
    body: Option<Text<'a>>,
    #[serde(default)]
    is_base64_encoded: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Context<'a> {
    #[serde(borrow)]
    http: Http<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Http<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
}

impl UrlRequest<'_> {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.request_context.http.method
    }

    /// Its path, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.raw_path
    }

    /// The value of a header, which may be several values that Lambda has joined by commas.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let Headers(headers) = &self.headers;
        let mut named = headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_ref())
    }

    /// Its body as it came; none, if Lambda says that it is base64 and it is not.
    #[must_use]
    pub fn body(&self) -> Option<Cow<'_, [u8]>> {
        let body = self.body.as_ref().map_or("", |Text(body)| body);
        match self.is_base64_encoded {
            true => STANDARD.decode(body).ok().map(Cow::Owned),
            false => Some(Cow::Borrowed(body.as_bytes())),
        }
    }
}

/// In the order in which they came: a look at a few is quicker than a table of all.
#[derive(Debug, Default)]
struct Headers<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Headers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Headers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Headers<'de>, M::Error> {
                let mut pairs = Vec::with_capacity(24);
                while let Some((Text(name), Text(value))) = map.next_entry()? {
                    pairs.push((name, value));
                }
                Ok(Headers(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Within anything else, a `Cow` would always be copied.
#[derive(Debug, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// What a function URL is answered with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UrlAnswer {
    status_code: u16,
    headers: AnswerHeaders,
    body: String,
    is_base64_encoded: bool,
}

#[derive(Debug, Serialize)]
struct AnswerHeaders {
    #[serde(rename = "content-type")]
    content_type: &'static str,
}

impl From<HttpAnswer> for UrlAnswer {
    fn from(answer: HttpAnswer) -> Self {
        Self {
            status_code: answer.status,
            headers: AnswerHeaders {
                content_type: answer.content_type,
            },
            body: answer.body,
            is_base64_encoded: false,
        }
    }
}

/// Messages of a queue.
#[derive(Debug, Default, Deserialize)]
pub struct SqsEvent {
    /// As many as the mapping's batch size at most.
    #[serde(rename = "Records")]
    pub records: Vec<SqsMessage>,
}

/// One message of a queue, in one of its deliveries.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsMessage {
    /// The queue's own id of it.
    #[serde(default)]
    pub message_id: Option<String>,
    /// Names this delivery.
    #[serde(default)]
    pub receipt_handle: Option<String>,
    /// What was sent.
    #[serde(default)]
    pub body: Option<String>,
    /// Such as `ApproximateReceiveCount` and `MessageGroupId`.
    #[serde(default)]
    pub attributes: HashMap<String, String>,
    /// The queue.
    #[serde(default, rename = "eventSourceARN")]
    pub event_source_arn: Option<String>,
}

/// Which of a batch were not done (`ReportBatchItemFailures`).
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsAnswer {
    batch_item_failures: Vec<Item>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    item_identifier: String,
}

impl SqsAnswer {
    /// This message, by the queue's own id, comes again.
    pub fn give_back(&mut self, message_id: String) {
        self.batch_item_failures.push(Item {
            item_identifier: message_id,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_as_the_url_gives_it() {
        let event = r#"{"version":"2.0","rawPath":"/slack/commands","rawQueryString":"a=b","cookies":["a=1"],
            "headers":{"X-Slack-Signature":"v0=1","x-forwarded-for":"192.0.2.1,192.0.2.2","x-odd":"\u00e9\""},
            "requestContext":{"accountId":"anonymous","http":{"method":"POST","path":"/slack/commands"},"timeEpoch":1},
            "body":"a=1&b=%22","isBase64Encoded":false}"#;
        let request: UrlRequest<'_> = serde_json::from_str(event).expect("an event");
        assert_eq!(
            (request.method(), request.path()),
            ("POST", "/slack/commands")
        );
        assert_eq!(request.header("x-slack-signature"), Some("v0=1"));
        assert_eq!(
            request.header("X-Forwarded-For"),
            Some("192.0.2.1,192.0.2.2")
        );
        assert_eq!(request.header("x-odd"), Some("é\""));
        assert_eq!(request.header("x-none"), None);
        assert_eq!(request.body().as_deref(), Some(&b"a=1&b=%22"[..]));
        let Headers(headers) = &request.headers;
        let is_borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        assert!(is_borrowed(&headers[1].0) && is_borrowed(&headers[1].1));
    }

    #[test]
    fn a_body_in_base64_is_what_it_stands_for() {
        let read = |body: &str| {
            let event = json!({"rawPath": "/", "requestContext": {"http": {"method": "POST"}}, "body": body, "isBase64Encoded": true})
                .to_string();
            let request: UrlRequest<'_> = serde_json::from_str(&event).expect("an event");
            request.body().map(Cow::into_owned)
        };
        assert_eq!(read("AP8="), Some(vec![0, 255]));
        assert_eq!(read("no base64!"), None);
    }

    #[test]
    fn a_request_may_have_no_body_and_no_headers() {
        for event in [
            json!({"rawPath": "/health", "requestContext": {"http": {"method": "GET"}}}),
            json!({"rawPath": "/health", "requestContext": {"http": {"method": "GET"}}, "body": null, "headers": {}}),
        ] {
            let event = event.to_string();
            let request: UrlRequest<'_> = serde_json::from_str(&event).expect("an event");
            assert_eq!(request.body().as_deref(), Some(&b""[..]));
        }
    }

    #[test]
    fn an_answer_is_told_as_the_url_wants_it() {
        let answer = UrlAnswer::from(HttpAnswer::text(401, "no \"entry\""));
        assert_eq!(
            json!(answer),
            json!({"statusCode": 401, "headers": {"content-type": "text/plain; charset=utf-8"}, "body": "no \"entry\"",
                "isBase64Encoded": false})
        );
    }

    #[test]
    fn records_are_read_as_the_queue_gives_them() {
        let event = json!({"Records": [
            {"messageId": "1", "receiptHandle": "r", "body": "{}", "attributes": {"ApproximateReceiveCount": "2"},
                "messageAttributes": {}, "md5OfBody": "x", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:r:1:q.fifo",
                "awsRegion": "r"},
            {},
        ]});
        let event: SqsEvent = serde_json::from_value(event).expect("an event");
        let [first, second] = &event.records[..] else {
            panic!("not two")
        };
        assert_eq!(first.message_id.as_deref(), Some("1"));
        assert_eq!(first.receipt_handle.as_deref(), Some("r"));
        assert_eq!(
            first.event_source_arn.as_deref(),
            Some("arn:aws:sqs:r:1:q.fifo")
        );
        assert_eq!(first.attributes["ApproximateReceiveCount"], "2");
        assert_eq!((&second.body, second.attributes.len()), (&None, 0));
        let mut answer = SqsAnswer::default();
        assert_eq!(json!(answer), json!({"batchItemFailures": []}));
        answer.give_back("1".to_owned());
        assert_eq!(
            json!(answer),
            json!({"batchItemFailures": [{"itemIdentifier": "1"}]})
        );
    }
}
