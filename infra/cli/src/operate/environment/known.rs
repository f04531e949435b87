//! `environment show` of a repository: what managers have said of it, and its prebuilds, by the records alone.

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::Ms;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::tenant::environments::ProjectSetting;
use bobbin_core::tenant::project_networks::NetworkAccess;
use bobbin_core::tenant::project_secrets::SecretRequest;
use bobbin_core::tenant::settings::{Settings, network_words, secret_words};
use bobbin_recipe::{Recipe, of_settings};
use serde::Serialize;

use super::super::arguments::{ShowEnvironment, repository};
use super::super::stack::Stack;
use super::steps::{self, StepLine};
use super::{builders, checkout, settings, short};
use crate::columns::one_line;
use crate::output::{CommandError, ExitStatus, Output};
use crate::time::when;

#[derive(Serialize)]
struct KnownAnswer {
    repository: String,
    tenant: String,
    /// It is open in all channels.
    open_everywhere: bool,
    /// Channels in which it is open.
    open_in: Vec<String>,
    /// `own` (its own files count), `off`, or `recipe` (a manager's).
    set_up: &'static str,
    /// The manager's recipe, without the values of its variables.
    recipe: Option<Recipe>,
    /// Why that cannot be read.
    unreadable: Option<String>,
    beside: Vec<String>,
    /// Names and uses, without values.
    secrets: Vec<SecretRequest>,
    /// `open`, `listed` or `off`.
    network: &'static str,
    /// What is reached besides, if it is `listed`.
    network_hosts: Vec<String>,
    prebuilds: Vec<KeptPrebuild>,
    /// Why there is none.
    why_none: Option<String>,
    /// What its builders did last.
    last: Vec<LastBuild>,
}

/// A prebuild by its record.
#[derive(Serialize)]
struct KeptPrebuild {
    /// The provider; `None`: the stack's first.
    provider: Option<String>,
    commit: Option<String>,
    made_ms: Ms,
    expires_ms: Ms,
    snapshot: String,
}

/// The last end of a builder's work.
#[derive(Serialize)]
struct LastBuild {
    /// The provider; `None`: the stack's first.
    provider: Option<String>,
    at_ms: Ms,
    /// Why it failed.
    trouble: Option<String>,
    steps: Vec<StepLine>,
}

pub async fn run(stack: &Stack, what: &ShowEnvironment) -> Result<Output, CommandError> {
    let tenant = what.tenant.as_ref().ok_or("The repository needs its --tenant.")?;
    let typed = what.of.as_deref().unwrap_or_default();
    let repository = repository(typed).map_err(|why| {
        format!("{typed} is not a repository: {why}; leave --tenant out for a folder.")
    })?;
    let settings = settings(stack, tenant).await?;
    let builders = builders(stack, tenant, &repository).await?;
    let ttl_ms = stack.limits.set_up.prebuild_ttl_ms;
    let mut answer = of_settings_alone(&settings, &repository);
    answer.tenant = tenant.to_string();
    let mut told = Vec::new();
    for (provider, _, record) in &builders {
        answer.prebuilds.extend(kept(provider.as_ref(), record, ttl_ms));
        if let Some((last, lines)) = last(provider.clone(), record) {
            answer.last.push(last);
            told.push(lines);
        }
    }
    if answer.prebuilds.is_empty() {
        let refused = stack.limits.set_up.why_no_build(true);
        let refused = refused.or_else(|| settings.why_no_prebuild(&repository));
        let none = "none was made, or it was deleted; a thread's first set-up makes the next one";
        answer.why_none = Some(refused.unwrap_or(none).to_owned());
    }
    let text = words(&answer, &settings, &told, now_ms());
    Output::new(text, &answer, ExitStatus::Done)
}

/// The prebuilds of a builder, the newest first.
fn kept<'a>(
    provider: Option<&'a String>,
    record: &'a SandboxRecord,
    ttl_ms: u64,
) -> impl Iterator<Item = KeptPrebuild> + 'a {
    record.snapshots.iter().rev().map(move |kept| KeptPrebuild {
        provider: provider.cloned(),
        commit: kept.built.as_ref().and_then(|built| built.commit.clone()),
        made_ms: kept.at_ms,
        expires_ms: kept.at_ms + ttl_ms,
        snapshot: kept.name.clone(),
    })
}

