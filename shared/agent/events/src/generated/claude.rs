// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
///A block grows.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct BlockDelta {
    pub delta: TextDelta,
    pub index: i64,
}
///It no longer asks.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ControlCancelLine {
    pub request_id: ::std::string::String,
}
///What it asks.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ControlRequest {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub blocked_path: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub decision_reason: ::std::option::Option<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub input: ::std::option::Option<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub permission_suggestions: ::std::option::Option<
        ::std::vec::Vec<::serde_json::Value>,
    >,
    ///`can_use_tool`; the others are not read.
    pub subtype: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_name: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool_use_id: ::std::option::Option<::std::string::String>,
}
///It asks, and waits for a `control_response` of the same `request_id`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ControlRequestLine {
    pub request: ControlRequest,
    pub request_id: ::std::string::String,
}
///The first line of a process.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct InitLine {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub claude_code_version: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cwd: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model: ::std::option::Option<::std::string::String>,
    #[serde(
        rename = "permissionMode",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub permission_mode: ::std::option::Option<::std::string::String>,
    pub session_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
}
///A message begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct MessageStart {
    pub message: MessageStartMessage,
}
///The message that begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct MessageStartMessage {
    pub id: ::std::string::String,
}
///One question.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Question {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub header: ::std::option::Option<::std::string::String>,
    #[serde(
        rename = "multiSelect",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub multi_select: ::std::option::Option<bool>,
    pub options: ::std::vec::Vec<QuestionOption>,
    pub question: ::std::string::String,
}
///What may be chosen.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct QuestionOption {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    pub label: ::std::string::String,
}
///What the tool `AskUserQuestion` is called with.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Questions {
    pub questions: ::std::vec::Vec<Question>,
}
///The end of a turn.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ResultLine {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub errors: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
    pub is_error: bool,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub result: ::std::option::Option<::std::string::String>,
    pub session_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_reason: ::std::option::Option<::std::string::String>,
    ///`success` also where the call of the model failed: read `is_error`.
    pub subtype: ::std::string::String,
    ///Why the loop ended: `aborted_streaming` and `aborted_tools` where it was interrupted.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub terminal_reason: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub total_cost_usd: ::std::option::Option<f64>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub usage: ::std::option::Option<::serde_json::Value>,
}
///The model failed and is asked again.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default)]
pub struct RetryLine {
    ///What failed.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
}
///A rule.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Rule {
    #[serde(
        rename = "ruleContent",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub rule_content: ::std::option::Option<::std::string::String>,
    #[serde(rename = "toolName")]
    pub tool_name: ::std::string::String,
}
///Rules that "always" would add.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Rules {
    pub rules: ::std::vec::Vec<Rule>,
}
///What it is doing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default)]
pub struct StatusLine {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    ///`requesting`, `compacting` and the like.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub status: ::std::option::Option<::std::string::String>,
}
///With `--include-partial-messages`: an event of the model's stream.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct StreamEventLine {
    ///By its `type`.
    pub event: ::serde_json::Value,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub parent_tool_use_id: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
}
///By so many words.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TextDelta {
    pub text: ::std::string::String,
    ///`text_delta`; the others are not read.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
