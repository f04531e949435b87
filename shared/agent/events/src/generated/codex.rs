// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
///What the agent says.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct AgentMessage {
    ///`commentary` or `final_answer`, where the model tells.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub phase: ::std::option::Option<::std::string::String>,
    pub text: ::std::string::String,
}
///What the agent says grows.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct AgentMessageDelta {
    pub delta: ::std::string::String,
    #[serde(rename = "itemId")]
    pub item_id: ::std::string::String,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///It asks to run a command.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct CommandApproval {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub command: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cwd: ::std::option::Option<::std::string::String>,
    #[serde(rename = "itemId")]
    pub item_id: ::std::string::String,
    #[serde(
        rename = "proposedExecpolicyAmendment",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub proposed_execpolicy_amendment: ::std::option::Option<
        ::std::vec::Vec<::std::string::String>,
    >,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reason: ::std::option::Option<::std::string::String>,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///A command is run.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct CommandExecution {
    #[serde(
        rename = "aggregatedOutput",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub aggregated_output: ::std::option::Option<::std::string::String>,
    pub command: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cwd: ::std::option::Option<::std::string::String>,
    #[serde(rename = "exitCode", skip_serializing_if = "::std::option::Option::is_none")]
    pub exit_code: ::std::option::Option<i64>,
    ///`inProgress`, `completed`, `failed` or `declined`.
    pub status: ::std::string::String,
}
///A tool of the client is called.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct DynamicToolCall {
    pub arguments: ::serde_json::Value,
    #[serde(
        rename = "contentItems",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub content_items: ::std::option::Option<::serde_json::Value>,
    ///`inProgress`, `completed` or `failed`.
    pub status: ::std::string::String,
    pub tool: ::std::string::String,
}
///An MCP server asks for a form to be filled in.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ElicitationRequest {
    pub message: ::std::string::String,
    ///`form`; the others are not read.
    pub mode: ::std::string::String,
    #[serde(rename = "requestedSchema")]
    pub requested_schema: ::serde_json::Value,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///Something failed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ErrorNotice {
    pub error: TurnError,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
    #[serde(rename = "willRetry")]
    pub will_retry: bool,
}
///Files are changed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct FileChange {
    pub changes: ::std::vec::Vec<FileUpdate>,
    ///`inProgress`, `completed`, `failed` or `declined`.
    pub status: ::std::string::String,
}
///It asks to change files.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct FileChangeApproval {
    #[serde(
        rename = "grantRoot",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub grant_root: ::std::option::Option<::std::string::String>,
    #[serde(rename = "itemId")]
    pub item_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reason: ::std::option::Option<::std::string::String>,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///A file is changed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct FileUpdate {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub diff: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub kind: ::std::option::Option<::serde_json::Value>,
    pub path: ::std::string::String,
}
///An image is looked at.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ImageView {
    pub path: ::std::string::String,
}
///What every item has.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ItemHead {
    pub id: ::std::string::String,
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
///An item, as it is now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ItemNotice {
    ///One of the items below, by its `type`.
    pub item: ::serde_json::Value,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///An image of a prompt, on disk.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct LocalImageInput {
    pub path: ::std::string::String,
}
///A tool of an MCP server is called.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct McpToolCall {
    pub arguments: ::serde_json::Value,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::serde_json::Value>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub result: ::std::option::Option<::serde_json::Value>,
    pub server: ::std::string::String,
    ///`inProgress`, `completed` or `failed`.
    pub status: ::std::string::String,
    pub tool: ::std::string::String,
}
///It asks for permissions.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PermissionsApproval {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cwd: ::std::option::Option<::std::string::String>,
    #[serde(rename = "itemId")]
    pub item_id: ::std::string::String,
    pub permissions: ::serde_json::Value,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub reason: ::std::option::Option<::std::string::String>,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///A line of the plan.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PlanStep {
    ///`pending`, `inProgress` or `completed`.
    pub status: ::std::string::String,
    pub step: ::std::string::String,
}
///The plan, as it is now.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct PlanUpdated {
    pub plan: ::std::vec::Vec<PlanStep>,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
}
///One question.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Question {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub header: ::std::option::Option<::std::string::String>,
    pub id: ::std::string::String,
    ///Words of one's own will do too.
    #[serde(rename = "isOther", skip_serializing_if = "::std::option::Option::is_none")]
    pub is_other: ::std::option::Option<bool>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub options: ::std::option::Option<::std::vec::Vec<QuestionOption>>,
    pub question: ::std::string::String,
}
///What may be chosen.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct QuestionOption {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    pub label: ::std::string::String,
}
///A request of the agent is no longer open.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct RequestResolved {
    ///Text or a number.
    #[serde(rename = "requestId")]
    pub request_id: ::serde_json::Value,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
}
///Words of a prompt.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TextInput {
    pub text: ::std::string::String,
}
///A thread: a session.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Thread {
    #[serde(
        rename = "cliVersion",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub cli_version: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cwd: ::std::option::Option<::std::string::String>,
    pub id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub model: ::std::option::Option<::std::string::String>,
    #[serde(
        rename = "modelProvider",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub model_provider: ::std::option::Option<::std::string::String>,
}
///A thread begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ThreadStarted {
    pub thread: Thread,
}
///What a thread is doing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ThreadStatus {
    ///`waitingOnApproval`, `waitingOnUserInput`.
    #[serde(
        rename = "activeFlags",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub active_flags: ::std::option::Option<::std::vec::Vec<::std::string::String>>,
    ///`idle`, `active`, `systemError` or `notLoaded`.
    #[serde(rename = "type")]
    pub type_: ::std::string::String,
}
///What a thread is doing.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ThreadStatusChanged {
    pub status: ThreadStatus,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
}
///Tokens of a thread.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ThreadTokenUsage {
    pub total: TokenUsage,
}
///Tokens.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TokenUsage {
    #[serde(
        rename = "cacheWriteInputTokens",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub cache_write_input_tokens: ::std::option::Option<f64>,
    #[serde(
        rename = "cachedInputTokens",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub cached_input_tokens: ::std::option::Option<f64>,
    ///Those from the cache among them.
    #[serde(rename = "inputTokens")]
    pub input_tokens: f64,
    ///Those of reasoning among them.
    #[serde(rename = "outputTokens")]
    pub output_tokens: f64,
    #[serde(
        rename = "reasoningOutputTokens",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub reasoning_output_tokens: ::std::option::Option<f64>,
    #[serde(rename = "totalTokens")]
    pub total_tokens: f64,
}
///Tokens.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TokenUsageUpdated {
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "tokenUsage")]
    pub token_usage: ThreadTokenUsage,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///A turn.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct Turn {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<TurnError>,
    pub id: ::std::string::String,
    ///`completed`, `interrupted`, `failed` or `inProgress`.
    pub status: ::std::string::String,
}
///A turn has ended.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TurnCompleted {
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    pub turn: Turn,
}
///Why a turn failed.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TurnError {
    #[serde(
        rename = "additionalDetails",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub additional_details: ::std::option::Option<::std::string::String>,
    #[serde(
        rename = "codexErrorInfo",
        skip_serializing_if = "::std::option::Option::is_none"
    )]
    pub codex_error_info: ::std::option::Option<::serde_json::Value>,
    pub message: ::std::string::String,
}
///A turn begins.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct TurnStarted {
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    pub turn: Turn,
}
///It asks questions.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct UserInputRequest {
    #[serde(rename = "itemId")]
    pub item_id: ::std::string::String,
    pub questions: ::std::vec::Vec<Question>,
    #[serde(rename = "threadId")]
    pub thread_id: ::std::string::String,
    #[serde(rename = "turnId", skip_serializing_if = "::std::option::Option::is_none")]
    pub turn_id: ::std::option::Option<::std::string::String>,
}
///A prompt.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct UserMessage {
    ///The client's own id of the message.
    #[serde(rename = "clientId", skip_serializing_if = "::std::option::Option::is_none")]
    pub client_id: ::std::option::Option<::std::string::String>,
    ///By their `type`.
    pub content: ::std::vec::Vec<::serde_json::Value>,
}
///The web is searched.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct WebSearch {
    pub query: ::std::string::String,
}
