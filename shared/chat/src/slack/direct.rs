//! Direct messages: each one a thread of its own by its `ts`, or all of a person one thread, as their workspace wants it.
//!
//! Which it is follows from when the thread's first message was sent, so that a retry of Slack's, and an answer inside a
//! thread that began under the other setting, come out where the first did. Where a message of ours is the first of a
//! thread no setting is asked: only where all of a person's direct messages are one thread our posts stand under no message.

use bobbin_core::base::ids::{Ms, Tenant};

use super::types::{Envelope, Event};
use crate::Inbound;
use crate::inbound::Direct;

/// What the threads of direct messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// Each message begins one, and answers in it belong to it.
    EachMessage,
    /// Each person has one.
    OneEach,
}

/// Whether it happened in the direct messages of a person with the app.
pub(super) fn is_direct(event: &Event) -> bool {
    event.channel_type.as_deref() == Some("im")
        || event.channel.get().is_some_and(is_direct_channel)
}

/// Whether a channel is one of direct messages between two.
pub(super) fn is_direct_channel(channel: &str) -> bool {
    channel.starts_with('D')
}

/// The time of a `ts`, by Slack's clock; 0 of what is none.
pub(super) fn sent_ms(ts: &str) -> Ms {
    let (seconds, micros) = ts.split_once('.').unwrap_or((ts, "0"));
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    // Slack always writes six digits behind the point, so they are microseconds.
    number(seconds).saturating_mul(1_000).saturating_add(number(micros) / 1_000)
}

/// Reads an event of direct messages with `read`, which says what it comes to with this kind of threads.
pub(super) fn taken(
    envelope: &Envelope,
    event: &Event,
    read: impl Fn(Threads) -> Inbound,
) -> Inbound {
    let told = event.previous_message.as_deref().unwrap_or(event);
    let begins = [&told.thread_ts, &event.deleted_ts, &event.ts];
    let root = begins.into_iter().find_map(Option::as_deref);
    let (Some(root), Some(tenant)) = (root, envelope.tenant()) else {
        return read(Threads::EachMessage);
    };
    if envelope.bot().is_some() && told.parent_user_id.get() == envelope.bot() {
        return read(Threads::OneEach);
    }
    either(tenant, root, read)
}

/// What something comes to whose thread begins with the message `root`: in the thread of that message, or where the
/// settings say so in the one of the person.
pub(super) fn either(tenant: &str, root: &str, read: impl Fn(Threads) -> Inbound) -> Inbound {
    let own = read(Threads::EachMessage);
    let one = read(Threads::OneEach).enqueue;
    let direct = one.filter(|body| own.enqueue.as_ref().is_some_and(|own| own != body));
    Inbound {
        direct: direct.map(|body| {
            Box::new(Direct { tenant: Tenant::slack(tenant), sent_ms: sent_ms(root), body })
        }),
        ..own
    }
}

/// The threads of a message of ours in direct messages that somebody presses a button on.
pub(super) fn of_post(channel: &str, stands_at: Option<&str>, root: Option<&str>) -> Threads {
    if is_direct_channel(channel) && stands_at == root {
        Threads::OneEach
    } else {
        Threads::EachMessage
    }
}

/// Whether a message that somebody uses the shortcut on can be one of their direct messages with the app: it is theirs, or
/// an app's. Between two people the other one's is not.
pub(super) fn may_be_ours(message: &Event, user: &str) -> bool {
    message.bot_id.is_some() || message.user.get() == Some(user)
}
