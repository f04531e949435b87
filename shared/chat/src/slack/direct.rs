//! Direct messages: each one is a thread by its `ts`, or all of a person's are one thread, as their workspace
//! configures it.
//!
//! The choice depends on when the thread's first message was sent. So a retry by Slack, and a reply in a thread that
//! began under the other setting, end up in the same thread as the first. If a message of ours is the thread's first,
//! no setting is read: only where all direct messages of a person are one thread are our posts under no message.

use bobbin_core::base::ids::{Ms, Tenant};

use super::types::{EventPayload, SlackEvent};
use crate::Inbound;
use crate::inbound::Direct;

/// How direct messages form threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectThreads {
    /// Each message begins a thread, and replies in it belong to it.
    EachMessage,
    /// Each person has one thread.
    OneEach,
}

/// Whether it happened in a person's direct messages with the app.
pub(super) fn is_direct(event: &SlackEvent) -> bool {
    event.channel_type.as_deref() == Some("im")
        || event.channel.get().is_some_and(is_direct_channel)
}

/// Whether a channel holds the direct messages of two.
pub(super) fn is_direct_channel(channel: &str) -> bool {
    channel.starts_with('D')
}

/// The time of a `ts`, by Slack's clock; 0 for an invalid one.
pub(super) fn sent_ms(ts: &str) -> Ms {
    let (seconds, micros) = ts.split_once('.').unwrap_or((ts, "0"));
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    // Slack always writes six digits after the point, so they are microseconds.
    number(seconds).saturating_mul(1_000).saturating_add(number(micros) / 1_000)
}

/// Reads an event in direct messages; `read` returns its result for either kind of threads.
pub(super) fn taken(
    envelope: &EventPayload,
    event: &SlackEvent,
    read: impl Fn(DirectThreads) -> Inbound,
) -> Inbound {
    let told = event.previous_message.as_deref().unwrap_or(event);
    let begins = [&told.thread_ts, &event.deleted_ts, &event.ts];
    let root = begins.into_iter().find_map(Option::as_deref);
    let (Some(root), Some(tenant)) = (root, envelope.tenant()) else {
        return read(DirectThreads::EachMessage);
    };
    if envelope.bot().is_some() && told.parent_user_id.get() == envelope.bot() {
        return read(DirectThreads::OneEach);
    }
    either(tenant, root, read)
}

/// Result of something whose thread begins with the message `root`: in that message's thread, or, if the settings say
/// so, in the person's one thread.
pub(super) fn either(tenant: &str, root: &str, read: impl Fn(DirectThreads) -> Inbound) -> Inbound {
    let own = read(DirectThreads::EachMessage);
    let one = read(DirectThreads::OneEach).enqueue;
    let direct = one.filter(|body| own.enqueue.as_ref().is_some_and(|own| own != body));
    Inbound {
        direct: direct.map(|body| {
            Box::new(Direct { tenant: Tenant::slack(tenant), sent_ms: sent_ms(root), body })
        }),
        ..own
    }
}

/// The kind of threads for a click on one of our messages in direct messages.
pub(super) fn of_post(channel: &str, stands_at: Option<&str>, root: Option<&str>) -> DirectThreads {
    if is_direct_channel(channel) && stands_at == root {
        DirectThreads::OneEach
    } else {
        DirectThreads::EachMessage
    }
}

/// Whether the target of a shortcut can be one of the person's direct messages with the app: written by them or by an
/// app. In direct messages between two people, the other person's message is not.
pub(super) fn may_be_ours(message: &SlackEvent, user: &str) -> bool {
    message.bot_id.is_some() || message.user.get() == Some(user)
}
