// Made by typify of `schemas/*.json` with `cargo run -p bobbin-agent-events-generator`: change the schema instead.
///The first line of a process.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct InitLine {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cwd: ::std::option::Option<::std::string::String>,
    pub session_id: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub tools: ::std::option::Option<::std::vec::Vec<::serde_json::Value>>,
}
///The end of a turn.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug)]
pub struct ResultLine {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error: ::std::option::Option<::std::string::String>,
    pub is_error: bool,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub result: ::std::option::Option<::std::string::String>,
    pub session_id: ::std::string::String,
    ///`success`, `error_during_execution` or `error_max_turns`.
    pub subtype: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub usage: ::std::option::Option<::serde_json::Value>,
}
