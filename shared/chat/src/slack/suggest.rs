//! Suggestions for a select of the Home whose options come from us (`block_suggestion`). They are only suggestions: a
//! value that is usable as typed is always among them, and people who may not use Bobbin do not learn what others used.

use bobbin_core::base::ids::Tenant;
use bobbin_core::base::person::Membership;
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::settings::Settings;
use bobbin_core::text::units;
use serde_json::{Value, json};

use super::blocks::label;
use super::endpoint::{App, nothing};
use super::home::kind_of;
use super::limits::{OPTION_UNITS_MAX, OPTION_VALUE_UNITS_MAX, OPTIONS_MAX};
use super::types::InteractionPayload;
use crate::{HttpAnswer, Inbound, Lookup, SuggestionKind};

/// Somebody types into a select: the caller reads the suggestions, in little time.
pub(super) fn typing(interaction: &InteractionPayload, app: &App) -> Inbound {
    let (Some(kind), Some(team)) = (kind_of(&interaction.action_id), interaction.tenant()) else {
        return nothing("element not in use");
    };
    let user = interaction.user.id.clone();
    if interaction.external() || app.policy.slack_home(team, &user).is_err() {
        return Inbound::only(options(&[]), "suggestions refused by policy");
    }
    let lookup = Lookup {
        tenant: Tenant::slack(team),
        membership: Membership::default(),
        user,
        sought: SuggestionKind::Choice(kind),
        typed: interaction.value.trim().to_owned(),
    };
    let without = suggested(&lookup, &Settings::default(), &Catalogue::default());
    Inbound { lookup: Some(lookup), ..Inbound::only(without, "suggestions") }
}

/// The suggestions: the typed value, if usable, then recently used and available values.
#[must_use]
pub fn suggested(lookup: &Lookup, settings: &Settings, catalogue: &Catalogue) -> HttpAnswer {
    // A select of the Home has no other kind.
    let SuggestionKind::Choice(kind) = lookup.sought else {
        return options(&[]);
    };
    let may = settings.open_to.is_empty() || settings.open_to.contains(&lookup.user);
    let known = if may { catalogue.suggest(kind, &lookup.typed, OPTIONS_MAX) } else { Vec::new() };
    let own = kind.usable(&lookup.typed).ok();
    let own = own.as_deref().filter(|own| !known.contains(own));
    let values: Vec<&str> = own
        .into_iter()
        .chain(known.iter().copied())
        .filter(|value| (1..=OPTION_VALUE_UNITS_MAX).contains(&units(value)))
        .take(OPTIONS_MAX)
        .collect();
    options(&values)
}

fn options(values: &[&str]) -> HttpAnswer {
    let option = |value: &&str| json!({ "text": label(value, OPTION_UNITS_MAX), "value": value });
    let options: Vec<Value> = values.iter().map(option).collect();
    HttpAnswer::json(&json!({ "options": options }))
}
