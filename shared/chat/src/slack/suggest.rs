//! Suggestions for a select of the Home whose options come from us (`block_suggestion`). Suggestions only: a value that can
//! be used as it is typed is always among them, and nobody who may not use Bobbin learns what others used.

use bobbin_core::base::ids::Tenant;
use bobbin_core::base::person::Membership;
use bobbin_core::tenant::settings::{Catalogue, Settings};
use bobbin_core::text::units;
use serde_json::{Value, json};

use super::blocks::label;
use super::endpoint::{App, nothing};
use super::home::kind_of;
use super::limits::{OPTION_UNITS_MAX, OPTION_VALUE_UNITS_MAX, OPTIONS_MAX};
use super::types::Interaction;
use crate::{HttpAnswer, Inbound, Lookup, Sought};

/// Somebody types into a select: what is read for them is for the caller, who has little time for it.
pub(super) fn typing(interaction: &Interaction, app: &App) -> Inbound {
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
        sought: Sought::Choice(kind),
        typed: interaction.value.trim().to_owned(),
    };
    let without = suggested(&lookup, &Settings::default(), &Catalogue::default());
    Inbound { lookup: Some(lookup), ..Inbound::only(without, "suggestions") }
}

/// The suggestions: the value as it is typed, where it can be one, what was used of late, what there is.
#[must_use]
pub fn suggested(lookup: &Lookup, settings: &Settings, catalogue: &Catalogue) -> HttpAnswer {
    // A select of the Home asks for nothing else.
    let Sought::Choice(kind) = lookup.sought else {
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
