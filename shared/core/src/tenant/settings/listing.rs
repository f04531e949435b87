//! Settings as text, for people who ask to see them or have changed them.

use super::{Changed, DefaultKind, Settings, SettingsChange, SettingsList};
use crate::base::ids::Ms;
use crate::tenant::budgets::BudgetKind;
use crate::tenant::environments::{OFF, OWN};
use crate::tenant::keys::Key;
use crate::tenant::own_keys;
use crate::tenant::project_networks::NetworkAccess;
use crate::tenant::project_secrets::SecretRequest;
use crate::tenant::selection::Selection;
use crate::text::{and_more, dollars, span};

/// Changes that the listing shows.
const CHANGES_SHOWN: usize = 5;
/// Ids of one list that the listing shows.
const IDS_SHOWN: usize = 20;

/// The settings as lines, seen from one channel; `name` formats an id as the platform shows it.
#[must_use]
pub fn listing(
    settings: &Settings,
    here: &str,
    now_ms: Ms,
    name: impl Fn(SettingsList, &str) -> String,
) -> String {
    let list = |list: SettingsList, ids: &std::collections::BTreeSet<String>, all: &str| {
        if ids.is_empty() {
            return all.to_owned();
        }
        let shown: Vec<String> = ids.iter().take(IDS_SHOWN).map(|id| name(list, id)).collect();
        and_more(&shown, ids.len().saturating_sub(IDS_SHOWN))
    };
    let mut lines = vec![
        format!(
            "Channels: {}",
            list(
                SettingsList::Channels,
                &settings.open_channels,
                "all channels that the operator allows"
            )
        ),
        format!(
            "People: {}",
            list(SettingsList::People, &settings.open_to, "everyone whom the operator allows")
        ),
        format!("Defaults: {}", selection(&settings.defaults)),
    ];
    let own = settings.channels.get(here);
    lines.push(format!(
        "Defaults of this channel: {}",
        own.map_or_else(|| "none of its own".to_owned(), selection)
    ));
    let others = settings.channels.keys().filter(|id| *id != here).count();
    if others > 0 {
        lines.push(format!("Other channels with their own defaults: {others}"));
    }
    if settings.direct_in_one_thread {
        lines.push(format!("Direct messages: {}", direct(true)));
    }
    let open = [
        ("Repositories of the forge", settings.repositories.of(None)),
        ("Repositories of this channel", settings.repositories.of(Some(here))),
    ];
    for (what, names) in open {
        let Some(names) = names.filter(|names| !names.is_empty()) else { continue };
        let shown: Vec<&str> = names.iter().take(IDS_SHOWN).map(String::as_str).collect();
        let names = and_more(&shown, names.len().saturating_sub(IDS_SHOWN));
        lines.push(format!("{what}: {names}"));
    }
    let budgets = BudgetKind::ALL.into_iter().filter_map(|kind| {
        Some(format!("{} {}", kind.label(), dollars(settings.budgets.of(kind)?)))
    });
    let budgets: Vec<String> = budgets.collect();
    let budgets = if budgets.is_empty() { "none".to_owned() } else { budgets.join(", ") };
    lines.push(format!("Budgets: {budgets}"));
    let environments = settings
        .environments
        .all()
        .map(|(name, is_off)| if is_off { format!("{name} (off)") } else { name.to_owned() });
    let environments: Vec<String> = environments.collect();
    if !environments.is_empty() {
        lines.push(format!("Environments: {}", environments.join(", ")));
    }
    for (repository, beside) in settings.beside.all() {
        lines.push(format!("Beside {repository}: {}", beside.join(", ")));
    }
    for (repository, secrets) in settings.project_secrets.all() {
        let each =
            secrets.iter().map(|(name, secret)| secret_words(&secret.wish(repository, name)));
        lines.push(format!("Secrets of {repository}: {}", each.collect::<Vec<_>>().join("; ")));
    }
    for (repository, network) in settings.project_networks.all() {
        lines.push(format!(
            "Network of {repository}: {}",
            network_words(network.access, &network.hosts)
        ));
    }
    for key in Key::OF_TENANTS {
        if let Some(own) = settings.own_key(key) {
            lines.push(format!("Own key, {}", own_keys::line(key, own, now_ms)));
        }
    }
    let changes: Vec<&Changed> = settings.audit.iter().rev().take(CHANGES_SHOWN).collect();
    if !changes.is_empty() {
        lines.push("Last changes:".to_owned());
    }
    lines.extend(changes.into_iter().map(|made| {
        format!(
            "- {} ago, {}: {}",
            span(now_ms.saturating_sub(made.at_ms)),
            made.by.name,
            change(&made.change, &name)
        )
    }));
    lines.join("\n")
}

