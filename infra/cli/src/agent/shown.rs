//! Prints an agent's events in a terminal: text as it streams, one line per tool call.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;

use bobbin_agent_events::{
    Status, StatusState, UniversalEvent, UniversalEventData, UniversalMessage,
    UniversalMessageParsed, UniversalMessagePart,
};
use serde_json::Value;

use crate::columns::one_line;

/// Longest part of a tool's input that is shown.
const INPUT_CHARS_MAX: usize = 120;

/// What has been printed so far.
#[derive(Debug, Default)]
pub struct AlreadyShown {
    /// Texts by message and part.
    texts: HashMap<(String, String), String>,
    /// Tool calls, with what was printed of each.
    calls: HashSet<String>,
    /// The cursor is in the middle of a line of text.
    in_line: bool,
}

impl AlreadyShown {
    /// Prints what is new in an event.
    pub fn event(&mut self, event: &UniversalEvent) {
        if let UniversalEventData::Status { status, .. } = &event.data {
            return self.status(status);
        }
        let text = self.text(event);
        if text.is_empty() {
            return;
        }
        self.in_line = !text.ends_with('\n');
        let mut out = std::io::stdout().lock();
        // A closed pipe does not stop the run.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Says why the stream is silent: the model is retried.
    fn status(&mut self, status: &Status) {
        if status.state != StatusState::Retrying {
            return;
        }
        self.end_line();
        let why = status.message.as_deref().unwrap_or("it does not say why");
        tell!("The model did not answer; asking again: {}", one_line(why));
    }

    /// Moves to the start of a line.
    pub fn end_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            show!("");
        }
    }

    fn text(&mut self, event: &UniversalEvent) -> String {
        match &event.data {
            UniversalEventData::Message { message: UniversalMessage::Parsed(message) }
                if message.role == "assistant" =>
            {
                self.message(message)
            }
            UniversalEventData::TurnEnded { .. } if self.in_line => "\n".to_owned(),
            _ => String::new(),
        }
    }

    fn message(&mut self, message: &UniversalMessageParsed) -> String {
        let id = message.id.clone().unwrap_or_default();
        let part = message.metadata.get("part").map(Value::to_string).unwrap_or_default();
        let grows = message.metadata.get("delta") == Some(&Value::Bool(true));
        let mut new = String::new();
        for one in &message.parts {
            match one {
                UniversalMessagePart::Text { text } => {
                    let shown = self.texts.entry((id.clone(), part.clone())).or_default();
                    new.push_str(&grown(shown, text, grows));
                }
                UniversalMessagePart::ToolCall { id: call, name, input } => {
                    let line = tool(name, input);
                    let key = format!("{} {line}", call.as_deref().unwrap_or_default());
                    let has_input = input.as_object().is_none_or(|input| !input.is_empty());
                    if has_input && self.calls.insert(key) {
                        let start = if self.in_line || !new.is_empty() { "\n" } else { "" };
                        new.push_str(&format!("{start}> {line}\n"));
                    }
                }
                _ => {}
            }
        }
        new
    }
}

/// The part of a text not printed yet.
fn grown(shown: &mut String, text: &str, grows: bool) -> String {
    let new = if grows {
        text
    } else {
        // The full text follows its deltas.
        text.strip_prefix(shown.as_str()).unwrap_or("")
    };
    shown.push_str(new);
    new.to_owned()
}

fn tool(name: &str, input: &Value) -> String {
    let known = ["command", "filePath", "file_path", "path", "pattern", "url"];
    let what = known.iter().find_map(|key| input.get(key)?.as_str());
    let what = what.map_or_else(|| input.to_string(), str::to_owned);
    let line: String = what.lines().next().unwrap_or("").chars().take(INPUT_CHARS_MAX).collect();
    format!("{name} {line}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn told(shown: &mut AlreadyShown, message: Value) -> String {
        let event = json!({
            "id": 1, "seq": 1, "timestamp": "", "sessionId": "s", "agent": "a", "data": {"message": message},
        });
        let text = shown.text(&serde_json::from_value(event).unwrap());
        shown.in_line =
            !text.is_empty() && !text.ends_with('\n') || text.is_empty() && shown.in_line;
        text
    }

    #[test]
    fn text_and_tool_calls_show_once() {
        let mut shown = AlreadyShown::default();
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let part = |delta: bool, of: Value| json!({"role": "assistant", "id": "m", "metadata": {"part": "p", "delta": delta}, "parts": of});
        let call = |input: Value| json!({"role": "assistant", "id": "m", "metadata": {"part": "q"}, "parts": [{"type": "tool_call", "id": "c", "name": "bash", "input": input}]});
        let mut all = String::new();
        for message in [
            json!({"role": "user", "parts": text("the task")}),
            part(false, text("")),
            part(true, text("Hello ")),
            part(true, text("there")),
            part(false, text("Hello there.")),
            call(json!({})),
            call(json!({"command": "ls\n-l"})),
            call(json!({"command": "ls\n-l"})),
            json!({"role": "assistant", "id": "n", "parts": text("Done.")}),
        ] {
            all.push_str(&told(&mut shown, message));
        }
        assert_eq!(all, "Hello there.\n> bash ls\nDone.");
    }
}
