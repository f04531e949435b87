//! The answer to an incoming request, and the message in an error's body.

/// An HTTP answer of ingress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// Media type of the body.
    pub content_type: &'static str,
    /// The body, as text.
    pub body: String,
    /// Headers besides the media type, with names in lower case.
    pub headers: &'static [(&'static str, &'static str)],
}

impl HttpAnswer {
    /// A JSON answer with status 200.
    #[must_use]
    pub fn json(value: &serde_json::Value) -> Self {
        Self {
            status: 200,
            content_type: "application/json",
            body: value.to_string(),
            headers: &[],
        }
    }

    /// A plain text answer.
    #[must_use]
    pub fn text(status: u16, body: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.to_owned(),
            headers: &[],
        }
    }
}

/// The message of an error body that has one as `message`: a text, or a list of them. Empty for anything else.
#[must_use]
pub fn sentence(message: &serde_json::Value) -> String {
    match message {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(list) => {
            let texts: Vec<&str> = list.iter().filter_map(serde_json::Value::as_str).collect();
            texts.join(", ")
        }
        _ => String::new(),
    }
}
