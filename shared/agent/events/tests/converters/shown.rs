//! Events as text, with short names in the place of the agents' ids.

use std::collections::BTreeMap;

use bobbin_agent_events::{
    AttachmentSource, Converted, PermissionRequest, QuestionRequest, TokenUsage,
    UniversalEventData, UniversalMessage, UniversalMessageParsed, UniversalMessagePart, UsageScope,
};
use serde_json::Value;

/// Characters of a text that are shown.
const TEXT_CHARS_MAX: usize = 70;

/// Characters of what is surely an id.
const ID_CHARS_MIN: usize = 8;

#[derive(Default)]
pub struct Shown {
    names: BTreeMap<String, String>,
    counts: BTreeMap<char, usize>,
}

impl Shown {
    /// What was made of one line, a line each; all but the first are indented.
    pub fn lines(&mut self, converted: &[Converted]) -> Vec<String> {
        let show = |(at, one): (usize, &Converted)| {
            let indent = if at == 0 { "" } else { "  + " };
            let session = one.agent_session_id.as_deref();
            let session = session.map(|id| self.name('s', id)).unwrap_or_default();
            format!("{indent}{session:<3} {}", self.data(&one.data))
        };
        converted.iter().enumerate().map(show).collect()
    }

    fn name(&mut self, kind: char, id: &str) -> String {
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("{kind}{count}");
        self.names.insert(id.to_owned(), name.clone());
        name
    }

    fn data(&mut self, data: &UniversalEventData) -> String {
        match data {
            UniversalEventData::Message { message: UniversalMessage::Parsed(message) } => {
                self.message(message)
            }
            UniversalEventData::Message { message: UniversalMessage::Unparsed { error, .. } } => {
                format!("UNPARSED {}", error.as_deref().unwrap_or_default())
            }
            UniversalEventData::Started { started } => {
                let details = started.details.as_ref().map(|it| self.value(it));
                format!("started {}", details.unwrap_or_default())
            }
            UniversalEventData::Error { error } => {
                format!("error {} {}", error.kind.as_deref().unwrap_or("-"), text(&error.message))
            }
            UniversalEventData::QuestionAsked { question_asked } => self.question(question_asked),
            UniversalEventData::PermissionAsked { permission_asked } => {
                self.permission(permission_asked)
            }
            UniversalEventData::TurnEnded { turn_ended, .. } => {
                let reason = turn_ended.reason.as_deref().unwrap_or("-");
                let message = turn_ended.message.as_deref().map(text);
                let usage = turn_ended.usage.as_ref().map(|it| self.usage(it));
                let rest: Vec<String> = message.into_iter().chain(usage).collect();
                format!("TURN ENDED {:?} ({reason}) {}", turn_ended.outcome, rest.join(" "))
            }
            UniversalEventData::AskClosed { ask_closed, .. } => format!(
                "closed {} {}",
                self.name('a', &ask_closed.id),
                ask_closed.reply.as_deref().unwrap_or("-")
            ),
            UniversalEventData::Status { status, .. } => format!(
                "status {:?} {}",
                status.state,
                status.message.as_deref().map(text).unwrap_or_default()
            ),
            UniversalEventData::Usage { usage, .. } => self.usage(usage),
            UniversalEventData::Plan { plan, .. } => {
                let items = plan.items.iter();
                let items: Vec<String> =
                    items.map(|item| format!("{:?} {}", item.state, text(&item.text))).collect();
                format!("plan {}", items.join(", "))
            }
            UniversalEventData::Unknown { raw } => format!("unknown {}", tag(raw)),
        }
    }

    fn message(&mut self, message: &UniversalMessageParsed) -> String {
        let id = message.id.as_deref().map(|id| self.name('m', id));
        let mut line = format!("{} {}", id.unwrap_or_default(), message.role);
        let mut metadata = message.metadata.clone();
        if let Some(part) = metadata.remove("part") {
            line += &format!(" {}", self.name('p', part.as_str().unwrap()));
        }
        let is_delta = metadata.remove("delta") == Some(Value::Bool(true));
        line += if is_delta { " +" } else { " =" };
        let parts: Vec<String> = message.parts.iter().map(|part| self.part(part)).collect();
        line += &format!(" {}", parts.join(" | "));
        // When it was.
        metadata.retain(|name, _| name != "completed");
        if !metadata.is_empty() {
            line += &format!(" {}", self.value(&Value::Object(metadata)));
        }
        line
    }

