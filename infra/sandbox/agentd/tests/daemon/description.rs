//! The published description of the session API, from the folder that `BOBBIN_SPECS` names.

use bobbin_http::Method;
use serde_json::{Value, json};

const FILE: &str = "agents/sandbox-agent-79bb441.openapi.json";

pub struct Description {
    document: Option<Value>,
}

impl Description {
    pub fn read() -> Self {
        let mut document = bobbin_rules::description(FILE);
        document.iter_mut().for_each(allow_null);
        Self { document }
    }

    /// Panics where an answer is not as the description has it. What is ours beyond it is held to the form of errors
    /// alone.
    pub fn check(&self, method: &Method, path: &str, status: u16, kind: &str, body: &Value) {
        if status >= 400 {
            assert_eq!(kind, "application/problem+json", "{method} {path}: {body}");
            assert_eq!(body["status"], status, "{method} {path}");
            self.schema("ProblemDetails", body, &format!("{method} {path}"));
            return;
        }
        let Some(operation) = self.operation(method, path) else {
            return;
        };
        let response = &operation["responses"][status.to_string()];
        assert!(response.is_object(), "{method} {path}: {status} is not described");
        let reference = response["content"]["application/json"]["schema"]["$ref"].as_str();
        match reference {
            Some(reference) => {
                assert_eq!(kind, "application/json", "{method} {path}");
                let name = reference.rsplit('/').next().expect("a name");
                self.schema(name, body, &format!("{method} {path}"));
            }
            None => assert_eq!(*body, Value::Null, "{method} {path}"),
        }
    }

    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let path = path.split('?').next().unwrap_or(path);
        let paths = self.document.as_ref()?["paths"].as_object()?;
        let fits = |template: &str| {
            let (template, path): (Vec<_>, Vec<_>) =
                (template.split('/').collect(), path.split('/').collect());
            template.len() == path.len()
                && template
                    .iter()
                    .zip(&path)
                    .all(|(one, other)| one.starts_with('{') || one == other)
        };
        let (_, operations) = paths.iter().find(|(template, _)| fits(template))?;
        operations.get(method.as_str().to_ascii_lowercase())
    }

    fn schema(&self, name: &str, value: &Value, place: &str) {
        let Some(document) = &self.document else {
            return;
        };
        let mut wrapped = document.clone();
        wrapped["$ref"] = json!(format!("#/components/schemas/{name}"));
        let validator = jsonschema::validator_for(&wrapped).expect("a schema");
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{place} is no {name}: {errors:#?}\n{value:#}");
    }
}

/// OpenAPI's `nullable`, in the words of JSON Schema.
fn allow_null(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(allow_null),
        Value::Object(fields) => {
            fields.values_mut().for_each(allow_null);
            if fields.remove("nullable") == Some(Value::Bool(true)) {
                let inner = Value::Object(std::mem::take(fields));
                fields.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
            }
        }
        _ => {}
    }
}
