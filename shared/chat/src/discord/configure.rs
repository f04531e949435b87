//! `/sandbox-config`: turns the arguments into a change of the settings. Permission is checked when the settings are
//! written.

use std::borrow::Cow;

use bobbin_core::tenant::budgets::{self, BudgetKind};
use bobbin_core::tenant::commands::argument::{
    ACCESS, ALLOW, BUDGET, CHANNEL, CLOSE, DEFAULT, DISALLOW, ENVIRONMENT, HOSTS, NAME, NETWORK,
    NONE, OPEN, PERSON, READABLE, RECIPE, REMOVE, REPOSITORY, ROLE, SANDBOXES, SECRET, SET_UP,
    SHOW, VALUE, WHAT,
};
use bobbin_core::tenant::project_networks::NetworkAccess;
use bobbin_core::tenant::project_secrets::{SecretRequest, hosts};
use bobbin_core::tenant::settings::{DefaultKind, SettingsChange, SettingsList};

use super::interaction::InvokedCommand;
use crate::commands::FilledIn;

/// The change, or why there is none, in words for the person.
pub(super) fn change(command: &InvokedCommand) -> Result<SettingsChange, Cow<'static, str>> {
    match command.subcommand() {
        Some(SHOW) => Ok(SettingsChange::Show),
        Some(DEFAULT) => {
            let of = kind(command).ok_or(
                "Choose a default: repo, model, agent, provider, runtime, pull-requests, pull-requests-by, submodules or review-bots.",
            )?;
            let value = command.text(VALUE).map(str::trim);
            Ok(SettingsChange::Default {
                channel: command.text(CHANNEL).map(str::to_owned),
                of,
                value: value.filter(|value| !value.is_empty()).map(str::to_owned),
            })
        }
        Some(ALLOW) => {
            let (list, id) = listed(command)?;
            Ok(SettingsChange::Allow { list, id })
        }
        Some(DISALLOW) => {
            let (list, id) = listed(command)?;
            Ok(SettingsChange::Disallow { list, id })
        }
        Some(OPEN) => {
            let (channel, repository) = repository(command)?;
            Ok(SettingsChange::Open { channel, repository })
        }
        Some(CLOSE) => {
            let (channel, repository) = repository(command)?;
            Ok(SettingsChange::Close { channel, repository })
        }
        Some(BUDGET) => budget(command),
        Some(ENVIRONMENT) => environment(command),
        Some(SECRET) => secret(command),
        Some(NETWORK) => network(command),
        _ => Err("This setting no longer exists. `/help` shows the current commands.".into()),
    }
}

/// The budgets to set; without any, the settings are shown.
fn budget(command: &InvokedCommand) -> Result<SettingsChange, Cow<'static, str>> {
    let filled_in = BudgetKind::ALL.into_iter().filter_map(|kind| {
        let amount = command.text(kind.word())?.trim();
        (!amount.is_empty()).then_some((kind.word(), amount))
    });
    let set = budgets::typed(filled_in).map_err(|wrong| wrong.to_string())?;
    Ok(if set.is_empty() { SettingsChange::Show } else { SettingsChange::Budgets { set } })
}

fn environment(command: &InvokedCommand) -> Result<SettingsChange, Cow<'static, str>> {
    let repository = command.text(REPOSITORY).ok_or("Name the repository, as owner/name.")?;
    let text = command.text(RECIPE).ok_or("Give a recipe, `off` or `own`.")?;
    Ok(SettingsChange::Environment {
        repository: repository.to_owned(),
        text: text.to_owned(),
        beside: Vec::new(),
    })
}

fn secret(command: &InvokedCommand) -> Result<SettingsChange, Cow<'static, str>> {
    let repository = command.text(REPOSITORY).ok_or("Name the repository, as owner/name.")?;
    let name = command.text(NAME).ok_or("Name the secret.")?;
    let (repository, name) = (repository.to_owned(), name.to_owned());
    if command.flag(REMOVE) {
        return Ok(SettingsChange::RemoveSecret { repository, name });
    }
    Ok(SettingsChange::Secret(SecretRequest {
        repository,
        name,
        hosts: hosts(command.text(HOSTS).unwrap_or_default()),
        readable: command.flag(READABLE),
        set_up: command.flag(SET_UP),
    }))
}

