//! Shared by all endpoints: the app, the order of checks, ids, and how an outcome becomes an answer.

use bobbin_core::base::ids::{Ms, ThreadKey, digest};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Reply};
use bobbin_core::tenant::access::Policy;
use serde_json::{Map, Value, json};

use super::direct::DirectThreads;
use super::limits::{BODY_BYTES_MAX, MESSAGE_ID_CHARS_MAX};
use super::verify::{Unverified, verify};
use super::who::{AccessDecision, admission};
use crate::endpoints::BAD_SIGNATURE;
use crate::{HttpAnswer, Inbound};

/// The Slack app: what ingress needs of it.
#[derive(Clone, Default)]
pub struct App {
    /// Signing secret; empty: nothing is accepted.
    pub signing_secret: String,
    /// Who may use Bobbin.
    pub policy: Policy,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The raw request with its signature headers.
pub(super) struct SignedRequest<'a> {
    pub(super) raw: &'a [u8],
    pub(super) signature: &'a str,
    pub(super) timestamp: &'a str,
}

impl SignedRequest<'_> {
    /// Why the request is refused, if it is: size is checked first, then the signature. Only after that may the body be
    /// read.
    pub(super) fn refusal(&self, app: &App, now_ms: Ms) -> Option<Inbound> {
        if self.raw.len() > BODY_BYTES_MAX {
            let answer = HttpAnswer::text(413, "The body is larger than 1 MiB.");
            return Some(Inbound::only(answer, "oversized body"));
        }
        let why =
            verify(&app.signing_secret, self.signature, self.timestamp, self.raw, now_ms).err()?;
        let note = match why {
            Unverified::NoSecret => "no signing secret",
            Unverified::Timestamp => "bad timestamp",
            Unverified::Signature => BAD_SIGNATURE,
        };
        let answer = HttpAnswer::text(401, "The request signature is not valid.");
        Some(Inbound::only(answer, note))
    }
}

/// Reply if the queue does not accept: Slack does not retry commands and interactivity.
pub(super) const NOT_TAKEN: &str =
    "Bobbin could not accept that just now. Please try again in a minute.";

/// Accepted, with nothing to show: the answer comes later. If the queue refuses it, the person is told.
pub(super) fn accept(body: Body, note: &'static str) -> Inbound {
    Inbound {
        enqueue: Some(body),
        on_queue_failure: ephemeral(NOT_TAKEN),
        ..Inbound::only(HttpAnswer::text(200, ""), note)
    }
}

/// Acknowledged, nothing to do.
pub(super) fn nothing(note: &'static str) -> Inbound {
    Inbound::only(HttpAnswer::text(200, ""), note)
}

/// Signed, but not a payload of Slack.
pub(super) fn malformed(what: &str) -> Inbound {
    Inbound::only(HttpAnswer::text(400, what), "malformed body")
}

/// A text that only the person sees, as the answer to their own request.
pub(super) fn ephemeral(text: &str) -> HttpAnswer {
    HttpAnswer::json(
        &json!({ "response_type": "ephemeral", "replace_original": false, "text": text }),
    )
}

/// Parses a JSON object.
pub(super) fn object(text: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(text).ok()
}

/// The fields of a form.
pub(super) fn form(raw: &[u8]) -> std::collections::BTreeMap<String, String> {
    form_urlencoded::parse(raw)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// The id of a message's work: the same for its two events and every retry, because it is derived from the message
/// *itself* (tenant, channel, `ts`), never from the event's id. Further parts identify a click on it.
///
/// Written `slack_<team>_<channel>_<ts>…`; a thread key's parts contain no `_`. An id longer than SQS allows becomes a
/// digest.
#[must_use]
pub fn message_id(team: &str, channel: &str, ts: &str, further: &[&str]) -> String {
    let mut parts = vec!["slack", team, channel, ts];
    parts.extend(further);
    let plain = |part: &&str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
    };
    let id = parts.join("_");
    if id.len() <= MESSAGE_ID_CHARS_MAX && parts.iter().all(plain) {
        id
    } else {
        format!("slack_{}", digest(&parts))
    }
}

/// The `ts` of the turn's message, if its id contains it: nothing of the turn was posted before.
#[must_use]
pub fn message_ts(id: &str) -> Option<&str> {
    Some(message_place(id)?.1)
}

/// Channel and `ts` of the turn's message, if its id contains them.
pub(super) fn message_place(id: &str) -> Option<(&str, &str)> {
    let mut parts = id.strip_prefix("slack_")?.splitn(4, '_');
    let (_team, channel, ts) = (parts.next()?, parts.next()?, parts.next()?);
    Some((channel, ts))
}

/// Where and by whom something was asked: all that an outcome needs.
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) team: String,
    pub(super) channel: String,
    pub(super) thread: ThreadKey,
    pub(super) by: Person,
    pub(super) reply: Reply,
    pub(super) membership: Membership,
}

impl Asked {
    /// The same request in the thread for this kind of direct messages: replies to the person are also posted there,
    /// under no message.
    pub(super) fn within(mut self, threads: DirectThreads) -> Option<Self> {
        if threads == DirectThreads::OneEach {
            self.thread = ThreadKey::slack_direct(&self.team, &self.by.id).ok()?;
            if let Reply::Slack { thread_ts, .. } = &mut self.reply {
                *thread_ts = None;
            }
        }
        Some(self)
    }

    /// The policy's decision.
    pub(super) fn admission(&self, policy: &Policy, external: bool) -> AccessDecision {
        admission(policy, &self.team, external, &self.channel, &self.by.id)
    }

    pub(super) fn control(self, want: ControlAction) -> Body {
        Body::Control(Control {
            id: self.id,
            thread: self.thread,
            by: self.by,
            reply: self.reply,
            membership: self.membership,
            want,
        })
    }

    pub(super) fn say(self, text: impl Into<String>) -> Body {
        self.control(ControlAction::Say { text: text.into() })
    }
}

/// Enqueues the body; answers 503 if the queue is unavailable, so that Slack tries again.
pub(super) fn take(body: Body, note: &'static str) -> Inbound {
    Inbound {
        enqueue: Some(body),
        on_queue_failure: HttpAnswer::text(
            503,
            "The queue accepts nothing right now; please send it again.",
        ),
        ..Inbound::only(HttpAnswer::text(200, ""), note)
    }
}