/// A change as text.
#[must_use]
pub fn change(change: &SettingsChange, name: impl Fn(SettingsList, &str) -> String) -> String {
    match change {
        SettingsChange::Show => "shown".to_owned(),
        SettingsChange::Default { channel, of, value } => {
            let place = channel.as_deref().map_or_else(String::new, |channel| {
                format!(" of {}", name(SettingsList::Channels, channel))
            });
            match value {
                Some(value) => format!("the default {}{place} is {}", noun(*of), value.trim()),
                None => format!("the default {}{place} is cleared", noun(*of)),
            }
        }
        SettingsChange::Allow { list, id } => format!("allowed {}", name(*list, id.trim())),
        SettingsChange::Disallow { list, id } => {
            format!("removed {} from the list", name(*list, id.trim()))
        }
        SettingsChange::Open { channel, repository } => {
            format!("opened {}{}", repository.trim(), place(channel.as_deref(), name))
        }
        SettingsChange::Close { channel, repository } => {
            format!("closed {}{}", repository.trim(), place(channel.as_deref(), name))
        }
        SettingsChange::Budgets { set } => {
            let each = set.iter().map(|(kind, amount)| match amount {
                Some(amount) => format!("{} {}", kind.label(), dollars(*amount)),
                None => format!("{} none", kind.label()),
            });
            format!("the budgets are set: {}", each.collect::<Vec<_>>().join(", "))
        }
        SettingsChange::Environment { repository, text, beside } => {
            let repository = repository.trim();
            let how = match text.trim().to_ascii_lowercase().as_str() {
                OFF => format!("{repository}: no set-up"),
                OWN => format!("{repository}: set up by its own files"),
                _ => format!("{repository}: set-up recipe stored"),
            };
            let beside = beside.join(", ");
            if beside.is_empty() { how } else { format!("{how}, with {beside}") }
        }
        SettingsChange::Secret(wish) => {
            format!("a secret of {} is stored: {}", wish.repository, secret_words(wish))
        }
        SettingsChange::RemoveSecret { repository, name } => {
            format!("the secret {} of {} is removed", name.trim(), repository.trim())
        }
        SettingsChange::Network { repository, access, hosts } => {
            format!("the network of {} is {}", repository.trim(), network_words(*access, hosts))
        }
        SettingsChange::Direct { one_thread } => direct(*one_thread).to_owned(),
    }
}

/// How much a project reaches, and which hosts besides.
#[must_use]
pub fn network_words(access: NetworkAccess, hosts: &[String]) -> String {
    let what = match access {
        NetworkAccess::Open => "open",
        NetworkAccess::Listed => {
            "listed: the forge, public registries, the model, hosts of its secrets"
        }
        NetworkAccess::Off => "off: only the model",
    };
    if hosts.is_empty() { what.to_owned() } else { format!("{what}, {}", hosts.join(", ")) }
}

/// A secret's name and use, without its value.
#[must_use]
pub fn secret_words(wish: &SecretRequest) -> String {
    let readable = if wish.readable { ", readable" } else { "" };
    let set_up = if wish.set_up { ", in set-ups" } else { "" };
    format!("{} (for {}{readable}{set_up})", wish.name, wish.hosts.join(" "))
}

fn place(channel: Option<&str>, name: impl Fn(SettingsList, &str) -> String) -> String {
    channel.map_or_else(String::new, |channel| {
        format!(" in {}", name(SettingsList::Channels, channel))
    })
}

const fn direct(one_thread: bool) -> &'static str {
    if one_thread {
        "all direct messages of a person are one thread, with one sandbox"
    } else {
        "each direct message is its own thread, unless it is a reply in one"
    }
}

fn noun(kind: DefaultKind) -> String {
    kind.label().to_lowercase()
}

/// Where new sandboxes are created, seen from one channel, as lines; `lacks` returns what a provider is missing, as
/// text.
#[must_use]
pub fn places(
    settings: &Settings,
    here: &str,
    configured: &str,
    set_up: &[&str],
    lacks: impl Fn(&str) -> Option<String>,
) -> String {
    let own = settings.channels.get(here);
    let of_channel = own.and_then(|own| own.provider.as_deref());
    let (at, whose) = match (of_channel, settings.defaults.provider.as_deref()) {
        (Some(at), _) => (at, "the default of this channel"),
        (None, Some(at)) => (at, "the default here"),
        (None, None) => (configured, "as set up by the operator"),
    };
    let mut lines = vec![format!("New sandboxes are created at {at}, {whose}.")];
    if !set_up.contains(&at) {
        lines.push(format!("{at} is no longer set up: choose another provider."));
    }
    lines.push(format!("Providers that are set up: {}.", set_up.join(", ")));
    let lacking = set_up.iter().filter_map(|name| lacks(name));
    lines.extend(lacking.map(|lacking| format!("- {lacking}")));
    lines.join("\n")
}

