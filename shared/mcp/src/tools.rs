//! The tools: their descriptions and arguments, and the dispatch of a call.

use bobbin_core::tenant::runtime_mode::TOOLS as NAMES;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::bounds::{
    COMMAND_MS, COMMAND_MS_MAX, DEPTH_MAX, ENTRIES_MAX, TEXT_LINES_MAX, WAIT_MS, WAIT_MS_MAX,
};
use crate::place::{ToolOutput, ToolPlace};
use crate::{changes, command, files};

/// A call of a tool.
pub(crate) struct Called<'a> {
    pub name: &'a str,
    pub arguments: Value,
    /// Its name: its changes are made once per name.
    pub key: String,
}

/// Runs the call; `None`: there is no such tool.
pub(crate) async fn call(call: Called<'_>, place: &dyn ToolPlace) -> Option<Value> {
    let Called { name, arguments, key } = call;
    let came = match name {
        "run_command" => match read(name, arguments).and_then(command::checked) {
            Ok(run) => command::run(run, &key, place).await,
            Err(why) => Err(why),
        },
        "read_file" => match read(name, arguments) {
            Ok(wanted) => files::read(wanted, place).await,
            Err(why) => Err(why),
        },
        "list_files" => match read(name, arguments) {
            Ok(wanted) => files::list(wanted, place).await,
            Err(why) => Err(why),
        },
        "search" => match read(name, arguments) {
            Ok(wanted) => files::search(wanted, place).await,
            Err(why) => Err(why),
        },
        "get_url" => match read(name, arguments) {
            Ok(wanted) => files::url(&wanted, place).await,
            Err(why) => Err(why),
        },
        "write_file" => match read(name, arguments) {
            Ok(wanted) => changes::write(wanted, &key, place).await,
            Err(why) => Err(why),
        },
        "edit_file" => match read(name, arguments) {
            Ok(wanted) => changes::edit(wanted, &key, place).await,
            Err(why) => Err(why),
        },
        "upload_file" => match read(name, arguments) {
            Ok(wanted) => changes::upload(wanted, &key, place).await,
            Err(why) => Err(why),
        },
        _ => return None,
    };
    let text = |text: String| json!({"type": "text", "text": text});
    Some(match came {
        Ok(ToolOutput::Text(said)) => json!({"content": [text(said)], "isError": false}),
        Ok(ToolOutput::Image(data, kind)) => {
            json!({"content": [{"type": "image", "data": data, "mimeType": kind}], "isError": false})
        }
        Err(why) => json!({"content": [text(why)], "isError": true}),
    })
}

/// Parses the arguments, which no agent validates before it sends them.
fn read<T: DeserializeOwned>(name: &str, arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|why| format!("{name} was called wrongly: {why}"))
}

/// The tools for `tools/list`.
pub(crate) fn list() -> Value {
    let path = |about: &str| json!({"type": "string", "description": about});
    let tool = |name: &str, about: String, properties: Value, required: &[&str]| {
        json!({
            "name": name,
            "description": about,
            "inputSchema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
        })
    };
    json!([
        tool(
            NAMES[0],
            "Run a shell command in the sandbox. Answers with its exit code and output (head and tail of long output). A command that has not ended within wait_ms keeps running: the answer has an id, and a call with only that id continues waiting. Repeating a call never starts the command twice.".to_owned(),
            json!({
                "cmd": {"type": "string", "description": "The command, for bash"},
                "cwd": path("Folder to run it in; the checkout by default"),
                "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables"},
                "wait_ms": {"type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "description": format!("How long to wait for its end, in ms; {WAIT_MS} by default")},
                "timeout_ms": {"type": "integer", "minimum": 1000, "maximum": COMMAND_MS_MAX, "description": format!("Timeout of the command, in ms; {COMMAND_MS} by default")},
                "background": {"type": "boolean", "description": "Answer at once with its id"},
                "id": {"type": "string", "description": "Continue waiting for the command with this id, instead of cmd"},
            }),
            &[]
        ),
        tool(
            NAMES[1],
            format!("Read a file in the sandbox: at most {TEXT_LINES_MAX} lines, starting at offset. An image is shown as an image."),
            json!({
                "path": path("Its path; relative to the checkout"),
                "offset": {"type": "integer", "minimum": 1, "description": "The first line, counted from 1"},
                "limit": {"type": "integer", "minimum": 1, "maximum": TEXT_LINES_MAX, "description": "Lines"},
            }),
            &["path"]
        ),
        tool(
            NAMES[2],
            "Write a whole text file in the sandbox; missing folders are created. Use edit_file to change part of a file.".to_owned(),
            json!({
                "path": path("Its path; relative to the checkout"),
                "content": {"type": "string", "description": "The whole text"},
                "mode": {"type": "string", "pattern": "^[0-7]{3}$", "description": "Its permissions, such as 755; by default unchanged, or 644 for a new file"},
            }),
            &["path", "content"]
        ),
        tool(
            NAMES[3],
            "Replace a text in a file in the sandbox. The old text must be there exactly once.".to_owned(),
            json!({
                "path": path("Its path; relative to the checkout"),
                "old": {"type": "string", "description": "The text to replace, with enough around it to be unique"},
                "new": {"type": "string", "description": "The new text"},
            }),
            &["path", "old", "new"]
        ),
        tool(
            NAMES[4],
            format!("List a folder in the sandbox: kind (f, d, l), bytes and path, one entry a line, at most {ENTRIES_MAX}."),
            json!({
                "path": path("The folder; relative to the checkout, which is ."),
                "depth": {"type": "integer", "minimum": 1, "maximum": DEPTH_MAX, "description": "How many levels deep; 1 by default"},
            }),
            &["path"]
        ),
        tool(
            NAMES[5],
            "Search files in the sandbox for a regular expression; answers with path:line:text.".to_owned(),
            json!({
                "pattern": {"type": "string", "description": "The regular expression"},
                "path": path("Where to search; the checkout by default"),
            }),
            &["pattern"]
        ),
        tool(
            NAMES[6],
            "Get the address of a port of the sandbox for use from outside, and the headers that each request needs.".to_owned(),
            json!({"port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "The port that a server in the sandbox listens on"}}),
            &["port"]
        ),
        tool(
            NAMES[7],
            "Write a binary file in the sandbox, such as an image: from bytes, or from a file that came with a message.".to_owned(),
            json!({
                "path": path("Its path; relative to the checkout"),
                "data": {"type": "string", "description": "Its bytes, in base64"},
                "attachment": path("Instead of data: a file that came with a message, by the path that the message names"),
                "mode": {"type": "string", "pattern": "^[0-7]{3}$", "description": "Its permissions, such as 755; by default unchanged, or 644 for a new file"},
            }),
            &["path"]
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_list_describes_required_arguments() {
        let told = list();
        let told = told.as_array().expect("a list");
        let names: Vec<&str> = told.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, NAMES);
        for tool in told {
            let schema = &tool["inputSchema"];
            for name in schema["required"].as_array().expect("a list") {
                let name = name.as_str().expect("a name");
                assert!(schema["properties"][name].is_object(), "{tool}");
            }
        }
    }
}
