//! The buttons of the list of sandboxes that threads share.
//!
//! Only one person sees the list, and for such a message Slack does not say which thread it is in: so the value of each
//! button names the thread.

use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::records::control::{ControlAction, Operation, WhichSandbox};
use bobbin_core::records::message::{Body, Reply};
use bobbin_core::shown::sandboxes::SandboxAction;

use super::actions::{DESTROY_ACTION, KEEP_ACTION, PAGE_ACTION, SANDBOX_ACTION};
use super::commands::NO_THREAD;
use super::endpoint::Asked;
use super::types::BlockAction;

/// A button of the list, or of the question below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Button {
    /// Another page.
    Page(u32),
    /// An action on a sandbox.
    Sandbox(SandboxAction, SandboxKey),
    /// Deletes the sandbox: the person has been told what is lost.
    Destroy(SandboxKey),
    /// Deletes nothing.
    Keep,
}

impl Button {
    /// Its action id: distinct within its block.
    pub(super) fn action_id(&self) -> String {
        match self {
            Self::Page(page) => format!("{PAGE_ACTION}{page}"),
            Self::Sandbox(action, _) => format!("{SANDBOX_ACTION}{}", action.word()),
            Self::Destroy(_) => DESTROY_ACTION.to_owned(),
            Self::Keep => KEEP_ACTION.to_owned(),
        }
    }

    /// Its value: the thread in which it was shown, and the sandbox.
    pub(super) fn value(&self, thread: &ThreadKey) -> String {
        match self {
            Self::Page(_) | Self::Keep => thread.to_string(),
            Self::Sandbox(_, key) | Self::Destroy(key) => format!("{thread} {key}"),
        }
    }

    /// Parses both; `None` if it is not one of these buttons.
    pub(super) fn read(pressed: &BlockAction) -> Option<(Self, ThreadKey)> {
        let id = pressed.action_id.as_str();
        let value = pressed.value.as_deref()?;
        let (thread, key) = value.split_once(' ').unwrap_or((value, ""));
        let thread = thread.parse().ok()?;
        let key = || key.parse::<SandboxKey>().ok();
        let button = if id == KEEP_ACTION {
            Self::Keep
        } else if id == DESTROY_ACTION {
            Self::Destroy(key()?)
        } else if let Some(page) = id.strip_prefix(PAGE_ACTION) {
            Self::Page(page.parse().ok()?)
        } else {
            Self::Sandbox(SandboxAction::parse(id.strip_prefix(SANDBOX_ACTION)?)?, key()?)
        };
        Some((button, thread))
    }

    /// Its request, as a note for the log.
    pub(super) const fn note(&self) -> &'static str {
        match self {
            Self::Page(_) => "sandboxes",
            Self::Sandbox(..) => "sandbox pressed",
            Self::Destroy(_) => "destroy",
            Self::Keep => "nothing destroyed",
        }
    }

    /// Its body for the queue, requested by this person in the thread in which it was shown.
    pub(super) fn body(self, asked: Asked) -> Body {
        let in_thread = is_thread(&asked.thread);
        let operate = |key, operation| ControlAction::Operate {
            sandbox: WhichSandbox::Exactly(key),
            operation,
        };
        let want = match self {
            Self::Page(page) => ControlAction::Sandboxes { page, in_thread },
            Self::Keep => return asked.say("Nothing was destroyed."),
            Self::Destroy(key) => operate(key, Operation::Destroy),
            Self::Sandbox(SandboxAction::Connect, key) => {
                ControlAction::Connect { to: Some(WhichSandbox::Exactly(key)) }
            }
            Self::Sandbox(SandboxAction::Destroy, key) => {
                ControlAction::AskDestroy { sandbox: WhichSandbox::Exactly(key) }
            }
            Self::Sandbox(SandboxAction::Stop, key) => operate(key, Operation::Pause),
            Self::Sandbox(SandboxAction::Start, key) => operate(key, Operation::Resume),
            Self::Sandbox(SandboxAction::Snapshot, key) => operate(key, Operation::Snapshot),
        };
        asked.control(want)
    }
}

/// The requester, placed in the thread that the button names; `None` if that thread is in another channel or belongs to
/// somebody else.
pub(super) fn placed(mut asked: Asked, thread: ThreadKey) -> Option<Asked> {
    let thread_ts = match &thread {
        ThreadKey::Slack { team, channel, root_ts }
            if *team == asked.team && *channel == asked.channel =>
        {
            is_thread(&thread).then(|| root_ts.clone())
        }
        ThreadKey::SlackDirect { team, user } if *team == asked.team && *user == asked.by.id => {
            None
        }
        _ => return None,
    };
    asked.reply =
        Reply::Slack { channel: asked.channel.clone(), thread_ts, user: asked.by.id.clone() };
    asked.thread = thread;
    Some(asked)
}

/// Whether it is a real thread: a command belongs to a channel only.
fn is_thread(thread: &ThreadKey) -> bool {
    !matches!(thread, ThreadKey::Slack { root_ts, .. } if root_ts == NO_THREAD)
}
