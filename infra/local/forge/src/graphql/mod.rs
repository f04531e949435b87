//! GraphQL: exactly the documents that this forge knows, compared by their text without white space.

mod document;
mod look;
mod mutations;
mod nodes;
mod projection;

use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::Caller;
use crate::api_error::{Answer, ApiError};
use crate::rest::Call;
use document::{Document, Field, Selection};
use projection::{Projection, error};

/// The known documents; a new one is a file and a line.
const DOCUMENTS: [&str; 5] = [
    include_str!("look.graphql"),
    // Bobbin's own.
    include_str!("../../../../../shared/forge/src/github/poll.graphql"),
    include_str!("../../../../../shared/forge/src/github/resolve.graphql"),
    include_str!("../../../../../shared/forge/src/github/ready.graphql"),
    include_str!("../../../../../shared/forge/src/github/enqueue.graphql"),
];

#[derive(Deserialize)]
struct GraphRequest {
    query: Option<Value>,
    variables: Option<Map<String, Value>>,
}

/// A refusal of one root field, as GitHub tells it beside the data.
pub(crate) struct FieldRefusal {
    kind: &'static str,
    message: String,
}

impl FieldRefusal {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    fn integration() -> Self {
        Self::new("FORBIDDEN", projection::NOT_ACCESSIBLE)
    }

    /// A global id that is nobody's.
    fn node(id: &str) -> Self {
        let told = format!("Could not resolve to a node with the global id of '{id}'.");
        Self::new("NOT_FOUND", told)
    }
}

impl From<ApiError> for FieldRefusal {
    fn from(error: ApiError) -> Self {
        match error.status.as_u16() {
            403 => Self::new("FORBIDDEN", error.message),
            404 => Self::new("NOT_FOUND", error.message),
            500 => Self::new("INTERNAL", error.message),
            _ => Self::new("UNPROCESSABLE", error.message),
        }
    }
}

fn without_space(text: &str) -> String {
    text.split_whitespace().collect()
}

fn told(value: Value) -> Answer {
    Ok(axum::Json(value).into_response())
}

/// Answers a document, errors too, with 200.
pub(crate) async fn answer(call: &Call) -> Answer {
    if matches!(call.caller, Caller::Nobody | Caller::App(_)) {
        let told = "This endpoint requires you to be authenticated.";
        return Err(ApiError::unauthorized(told));
    }
    let GraphRequest { query, variables } = call.read()?;
    let Some(text) = query.as_ref().and_then(Value::as_str) else {
        return Err(ApiError::bad("A query attribute must be specified and must be a string."));
    };
    let variables = variables.unwrap_or_default();
    let is_known = DOCUMENTS.iter().any(|known| without_space(known) == without_space(text));
    let Some(document) = document::read(text).filter(|_| is_known) else {
        return told(unknown(text));
    };
    if let Some(refused) = missing(&document, &variables) {
        return told(refused);
    }
    let mut projection = Projection::new(text, &variables);
    let mut data = Map::new();
    for one in &document.fields {
        let Selection::Field(field) = one else { continue };
        let value = match root(call, field, &variables).await {
            Ok(whole) => {
                let whole = json!({ &field.name: whole });
                projection.of(&whole, std::slice::from_ref(one))[&field.key].take()
            }
            Err(FieldRefusal { kind, message }) => {
                let path = [field.key.as_str().into()];
                projection.errors.push(error(text, kind, &path, &message));
                Value::Null
            }
        };
        data.insert(field.key.clone(), value);
    }
    let mut answer = json!({ "data": data });
    if !projection.errors.is_empty() {
        answer["errors"] = projection.errors.into();
    }
    told(answer)
}

async fn root(
    call: &Call,
    field: &Field,
    variables: &Map<String, Value>,
) -> Result<Value, FieldRefusal> {
    let argument =
        |name: &str| field.arguments.get(name).map_or(Value::Null, |one| one.value(variables));
    match field.name.as_str() {
        "rateLimit" => Ok(look::rate_limit(call)),
        "repository" => {
            look::repository(call, field, (&argument("owner"), &argument("name")), variables).await
        }
        name => mutations::run(call, name, &argument("input")).await,
    }
}

/// A document that this forge does not know.
fn unknown(text: &str) -> Value {
    let first = text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    json!({ "errors": [{
        "message": format!("This forge answers only the documents that it knows, and \"{first}\" is none of them or has another text: add it below infra/local/forge/src/graphql"),
        "locations": [{ "line": 1, "column": 1 }], "extensions": { "code": "unknownDocument" },
    }] })
}

/// The refusal of a request that lacks a variable, or has another type of it.
fn missing(document: &Document, variables: &Map<String, Value>) -> Option<Value> {
    let is_wrong = |(name, kind): &(&String, &String)| {
        let value = variables.get(*name).unwrap_or(&Value::Null);
        match kind.trim_end_matches('!') {
            _ if value.is_null() => kind.ends_with('!'),
            "Int" => !value.is_i64(),
            _ => !value.is_string(),
        }
    };
    let (name, kind) = document.variables.iter().find(is_wrong)?;
    let value = variables.get(name);
    Some(json!({ "errors": [{
        "message": format!("Variable ${name} of type {kind} was provided invalid value"),
        "extensions": { "value": value, "problems": [{ "path": [], "explanation": "Expected value to not be null" }] },
        "locations": [{ "line": 1, "column": 1 }],
    }] }))
}

/// The refusal of a caller who has no points left.
pub(crate) fn limited(caller: &Caller) -> axum::response::Response {
    let message = format!("API rate limit exceeded for {}.", caller.counted_as());
    let errors = json!([{ "type": "RATE_LIMITED", "message": message }]);
    axum::Json(json!({ "errors": errors })).into_response()
}
