// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
///A file.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct FilePart {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub filename: ::std::option::Option<::std::string::String>,
    pub mime: ::std::string::String,
    ///`data:` or `file:`.
    pub url: ::std::string::String,
}
///The head of a message.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct MessageHead {
    ///US dollars.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cost: ::std::option::Option<f64>,
    ///Why it broke off.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::serde_json::Value>,
    ///`stop`, `tool-calls`, `unknown`, `error` or what the model sent.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub finish: ::std::option::Option<::std::string::String>,
    pub id: ::std::string::String,
    ///`compaction` on summaries.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub mode: ::std::option::Option<::std::string::String>,
    #[serde(rename = "modelID", skip_serializing_if = "::std::option::Option::is_none")]
    pub model_id: ::std::option::Option<::std::string::String>,
    ///The user message that it answers.
    #[serde(rename = "parentID", skip_serializing_if = "::std::option::Option::is_none")]
    pub parent_id: ::std::option::Option<::std::string::String>,
    #[serde(
        rename = "providerID",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub provider_id: ::std::option::Option<::std::string::String>,
    ///`user` or `assistant`.
    pub role: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
    ///`true` on summaries of a compaction; an object of diffs on user messages.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub summary: ::std::option::Option<::serde_json::Value>,
    ///`created` and `completed`, milliseconds since the epoch.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub time: ::std::option::Option<::serde_json::Value>,
    ///Counted tokens.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tokens: ::std::option::Option<::serde_json::Value>,
}
///A message is gone.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct MessageRemoved {
    #[serde(rename = "messageID")]
    pub message_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///The head of a message, as it is now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct MessageUpdated {
    pub info: MessageHead,
}
///More text of a part.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PartDelta {
    pub delta: ::std::string::String,
    ///Only `text` is known.
    pub field: ::std::string::String,
    #[serde(rename = "messageID")]
    pub message_id: ::std::string::String,
    #[serde(rename = "partID")]
    pub part_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///What every part has.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PartHead {
    pub id: ::std::string::String,
    #[serde(rename = "messageID")]
    pub message_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
///A part is gone.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PartRemoved {
    #[serde(rename = "messageID")]
    pub message_id: ::std::string::String,
    #[serde(rename = "partID")]
    pub part_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///A part, as it is now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PartUpdated {
    ///One of the parts below, by its `type`.
    pub part: ::serde_json::Value,
}
///A permission is asked for.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PermissionAsked {
    pub always: ::std::vec::Vec<::std::string::String>,
    pub id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    pub patterns: ::std::vec::Vec<::std::string::String>,
    pub permission: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool: ::std::option::Option<ToolRef>,
}
///A permission is no longer asked for.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PermissionReplied {
    ///`once`, `always` or `reject`.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reply: ::std::option::Option<::std::string::String>,
    #[serde(rename = "requestID")]
    pub request_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///One question.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Question {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub custom: ::std::option::Option<bool>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub header: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub multiple: ::std::option::Option<bool>,
    pub options: ::std::vec::Vec<QuestionOption>,
    pub question: ::std::string::String,
}
///Questions are asked.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct QuestionAsked {
    pub id: ::std::string::String,
    pub questions: ::std::vec::Vec<Question>,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tool: ::std::option::Option<ToolRef>,
}
///What may be chosen.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct QuestionOption {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    pub label: ::std::string::String,
}
///Questions were refused.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct QuestionRejected {
    #[serde(rename = "requestID")]
    pub request_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///Questions were answered.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct QuestionReplied {
    #[serde(rename = "requestID")]
    pub request_id: ::std::string::String,
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///A session; a subagent has one of its own.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Session {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub directory: ::std::option::Option<::std::string::String>,
    pub id: ::std::string::String,
    ///The session that made this one for a subagent.
    #[serde(rename = "parentID", skip_serializing_if = "::std::option::Option::is_none")]
    pub parent_id: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub title: ::std::option::Option<::std::string::String>,
    ///OpenCode's version.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub version: ::std::option::Option<::std::string::String>,
}
///A session was made.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct SessionCreated {
    pub info: Session,
}
///Something failed; not by itself the end.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default)]
pub struct SessionError {
    ///`name`, and `data` with a `message` and more.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::serde_json::Value>,
    #[serde(
        rename = "sessionID",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub session_id: ::std::option::Option<::std::string::String>,
}
///A session has nothing more to do.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct SessionIdle {
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
}
///What a session is doing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct SessionStatus {
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
    pub status: Status,
}
///What a session is doing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Status {
    ///What the model's provider said.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub message: ::std::option::Option<::std::string::String>,
    ///`idle`, `busy` or `retry`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
///Words.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TextPart {
    ///Not for anybody's eyes.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub ignored: ::std::option::Option<bool>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    ///Written by OpenCode, not by its author.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub synthetic: ::std::option::Option<bool>,
    pub text: ::std::string::String,
}
///A line of the plan.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Todo {
    pub content: ::std::string::String,
    ///`pending`, `in_progress`, `completed` or `cancelled`.
    pub status: ::std::string::String,
}
///The plan, as it is now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TodoUpdated {
    #[serde(rename = "sessionID")]
    pub session_id: ::std::string::String,
    pub todos: ::std::vec::Vec<Todo>,
}
///Why a tool call failed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolFailure {
    pub error: ::std::string::String,
}
///A tool call.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolPart {
    #[serde(rename = "callID")]
    pub call_id: ::std::string::String,
    pub state: ToolState,
    ///`invalid` once OpenCode found the call unusable.
    pub tool: ::std::string::String,
}
///A tool call.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolRef {
    #[serde(rename = "callID")]
    pub call_id: ::std::string::String,
    #[serde(rename = "messageID")]
    pub message_id: ::std::string::String,
}
///How a tool call stands.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ToolState {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub input: ::std::option::Option<::serde_json::Value>,
    ///`exit` of bash, `sessionId` of task.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub metadata: ::std::option::Option<
        ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    >,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output: ::std::option::Option<::std::string::String>,
    ///`pending`, `running`, `completed` or `error`.
    pub status: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub title: ::std::option::Option<::std::string::String>,
}