fn network(command: &InvokedCommand) -> Result<SettingsChange, Cow<'static, str>> {
    let repository = command.text(REPOSITORY).ok_or("Name the repository, as owner/name.")?;
    let access = command.text(ACCESS).and_then(NetworkAccess::named);
    Ok(SettingsChange::Network {
        repository: repository.to_owned(),
        access: access.ok_or("Choose open, listed or off.")?,
        hosts: hosts(command.text(HOSTS).unwrap_or_default()),
    })
}

/// A repository, and the channel for which it is opened or closed.
fn repository(command: &InvokedCommand) -> Result<(Option<String>, String), &'static str> {
    let name = command.text(REPOSITORY).ok_or("Name the repository, as owner/name, or say all.")?;
    Ok((command.text(CHANNEL).map(str::to_owned), name.to_owned()))
}

/// The kind of a default.
pub(super) fn kind(command: &InvokedCommand) -> Option<DefaultKind> {
    DefaultKind::named(command.text(WHAT)?)
}

/// The place for new sandboxes in `/sandbox-setup`; `None` if it was not given.
pub(super) fn place(command: &InvokedCommand) -> Option<SettingsChange> {
    let name = command.text(SANDBOXES)?.trim();
    let cleared = name.is_empty() || name.eq_ignore_ascii_case(NONE);
    Some(SettingsChange::Default {
        channel: command.text(CHANNEL).map(str::to_owned),
        of: DefaultKind::Provider,
        value: (!cleared).then(|| name.to_owned()),
    })
}

