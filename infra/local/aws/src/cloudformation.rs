//! `CloudFormation`: just enough to find a stack by its name.
//!
//! Promised: `DescribeStacks` answers with the outputs and parameters that this engine runs with, in the query
//! protocol's XML; a parameter that the template hides (`NoEcho`) comes as asterisks. Deliberately absent: every call
//! that changes a stack; the engine reads the template at its start.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, SecondsFormat};

use crate::query::Query;

/// Value shown for a hidden parameter (AWS).
pub(crate) const HIDDEN: &str = "****";

const NAMESPACE: &str = "http://cloudformation.amazonaws.com/doc/2010-05-15/";

/// The one stack of this engine.
pub(crate) struct CloudFormation {
    pub(crate) stack: String,
    /// The ARN of the stack.
    pub(crate) id: String,
    pub(crate) started_ms: i64,
    /// Hidden values are already masked.
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) outputs: BTreeMap<String, String>,
}

impl CloudFormation {
    /// Answers one request of the query protocol; `body` is its form, `id` the request id for the header and the
    /// answer.
    pub(crate) fn answer(&self, body: &[u8], id: &str) -> Response {
        let text = String::from_utf8_lossy(body);
        let form = Query::parse(&text);
        let wanted = form.value("StackName");
        match form.value("Action") {
            Some("DescribeStacks") => match wanted {
                Some(name) if name != self.stack && name != self.id => refusal(
                    StatusCode::BAD_REQUEST,
                    "ValidationError",
                    &format!("Stack with id {name} does not exist"),
                    id,
                ),
                _ => xml(StatusCode::OK, &self.described(id)),
            },
            other => refusal(
                StatusCode::BAD_REQUEST,
                "InvalidAction",
                &format!(
                    "Could not find operation {} for version 2010-05-15",
                    other.unwrap_or_default()
                ),
                id,
            ),
        }
    }

    fn described(&self, id: &str) -> String {
        let created = DateTime::from_timestamp_millis(self.started_ms)
            .unwrap_or_default()
            .to_rfc3339_opts(SecondsFormat::Millis, true);
        format!(
            "<DescribeStacksResponse xmlns=\"{NAMESPACE}\"><DescribeStacksResult><Stacks><member>\
<StackName>{}</StackName><StackId>{}</StackId><CreationTime>{created}</CreationTime>\
<StackStatus>CREATE_COMPLETE</StackStatus><Parameters>{}</Parameters><Outputs>{}</Outputs>\
</member></Stacks></DescribeStacksResult><ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata></DescribeStacksResponse>",
            escaped(&self.stack),
            escaped(&self.id),
            members(&self.parameters, "Parameter"),
            members(&self.outputs, "Output"),
        )
    }
}

fn members(pairs: &BTreeMap<String, String>, what: &str) -> String {
    pairs
        .iter()
        .map(|(key, value)| {
            format!(
                "<member><{what}Key>{}</{what}Key><{what}Value>{}</{what}Value></member>",
                escaped(key),
                escaped(value)
            )
        })
        .collect()
}

/// An error of the query protocol.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str, id: &str) -> Response {
    xml(
        status,
        &format!(
            "<ErrorResponse xmlns=\"{NAMESPACE}\"><Error><Type>Sender</Type><Code>{code}</Code><Message>{}</Message></Error><RequestId>{id}</RequestId></ErrorResponse>",
            escaped(message),
        ),
    )
}

fn xml(status: StatusCode, body: &str) -> Response {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{body}");
    (status, [("content-type", "text/xml")], body).into_response()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
