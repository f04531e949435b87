//! Shared parts of all converters.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::event::{Started, UniversalEvent, UniversalEventData};
use crate::message::UniversalMessage;

/// Result of converting one raw value: the part of an event that comes from the agent's output.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The agent's own session id, if the value names it.
    pub agent_session_id: Option<String>,
    /// The event's data.
    pub data: UniversalEventData,
    /// The raw value, in the first of its events only, unless `data` has it.
    pub raw: Option<Value>,
}

/// The part of an event that does not come from the agent's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventEnvelope {
    /// Its position in the session's log, from 1.
    pub id: u64,
    /// Its number among the session's events, from 1.
    pub seq: u64,
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// The client's id of the session.
    pub session_id: String,
    /// Name of the agent.
    pub agent: String,
    /// The agent's session id, for values that do not name it.
    pub agent_session_id: Option<String>,
    /// The client's id of the turn.
    pub turn: Option<String>,
}

impl Converted {
    /// The raw value, from either field. Of one value's events only the first has it; for the others it is `None` or
    /// null.
    #[must_use]
    pub fn raw(&self) -> Option<&Value> {
        self.raw.as_ref().or_else(|| self.data.raw())
    }

    /// Whether it ends a turn of this session of the agent, and not one of a subagent's.
    #[must_use]
    pub fn ends_turn_of(&self, agent_session: Option<&str>) -> bool {
        let is_own = match (self.agent_session_id.as_deref(), agent_session) {
            (Some(named), Some(own)) => named == own,
            _ => true,
        };
        is_own && matches!(self.data, UniversalEventData::TurnEnded { .. })
    }

    /// Builds the event.
    #[must_use]
    pub fn into_event(mut self, envelope: EventEnvelope) -> UniversalEvent {
        // The answer goes to the session by the client's id.
        match &mut self.data {
            UniversalEventData::PermissionAsked { permission_asked } => {
                permission_asked.session_id.clone_from(&envelope.session_id);
            }
            UniversalEventData::QuestionAsked { question_asked } => {
                question_asked.session_id.clone_from(&envelope.session_id);
            }
            _ => {}
        }
        UniversalEvent {
            id: envelope.id,
            seq: envelope.seq,
            timestamp: envelope.timestamp,
            session_id: envelope.session_id,
            agent: envelope.agent,
            agent_session_id: self.agent_session_id.or(envelope.agent_session_id),
            turn: envelope.turn,
            data: self.data,
            raw: self.raw,
        }
    }
}

/// The data understood from a raw value: empty if this language has no word for it, an error if its tag is known and
/// the rest violates its schema.
pub(crate) type Understood = Result<Vec<UniversalEventData>, serde_json::Error>;

/// Attaches the raw value to the understood data.
pub(crate) fn finish(
    agent_session_id: Option<String>,
    understood: Understood,
    raw: Value,
) -> Vec<Converted> {
    let of = |data, raw| Converted { agent_session_id: agent_session_id.clone(), data, raw };
    let mut all = match understood {
        Ok(all) => all.into_iter(),
        Err(error) => {
            let error = Some(error.to_string());
            let message = UniversalMessage::Unparsed { raw, error };
            return vec![of(UniversalEventData::Message { message }, None)];
        }
    };
    let Some(mut first) = all.next() else {
        return vec![of(UniversalEventData::Unknown { raw }, None)];
    };
    let outside = match first.raw_mut() {
        Some(inside) => {
            *inside = raw;
            None
        }
        None => Some(raw),
    };
    let mut converted = vec![of(first, outside)];
    converted.extend(all.map(|data| of(data, None)));
    converted
}

/// Decodes a value as a type of a schema.
pub(crate) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
}

/// The session's first line, decoded as this type.
pub(crate) fn started<T: DeserializeOwned + Serialize>(
    line: &Value,
) -> Result<UniversalEventData, serde_json::Error> {
    let details = serde_json::to_value(decode::<T>(line)?).ok();
    let message = None;
    Ok(Started { message, details }.into())
}

/// The text at this JSON pointer.
pub(crate) fn text_at(raw: &Value, pointer: &str) -> Option<String> {
    raw.pointer(pointer)?.as_str().map(str::to_owned)
}

/// The tag of a value: one of its text fields.
pub(crate) fn tag<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A count from an agent's number: negative becomes zero, and beyond the range the maximum.
pub(crate) fn count(number: f64) -> u64 {
    number as u64
}

/// The count at this JSON pointer.
pub(crate) fn count_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_f64().map(count)
}

/// The text, unless it is empty.
pub(crate) fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
