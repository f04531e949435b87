//! GitHub's published description of its REST API, of which a part is kept with closed bodies of requests
//! (`github-openapi-subset.json`; the whole one takes its place).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::fits;

/// A request and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// `GET` and the like.
    pub method: &'a str,
    /// Path without the query.
    pub path: &'a str,
    /// The request's JSON.
    pub request: Option<&'a Value>,
    /// The answer's status.
    pub status: u16,
    /// The answer's JSON.
    pub answer: Option<&'a Value>,
}

/// What the description has to say of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum ExchangeVerdict {
    /// It is not there.
    NoDescription,
    /// It has no such call.
    Unknown,
    /// What it finds wrong in the call that it has.
    Known {
        /// The call as it is described.
        call: String,
        /// One sentence each.
        wrong: Vec<String>,
    },
}

/// Judges an exchange. The request of one that was refused is not judged: it may have been wrong on purpose.
///
/// # Panics
/// When the description cannot be read.
#[must_use]
pub fn judge(exchange: &Exchange<'_>) -> ExchangeVerdict {
    let Some(description) = description() else {
        return ExchangeVerdict::NoDescription;
    };
    let method = exchange.method.to_lowercase();
    let routes = description["paths"].as_object().into_iter().flatten();
    let fitting =
        routes.filter(|(route, calls)| fits(route, exchange.path) && calls[&method].is_object());
    let Some((route, calls)) = fitting.min_by_key(|(route, _)| route.matches('{').count()) else {
        return ExchangeVerdict::Unknown;
    };
    let call = format!("{} {route}", exchange.method);
    let described = &calls[&method];
    let mut wrong = Vec::new();
    if let Some(request) = exchange.request.filter(|_| exchange.status < 400) {
        let schema = &described["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_object() {
            wrong.extend(refused(&format!("{call} request"), schema, request));
        } else {
            wrong.push("the call takes no JSON".to_owned());
        }
    }
    wrong.extend(answer(&call, described, exchange));
    ExchangeVerdict::Known { call, wrong }
}

fn answer(call: &str, described: &Value, exchange: &Exchange<'_>) -> Vec<String> {
    let status = exchange.status.to_string();
    let mut response = &described["responses"][&status];
    if let Some(name) = response["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
        response = description().and_then(|it| it.pointer(name)).unwrap_or(&Value::Null);
    }
    let schema = &response["content"]["application/json"]["schema"];
    match exchange.answer {
        // Refusals come with statuses that the description leaves out, in the one form that all of them have.
        Some(answer) if exchange.status >= 400 && !schema.is_object() => {
            let form = json!({ "$ref": "#/components/schemas/basic-error", "required": ["message", "documentation_url"] });
            refused("refusal", &form, answer)
        }
        _ if response.is_null() => vec![format!("the call does not answer {status}")],
        Some(answer) if schema.is_object() => refused(&format!("{call} {status}"), schema, answer),
        Some(_) => vec![format!("{status} has no JSON")],
        None if schema.is_object() => vec![format!("{status} lacks its JSON")],
        None => Vec::new(),
    }
}

/// What a schema of the description finds wrong.
fn refused(name: &str, schema: &Value, value: &Value) -> Vec<String> {
    // A schema takes a while to compile, and calls are repeated.
    static COMPILED: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = compiled.entry(name.to_owned()).or_insert_with(|| {
        let mut whole = schema.clone();
        whole["components"] = description().map_or(Value::Null, |it| it["components"].clone());
        Arc::new(jsonschema::validator_for(&whole).expect("a readable schema"))
    });
    let validator = Arc::clone(validator);
    drop(compiled);
    validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn description() -> Option<&'static Value> {
    static DESCRIPTION: OnceLock<Option<Value>> = OnceLock::new();
    let read = || {
        let mut description = crate::description("github-openapi-subset.json")?;
        crate::allow_null(&mut description);
        either_account(&mut description);
        Some(description)
    };
    DESCRIPTION.get_or_init(read).as_ref()
}

/// An account is a person, an organisation or an enterprise; in one place the description asks for all of them at once.
fn either_account(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(either_account),
        Value::Object(fields) => {
            fields.values_mut().for_each(either_account);
            let is_both =
                |all: &Value| all[0]["title"] == "Simple User" && all[1]["title"] == "Enterprise";
            if fields.get("allOf").is_some_and(is_both) {
                let both = fields.remove("allOf").unwrap_or_default();
                fields.insert("anyOf".to_owned(), both);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(exchange: &Exchange<'_>) -> Option<Vec<String>> {
        match judge(exchange) {
            ExchangeVerdict::NoDescription => None,
            ExchangeVerdict::Unknown => Some(vec!["unknown".to_owned()]),
            ExchangeVerdict::Known { wrong, .. } => Some(wrong),
        }
    }

    #[test]
    fn requests_are_closed_and_answers_are_complete() {
        let path = "/app/installations/1/access_tokens";
        let told = json!({ "token": "ghs_1", "expires_at": "2026-01-01T00:00:00Z" });
        let asked = json!({ "repository_ids": [1], "permissions": { "contents": "read" } });
        let right = Exchange {
            method: "POST",
            path,
            request: Some(&asked),
            status: 201,
            answer: Some(&told),
        };
        let Some(found) = wrong(&right) else { return };
        assert_eq!(found, Vec::<String>::new());
        let other = json!({ "repository_id": 1 });
        assert_eq!(wrong(&Exchange { request: Some(&other), ..right }).map(|it| it.len()), Some(1));
        let half = json!({ "token": "ghs_1" });
        assert_eq!(wrong(&Exchange { answer: Some(&half), ..right }).map(|it| it.len()), Some(1));
        assert_eq!(wrong(&Exchange { status: 200, ..right }).map(|it| it.len()), Some(1));
        let refusal = json!({ "message": "Not Found", "documentation_url": "https://docs" });
        let refused = Exchange { status: 418, answer: Some(&refusal), ..right };
        assert_eq!(wrong(&refused), Some(Vec::new()));
        assert_eq!(
            wrong(&Exchange { path: "/no/such", ..right }),
            Some(vec!["unknown".to_owned()])
        );
    }
}
