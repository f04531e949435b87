// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
///Bytes.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct BlobContents {
    ///Base64.
    pub blob: ::std::string::String,
}
///A request is withdrawn.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct CancelRequest {
    ///Text or a number.
    #[serde(rename = "requestId")]
    pub request_id: ::serde_json::Value,
}
///A message grows.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Chunk {
    ///By its `type`.
    pub content: ::serde_json::Value,
    #[serde(
        rename = "messageId",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub message_id: ::std::option::Option<::std::string::String>,
}
///What the session cost.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Cost {
    pub amount: f64,
    pub currency: ::std::string::String,
}
///It asks for a form to be filled in.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ElicitationRequest {
    pub message: ::std::string::String,
    ///`form`; the others are not read.
    pub mode: ::std::string::String,
    #[serde(rename = "requestedSchema")]
    pub requested_schema: ::serde_json::Value,
    #[serde(
        rename = "sessionId",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub session_id: ::std::option::Option<::std::string::String>,
    #[serde(
        rename = "toolCallId",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub tool_call_id: ::std::option::Option<::std::string::String>,
}
///Something enclosed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct EmbeddedResource {
    pub resource: ResourceContents,
}
///A request failed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Error {
    pub code: i64,
    pub message: ::std::string::String,
}
///An image.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ImageContent {
    pub data: ::std::string::String,
    #[serde(rename = "mimeType")]
    pub mime_type: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub uri: ::std::option::Option<::std::string::String>,
}
///An answer that it takes.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PermissionOption {
    ///`allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: ::std::string::String,
    pub name: ::std::string::String,
    #[serde(rename = "optionId")]
    pub option_id: ::std::string::String,
}
///It asks for permission.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PermissionRequest {
    pub options: ::std::vec::Vec<PermissionOption>,
    #[serde(rename = "sessionId")]
    pub session_id: ::std::string::String,
    #[serde(rename = "toolCall")]
    pub tool_call: ToolCallUpdate,
}
///A line of the plan.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PlanEntry {
    pub content: ::std::string::String,
    ///`pending`, `in_progress` or `completed`.
    pub status: ::std::string::String,
}
///The plan, as it is now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PlanUpdate {
    pub entries: ::std::vec::Vec<PlanEntry>,
}
///The end of a turn.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PromptResponse {
    ///`end_turn`, `cancelled`, `max_tokens`, `max_turn_requests` or `refusal`.
    #[serde(rename = "stopReason")]
    pub stop_reason: ::std::string::String,
}
///Text or bytes.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ResourceContents {
    #[serde(rename = "mimeType", skip_serializing_if = "::std::option::Option::is_none")]
    pub mime_type: ::std::option::Option<::std::string::String>,
    ///Text.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub text: ::std::option::Option<::std::string::String>,
    pub uri: ::std::string::String,
}
///Something at an address.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ResourceLink {
    #[serde(rename = "mimeType", skip_serializing_if = "::std::option::Option::is_none")]
    pub mime_type: ::std::option::Option<::std::string::String>,
    pub name: ::std::string::String,
    pub uri: ::std::string::String,
}
///Something happened in a session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct SessionNotification {
    #[serde(rename = "sessionId")]
    pub session_id: ::std::string::String,
    ///By its `sessionUpdate`.
    pub update: ::serde_json::Value,
}
///Words.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TextContent {
    pub text: ::std::string::String,
}
///A tool call begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolCall {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub kind: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    #[serde(rename = "rawInput", skip_serializing_if = "::std::option::Option::is_none")]
    pub raw_input: ::std::option::Option<::serde_json::Value>,
    #[serde(
        rename = "rawOutput",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub raw_output: ::std::option::Option<::serde_json::Value>,
    ///`pending`, `in_progress`, `completed` or `failed`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub status: ::std::option::Option<::std::string::String>,
    pub title: ::std::string::String,
    #[serde(rename = "toolCallId")]
    pub tool_call_id: ::std::string::String,
}
///A tool call changes; what does not change is left out.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolCallUpdate {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub kind: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub name: ::std::option::Option<::std::string::String>,
    #[serde(rename = "rawInput", skip_serializing_if = "::std::option::Option::is_none")]
    pub raw_input: ::std::option::Option<::serde_json::Value>,
    #[serde(
        rename = "rawOutput",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub raw_output: ::std::option::Option<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub status: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub title: ::std::option::Option<::std::string::String>,
    #[serde(rename = "toolCallId")]
    pub tool_call_id: ::std::string::String,
}
///What the context holds and what the session cost.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct UsageUpdate {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cost: ::std::option::Option<Cost>,
    pub used: f64,
}
