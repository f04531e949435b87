//! The protocol: JSON-RPC 2.0 in single POSTs, each with a separate answer (modelcontextprotocol.io, "Streamable
//! HTTP").

use bobbin_core::base::ids::digest;
use serde_json::{Value, json};

use crate::bounds::SESSION_BYTES_MAX;
use crate::place::ToolPlace;
use crate::tools::{self, Called};

/// Supported revisions, newest first.
const VERSIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];
/// Instructions for an agent, besides the descriptions of the tools.
const INSTRUCTIONS: &str = "These tools work in a sandbox, a separate Linux machine: files and commands of other \
tools are elsewhere. Relative paths are in its checkout, the folder `project`. If a tool says that the sandbox is not \
ready, wait and call it again. Files that a message names below .bobbin/attachments are not there yet: upload_file \
copies one in, with that path as `attachment`. A long command keeps running in the sandbox: run_command then answers \
with an id; call it with that id to continue waiting.";
/// Hex digits of a call's name and of a session's.
const NAME_DIGITS: usize = 24;

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;

/// A POST, with the parts that the protocol needs.
#[derive(Debug, Clone, Copy)]
pub struct RpcRequest<'a> {
    /// The body, not parsed yet.
    pub body: &'a [u8],
    /// `Mcp-Session-Id`, if the client sends it.
    pub session: Option<&'a str>,
    /// `MCP-Protocol-Version`, if the client sends it.
    pub version: Option<&'a str>,
    /// Unique value of the request: the invocation's id.
    pub nonce: &'a str,
}

/// The answer to a POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcAnswer {
    /// HTTP status.
    pub status: u16,
    /// A JSON object; `None`: no body.
    pub body: Option<String>,
    /// `Mcp-Session-Id`: an id that the client sends from then on. Nothing is stored for it here; it tells calls with
    /// the same number from two connections apart.
    pub session: Option<String>,
}

impl RpcAnswer {
    fn json(status: u16, body: &Value) -> Self {
        Self { status, body: Some(body.to_string()), session: None }
    }

