//! `sandbox-config`, and the place for new sandboxes: settings of the tenant, shown and changed in the chat.
//!
//! Promised: a change is made once, however often its message is delivered, by a person who may manage the place (the
//! platform is asked if the request does not say so); the author of a change is on record and in the log; of two
//! simultaneous changes both are made, or one author is told to try again. Deliberately absent: which settings may be
//! changed; the core decides that (`bobbin_core::tenant::settings`).

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, Tenant, ThreadKey};
use bobbin_core::base::person::Membership;
use bobbin_core::records::control::Control;
use bobbin_core::tenant::environments::{self, OFF, OWN};
use bobbin_core::tenant::runtime_mode::RuntimeMode;
use bobbin_core::tenant::settings::{
    DefaultKind, NotChanged, Settings, SettingsChange, SettingsList, change_words, listing,
};

use crate::arrival::Arrival;
use crate::control::Lane;
use crate::providers::OF_TENANTS;

/// Attempts within one delivery when others write first.
pub(super) const RACES_MAX: u32 = 5;
pub(super) const NOT_SAID: &str = "Slack did not say whether you may manage this workspace. Nothing was changed; try again later.";

impl Lane<'_> {
    /// `settings` are those that were read with the record.
    pub(super) async fn configure(
        &self,
        control: &Control,
        change: &SettingsChange,
        settings: Settings,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let words = self.changed(control, change, settings, arrival.now_ms).await?;
        self.answer_done(control, arrival, &words).await
    }

    /// Makes the change; returns the words for the requester.
    ///
    /// # Errors
    /// The table or the platform does not answer; nothing was changed, or a repeat finds that it was.
    pub(crate) async fn changed(
        &self,
        control: &Control,
        change: &SettingsChange,
        mut settings: Settings,
        now_ms: Ms,
    ) -> Result<String, Failure> {
        if *change == SettingsChange::Show {
            return Ok(listing(&settings, &control.membership.channel, now_ms, |list, id| {
                named(&control.thread, list, id)
            }));
        }
        let membership = match self.membership(control).await {
            Ok(membership) => membership,
            Err(Failure::Wait { after_ms, seen }) => return Err(Failure::Wait { after_ms, seen }),
            Err(failure) => {
                tracing::warn!(event = "settings.unsure", thread = %control.thread, ?failure, "settings.unsure: the platform did not say whether the person is a manager");
                return Ok(NOT_SAID.to_owned());
            }
        };
        if let SettingsChange::Secret(wish) = change {
            if !membership.manages {
                return Ok(NotChanged::NotAllowed.to_string());
            }
            return self.secret_link(control, wish, &settings, now_ms).await;
        }
        let read = match with_recipe_read(change) {
            Ok(read) => read,
            Err(why) if membership.manages => return Ok(why),
            Err(_) => return Ok(NotChanged::NotAllowed.to_string()),
        };
        let change = &read;
        let tenant = control.thread.tenant();
        for _ in 0..RACES_MAX {
            let changed = settings.changed(&control.id, change, &control.by, &membership, now_ms);
            let next = match changed {
                Ok(next) => next,
                Err(refused) => return Ok(refused.to_string()),
            };
            if let Some(why) = self.no_such_provider(change, &settings) {
                return Ok(why);
            }
            if let Some(why) = self.no_such_agent(change, &tenant).await {
                return Ok(why);
            }
            let made = next == settings;
            if made || self.write(&tenant, &next, settings.version).await? {
                let done = change_words(change, |list, id| named(&control.thread, list, id));
                tracing::info!(event = "settings.changed", %tenant, by = control.by.id, control.id = %control.id, repeat = made, "settings.changed: {done}");
                return Ok(format!("Done: {done}.{}", further(change)));
            }
            settings = self.store.settings(&tenant).await.map_err(|e| e.failure())?;
        }
        Err(overtaken())
    }

    /// Applies a change to the settings, and again if others write meanwhile; writes nothing if nothing changes.
    pub(crate) async fn rewrite(
        &self,
        tenant: &Tenant,
        mut settings: Settings,
        change: impl Fn(&mut Settings),
    ) -> Result<(), Failure> {
        for _ in 0..RACES_MAX {
            let mut next = settings.clone();
            change(&mut next);
            if next == settings {
                return Ok(());
            }
            let is_written = if next.bindings == settings.bindings {
                self.write(tenant, &next, settings.version).await?
            } else {
                let saved = self.store.save_bindings(tenant, &next, &settings).await;
                saved.map_err(|e| e.failure())?
            };
            if is_written {
                return Ok(());
            }
            settings = self.store.settings(tenant).await.map_err(|e| e.failure())?;
        }
        Err(overtaken())
    }

    /// Why a provider cannot become the default: only providers that are set up can.
    fn no_such_provider(&self, change: &SettingsChange, settings: &Settings) -> Option<String> {
        let SettingsChange::Default { of: DefaultKind::Provider, value: Some(value), .. } = change
        else {
            return None;
        };
        let name = DefaultKind::Provider.usable(value).ok()?;
        if settings.sandbox_credentials().is_some() && name == OF_TENANTS {
            return None;
        }
        match self.tenants.set_up().named(Some(&name)) {
            Err(Failure::NonRecoverable { advice }) => {
                Some(format!("{advice} Nothing was changed."))
            }
            _ => None,
        }
    }

    /// Why no sandbox would have the agent that is to become the default, as far as the tenant's sandboxes have
    /// reported their agents.
    async fn no_such_agent(&self, change: &SettingsChange, tenant: &Tenant) -> Option<String> {
        let SettingsChange::Default { of: DefaultKind::Agent, value: Some(value), .. } = change
        else {
            return None;
        };
        let name = DefaultKind::Agent.usable(value).ok()?;
        // An unreadable catalogue does not prove that an agent is missing.
        let known = self.store.catalogue(tenant).await.ok()?.agents;
        let is_known = known.is_empty() || known.contains(&name);
        if is_known || RuntimeMode::of_agent(&name).is_some() {
            return None;
        }
        let there = known.join(", ");
        Some(format!(
            "No sandbox here has an agent named {name}. Choose one of these: {there}. Nothing was changed."
        ))
    }

    pub(super) async fn write(
        &self,
        tenant: &Tenant,
        next: &Settings,
        version: u64,
    ) -> Result<bool, Failure> {
        let saved = self.store.save_settings(tenant, next, version).await;
        saved.map_err(|e| e.failure())
    }

    /// The person's membership; if the platform does not say it, with only what the request says.
    pub(super) async fn membership_if_said(
        &self,
        control: &Control,
    ) -> Result<Membership, Failure> {
        match self.membership(control).await {
            Ok(membership) => Ok(membership),
            Err(Failure::Wait { after_ms, seen }) => Err(Failure::Wait { after_ms, seen }),
            Err(failure) => {
                tracing::warn!(event = "membership.unsure", thread = %control.thread, ?failure, "the platform did not say whether the person is a manager");
                Ok(control.membership.clone())
            }
        }
    }

    /// The person's membership. Discord includes it in the request; Slack is asked.
    pub(super) async fn membership(&self, control: &Control) -> Result<Membership, Failure> {
        // The operator is not a member of the place, so nobody can be asked about them.
        if control.membership.operates {
            return Ok(Membership { manages: true, ..control.membership.clone() });
        }
        let said = &control.membership;
        let member = self.chat.of(&control.thread)?.member(&control.by.id, said).await?;
        Ok(Membership { manages: member.manages, ..said.clone() })
    }
}

