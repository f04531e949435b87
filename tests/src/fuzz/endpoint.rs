//! Properties of everything that a chat's endpoint accepts, on either platform.

use bobbin_chat::{HttpAnswer, Inbound};
use bobbin_core::base::ids::Tenant;
use bobbin_core::records::control::ControlAction;
use bobbin_core::records::message::{Body, Work};
use serde_json::Value;

/// SQS's maximum length of a deduplication id and a message group id.
const QUEUE_ID_CHARS_MAX: usize = 128;

/// Refused as unsigned: nothing is done, and nothing of the request is said back.
pub(super) fn refused(inbound: &Inbound) {
    assert_eq!(inbound.answer.status, 401, "{inbound:?}");
    assert_eq!(inbound.on_queue_failure, inbound.answer, "{inbound:?}");
    assert_eq!(inbound.enqueue, None, "{inbound:?}");
    assert!(inbound.answer.body.len() < 100, "{inbound:?}");
}

/// Signed: a known status, readable JSON, and work that the queue takes and the worker reads.
pub(super) fn taken(inbound: &Inbound, tenant: &str) {
    for answer in [&inbound.answer, &inbound.on_queue_failure] {
        assert!([200, 400, 413, 503].contains(&answer.status), "status of {inbound:?}");
        json(answer);
    }
    let Some(body) = &inbound.enqueue else {
        assert_eq!(inbound.on_queue_failure, inbound.answer, "{inbound:?}");
        return;
    };
    assert_eq!(inbound.answer.status, 200, "{inbound:?}");
    worked_on(body, tenant);
    if let Some(direct) = &inbound.direct {
        worked_on(&direct.body, tenant);
    }
}

/// A queued body can be read again, has valid names, and belongs to somebody of this tenant.
fn worked_on(body: &Body, tenant: &str) {
    let written = body.encode();
    assert_eq!(&Body::decode(&written).expect("the worker reads it"), body, "{written}");
    for name in [body.id(), &body.group()] {
        assert!(
            (1..=QUEUE_ID_CHARS_MAX).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_graphic()),
            "the queue refuses the id or group {name:?}"
        );
    }
    let operates = match &mut body.clone() {
        Body::Open(open) => open.prompt.membership.operates,
        body => body.membership_mut().is_some_and(|membership| membership.operates),
    };
    assert!(!operates, "nobody outside runs the stack: {body:?}");
    let (of, by) = match body {
        Body::Message(message) => {
            let by = match &message.work {
                Work::Prompt(prompt) => &prompt.by,
                Work::Reset { by, .. } | Work::Name { by, .. } | Work::Connect { by, .. } => by,
                Work::Sweep
                | Work::Poll
                | Work::Reconcile
                | Work::DeadLetter { .. }
                | Work::Create(_)
                | Work::Build(_)
                | Work::Publish { .. }
                | Work::Operate { .. } => {
                    panic!("nobody outside may ask for {:?}", message.work)
                }
            };
            (message.thread.tenant(), by)
        }
        Body::Open(open) => (Tenant::discord(&open.guild), &open.prompt.by),
        Body::Control(control) => {
            assert!(
                !matches!(control.want, ControlAction::Halt { .. }),
                "nobody outside may halt a turn"
            );
            (control.thread.tenant(), &control.by)
        }
        Body::Overview(overview) => (Tenant::slack(&overview.team), &overview.by),
        Body::Announce(_) | Body::DeadLetters(_) | Body::Forge(_) => {
            panic!("no platform says that something waits")
        }
    };
    assert_eq!(of.as_str(), tenant, "work for a tenant that is not allowed");
    assert!(!by.id.is_empty(), "work of nobody: {body:?}");
}

/// Whether the only effect is an answer to the person.
pub(super) fn only_a_word(inbound: &Inbound) -> bool {
    match &inbound.enqueue {
        None => true,
        Some(Body::Control(control)) => matches!(control.want, ControlAction::Say { .. }),
        Some(Body::Overview(overview)) => overview.refused.is_some() && overview.change.is_none(),
        Some(_) => false,
    }
}

/// The body of an answer that says that it is JSON.
pub(super) fn json(answer: &HttpAnswer) -> Option<Value> {
    (answer.content_type == "application/json")
        .then(|| serde_json::from_str(&answer.body).expect("an answer that says JSON is JSON"))
}

/// A channel that no input can name: it depends on all of it.
pub(super) fn nowhere(input: &[u8]) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(input))
}