/// What the tenant's settings say of it.
fn of_settings_alone(settings: &Settings, repository: &str) -> KnownAnswer {
    let channels = settings.repositories.channels.keys();
    let is_open = |channel: &str| settings.repositories.are_open(repository, channel);
    let open_everywhere = is_open("");
    let open_in = channels.filter(|one| !open_everywhere && is_open(one)).cloned().collect();
    let (set_up, recipe, unreadable) = match settings.environments.of(repository) {
        ProjectSetting::Own => ("own", None, None),
        ProjectSetting::Off => ("off", None, None),
        ProjectSetting::Recipe(text) => match of_settings(text) {
            Ok(read) => {
                let mut recipe = read.recipe;
                let variables = recipe.iter_mut().flat_map(|recipe| recipe.variables.values_mut());
                variables.for_each(String::clear);
                ("recipe", recipe, None)
            }
            Err(why) => ("recipe", None, Some(why)),
        },
    };
    let secrets = settings.project_secrets.of(repository).into_iter().flatten();
    let network = settings.project_networks.of(repository);
    KnownAnswer {
        repository: repository.to_owned(),
        tenant: String::new(),
        open_everywhere,
        open_in,
        set_up,
        recipe,
        unreadable,
        beside: settings.beside.of(repository).to_vec(),
        secrets: secrets.map(|(name, secret)| secret.wish(repository, name)).collect(),
        network: network.map_or(NetworkAccess::Open, |one| one.access).word(),
        network_hosts: network.map(|one| one.hosts.clone()).unwrap_or_default(),
        prebuilds: Vec::new(),
        why_none: None,
        last: Vec::new(),
    }
}

/// The last end of a builder's work, with its steps if nothing has been set up there since; and those for people.
fn last(provider: Option<String>, record: &SandboxRecord) -> Option<(LastBuild, Vec<String>)> {
    let operated = record.history.operated.last()?;
    let project = &record.project;
    let set_up = project.set_up.as_ref().filter(|_| project.builds.as_ref() == Some(&operated.id));
    let last = LastBuild {
        provider,
        at_ms: operated.at_ms,
        trouble: operated.trouble.clone(),
        steps: set_up.map(steps::all).unwrap_or_default(),
    };
    Some((last, set_up.map(steps::words).unwrap_or_default()))
}

