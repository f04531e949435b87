//! The part of a chat-completions request that the script uses.

use serde::Deserialize;
use serde_json::Value;

/// Prefix of OpenCode's text part that announces an attached file's content in the next part.
const FILE_ANNOUNCEMENT: &str = "Called the Read tool with the following input:";

/// A parsed request.
#[derive(Debug, Clone)]
pub(crate) struct ModelRequest {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// Names of the offered tools.
    pub(crate) tools: Vec<String>,
    /// Text of the last user message, without attached files.
    pub(crate) user: String,
    /// Media types of its images.
    pub(crate) images: Vec<String>,
    /// Texts of the tool messages after it, in order.
    pub(crate) results: Vec<String>,
    /// No tools but a system message: an internal request (a title, a summary).
    pub(crate) internal: bool,
    /// Text of the system messages.
    pub(crate) system: String,
    /// A request for a title.
    pub(crate) title: bool,
    /// Characters of all messages.
    pub(crate) chars: usize,
}

#[derive(Deserialize)]
struct CompletionRequest {
    model: String,
    messages: Vec<CompletionMessage>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct CompletionMessage {
    role: String,
    #[serde(default)]
    content: Value,
}

impl CompletionMessage {
    /// Text of the content: a string, or the text parts of a list (images have none).
    fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                let texts: Vec<&str> =
                    parts.iter().filter_map(|part| part["text"].as_str()).collect();
                texts.join("\n")
            }
            _ => String::new(),
        }
    }

    /// Media types of the images in the content; `link` for a plain address.
    fn images(&self) -> Vec<String> {
        let parts = self.content.as_array().into_iter().flatten();
        let addresses = parts.filter_map(|part| part["image_url"]["url"].as_str());
        addresses.map(media_type).collect()
    }

    /// The text without attached files. OpenCode 1.18.33 puts a text file into the message as two parts, an
    /// announcement and the content, which is not the person's text.
    fn written_text(&self) -> String {
        let Value::Array(parts) = &self.content else {
            return self.text();
        };
        let mut texts = Vec::new();
        let mut parts = parts.iter().filter_map(|part| part["text"].as_str());
        while let Some(text) = parts.next() {
            if text.starts_with(FILE_ANNOUNCEMENT) {
                parts.next();
            } else {
                texts.push(text);
            }
        }
        texts.join("\n")
    }
}

/// Media type of an image's address; `link` if it is not a data URL.
pub(crate) fn media_type(address: &str) -> String {
    let data = address.strip_prefix("data:").and_then(|rest| rest.split_once(';'));
    data.map_or("link", |(kind, _)| kind).to_owned()
}

/// Parses a request body; the error says what is wrong.
pub(crate) fn parse(body: &[u8]) -> Result<ModelRequest, String> {
    let body: CompletionRequest = serde_json::from_slice(body)
        .map_err(|error| format!("The body is not a chat-completions request: {error}. Send JSON with `model` and `messages`."))?;
    let last_user = body.messages.iter().rposition(|message| message.role == "user").ok_or(
        "`messages` has no message with role `user`. Add one: its lines are what the scripted model does.",
    )?;
    let mut tools = Vec::new();
    for tool in body.tools.iter().flatten() {
        let name = tool["function"]["name"].as_str();
        tools.push(name.ok_or("Each of `tools` needs `function.name`.")?.to_owned());
    }
    let texts: Vec<String> = body.messages.iter().map(CompletionMessage::text).collect();
    let system =
        |message: &CompletionMessage| matches!(message.role.as_str(), "system" | "developer");
    let title = body
        .messages
        .iter()
        .any(|message| system(message) && message.text().contains("title generator"));
    let said: Vec<String> = body
        .messages
        .iter()
        .filter(|message| system(message))
        .map(CompletionMessage::text)
        .collect();
    Ok(ModelRequest {
        system: said.join("\n"),
        model: body.model,
        stream: body.stream.unwrap_or(false),
        include_usage: body.stream_options.is_some_and(|options| options.include_usage),
        internal: tools.is_empty() && body.messages.iter().any(system),
        title,
        tools,
        user: body.messages[last_user].written_text(),
        images: body.messages[last_user].images(),
        results: (last_user + 1..texts.len())
            .filter(|&index| body.messages[index].role == "tool")
            .map(|index| texts[index].clone())
            .collect(),
        chars: texts.iter().map(String::len).sum(),
    })
}
