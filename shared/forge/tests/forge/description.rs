//! GitHub's OpenAPI description: what a request may say, and the least that an answer says.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

/// What GitHub's description does not have, and its documentation does: signing in, and GraphQL; and what the shared
/// subset of the description leaves out: membership in an organisation, and addresses by id, to which GitHub leads by a
/// redirect; and where logs are.
const UNDESCRIBED: [&str; 5] = [
    "/login/oauth/access_token",
    "/user/memberships/orgs/",
    "/repositories/",
    "/graphql",
    "/actions-results/",
];

/// Calls that the shared subset leaves out, though the description has them.
const NOT_IN_THE_SUBSET: [(&str, &str); 1] = [("POST", "/repos/acme/web/pulls/5/reviews")];

/// The description, if `BOBBIN_SPECS` names a folder that has it.
pub fn description() -> Option<&'static Value> {
    static DESCRIPTION: OnceLock<Option<Value>> = OnceLock::new();
    DESCRIPTION
        .get_or_init(|| {
            let mut description = bobbin_rules::description("github-openapi-subset.json")?;
            allow_null(&mut description);
            Some(description)
        })
        .as_ref()
}

/// OpenAPI's `nullable`, in the words of JSON Schema.
fn allow_null(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(allow_null),
        Value::Object(fields) => {
            fields.values_mut().for_each(allow_null);
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
                let inner = Value::Object(std::mem::take(fields));
                fields.insert("anyOf".to_owned(), json!([{ "type": "null" }, inner]));
            }
        }
        _ => {}
    }
}

/// Checks a request: its route, the names in its query, and its body.
pub fn check_request(method: &str, path: &str, query: &str, body: &Value) {
    let Some(description) = description() else { return };
    if UNDESCRIBED.iter().any(|known| path.starts_with(known))
        || NOT_IN_THE_SUBSET.contains(&(method, path))
    {
        return;
    }
    let (route, operation) = operation(description, method, path);
    let described = operation["parameters"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> =
        described.iter().map(|one| followed(description, one)["name"].as_str().unwrap()).collect();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap();
        assert!(names.contains(&name), "{method} {route} takes no {name}: {names:?}");
    }
    if body.is_null() {
        assert_ne!(operation["requestBody"]["required"], true, "{method} {route} wants a body");
        return;
    }
    let place = "requestBody/content/application~1json/schema";
    bobbin_rules::conforms(description, &pointer(&route, method, place), body);
}

/// The least that GitHub answers with this status, with these values in it.
pub fn answer(method: &str, path: &str, status: u16, with: &Value) -> Value {
    let Some(description) = description() else { return with.clone() };
    if UNDESCRIBED.iter().any(|known| path.starts_with(known))
        || NOT_IN_THE_SUBSET.contains(&(method, path))
        || status >= 300
    {
        return with.clone();
    }
    let (route, operation) = operation(description, method, path);
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "{method} {route} does not answer {status}");
    let schema = &followed(description, response)["content"]["application/json"]["schema"];
    let full = filled(description, schema, Some(with));
    if response["$ref"].is_null() {
        let place = format!("responses/{status}/content/application~1json/schema");
        bobbin_rules::conforms(description, &pointer(&route, method, &place), &full);
    }
    full
}

fn pointer(route: &str, method: &str, place: &str) -> String {
    format!("/paths/{}/{}/{place}", route.replace('/', "~1"), method.to_lowercase())
}

fn operation<'a>(description: &'a Value, method: &str, path: &str) -> (String, &'a Value) {
    let routes = description["paths"].as_object().unwrap().iter();
    let method_key = method.to_lowercase();
    let (route, methods) = routes
        .filter(|(route, methods)| fits(route, path) && methods[&method_key].is_object())
        .min_by_key(|(route, _)| route.matches('{').count())
        .unwrap_or_else(|| panic!("GitHub has no {method} {path}"));
    (route.clone(), &methods[&method_key])
}

fn fits(route: &str, path: &str) -> bool {
    let same = |(known, given): (&str, &str)| {
        known == given || (known.starts_with('{') && !given.is_empty())
    };
    route.split('/').count() == path.split('/').count()
        && route.split('/').zip(path.split('/')).all(same)
}

fn followed<'a>(description: &'a Value, node: &'a Value) -> &'a Value {
    match node["$ref"].as_str() {
        Some(at) => followed(description, description.pointer(&at[1..]).unwrap()),
        None => node,
    }
}

/// The smallest value of a schema, with these values in it.
fn filled(description: &Value, schema: &Value, with: Option<&Value>) -> Value {
    let schema = followed(description, schema);
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[word].as_array() {
            let fits = |choice: &&Value| {
                let kind = followed(description, choice)["type"].as_str().unwrap_or("object");
                match with {
                    None => true,
                    Some(Value::Null) => kind == "null",
                    Some(Value::Object(_)) => kind == "object",
                    Some(_) => kind != "null" && kind != "object",
                }
            };
            let choice = choices.iter().find(fits).expect("a choice");
            return filled(description, choice, with);
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut whole = Map::new();
        for part in parts {
            let known = &followed(description, part)["properties"];
            let Value::Object(fields) = filled(description, part, with) else { continue };
            for (name, value) in fields {
                // What one part does not know, another may.
                if known[&name].is_object() || !whole.contains_key(&name) {
                    whole.insert(name, value);
                }
            }
        }
        return Value::Object(whole);
    }
    match with {
        Some(Value::Array(items)) => {
            let each = items.iter().map(|item| filled(description, &schema["items"], Some(item)));
            return each.collect();
        }
        Some(with) if !with.is_object() => return with.clone(),
        _ => {}
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("array") => json!([]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("string") => match schema["format"].as_str() {
            Some("date-time") => json!("2026-12-01T00:00:00Z"),
            Some("uri" | "uri-template") => json!("https://github.example/x"),
            _ => json!("x"),
        },
        Some("null") => Value::Null,
        _ => object(description, schema, with),
    }
}

fn object(description: &Value, schema: &Value, with: Option<&Value>) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let mut fields: Map<String, Value> = required
        .map(|name| {
            let name = name.as_str().unwrap();
            let value = with.and_then(|with| with.get(name));
            (name.to_owned(), filled(description, &schema["properties"][name], value))
        })
        .collect();
    for (name, value) in with.and_then(Value::as_object).into_iter().flatten() {
        let known = &schema["properties"][name];
        let value =
            if known.is_null() { value.clone() } else { filled(description, known, Some(value)) };
        fields.insert(name.clone(), value);
    }
    Value::Object(fields)
}