    fn part(&mut self, part: &UniversalMessagePart) -> String {
        let mut call =
            |id: &Option<String>| id.as_deref().map(|id| self.name('c', id)).unwrap_or_default();
        match part {
            UniversalMessagePart::Text { text: it } => text(it),
            UniversalMessagePart::ToolCall { id, name, input } => {
                let id = call(id);
                format!("call {id} {name} {}", self.value(input))
            }
            UniversalMessagePart::ToolResult { id, output, is_error, .. } => {
                let id = call(id);
                let how = match is_error {
                    Some(true) => "failed",
                    Some(false) => "ok",
                    None => "?",
                };
                format!("result {id} {how} {}", self.value(output))
            }
            UniversalMessagePart::File { source, .. } => format!("file {}", place(source)),
            UniversalMessagePart::Image { source, .. } => format!("image {}", place(source)),
            UniversalMessagePart::Error { message } => format!("error {}", text(message)),
            UniversalMessagePart::Unknown { raw } => format!("unknown {}", tag(raw)),
            other => format!("{other:?}"),
        }
    }

    fn permission(&mut self, asked: &PermissionRequest) -> String {
        let tool = asked.tool.as_ref().map(|it| self.name('c', &it.call_id));
        format!(
            "PERMISSION {} {} {:?} always {:?} for {}",
            self.name('a', &asked.id),
            asked.permission,
            asked.patterns,
            asked.always,
            tool.unwrap_or_default()
        )
    }

    fn question(&mut self, asked: &QuestionRequest) -> String {
        let tool = asked.tool.as_ref().map(|it| self.name('c', &it.call_id));
        let questions = asked.questions.iter().map(|one| {
            let options: Vec<String> = one
                .options
                .iter()
                .map(|it| format!("{} ({})", it.label, it.description.as_deref().unwrap_or("-")))
                .collect();
            format!(
                "[{}] {:?} {} custom {:?}",
                one.header.as_deref().unwrap_or("-"),
                one.question,
                options.join(" / "),
                one.custom
            )
        });
        let questions: Vec<String> = questions.collect();
        let form = asked.metadata.get("form").map(ToString::to_string);
        format!(
            "QUESTION {} {} for {} {}",
            self.name('a', &asked.id),
            questions.join("; "),
            tool.unwrap_or_default(),
            form.unwrap_or_default()
        )
    }

    fn usage(&mut self, usage: &TokenUsage) -> String {
        let scope = match &usage.scope {
            UsageScope::Message(id) => self.name('m', id),
            other => format!("{other:?}"),
        };
        let counts = [
            ("in", usage.input_tokens),
            ("out", usage.output_tokens),
            ("thought", usage.reasoning_tokens),
            ("total", usage.total_tokens),
        ];
        let counts =
            counts.into_iter().filter_map(|(name, count)| Some(format!(" {name} {}", count?)));
        let cost = usage.cost_usd.map(|cost| format!(" ${cost}"));
        format!("usage {scope}{}{}", counts.collect::<String>(), cost.unwrap_or_default())
    }

    /// A value as JSON, with names in the place of ids.
    fn value(&mut self, value: &Value) -> String {
        let mut json = value.to_string();
        for (id, name) in self.names.iter().filter(|(id, _)| id.len() > ID_CHARS_MIN) {
            json = json.replace(&format!("\"{id}\""), &format!("<{name}>"));
        }
        cut(&json)
    }
}

fn text(text: &str) -> String {
    cut(&Value::from(text).to_string())
}

fn cut(text: &str) -> String {
    let kept: String = text.chars().take(TEXT_CHARS_MAX).collect();
    let left = text.chars().count() - kept.chars().count();
    match left {
        0 => kept,
        _ => format!("{kept}…(+{left})"),
    }
}

fn place(source: &AttachmentSource) -> String {
    match source {
        AttachmentSource::Path { path } => text(path),
        AttachmentSource::Url { url } => text(url),
        AttachmentSource::Data { data, .. } => text(data),
    }
}

/// What an unknown value calls itself.
fn tag(raw: &Value) -> String {
    let at = |pointer: &str| raw.pointer(pointer).and_then(Value::as_str);
    let tags = [
        "/type",
        "/subtype",
        "/payload/type",
        "/event/type",
        "/event/delta/type",
        "/request/subtype",
        "/response/subtype",
        "/method",
        "/params/update/sessionUpdate",
    ];
    let tags: Vec<&str> = tags.into_iter().filter_map(at).collect();
    match (tags.is_empty(), raw.get("result")) {
        (false, _) => tags.join(" "),
        (true, Some(result)) => format!("result {}", cut(&keys(result))),
        (true, None) => cut(&raw.to_string()),
    }
}

fn keys(value: &Value) -> String {
    let keys = value.as_object().map(|it| it.keys().cloned());
    let mut keys: Vec<String> = keys.into_iter().flatten().collect();
    keys.sort();
    keys.join(",")
}