    fn error(status: u16, id: &Value, code: i32, message: &str) -> Self {
        let error = json!({"code": code, "message": message});
        Self::json(status, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    fn result(id: &Value, result: &Value) -> Self {
        Self::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

/// Answers one request, whose sender is already authorised.
pub async fn answer(request: &RpcRequest<'_>, place: &dyn ToolPlace) -> RpcAnswer {
    let Ok(body) = serde_json::from_slice::<Value>(request.body) else {
        let message = "the body is not JSON";
        return RpcAnswer::error(400, &Value::Null, PARSE_ERROR, message);
    };
    if request.session.is_some_and(|id| id.len() > SESSION_BYTES_MAX) {
        let message = "the session's id is too long";
        return RpcAnswer::error(400, &Value::Null, INVALID_REQUEST, message);
    }
    if let Some(version) = request.version
        && !VERSIONS.contains(&version)
    {
        let message = format!("this server speaks {}", VERSIONS.join(" and "));
        return RpcAnswer::error(400, &Value::Null, INVALID_REQUEST, &message);
    }
    if body["jsonrpc"] != "2.0" {
        let message = "the body is not a single JSON-RPC 2.0 message";
        return RpcAnswer::error(400, &Value::Null, INVALID_REQUEST, message);
    }
    let (Some(method), Some(id)) = (body["method"].as_str(), body.get("id")) else {
        // A notification, or an answer to something that was never requested.
        return RpcAnswer { status: 202, body: None, session: None };
    };
    if !id.is_string() && !id.is_number() {
        let message = "an id is a text or a number";
        return RpcAnswer::error(400, &Value::Null, INVALID_REQUEST, message);
    }
    match method {
        "initialize" => {
            place.expect().await;
            let wanted = body["params"]["protocolVersion"].as_str();
            let session = &digest(&["mcp-session", request.nonce])[..NAME_DIGITS];
            RpcAnswer {
                session: Some(session.to_owned()),
                ..RpcAnswer::result(id, &initialized(wanted))
            }
        }
        "ping" => RpcAnswer::result(id, &json!({})),
        "tools/list" => RpcAnswer::result(id, &json!({"tools": tools::list()})),
        "tools/call" => {
            let (name, given) = (&body["params"]["name"], &body["params"]["arguments"]);
            let call = Called {
                name: name.as_str().unwrap_or_default(),
                arguments: if given.is_null() { json!({}) } else { given.clone() },
                key: call_key(request, id, &body["params"]),
            };
            match tools::call(call, place).await {
                Some(result) => RpcAnswer::result(id, &result),
                None => {
                    let message = format!("there is no tool {name}");
                    RpcAnswer::error(200, id, INVALID_PARAMS, &message)
                }
            }
        }
        other => RpcAnswer::error(200, id, METHOD_NOT_FOUND, &format!("there is no {other}")),
    }
}

/// The requested revision if supported, else the newest: then the client decides whether to continue.
fn initialized(wanted: Option<&str>) -> Value {
    let spoken = VERSIONS.into_iter().find(|one| Some(*one) == wanted);
    json!({
        "protocolVersion": spoken.unwrap_or(VERSIONS[0]),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bobbin", "version": env!("CARGO_PKG_VERSION")},
        "instructions": INSTRUCTIONS,
    })
}

/// The name of a call, the same for a repeat of its request: within a session a client uses no id twice. Without a
/// session a repeat cannot be told from another call with the same number, and each counts as a new call.
fn call_key(request: &RpcRequest<'_>, id: &Value, params: &Value) -> String {
    let (name, arguments) = (params["name"].to_string(), params["arguments"].to_string());
    let key = match request.session {
        Some(session) => digest(&["mcp-call", session, &id.to_string(), &name, &arguments]),
        None => digest(&["mcp-call", request.nonce]),
    };
    key[..NAME_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::place::OpenedSandbox;

    struct Nowhere;

    #[async_trait]
    impl ToolPlace for Nowhere {
        async fn open(&self) -> Result<OpenedSandbox, String> {
            Err("The sandbox is being brought back. Call again in 20 s.".to_owned())
        }
    }

    fn request(body: &str) -> RpcRequest<'_> {
        RpcRequest { body: body.as_bytes(), session: None, version: None, nonce: "n" }
    }

    async fn told(request: RpcRequest<'_>) -> (u16, Value) {
        let answer = answer(&request, &Nowhere).await;
        let body =
            answer.body.map_or(Value::Null, |body| serde_json::from_str(&body).expect("JSON"));
        (answer.status, body)
    }

    #[tokio::test]
    async fn unknown_revision_gets_the_newest() {
        for (wanted, spoken) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("2026-07-28", "2025-11-25"),
            ("2024-11-05", "2025-11-25"),
        ] {
            let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": wanted}});
            let (status, body) = told(request(&body.to_string())).await;
            assert_eq!((status, &body["id"]), (200, &json!(0)));
            assert_eq!(body["result"]["protocolVersion"], spoken);
            assert_eq!(body["result"]["capabilities"], json!({"tools": {}}));
        }
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
        let one = answer(&request(body), &Nowhere).await.session;
        let other = RpcRequest { nonce: "m", ..request(body) };
        let other = answer(&other, &Nowhere).await.session;
        assert!(one.is_some() && other.is_some() && one != other);
    }

    #[tokio::test]
    async fn non_requests_follow_the_protocol() {
        for body in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        ] {
            assert_eq!(told(request(body)).await, (202, Value::Null), "{body}");
        }
        for (body, code) in [
            ("{", PARSE_ERROR),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
        ] {
            let (status, told) = told(request(body)).await;
            assert_eq!((status, &told["error"]["code"]), (400, &json!(code)), "{body}");
        }
        let ping = request(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        assert_eq!(told(ping).await, (200, json!({"jsonrpc": "2.0", "id": "a", "result": {}})));
        let old = RpcRequest { version: Some("1999-01-01"), ..ping };
        assert_eq!(told(old).await.0, 400);
        let unknown = request(r#"{"jsonrpc":"2.0","id":2,"method":"resources/list"}"#);
        assert_eq!(told(unknown).await.1["error"]["code"], METHOD_NOT_FOUND);
    }

    #[tokio::test]
    async fn tool_failures_are_text_results() {
        let call = |name: &str, arguments: Value| {
            let params = json!({"name": name, "arguments": arguments});
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
        };
        for (name, arguments, text) in [
            (
                "read_file",
                json!({"path": "a"}),
                "The sandbox is being brought back. Call again in 20 s.",
            ),
            ("read_file", json!({}), "read_file was called wrongly: missing field `path`"),
            (
                "run_command",
                json!({"cmd": "ls", "id": "1"}),
                "Give either `cmd`, to start a command, or `id`, to continue waiting for one.",
            ),
            (
                "write_file",
                json!({"path": "a\nb", "content": ""}),
                "A path has 1 to 4096 bytes and no control characters.",
            ),
            (
                "run_command",
                json!({"cmd": "x", "env": {"A B": "1"}}),
                "\"A B\" cannot be the name of a variable.",
            ),
            (
                "list_files",
                json!({"path": ".", "deep": 2}),
                "list_files was called wrongly: unknown field `deep`, expected `path` or `depth`",
            ),
        ] {
            let (status, told) = told(request(&call(name, arguments))).await;
            let expected = json!({"content": [{"type": "text", "text": text}], "isError": true});
            assert_eq!((status, &told["result"]), (200, &expected), "{name}");
        }
        let (_, told) = told(request(&call("rm", json!({})))).await;
        assert_eq!(told["error"]["code"], INVALID_PARAMS);
    }

    #[test]
    fn repeated_request_keeps_call_key() {
        let key = |session, nonce, id: u64| {
            let request = RpcRequest { session, nonce, ..request("") };
            call_key(
                &request,
                &json!(id),
                &json!({"name": "run_command", "arguments": {"cmd": "x"}}),
            )
        };
        assert_eq!(key(Some("s"), "a", 1), key(Some("s"), "b", 1));
        assert_ne!(key(Some("s"), "a", 1), key(Some("s"), "a", 2));
        assert_ne!(key(Some("s"), "a", 1), key(Some("t"), "a", 1));
        assert_ne!(key(None, "a", 1), key(None, "b", 1));
    }
}
