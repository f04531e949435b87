//! Secrets of projects: a link for entering one, and what was entered.
//!
//! Promised: only people who may manage the place get a link, and what they enter is stored as theirs, for the hosts
//! that the link named; a repeat changes nothing; no reply contains a value.

use bobbin_cloud::sealing::SealError;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::records::control::Control;
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::project_secrets::{ProjectSecret, SecretRequest, usable_value};
use bobbin_core::tenant::settings::{NotChanged, Settings, SettingsChange, change_words};
use bobbin_core::tenant::setup_link::Purpose;
use bobbin_core::text::span;

use super::config::{RACES_MAX, overtaken};
use super::setup::NO_PAGE;
use crate::control::Lane;
use crate::forge::hosts_of_forge;
use crate::tenants::NOT_ON;

impl Lane<'_> {
    /// A link for the requester; a repeat gets the same one.
    pub(super) async fn secret_link(
        &self,
        control: &Control,
        wish: &SecretRequest,
        settings: &Settings,
        now_ms: Ms,
    ) -> Result<String, Failure> {
        if !self.tenants.is_on() {
            return Ok(NOT_ON.to_owned());
        }
        let facts = self.forge.map(|forge| forge.client().facts());
        let forge = hosts_of_forge(facts.as_ref());
        let forge: Vec<&str> = forge.iter().map(String::as_str).collect();
        let checked = wish.usable(&forge);
        let checked = checked
            .and_then(|wish| settings.project_secrets.room(&wish).map(|()| wish))
            .map_err(NotChanged::from);
        let wish = match checked {
            Ok(wish) => wish,
            Err(refused) => return Ok(refused.to_string()),
        };
        let tenant = control.thread.tenant();
        let what = (Purpose::ProjectSecret, None, Some(wish.clone()));
        let Some(address) = self.make_link(control, what, now_ms).await? else {
            return Ok(NO_PAGE.to_owned());
        };
        tracing::info!(event = "project.secret.link", %tenant, by = control.by.id, repository = wish.repository, name = wish.name, "a link to enter a project's secret was created");
        let readable = if wish.readable {
            " The agent and everything that it runs will be able to read it."
        } else {
            ""
        };
        Ok(format!(
            "Enter the secret {} of {} on this page within {}: {address}\nThe link works once, for anybody who has it, so do not pass it on. Never write a secret into a message.{readable}",
            wish.name,
            wish.repository,
            span(self.limits.tenant.setup_link_ms)
        ))
    }

    /// The entered secret counts from now on.
    pub(super) async fn secret_entered(
        &self,
        control: &Control,
        wish: &SecretRequest,
        (sealed, since_ms): (String, Ms),
        mut settings: Settings,
    ) -> Result<String, Failure> {
        let tenant = control.thread.tenant();
        let opened = self.tenants.opened_secret(&tenant, wish, &sealed).await;
        let is_usable = match opened {
            Ok(value) => usable_value(value.expose()).is_some(),
            Err(SealError::Broken) => false,
            Err(error) => return Err(error.failure()),
        };
        if !is_usable {
            return Ok(format!(
                "The entered secret cannot be decrypted: it is damaged, or was entered for something else. Nothing was changed; use `{}` again.",
                control.thread.command(Command::Config)
            ));
        }
        let secret = ProjectSecret {
            sealed,
            hosts: wish.hosts.clone(),
            readable: wish.readable,
            set_up: wish.set_up,
            by: control.by.clone(),
            since_ms,
        };
        for _ in 0..RACES_MAX {
            let there = settings.project_secrets.of(&wish.repository);
            let there = there.and_then(|there| there.get(&wish.name));
            if there.is_some_and(|there| there.since_ms > since_ms) {
                return Ok(
                    "Another value was stored after this one was entered, so nothing was changed."
                        .to_owned(),
                );
            }
            let next = match settings.with_secret(&control.id, wish, secret.clone()) {
                Ok(next) => next,
                Err(refused) => return Ok(refused.to_string()),
            };
            if next == settings || self.write(&tenant, &next, settings.version).await? {
                let change = SettingsChange::Secret(wish.clone());
                let done = change_words(&change, |_, id| id.to_owned());
                tracing::info!(event = "settings.changed", %tenant, by = control.by.id, control.id = %control.id, "settings.changed: {done}");
                return Ok(format!("Done: {done}. Tasks get it with their next message."));
            }
            settings = self.store.settings(&tenant).await.map_err(|e| e.failure())?;
        }
        Err(overtaken())
    }
}
