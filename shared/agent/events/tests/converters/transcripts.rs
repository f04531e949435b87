//! What a reader makes of message events, by the rules that `UniversalMessageParsed` states.

use std::path::Path;

use bobbin_agent_events::{
    Converted, UniversalEventData, UniversalMessage, UniversalMessageParsed, UniversalMessagePart,
};
use serde_json::Value;

use crate::read::{Recording, of_opencode, of_the_others};

/// A message as it is at last.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    id: Option<String>,
    role: String,
    finish: Option<Value>,
    parts: Vec<(Option<String>, Vec<UniversalMessagePart>)>,
}

#[derive(Debug, Default, PartialEq)]
struct Transcript(Vec<Message>);

impl Transcript {
    fn of(recording: &Recording, mut is_read: impl FnMut(&UniversalMessageParsed) -> bool) -> Self {
        let mut converter = recording.converter();
        let mut transcript = Self::default();
        for line in &recording.lines {
            for one in converter.convert_line(line) {
                match one {
                    Converted {
                        data:
                            UniversalEventData::Message { message: UniversalMessage::Parsed(message) },
                        ..
                    } if is_read(&message) => transcript.read(message),
                    _ => {}
                }
            }
        }
        transcript
    }

    fn read(&mut self, message: UniversalMessageParsed) {
        let fact = |name: &str| message.metadata.get(name).cloned();
        let at = self.0.iter().position(|one| one.id.is_some() && one.id == message.id);
        let at = at.unwrap_or_else(|| {
            self.0.push(Message {
                id: message.id.clone(),
                role: message.role.clone(),
                finish: None,
                parts: Vec::new(),
            });
            self.0.len() - 1
        });
        let one = &mut self.0[at];
        one.finish = fact("finish").or(one.finish.take());
        let Some(name) = fact("part").and_then(|it| it.as_str().map(str::to_owned)) else {
            one.parts.extend(message.parts.into_iter().map(|part| (None, vec![part])));
            return;
        };
        let name = Some(name);
        let place = one.parts.iter().position(|(of, _)| *of == name);
        match (place, fact("delta") == Some(Value::Bool(true))) {
            (Some(at), true) => grow(&mut one.parts[at].1, &message.parts),
            (Some(at), false) if message.parts.is_empty() => {
                one.parts.remove(at);
            }
            (Some(at), false) => one.parts[at].1 = message.parts,
            (None, _) => one.parts.push((name, message.parts)),
        }
    }

    fn texts(&self, role: &str) -> Vec<String> {
        let of_role = self.0.iter().filter(|one| one.role == role);
        let parts = of_role.flat_map(|one| one.parts.iter().flat_map(|(_, parts)| parts));
        let text = |part: &UniversalMessagePart| match part {
            UniversalMessagePart::Text { text } if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        parts.filter_map(text).collect()
    }
}

fn grow(had: &mut [UniversalMessagePart], more: &[UniversalMessagePart]) {
    match (had, more) {
        ([UniversalMessagePart::Text { text }], [UniversalMessagePart::Text { text: more }]) => {
            text.push_str(more)
        }
        (had, more) => panic!("{more:?} is no more of {had:?}"),
    }
}

fn is_delta(message: &UniversalMessageParsed) -> bool {
    message.metadata.get("delta") == Some(&Value::Bool(true))
}

/// Streams of which the recording says that pieces of them were left out.
const TRIMMED: [&str; 2] = ["cut.event.sse", "long.event.sse"];

#[test]
fn opencode_stream_and_list_agree() {
    let all = of_opencode();
    let mut compared = 0;
    for stream in all.iter().filter(|one| one.name.ends_with(".event.sse")) {
        let list = stream.name.replace(".event.sse", ".messages.json");
        let Some(list) = all.iter().find(|one| one.name == list) else {
            continue;
        };
        if TRIMMED.contains(&stream.name.as_str()) {
            continue;
        }
        compared += 1;
        let streamed = Transcript::of(stream, |_| true);
        let listed = Transcript::of(list, |_| true);
        assert_eq!(streamed, listed, "{}", stream.name);
    }
    assert!(compared > 15, "{compared} compared");
}

#[test]
fn deltas_add_up_to_whole() {
    let mut compared = 0;
    for recording in of_opencode().into_iter().chain(of_the_others()) {
        let folder = Path::new(&recording.name).extension();
        let is_stream = folder.is_some_and(|it| it == "sse" || it == "jsonl");
        if !is_stream || recording.agent == "acp" || TRIMMED.contains(&recording.name.as_str()) {
            continue;
        }
        // A part that only ever came whole grew by nothing: taken from both.
        let mut grown = Vec::new();
        let deltas = Transcript::of(&recording, |message| {
            let keep = is_delta(message);
            if keep {
                grown.push((message.id.clone(), message.metadata.get("part").cloned()));
            }
            keep
        });
        let whole = Transcript::of(&recording, |message| {
            let key = (message.id.clone(), message.metadata.get("part").cloned());
            !is_delta(message) && grown.contains(&key)
        });
        let is_cut = |text: &String| !whole.texts("assistant").contains(text);
        let cut: Vec<String> = deltas.texts("assistant").into_iter().filter(is_cut).collect();
        // Where the recording ends or the model's connection broke, the whole never came.
        let ends_open = ["sigterm", "rst-once", "compat", "codex-app-server"];
        let may_be_cut = ends_open.iter().any(|name| recording.name.starts_with(name));
        assert!(cut.is_empty() || may_be_cut, "{}: {cut:?}", recording.name);
        compared += usize::from(!deltas.0.is_empty());
    }
    assert!(compared > 15, "{compared} compared");
}
