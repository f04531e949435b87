//! What a person's overview is about: the threads of their workspace, or of one channel.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::records::message::{Overview, Reply, Surface};

use super::commands::NO_THREAD;
use super::direct::is_direct_channel;
use crate::chat::OverviewScope;

/// The scope of this overview.
///
/// # Errors
/// Its ids are not Slack's.
pub(crate) fn scope(overview: &Overview) -> Result<OverviewScope, Failure> {
    let (team, user) = (overview.team.as_str(), overview.by.id.as_str());
    let own = ThreadKey::slack(team, user, NO_THREAD)
        .map_err(|e| Failure::NonRecoverable { advice: e.to_string() })?;
    let channel = match &overview.place {
        Surface::Home => None,
        Surface::Answer { channel, .. } => Some(channel.as_str()),
    };
    Ok(OverviewScope {
        own,
        reply: Reply::Slack { channel: user.to_owned(), thread_ts: None, user: user.to_owned() },
        prefix: match channel {
            Some(channel) => format!("slack:{team}:{channel}:"),
            None => format!("slack:{team}:"),
        },
        // Direct messages may be one thread whose key does not name the channel.
        further: channel
            .filter(|channel| is_direct_channel(channel))
            .and_then(|_| ThreadKey::slack_direct(team, user).ok()),
        begun,
    })
}

/// The time in a thread's key.
fn begun(thread: &ThreadKey) -> &str {
    match thread {
        ThreadKey::Slack { root_ts, .. } => root_ts,
        // Has no time: the newest.
        ThreadKey::SlackDirect { .. } => "~",
        _ => "",
    }
}
