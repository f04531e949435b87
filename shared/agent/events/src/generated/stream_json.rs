// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
///A message of the model, or one block of it: several lines share `message.id`.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct AssistantLine {
    ///Set where the agent itself reports a failure in the place of a message.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::std::string::String>,
    pub message: AssistantMessage,
    ///The call of the subagent that it is of.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub parent_tool_use_id: ::std::option::Option<::std::string::String>,
    pub session_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub uuid: ::std::option::Option<::std::string::String>,
}
///A message of the model.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct AssistantMessage {
    ///Blocks, by their `type`.
    pub content: ::std::vec::Vec<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub id: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub stop_reason: ::std::option::Option<::std::string::String>,
}
///An image.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ImageBlock {
    pub source: ImageSource,
}
///Where an image is.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ImageSource {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub data: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub media_type: ::std::option::Option<::std::string::String>,
    ///`base64` or `url`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub url: ::std::option::Option<::std::string::String>,
}
///Words.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TextBlock {
    pub text: ::std::string::String,
}
///What a tool answered.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolResultBlock {
    ///Words, or a list of blocks.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub content: ::std::option::Option<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub is_error: ::std::option::Option<bool>,
    pub tool_use_id: ::std::string::String,
}
///A tool is called.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolUseBlock {
    pub id: ::std::string::String,
    pub input: ::serde_json::Value,
    pub name: ::std::string::String,
}
///Results of tools, or a prompt that is repeated.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct UserLine {
    pub message: UserMessage,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub parent_tool_use_id: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub session_id: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub uuid: ::std::option::Option<::std::string::String>,
}
///A message to the model.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct UserMessage {
    ///Words, or a list of blocks.
    pub content: ::serde_json::Value,
    pub role: ::std::string::String,
}