pub(super) fn overtaken() -> Failure {
    let seen = "others changed the settings on every try".to_owned();
    Failure::Wait { after_ms: 0, seen }
}

/// What the author of this change has to know beside it.
const fn further(change: &SettingsChange) -> &'static str {
    match change {
        SettingsChange::Direct { .. } => " Earlier conversations continue where they started.",
        SettingsChange::Network { .. } => {
            " It applies to threads' own sandboxes from their next message; named, shared and tool sandboxes and outside agents stay open. The thread is told if its provider cannot limit it."
        }
        SettingsChange::RemoveSecret { .. } => {
            " Running tasks lose it with their next message. Revoke it where it was issued, if nothing else uses it."
        }
        _ => "",
    }
}

/// An id in a form that people of the platform can read: a mention of a channel shows its name and pings nobody. People
/// and roles share one kind of id there, so their ids stay as they are.
fn named(thread: &ThreadKey, list: SettingsList, id: &str) -> String {
    let shown = match list {
        SettingsList::Channels => thread.channel_shown(id),
        SettingsList::People => None,
    };
    shown.unwrap_or_else(|| format!("`{id}`"))
}

/// The change, with the repositories that the text of an environment names; else why that text says nothing.
fn with_recipe_read(change: &SettingsChange) -> Result<SettingsChange, String> {
    let SettingsChange::Environment { repository, text, .. } = change else {
        return Ok(change.clone());
    };
    if [OFF, OWN].iter().any(|word| text.trim().eq_ignore_ascii_case(word)) {
        return Ok(change.clone());
    }
    let read = bobbin_recipe::of_settings(text);
    let read = read.map_err(|wrong| format!("{wrong} Nothing was changed."))?;
    let own = environments::repository(repository);
    if own.is_some_and(|own| read.repositories.contains(&own)) {
        return Err(format!(
            "`repositories` names others beside {repository}: leave {repository} itself out. Nothing was changed."
        ));
    }
    let text = if read.recipe.is_some() { text } else { OWN };
    Ok(SettingsChange::Environment {
        repository: repository.clone(),
        text: text.to_owned(),
        beside: read.repositories,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_beside_are_read_from_the_text() {
        let change = |text: &str, beside: &[&str]| SettingsChange::Environment {
            repository: "acme/web".to_owned(),
            text: text.to_owned(),
            beside: beside.iter().map(|name| (*name).to_owned()).collect(),
        };
        let only = "{repositories: [acme/api]}";
        assert_eq!(with_recipe_read(&change(only, &[])), Ok(change(OWN, &["acme/api"])));
        let both = "{repositories: [acme/api], set-up: [make]}";
        assert_eq!(with_recipe_read(&change(both, &[])), Ok(change(both, &["acme/api"])));
        assert_eq!(with_recipe_read(&change(OFF, &[])), Ok(change(OFF, &[])));
        assert_eq!(
            with_recipe_read(&change("{repositories: [Acme/Web]}", &[])),
            Err("`repositories` names others beside acme/web: leave acme/web itself out. Nothing was changed.".to_owned())
        );
    }

    #[test]
    fn channels_follow_the_chat_people_are_ids() {
        let discord = ThreadKey::discord("1", "2").expect("a key");
        let slack = ThreadKey::slack("T1", "C1", "1.2").expect("a key");
        assert_eq!(named(&discord, SettingsList::Channels, "20"), "<#20>");
        assert_eq!(named(&discord, SettingsList::People, "4"), "`4`");
        assert_eq!(named(&slack, SettingsList::Channels, "C1"), "`C1`");
    }
}
