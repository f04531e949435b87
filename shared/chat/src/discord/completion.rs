//! Completion: suggestions while somebody types an option. They are only suggestions: the text finally typed counts,
//! and people who may not use Bobbin get none.

use std::cmp::Reverse;

use bobbin_core::base::ids::SandboxName;
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::settings::{DefaultKind, Settings};
use bobbin_core::text::{shorten, units};
use serde_json::{Value, json};

use super::bounds::{CHOICE_UNITS_MAX, CHOICES_MAX};
use super::configure;
use super::interaction::InvokedCommand;
use crate::commands::sought;
use crate::{HttpAnswer, KnownValues, Lookup, SuggestionKind};

/// The text being typed and its kind; `None` if there are no suggestions for it.
pub(super) fn typed(command: &InvokedCommand) -> Option<(SuggestionKind, String)> {
    let focused = command.focused()?;
    let sought = sought(&focused.name, || configure::kind(command))?;
    let typed = focused.value.as_ref().and_then(Value::as_str);
    Some((sought, typed.unwrap_or_default().to_owned()))
}

/// The suggestions: recently used and available values. A repository that is usable as typed is included, because no
/// list knows them all.
#[must_use]
pub fn completed(lookup: &Lookup, settings: &Settings, known: &KnownValues) -> HttpAnswer {
    let may = lookup.membership.manages || settings.admit(&lookup.membership, &lookup.user).is_ok();
    if !may {
        return super::answer::no_choices();
    }
    let choices = match lookup.sought {
        SuggestionKind::Choice(kind) => values(kind, &lookup.typed, &known.catalogue),
        SuggestionKind::Sandbox => sandboxes(&lookup.typed, known),
    };
    HttpAnswer::json(&json!({"type": 8, "data": {"choices": choices}}))
}

/// The sandboxes whose names contain the typed text, first those in use or recently used.
fn sandboxes(typed: &str, known: &KnownValues) -> Vec<Value> {
    let typed = typed.trim().to_ascii_lowercase();
    let glance = |name: &SandboxName| known.catalogue.sandboxes.get(name);
    let mut names: Vec<&SandboxName> =
        known.names.iter().filter(|name| name.as_str().contains(&typed)).collect();
    names.sort_by_key(|name| {
        let used = glance(name).map(|one| (one.in_use == 0, Reverse(one.last_used_ms)));
        (used.is_none(), used, name.as_str())
    });
    let shown = |name: &SandboxName| {
        let shown = match glance(name) {
            Some(one) => format!("{name} · {}", one.words(known.now_ms)),
            None => name.to_string(),
        };
        json!({"name": shorten(&shown, CHOICE_UNITS_MAX), "value": name.as_str()})
    };
    names.into_iter().take(CHOICES_MAX).map(shown).collect()
}

