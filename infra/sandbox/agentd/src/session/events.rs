//! Events for the log: numbered, dated and bounded.

use bobbin_agent_events::{
    Converted, CrashInfo, EventEnvelope, TurnEnded, UniversalEvent, UniversalEventData,
};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::limits::LINE_BYTES_MAX;
use crate::log::LoggedEvent;
use crate::state::TurnEnd;

/// Fields shared by a session's events, and the numbers used so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbering {
    pub(super) session: String,
    pub(super) last_id: u64,
    pub(super) last_seq: u64,
}

impl Numbering {
    /// The events converted from one input.
    pub(super) fn input(
        &mut self,
        made: Vec<Converted>,
        agent: &str,
        agent_session: Option<&str>,
        turn: Option<&str>,
    ) -> Vec<(LoggedEvent, UniversalEventData)> {
        let timestamp = timestamp();
        let mut events = Vec::with_capacity(made.len());
        for one in made {
            self.last_id += 1;
            self.last_seq += 1;
            let event = one.into_event(EventEnvelope {
                id: self.last_id,
                seq: self.last_seq,
                timestamp: timestamp.clone(),
                session_id: self.session.clone(),
                agent: agent.to_owned(),
                agent_session_id: agent_session.map(str::to_owned),
                turn: turn.map(str::to_owned),
            });
            let (body, event) = bounded(event);
            let logged = LoggedEvent { id: self.last_id, seq: self.last_seq, body };
            events.push((logged, event.data));
        }
        events
    }
}

fn timestamp() -> String {
    chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now())
        .to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// An event's JSON; if longer than a line allows, without the agent's raw message, or without any data.
fn bounded(mut event: UniversalEvent) -> (Box<RawValue>, UniversalEvent) {
    // Half of it, because a log line contains more than the event.
    let fits = |event: &UniversalEvent| {
        to_raw_value(event).ok().filter(|json| json.get().len() <= LINE_BYTES_MAX / 2)
    };
    if let Some(json) = fits(&event) {
        return (json, event);
    }
    event.raw = None;
    if let Some(json) = fits(&event) {
        return (json, event);
    }
    event.data = UniversalEventData::Unknown {
        raw: json!({"omitted": format!("an event of more than {} bytes", LINE_BYTES_MAX / 2)}),
    };
    let json = fits(&event).unwrap_or_default();
    (json, event)
}

/// The daemon's own event for the end of a turn that the agent did not report.
pub(super) fn turn_ended(ended: &TurnEnd) -> Converted {
    Converted {
        agent_session_id: None,
        data: UniversalEventData::TurnEnded {
            turn_ended: TurnEnded {
                outcome: ended.outcome,
                reason: ended.reason.clone(),
                message: ended.message.clone(),
                usage: None,
            },
            raw: json!({"by": "bobbin-agentd", "reason": ended.reason, "message": ended.message}),
        },
        raw: None,
    }
}

/// An error outside any turn.
pub(super) fn failure(kind: &str, message: String) -> Converted {
    Converted {
        agent_session_id: None,
        data: UniversalEventData::Error {
            error: CrashInfo { message, kind: Some(kind.to_owned()), details: None },
        },
        raw: Some(json!({"by": "bobbin-agentd", "kind": kind})),
    }
}

#[cfg(test)]
mod tests {
    use bobbin_agent_events::{Converter, UniversalEventData};

    use super::*;

    #[test]
    fn event_numbers_are_unique() {
        let mut converter = Converter::of("claude");
        let mut numbering = Numbering { session: "thread-1".to_owned(), ..Numbering::default() };
        let text = |text: &str| json!({"type": "text", "text": text});
        let content = json!([text("one"), text("two")]);
        let message = json!({"id": "m", "role": "assistant", "content": content});
        let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}});
        let questions = json!({"questions": [{"question": "Which?", "options": []}]});
        let question =
            json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": questions});
        let lines = [
            json!({"type": "assistant", "session_id": "own", "message": message}),
            json!({"type": "control_request", "request_id": "r", "request": request}),
            json!({"type": "control_request", "request_id": "q", "request": question}),
        ];
        let mut numbers = Vec::new();
        let mut asked = Vec::new();
        for line in lines {
            let made = converter.convert(line);
            for (event, data) in numbering.input(made, "claude", Some("own"), None) {
                numbers.push((event.id, event.seq));
                match data {
                    UniversalEventData::PermissionAsked { permission_asked } => {
                        asked.push(permission_asked.session_id);
                    }
                    UniversalEventData::QuestionAsked { question_asked } => {
                        asked.push(question_asked.session_id);
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(numbers, [(1, 1), (2, 2), (3, 3), (4, 4)]);
        assert_eq!(asked, ["thread-1", "thread-1"]);
    }
}