fn selection(selection: &Selection) -> String {
    let parts: Vec<String> = DefaultKind::ALL
        .into_iter()
        .filter_map(|kind| Some(format!("{} {}", noun(kind), kind.of(selection).as_ref()?)))
        .collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::person::{Membership, Person};

    fn plain(_: SettingsList, id: &str) -> String {
        format!("#{id}")
    }

    #[test]
    fn unchanged_settings_list_defaults() {
        assert_eq!(
            listing(&Settings::default(), "10", 0, plain),
            "Channels: all channels that the operator allows\nPeople: everyone whom the operator allows\nDefaults: none\nDefaults of this channel: none of its own\nBudgets: none"
        );
    }

    #[test]
    fn listing_names_provider_default_source() {
        let mut settings = Settings::default();
        let told = |settings: &Settings| {
            let lacks = |name: &str| (name == "ssh").then(|| "ssh: no snapshots".to_owned());
            places(settings, "10", "daytona", &["daytona", "ssh"], lacks)
        };
        let all = "Providers that are set up: daytona, ssh.\n- ssh: no snapshots";
        assert_eq!(
            told(&settings),
            format!("New sandboxes are created at daytona, as set up by the operator.\n{all}")
        );
        settings.defaults.provider = Some("ssh".to_owned());
        assert_eq!(
            told(&settings),
            format!("New sandboxes are created at ssh, the default here.\n{all}")
        );
        let own = Selection { provider: Some("vercel".to_owned()), ..Selection::default() };
        settings.channels.insert("10".to_owned(), own);
        assert_eq!(
            told(&settings),
            format!(
                "New sandboxes are created at vercel, the default of this channel.\nvercel is no longer set up: choose another provider.\n{all}"
            )
        );
        assert!(listing(&settings, "10", 0, plain).contains(
            "Defaults: sandbox provider ssh\nDefaults of this channel: sandbox provider vercel"
        ));
    }

    #[test]
    fn direct_setting_is_listed_once_set() {
        let manager = Membership { manages: true, ..Membership::default() };
        let ada = Person { id: "1".to_owned(), name: "Ada".to_owned() };
        let switched = |settings: &Settings, id: &str, one_thread, at_ms| {
            let change = SettingsChange::Direct { one_thread };
            settings.changed(id, &change, &ada, &manager, at_ms).expect("may")
        };
        let one = switched(&Settings::default(), "c1", true, 1_000);
        let told = listing(&one, "10", 6_000, plain);
        assert!(
            told.ends_with(
                "Direct messages: all direct messages of a person are one thread, with one sandbox
Budgets: none
Last changes:
- 5 s ago, Ada: all direct messages of a person are one thread, with one sandbox"
            ),
            "{told}"
        );
        let each = switched(&one, "c2", false, 5_000);
        let told = listing(&each, "10", 6_000, plain);
        assert!(!told.contains("Direct messages:"), "{told}");
        assert!(told.contains(
            "- 1 s ago, Ada: each direct message is its own thread, unless it is a reply in one"
        ));
    }

    #[test]
    fn listing_shows_defaults_and_recent_changes() {
        let manager = Membership { manages: true, ..Membership::default() };
        let ada = Person { id: "1".to_owned(), name: "Ada".to_owned() };
        let mut settings = Settings::default();
        for (n, change) in [
            SettingsChange::Allow { list: SettingsList::Channels, id: "10".to_owned() },
            SettingsChange::Default {
                channel: None,
                of: DefaultKind::Model,
                value: Some("anthropic/a".to_owned()),
            },
            SettingsChange::Default {
                channel: Some("10".to_owned()),
                of: DefaultKind::Repo,
                value: Some("acme/api".to_owned()),
            },
            SettingsChange::Default {
                channel: Some("11".to_owned()),
                of: DefaultKind::Agent,
                value: Some("plan".to_owned()),
            },
        ]
        .into_iter()
        .enumerate()
        {
            let at_ms = 1_000 * n as u64;
            settings =
                settings.changed(&n.to_string(), &change, &ada, &manager, at_ms).expect("may");
        }
        assert_eq!(
            listing(&settings, "10", 63_000, plain),
            "Channels: #10\nPeople: everyone whom the operator allows\nDefaults: model anthropic/a\nDefaults of this channel: repository acme/api\nOther channels with their own defaults: 1\nBudgets: none\nLast changes:\n- 1 min 0 s ago, Ada: the default agent of #11 is plan\n- 1 min 1 s ago, Ada: the default repository of #10 is acme/api\n- 1 min 2 s ago, Ada: the default model is anthropic/a\n- 1 min 3 s ago, Ada: allowed #10"
        );
    }
}
