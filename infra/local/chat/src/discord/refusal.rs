//! Discord's refusals: a status with a code and a message, or a tree of field errors.

use crate::http::ApiResponse;
use crate::json::units;
use crate::store::ChatStoreError;
use serde_json::{Map, Value, json};

/// A refusal in Discord's format.
#[derive(Debug)]
pub struct DiscordRefusal {
    pub status: u16,
    pub body: Value,
}

/// Result of a route.
pub type RouteResult = Result<ApiResponse, DiscordRefusal>;

impl DiscordRefusal {
    pub fn new(status: u16, code: u64, message: &str) -> DiscordRefusal {
        DiscordRefusal { status, body: json!({"message": message, "code": code}) }
    }

    /// An error of one field of the request.
    pub fn field(path: &str, code: &str, message: &str) -> DiscordRefusal {
        let mut wrong = FormErrors::default();
        wrong.at(path, code, message);
        wrong.into()
    }

    pub fn channel() -> DiscordRefusal {
        DiscordRefusal::new(404, 10_003, "Unknown Channel")
    }

    pub fn message() -> DiscordRefusal {
        DiscordRefusal::new(404, 10_008, "Unknown Message")
    }

    pub fn permission() -> DiscordRefusal {
        DiscordRefusal::new(403, 50_013, "Missing Permissions")
    }
}

impl From<DiscordRefusal> for ApiResponse {
    fn from(refusal: DiscordRefusal) -> ApiResponse {
        ApiResponse { status: refusal.status, ..ApiResponse::json(refusal.body) }
    }
}

impl From<ChatStoreError> for DiscordRefusal {
    fn from(error: ChatStoreError) -> DiscordRefusal {
        tracing::error!(%error, "the chat's state failed");
        DiscordRefusal::new(500, 0, "500: Internal Server Error")
    }
}

/// Collects field errors by path into Discord's error tree (code 50035).
#[derive(Default)]
pub struct FormErrors(Map<String, Value>);

impl FormErrors {
    pub fn add(&mut self, path: &[String], code: &str, message: &str) {
        let mut node = &mut self.0;
        for part in path {
            let entry = node.entry(part.clone()).or_insert_with(|| json!({}));
            node = entry.as_object_mut().expect("every node of the tree is made as an object");
        }
        let list = node.entry("_errors").or_insert_with(|| json!([]));
        let list = list.as_array_mut().expect("_errors is made as a list");
        list.push(json!({"code": code, "message": message}));
    }

    pub fn at(&mut self, path: &str, code: &str, message: &str) {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        self.add(&path, code, message);
    }

    pub fn longer(&mut self, path: &str, text: &str, max: usize) {
        if units(text) > max {
            self.at(path, "BASE_TYPE_MAX_LENGTH", &format!("Must be {max} or fewer in length."));
        }
    }

    pub fn done(self) -> Result<(), DiscordRefusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(self.into())
    }
}

impl From<FormErrors> for DiscordRefusal {
    fn from(wrong: FormErrors) -> DiscordRefusal {
        DiscordRefusal {
            status: 400,
            body: json!({"message": "Invalid Form Body", "code": 50_035, "errors": wrong.0}),
        }
    }
}
