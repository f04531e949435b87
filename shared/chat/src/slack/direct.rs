//! Direct messages: each one is a thread by its `ts`, or all of a person's are one thread, as their workspace
//! configures it.
//!
//! The settings decide when the message comes. What belongs to an earlier message goes to that one's thread
//! ([`Direct::after`]). If a message of ours is the thread's first, nothing is read: only where all direct messages
//! of a person are one thread are our posts under no message.

use bobbin_core::base::ids::{Tenant, ThreadKey, TurnId};

use super::endpoint::message_id;
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

/// Whether the thread is in a person's direct messages with the app.
pub(crate) fn is_direct_thread(thread: &ThreadKey) -> bool {
    match thread {
        ThreadKey::Slack { channel, .. } => is_direct_channel(channel),
        ThreadKey::SlackDirect { .. } => true,
        ThreadKey::Discord { .. } | ThreadKey::Sandbox(_) => false,
    }
}

/// The message with which a thread of direct messages began; `None` for a person's one thread.
pub(crate) fn begun_by(thread: &ThreadKey) -> Option<TurnId> {
    match thread {
        ThreadKey::Slack { team, channel, root_ts } if is_direct_channel(channel) => {
            Some(message_id(team, channel, root_ts, &[]).into())
        }
        _ => None,
    }
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
    let (Some(tenant), Some(channel), Some(root)) = (envelope.tenant(), event.channel.get(), root)
    else {
        return read(DirectThreads::EachMessage);
    };
    if envelope.bot().is_some() && told.parent_user_id.get() == envelope.bot() {
        return read(DirectThreads::OneEach);
    }
    let earlier = (event.ts.as_deref() != Some(root)).then_some((channel, root));
    either(tenant, earlier, read)
}

/// Result in the message's own thread, or, if the settings say so, in the person's one thread. What belongs to an
/// `earlier` message (channel and `ts`) goes to that one's thread.
pub(super) fn either(
    tenant: &str,
    earlier: Option<(&str, &str)>,
    read: impl Fn(DirectThreads) -> Inbound,
) -> Inbound {
    let own = read(DirectThreads::EachMessage);
    let one = read(DirectThreads::OneEach).enqueue;
    let direct = one.filter(|body| own.enqueue.as_ref().is_some_and(|own| own != body));
    let after = earlier.map(|(channel, ts)| message_id(tenant, channel, ts, &[]).into());
    Inbound {
        direct: direct.map(|body| Box::new(Direct { tenant: Tenant::slack(tenant), after, body })),
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