/// One change at a time, so that each has its own line in the record of changes.
fn listed(command: &InvokedCommand) -> Result<(SettingsList, String), &'static str> {
    let named: Vec<(SettingsList, &str)> = [
        (SettingsList::Channels, CHANNEL),
        (SettingsList::People, ROLE),
        (SettingsList::People, PERSON),
    ]
    .into_iter()
    .filter_map(|(list, name)| Some((list, command.text(name)?)))
    .collect();
    match named[..] {
        [(list, id)] => Ok((list, id.to_owned())),
        _ => Err("Choose one: a channel, a role or a person."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(subcommand: &str, options: Value) -> Result<SettingsChange, Cow<'static, str>> {
        let command = json!({"name": "sandbox-config", "options": [{"name": subcommand, "type": 1, "options": options}]});
        change(&serde_json::from_value(command).expect("a command"))
    }

    #[test]
    fn each_subcommand_is_one_change() {
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        assert_eq!(asked("show", json!([])), Ok(SettingsChange::Show));
        let model =
            json!([text("what", "model"), text("value", " anthropic/a "), text("channel", "20")]);
        assert_eq!(
            asked("default", model),
            Ok(SettingsChange::Default {
                channel: Some("20".to_owned()),
                of: DefaultKind::Model,
                value: Some("anthropic/a".to_owned())
            })
        );
        assert_eq!(
            asked("default", json!([text("what", "repo")])),
            Ok(SettingsChange::Default { channel: None, of: DefaultKind::Repo, value: None })
        );
        for (option, list) in [
            ("channel", SettingsList::Channels),
            ("role", SettingsList::People),
            ("person", SettingsList::People),
        ] {
            let id = "7".to_owned();
            assert_eq!(
                asked("allow", json!([text(option, "7")])),
                Ok(SettingsChange::Allow { list, id: id.clone() })
            );
            assert_eq!(
                asked("disallow", json!([text(option, "7")])),
                Ok(SettingsChange::Disallow { list, id })
            );
        }
    }

    #[test]
    fn repositories_are_opened_and_closed() {
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        let options = json!([text("repository", "acme/api"), text("channel", "20")]);
        let (channel, repository) = (Some("20".to_owned()), "acme/api".to_owned());
        assert_eq!(
            asked("open", options.clone()),
            Ok(SettingsChange::Open { channel: channel.clone(), repository: repository.clone() })
        );
        assert_eq!(asked("close", options), Ok(SettingsChange::Close { channel, repository }));
        assert!(asked("open", json!([])).is_err());
    }

    #[test]
    fn a_network_is_open_listed_or_off() {
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        let listed = json!([
            text("repository", "acme/api"),
            text("access", "listed"),
            text("hosts", "a.example.com")
        ]);
        let (repository, access) = ("acme/api".to_owned(), NetworkAccess::Listed);
        let hosts = vec!["a.example.com".to_owned()];
        assert_eq!(
            asked("network", listed),
            Ok(SettingsChange::Network { repository, access, hosts })
        );
        let odd = json!([text("repository", "acme/api"), text("access", "shut")]);
        assert_eq!(asked("network", odd), Err("Choose open, listed or off.".into()));
    }

    #[test]
    fn a_secret_is_wished_or_removed() {
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        let named = [text("repository", "acme/api"), text("name", "NPM_TOKEN")];
        let yes = |name: &str| json!({"name": name, "type": 5, "value": true});
        let [repository, name] = named.clone();
        let wish = json!([
            repository,
            name,
            text("hosts", "a.example.com, *.b.example.com"),
            yes("set-up")
        ]);
        assert_eq!(
            asked("secret", wish),
            Ok(SettingsChange::Secret(SecretRequest {
                repository: "acme/api".to_owned(),
                name: "NPM_TOKEN".to_owned(),
                hosts: vec!["a.example.com".to_owned(), "*.b.example.com".to_owned()],
                readable: false,
                set_up: true,
            }))
        );
        let [repository, name] = named;
        assert_eq!(
            asked("secret", json!([repository, name, yes("remove")])),
            Ok(SettingsChange::RemoveSecret {
                repository: "acme/api".to_owned(),
                name: "NPM_TOKEN".to_owned()
            })
        );
    }

    #[test]
    fn budgets_are_set_cleared_and_shown() {
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        let set = [(BudgetKind::Turn, Some(2_000_000)), (BudgetKind::Month, None)].into();
        assert_eq!(
            asked("budget", json!([text("turn", "2"), text("month", "none")])),
            Ok(SettingsChange::Budgets { set })
        );
        assert_eq!(asked("budget", json!([])), Ok(SettingsChange::Show));
        assert_eq!(
            asked("budget", json!([text("turn", "2"), text("user-day", "ten")])),
            Err("user-day: \"ten\" is not an amount. Write dollars, such as 2 or 2.50, or none. Nothing was changed.".into())
        );
    }

    #[test]
    fn setup_sets_default_provider() {
        let asked = |options: Value| {
            let command = json!({"name": "sandbox-setup", "options": options});
            place(&serde_json::from_value(command).expect("a command"))
        };
        let text = |name: &str, value: &str| json!({"name": name, "type": 3, "value": value});
        let of = |channel: Option<&str>, value: Option<&str>| {
            Some(SettingsChange::Default {
                channel: channel.map(str::to_owned),
                of: DefaultKind::Provider,
                value: value.map(str::to_owned),
            })
        };
        assert_eq!(asked(json!([])), None);
        let here = json!([text("sandboxes", "vercel"), text("channel", "20")]);
        assert_eq!(asked(here), of(Some("20"), Some("vercel")));
        assert_eq!(asked(json!([text("sandboxes", "none")])), of(None, None));
    }

    #[test]
    fn invalid_config_commands_are_rejected() {
        let both = json!([{"name": "channel", "type": 7, "value": "7"}, {"name": "role", "type": 8, "value": "8"}]);
        for options in [json!([]), both] {
            assert_eq!(
                asked("allow", options),
                Err("Choose one: a channel, a role or a person.".into())
            );
        }
        assert!(asked("default", json!([])).is_err());
        assert!(asked("made-up", json!([])).is_err());
        let none: InvokedCommand =
            serde_json::from_value(json!({"name": "sandbox-config"})).expect("a command");
        assert!(change(&none).is_err());
    }
}
