//! Requests from the app's Home: opening it, choosing a default, stopping a run.
//!
//! [`super::render::home`] draws its elements; both use the ids below.

use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::base::person::{Membership, Person};
use bobbin_core::records::control::{Control, ControlAction};
use bobbin_core::records::message::{Body, Overview, Reply, Surface};
use bobbin_core::tenant::access::{Policy, Refusal};
use bobbin_core::tenant::settings::{DefaultKind, SettingsChange};

use super::endpoint::take;
use super::endpoint::{App, message_id, nothing};
use super::types::{BlockAction, EventPayload, InteractionPayload, SlackEvent};
use super::who::{AccessDecision, EXTERNAL, admission};
use crate::Inbound;

/// Prefix of the action id of a default's select; the kind's name follows.
pub(super) const DEFAULT_ACTION: &str = "v1:default:";
/// Prefix of the action id of the button that clears a default; the kind's name follows.
pub(super) const CLEAR_ACTION: &str = "v1:clear:";
/// Prefix of the action id of the button that stops a run; the run's number in the list follows, because the ids of a
/// view's elements must differ. The value is `<channel> <root ts> <turn>`, or `dm <user> <turn>` in direct messages.
pub(super) const STOP_ACTION: &str = "v1:home-stop:";

/// Replaces the channel for a run in direct messages.
const DIRECT: &str = "dm";

/// The action id of a default's select.
pub(super) fn default_action(of: DefaultKind) -> String {
    format!("{DEFAULT_ACTION}{}", of.word())
}

/// The action id of the button that clears a default.
pub(super) fn clear_action(of: DefaultKind) -> String {
    format!("{CLEAR_ACTION}{}", of.word())
}

/// The value of a Home's Stop button.
pub(super) fn stop_value(thread: &ThreadKey, turn: &TurnId) -> Option<String> {
    match thread {
        ThreadKey::Slack { channel, root_ts, .. } => Some(format!("{channel} {root_ts} {turn}")),
        ThreadKey::SlackDirect { user, .. } => Some(format!("{DIRECT} {user} {turn}")),
        _ => None,
    }
}

/// Somebody opened the app. The Home shows their running tasks; the Messages tab needs nothing.
pub(super) fn opened(envelope: &EventPayload, event: &SlackEvent, app: &App) -> Inbound {
    if event.tab != "home" {
        return nothing("tab that shows itself");
    }
    let (Some(team), Some(user)) = (envelope.tenant(), event.user.get()) else {
        return nothing("home with ids that cannot be used");
    };
    let at = event.event_ts.as_deref().unwrap_or("0");
    let by = Person { id: user.to_owned(), name: user.to_owned() };
    overview(team, by, at, envelope.external(event), None, &app.policy)
}

/// Handles a click or choice on the Home.
pub(super) fn acted(interaction: &InteractionPayload, app: &App) -> Inbound {
    let Some(team) = interaction.tenant() else {
        return nothing("home with ids that cannot be used");
    };
    let user = &interaction.user;
    let name = [&user.name, &user.username, &user.id]
        .into_iter()
        .find(|name| !name.is_empty())
        .cloned()
        .unwrap_or_default();
    let by = Person { id: user.id.clone(), name };
    for action in &interaction.actions {
        let at = action.action_ts.as_deref().or(interaction.action_ts.as_deref()).unwrap_or("0");
        let external = interaction.external();
        if let Some(change) = change(action) {
            return overview(team, by, at, external, Some(change), &app.policy);
        }
        if action.action_id.starts_with(STOP_ACTION) {
            return stop(team, by, at, external, action, &app.policy);
        }
    }
    nothing("element not in use")
}

fn change(action: &BlockAction) -> Option<SettingsChange> {
    let of = |word: &str, value: Option<String>| {
        Some(SettingsChange::Default { channel: None, of: DefaultKind::named(word)?, value })
    };
    if let Some(word) = action.action_id.strip_prefix(CLEAR_ACTION) {
        return of(word, None);
    }
    let word = action.action_id.strip_prefix(DEFAULT_ACTION)?;
    let chosen = action.selected_option.as_ref()?.value.clone()?;
    of(word, Some(chosen))
}

/// The kind of default that this element sets.
pub(super) fn kind_of(action_id: &str) -> Option<DefaultKind> {
    DefaultKind::named(action_id.strip_prefix(DEFAULT_ACTION)?)
}

fn overview(
    team: &str,
    by: Person,
    at: &str,
    external: bool,
    change: Option<SettingsChange>,
    policy: &Policy,
) -> Inbound {
    if ThreadKey::slack(team, &by.id, "0").is_err() {
        return nothing("home with ids that cannot be used");
    }
    let refused = match policy.slack_home(team, &by.id) {
        Err(Refusal::Tenant) => return nothing("unknown tenant"),
        _ if external => Some(EXTERNAL.to_owned()),
        Err(refusal) => Some(refusal.to_string()),
        Ok(()) => None,
    };
    let note = match (&refused, &change) {
        (Some(_), _) => "refused by policy",
        (None, Some(_)) => "config",
        (None, None) => "home",
    };
    take(
        Body::Overview(Overview {
            id: message_id(team, &by.id, at, &["home"]),
            team: team.to_owned(),
            by,
            place: Surface::Home,
            change: change.filter(|_| refused.is_none()),
            refused,
        }),
        note,
    )
}

fn stop(
    team: &str,
    by: Person,
    at: &str,
    external: bool,
    action: &BlockAction,
    policy: &Policy,
) -> Inbound {
    let value = action.value.as_deref().unwrap_or_default();
    let mut parts = value.splitn(3, ' ');
    let parts = (parts.next(), parts.next(), parts.next());
    let (Some(channel), Some(root), Some(turn)) = parts else {
        return nothing("element not in use");
    };
    // Direct messages are identified by their person: a reply goes to that person, and nobody stops another's run.
    let is_direct = channel == DIRECT;
    if is_direct && root != by.id {
        return nothing("direct messages of somebody else");
    }
    let thread = if is_direct {
        ThreadKey::slack_direct(team, root)
    } else {
        ThreadKey::slack(team, channel, root)
    };
    let Ok(thread) = thread else {
        return nothing("home with ids that cannot be used");
    };
    let reply = Reply::Slack {
        channel: if is_direct { &by.id } else { channel }.to_owned(),
        thread_ts: (!is_direct).then(|| root.to_owned()),
        user: by.id.clone(),
    };
    let control = |want, by: Person| {
        Body::Control(Control {
            id: message_id(team, channel, root, &[at, &by.id]),
            thread,
            reply,
            membership: Membership { channel: channel.to_owned(), ..Membership::default() },
            by,
            want,
        })
    };
    match admission(policy, team, external, channel, &by.id) {
        AccessDecision::Stranger => nothing("unknown tenant"),
        AccessDecision::Refused(text) => {
            take(control(ControlAction::Say { text }, by), "refused by policy")
        }
        AccessDecision::Admitted => {
            let turn = Some(turn.into());
            take(control(ControlAction::Stop { turn }, by), "stop")
        }
    }
}