fn values(kind: DefaultKind, typed: &str, catalogue: &Catalogue) -> Vec<Value> {
    let known = catalogue.suggest(kind, typed, CHOICES_MAX);
    let own = (kind == DefaultKind::Repo).then(|| kind.usable(typed).ok()).flatten();
    let own = own.as_deref().filter(|own| !known.contains(own));
    own.into_iter()
        .chain(known.iter().copied())
        .filter(|one| (1..=CHOICE_UNITS_MAX).contains(&units(one)))
        .take(CHOICES_MAX)
        .map(|one| json!({"name": one, "value": one}))
        .collect()
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::ids::Tenant;
    use bobbin_core::base::person::Membership;
    use bobbin_core::tenant::sandbox_hint::SandboxHint;

    use super::*;
    use crate::discord::check::{CALLBACK, assert_fits};

    fn lookup(kind: DefaultKind, typed: &str) -> Lookup {
        Lookup {
            tenant: Tenant::discord("1"),
            membership: Membership { channel: "20".to_owned(), ..Membership::default() },
            user: "4".to_owned(),
            sought: SuggestionKind::Choice(kind),
            typed: typed.to_owned(),
        }
    }

    fn names(lookup: &Lookup, settings: &Settings, catalogue: &Catalogue) -> Vec<String> {
        let known = KnownValues { catalogue: catalogue.clone(), ..KnownValues::default() };
        shown(lookup, settings, &known)
    }

    fn shown(lookup: &Lookup, settings: &Settings, known: &KnownValues) -> Vec<String> {
        let answer = completed(lookup, settings, known);
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_fits(CALLBACK, "post", &body);
        let choices = body["data"]["choices"].as_array().expect("choices");
        let name = |one: &Value| one["name"].as_str().expect("a name").to_owned();
        choices.iter().map(name).collect()
    }

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue {
            models: (0..60).map(|n| format!("openai/m{n}")).collect(),
            agents: vec!["build".to_owned(), "x".repeat(150)],
            ..Catalogue::default()
        };
        catalogue.recent.repos = vec!["a/b".to_owned()];
        catalogue
    }

    #[test]
    fn suggestions_fit_discord_and_include_recent() {
        let open = Settings::default();
        assert_eq!(names(&lookup(DefaultKind::Model, ""), &open, &catalogue()).len(), 25);
        assert_eq!(names(&lookup(DefaultKind::Agent, ""), &open, &catalogue()), ["build"]);
        assert_eq!(names(&lookup(DefaultKind::Repo, ""), &open, &catalogue()), ["a/b"]);
        assert_eq!(names(&lookup(DefaultKind::Repo, "me/new"), &open, &catalogue()), ["me/new"]);
        assert_eq!(names(&lookup(DefaultKind::Repo, "a/b"), &open, &catalogue()), ["a/b"]);
        let ways = names(&lookup(DefaultKind::PullRequests, ""), &open, &catalogue());
        assert_eq!(ways, ["draft", "ready", "off"]);
    }

    #[test]
    fn people_without_access_get_no_suggestions() {
        let mut closed = Settings::default();
        closed.open_channels.insert("21".to_owned());
        let nobody = lookup(DefaultKind::Repo, "");
        assert!(names(&nobody, &closed, &catalogue()).is_empty());
        let mut manager = nobody.clone();
        manager.membership.manages = true;
        assert_eq!(names(&manager, &closed, &catalogue()), ["a/b"]);
    }

    #[test]
    fn sandbox_suggestions_show_state_if_permitted() {
        let name = |name: &str| name.parse::<SandboxName>().expect("a name");
        let glance = |state: &str, last_used_ms| SandboxHint {
            state: state.to_owned(),
            last_used_ms,
            in_use: 0,
        };
        let mut catalogue = Catalogue::default();
        catalogue.note_sandbox(&name("backend"), glance("stopped", 1_000));
        catalogue.note_sandbox(&name("frontend"), glance("running", 61_000));
        catalogue.note_sandbox(&name("gone"), glance("running", 71_000));
        let known = KnownValues {
            catalogue,
            names: ["backend", "admin", "frontend"].map(name).to_vec(),
            now_ms: 121_000,
        };
        let lookup = |typed: &str| Lookup {
            sought: SuggestionKind::Sandbox,
            ..lookup(DefaultKind::Repo, typed)
        };
        let open = Settings::default();
        assert_eq!(
            shown(&lookup(""), &open, &known),
            [
                "frontend · running · used 1 min 0 s ago",
                "backend · stopped · used 2 min 0 s ago",
                "admin"
            ]
        );
        assert_eq!(shown(&lookup(" BACK"), &open, &known).len(), 1);
        let mut closed = Settings::default();
        closed.open_channels.insert("21".to_owned());
        assert!(shown(&lookup(""), &closed, &known).is_empty());
    }

    #[test]
    fn default_kind_comes_from_sibling_option() {
        let read = |command: Value| typed(&serde_json::from_value(command).expect("a command"));
        let option = |name: &str, value: &str, focused: bool| json!({"name": name, "type": 3, "value": value, "focused": focused});
        assert_eq!(
            read(json!({"options": [option("model", "ant", true)]})),
            Some((SuggestionKind::Choice(DefaultKind::Model), "ant".to_owned()))
        );
        let within = |options: Value| json!({"options": [{"name": "default", "type": 1, "options": options}]});
        assert_eq!(
            read(within(json!([option("what", "agent", false), option("value", "", true)]))),
            Some((SuggestionKind::Choice(DefaultKind::Agent), String::new()))
        );
        assert_eq!(read(within(json!([option("value", "", true)]))), None);
        assert_eq!(read(json!({"options": [option("prompt", "x", true)]})), None);
        assert_eq!(read(json!({})), None);
    }
}
