//! Messages that some agents write one per line: the blocks of the Messages API.

use serde_json::Value;

use crate::convert::{decode, tag};
use crate::generated::stream_json as wire;
use crate::message::{AttachmentSource, UniversalMessageParsed, UniversalMessagePart};
use crate::recent::Recent;

/// How many blocks of a message have arrived, by its id: a line carries the next ones without numbers.
pub(crate) type Blocks = Recent<u64>;

/// The name of a block: its index in its message.
pub(crate) fn block_name(index: u64) -> String {
    format!("block-{index}")
}

/// A message from the model, with a message event for each block; a single event if the message has no id.
pub(crate) fn assistant(
    line: &Value,
    blocks: &mut Blocks,
) -> Result<Vec<UniversalMessageParsed>, serde_json::Error> {
    let wire::AssistantLine { error, message, parent_tool_use_id, uuid, .. } = decode(line)?;
    let id = message.id.or(uuid);
    let head = UniversalMessageParsed::of("assistant", id.clone())
        .with("parentToolCall", parent_tool_use_id)
        .with("model", message.model)
        .with("error", error.clone());
    // A placeholder for an answer is not an answer.
    let part = |block: &Value| match part(block) {
        UniversalMessagePart::Text { text } if error.is_some() => {
            UniversalMessagePart::Error { message: text }
        }
        part => part,
    };
    let Some(id) = id else {
        let parts = message.content.iter().map(part).collect();
        return Ok(vec![UniversalMessageParsed { parts, ..head }]);
    };
    let first = blocks.get(&id).copied().unwrap_or_default();
    let all: Vec<UniversalMessageParsed> = message
        .content
        .iter()
        .zip(first..)
        .map(|(block, index)| head.clone().with_part(&block_name(index), vec![part(block)]))
        .collect();
    blocks.set(&id, first + all.len() as u64);
    Ok(if all.is_empty() { vec![head] } else { all })
}

/// A message to the model: results of tools, or a prompt.
pub(crate) fn user(line: &Value) -> Result<UniversalMessageParsed, serde_json::Error> {
    let wire::UserLine { message, parent_tool_use_id, uuid, .. } = decode(line)?;
    let parts = match message.content {
        Value::String(text) => vec![UniversalMessagePart::Text { text }],
        Value::Array(blocks) => blocks.iter().map(part).collect(),
        raw => vec![UniversalMessagePart::Unknown { raw }],
    };
    let message =
        UniversalMessageParsed::of(&message.role, uuid).with("parentToolCall", parent_tool_use_id);
    Ok(UniversalMessageParsed { parts, ..message })
}

/// A block; an unreadable one is kept raw.
fn part(block: &Value) -> UniversalMessagePart {
    known(block).unwrap_or_else(|| UniversalMessagePart::Unknown { raw: block.clone() })
}

fn known(block: &Value) -> Option<UniversalMessagePart> {
    Some(match tag(block, "type") {
        "text" => {
            let wire::TextBlock { text } = decode(block).ok()?;
            UniversalMessagePart::Text { text }
        }
        "tool_use" => {
            let wire::ToolUseBlock { id, input, name } = decode(block).ok()?;
            let id = Some(id);
            UniversalMessagePart::ToolCall { id, name, input }
        }
        "tool_result" => {
            let result: wire::ToolResultBlock = decode(block).ok()?;
            UniversalMessagePart::ToolResult {
                id: Some(result.tool_use_id),
                name: None,
                output: result.content.unwrap_or_default(),
                is_error: result.is_error,
            }
        }
        "image" => {
            let wire::ImageBlock { source } = decode(block).ok()?;
            let from = match (source.type_.as_str(), source.data, source.url) {
                ("base64", Some(data), _) => {
                    let encoding = Some("base64".to_owned());
                    AttachmentSource::Data { data, encoding }
                }
                ("url", _, Some(url)) => AttachmentSource::Url { url },
                _ => return None,
            };
            UniversalMessagePart::Image {
                source: from,
                mime_type: source.media_type,
                alt: None,
                raw: None,
            }
        }
        _ => return None,
    })
}