fn words(answer: &KnownAnswer, settings: &Settings, told: &[Vec<String>], now_ms: Ms) -> String {
    let open = match &answer.open_in[..] {
        _ if answer.open_everywhere => "in all channels".to_owned(),
        [] => "nowhere; public repositories can be used anyway".to_owned(),
        channels => format!("in {}", channels.join(", ")),
    };
    let set_up = match (answer.set_up, &answer.recipe, &answer.unreadable) {
        ("off", _, _) => "off".to_owned(),
        (_, Some(recipe), _) => checkout::shown(recipe).replace('\n', "\n    "),
        (_, None, Some(why)) => {
            format!("a manager's recipe, which cannot be read: {}", one_line(why))
        }
        (_, None, None) => "by its own files".to_owned(),
    };
    let secrets = answer.secrets.iter().map(secret_words).collect::<Vec<_>>().join("; ");
    let network = settings.project_networks.of(&answer.repository);
    let network = network.map(|network| network_words(network.access, &network.hosts));
    let at = |provider: &Option<String>| {
        provider.as_ref().map(|name| format!(" at {name}")).unwrap_or_default()
    };
    let facts = [
        ("open", Some(open)),
        ("set-up", Some(set_up)),
        ("beside", Some(answer.beside.join(", "))),
        ("secrets", Some(secrets)),
        ("network", Some(network.unwrap_or_else(|| "open".to_owned()))),
        ("prebuild", answer.why_none.as_ref().map(|why| format!("none: {why}"))),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let known = known.filter(|(_, value)| !value.is_empty());
    let head = format!("{} in {}", answer.repository, answer.tenant);
    let mut lines: Vec<String> = std::iter::once(head)
        .chain(known.map(|(name, value)| format!("  {name:<10} {value}")))
        .collect();
    lines.extend(answer.prebuilds.iter().map(|one| {
        format!(
            "  {:<10} of {}{}, made {}, ends {}: {}",
            "prebuild",
            short(one.commit.as_deref()),
            at(&one.provider),
            when(one.made_ms, now_ms),
            when(one.expires_ms, now_ms),
            one.snapshot
        )
    }));
    for (one, steps) in answer.last.iter().zip(told) {
        let trouble = one.trouble.as_deref().map_or_else(|| "done".to_owned(), one_line);
        let when = when(one.at_ms, now_ms);
        lines.push(format!("  {:<10} {when}{}: {trouble}", "last", at(&one.provider)));
        lines.extend(steps.iter().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bobbin_core::base::person::{Membership, Person};
    use bobbin_core::records::prebuild::{BuildKey, BuiltProject};
    use bobbin_core::records::recipe::RecipeSource;
    use bobbin_core::records::sandbox::{KeptSnapshot, Operated};
    use bobbin_core::records::set_up::{RanStep, SetUp, StepEnd};
    use bobbin_core::tenant::project_secrets::ProjectSecret;
    use bobbin_core::tenant::settings::SettingsChange;
    use serde_json::Value;

    use super::*;

    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

    /// Settings after these changes of a manager.
    fn after(changes: &[SettingsChange]) -> Settings {
        let manager = Membership { manages: true, ..Membership::default() };
        let (ada, mut settings) = (Person::default(), Settings::default());
        for (nth, change) in changes.iter().enumerate() {
            let changed = settings.changed(&nth.to_string(), change, &ada, &manager, 1);
            settings = changed.expect("may");
        }
        settings
    }

    #[test]
    fn settings_are_shown_without_values() {
        let repository = "acme/api".to_owned();
        let wish = SecretRequest {
            repository: repository.clone(),
            name: "NPM_TOKEN".to_owned(),
            hosts: vec!["registry.acme.dev".to_owned()],
            readable: false,
            set_up: true,
        };
        let secret = ProjectSecret {
            sealed: "sealed-value".to_owned(),
            hosts: wish.hosts.clone(),
            readable: false,
            set_up: true,
            by: Person::default(),
            since_ms: 1,
        };
        let settings = after(&[
            SettingsChange::Open { channel: Some("C1".to_owned()), repository: repository.clone() },
            SettingsChange::Environment {
                repository: repository.clone(),
                text: "{set-up: [npm ci], variables: {CI: hidden-value}}".to_owned(),
                beside: vec!["acme/docs".to_owned()],
            },
            SettingsChange::Network {
                repository,
                access: NetworkAccess::Listed,
                hosts: vec!["api.acme.dev".to_owned()],
            },
        ]);
        let settings = settings.with_secret("s", &wish, secret).expect("may");
        let mut answer = of_settings_alone(&settings, "acme/api");
        answer.tenant = "slack:T1".to_owned();
        answer.why_none = settings.why_no_prebuild("acme/api").map(str::to_owned);
        assert_eq!(
            words(&answer, &settings, &[], 0),
            "acme/api in slack:T1
  open       in C1
  set-up     By the settings:
    - once: npm ci
    - variables: CI
  beside     acme/docs
  secrets    NPM_TOKEN (for registry.acme.dev, in set-ups)
  network    listed: the forge, public registries, the model, hosts of its secrets, api.acme.dev
  prebuild   none: there are repositories beside it"
        );
        let json = serde_json::to_string(&answer).expect("JSON");
        assert!(json.contains("registry.acme.dev") && !json.contains("-value"), "{json}");
    }

    /// A prebuild, and a later build that failed.
    fn builder() -> SandboxRecord {
        let mut record = SandboxRecord::default();
        record.snapshots.push(KeptSnapshot {
            name: "bobbin-snapshot".to_owned(),
            at_ms: DAY_MS,
            by: Person::default(),
            built: Some(BuiltProject {
                key: BuildKey::of("", "", ""),
                commit: Some("1a2b3c4d5e".to_owned()),
                repository: None,
            }),
        });
        let mut set_up = SetUp::begin(Recipe::empty(RecipeSource::Settings), None, 0, 0);
        set_up.ran.push(RanStep {
            name: "npm ci".to_owned(),
            end: StepEnd::Failed(1),
            took_s: Some(3),
            said: "no lock file\nat all".to_owned(),
        });
        (record.project.set_up, record.project.builds) = (Some(set_up), Some("t1".into()));
        record.history.operated.push(Operated {
            id: "t1".into(),
            want: bobbin_core::records::control::Operation::Snapshot,
            at_ms: 2 * DAY_MS,
            trouble: Some("it failed".to_owned()),
        });
        record
    }

    #[test]
    fn json_page_shows_every_field() {
        let record = builder();
        let mut answer = of_settings_alone(&Settings::default(), "acme/api");
        answer.last.extend(last(None, &record).map(|(last, _)| last));
        answer.prebuilds = kept(None, &record, DAY_MS).collect();
        let told = serde_json::to_value(&answer).expect("JSON");
        let page = include_str!("../../../../../docs/appendix/JSON.md");
        let shown = page.split("```").find(|part| part.contains("\"open_everywhere\""));
        let shown = shown.expect("it is on the page").trim_start_matches("json");
        let shown: Value = serde_json::from_str(shown).expect("JSON");
        for place in ["", "/prebuilds/0", "/last/0", "/last/0/steps/0"] {
            let keys = |answer: &Value| -> BTreeSet<String> {
                let object = answer.pointer(place).and_then(Value::as_object).expect(place);
                object.keys().cloned().collect()
            };
            assert_eq!(keys(&shown), keys(&told), "{place}");
        }
    }

    #[test]
    fn prebuild_and_last_end_come_from_the_record() {
        let record = builder();
        let mut answer = of_settings_alone(&Settings::default(), "acme/api");
        answer.tenant = "slack:T1".to_owned();
        let (one, lines) = last(Some("vercel".to_owned()), &record).expect("an end");
        answer.last.push(one);
        answer.prebuilds = kept(None, &record, 14 * DAY_MS).collect();
        assert_eq!(
            words(&answer, &Settings::default(), &[lines], 3 * DAY_MS),
            "acme/api in slack:T1
  open       nowhere; public repositories can be used anyway
  set-up     by its own files
  network    open
  prebuild   of 1a2b3c4, made 2 d ago, ends in 12 d: bobbin-snapshot
  last       1 d ago at vercel: it failed
    failed      npm ci (exit code 1, 3 s)
        no lock file
        at all"
        );
    }
}
