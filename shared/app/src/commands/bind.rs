//! Owners of repositories that managers bind to their server or workspace.
//!
//! Promised: what was pressed counts only while its requester manages the place, and with the installation that the
//! forge shows now; an owner that is bound already is replaced. A repeat changes nothing.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, Tenant};
use bobbin_core::records::control::Control;
use bobbin_core::tenant::bindings::{self, BINDINGS_MAX, Binding};
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::repositories::ALL;
use bobbin_core::tenant::settings::{NotChanged, Settings};
use bobbin_core::tenant::setup_link::Purpose;
use bobbin_core::tenant::sign_in::OwnerChoice;
use bobbin_core::text::span;
use bobbin_forge::{ForgeErrorKind, Installation};
use futures::future::join_all;

use super::config::NOT_SAID;
use super::github::ForgeAnswer;
use crate::control::Lane;

impl Lane<'_> {
    /// Why the requester may not manage the place, for them.
    async fn not_managing(&self, control: &Control) -> Result<Option<String>, Failure> {
        match self.membership(control).await {
            Ok(membership) if membership.manages => Ok(None),
            Ok(_) => Ok(Some(NotChanged::NotAllowed.to_string())),
            Err(failure @ Failure::Wait { .. }) => Err(failure),
            Err(_) => Ok(Some(NOT_SAID.to_owned())),
        }
    }

    pub(super) async fn bind_link(&self, control: &Control, now_ms: Ms) -> ForgeAnswer {
        if let Some(why) = self.not_managing(control).await? {
            return Ok(why);
        }
        let words = "Somebody who owns the organisation or account with those repositories has to open it. The link works once, for anybody who has it, so pass it on to nobody but an owner.";
        self.sign_in_link(control, (Purpose::BindOwner, words), now_ms).await
    }

    /// Binds the owner that was pressed.
    pub(super) async fn bind(
        &self,
        control: &Control,
        owner: &OwnerChoice,
        since_ms: Ms,
        settings: Settings,
    ) -> ForgeAnswer {
        if let Some(why) = self.not_managing(control).await? {
            return Ok(why);
        }
        let forge = match self.sign_in() {
            Ok((forge, _)) => forge,
            Err(off) => return Ok(off.to_owned()),
        };
        let tenant = control.thread.tenant();
        let there = match forge.client().installation_by_id(owner.installation).await {
            Ok(there) if there.owner.id == owner.id => there,
            Ok(_) => return Ok(ended(&owner.login, &tenant)),
            Err(error) if error.kind == ForgeErrorKind::NotInstalled => {
                return Ok(ended(&owner.login, &tenant));
            }
            Err(error) => return Err(forge.failed(error)),
        };
        let is_full = settings.bindings.len() >= BINDINGS_MAX;
        if is_full && !settings.bindings.contains_key(&owner.id) {
            return Ok(NotChanged::Full(BINDINGS_MAX).to_string());
        }
        let binding = Binding {
            login: there.owner.login.clone(),
            is_organization: owner.is_organization,
            installation: there.id,
            by: control.by.clone(),
            since_ms,
        };
        let opens_all = settings.repositories.are_open(ALL, &control.membership.channel);
        let id = owner.id;
        self.rewrite(&tenant, settings, |Settings { bindings, .. }| {
            if bindings.get(&id).is_none_or(|before| before.since_ms <= since_ms) {
                bindings.insert(id, binding.clone());
            }
        })
        .await?;
        tracing::info!(event = "binding.stored", %tenant, by = control.by.id, owner = id, "an owner of repositories was bound");
        let login = &there.owner.login;
        let open = if opens_all {
            "`all` is open here, so tasks can work on its repositories now".to_owned()
        } else {
            let config = tenant.command(Command::Config);
            format!("That opens nothing yet: name the repositories with `{config}`, `open`")
        };
        let state = state(&there).map_or_else(String::new, |state| format!(" But it {state}"));
        Ok(format!("Done: {login} is bound to this server or workspace. {open}.{state}"))
    }

    pub(super) async fn unbind(
        &self,
        control: &Control,
        owner: Option<&str>,
        settings: Settings,
    ) -> ForgeAnswer {
        if let Some(why) = self.not_managing(control).await? {
            return Ok(why);
        }
        let tenant = control.thread.tenant();
        let logins: Vec<&str> =
            settings.bindings.values().map(|binding| binding.login.as_str()).collect();
        let id = match owner {
            Some(owner) => bindings::named(&settings.bindings, owner),
            None => settings.bindings.keys().next().copied().filter(|_| logins.len() == 1),
        };
        let Some(id) = id else {
            return Ok(match logins.as_slice() {
                [] => "Nobody has bound an owner at GitHub here.".to_owned(),
                logins => format!("Name the owner to remove: {}.", logins.join(", ")),
            });
        };
        let login = settings.bindings.get(&id).map(|binding| binding.login.clone());
        let login = login.unwrap_or_default();
        self.rewrite(&tenant, settings, |settings| {
            settings.bindings.remove(&id);
        })
        .await?;
        tracing::info!(event = "binding.removed", %tenant, by = control.by.id, owner = id, "the binding of an owner was removed");
        Ok(format!(
            "Done: {login} is no longer bound here. Sandboxes keep what they have of its repositories. If nothing else uses the app there, uninstall it at GitHub too."
        ))
    }

    /// A line for each owner that managers have bound, with its state at the forge now.
    pub(super) async fn bound_lines(
        &self,
        tenant: &Tenant,
        settings: &Settings,
        now_ms: Ms,
    ) -> Result<Vec<String>, Failure> {
        let Some(forge) = self.forge.filter(|_| !settings.bindings.is_empty()) else {
            return Ok(Vec::new());
        };
        let asked = settings.bindings.iter().map(|(id, binding)| async move {
            let found = forge.client().installation_by_id(binding.installation).await;
            (*id, binding, found)
        });
        let (mut lines, mut renamed) = (Vec::new(), Vec::new());
        for (id, binding, found) in join_all(asked).await {
            let mut login = binding.login.clone();
            let said = match found {
                Ok(there) if there.owner.id == id => {
                    if there.owner.login != login {
                        login.clone_from(&there.owner.login);
                        renamed.push((id, there.owner.login.clone()));
                    }
                    state(&there).unwrap_or_else(|| "is usable".to_owned())
                }
                Ok(_) => ENDED.to_owned(),
                Err(error) if error.kind == ForgeErrorKind::NotInstalled => ENDED.to_owned(),
                Err(_) => "could not be checked: GitHub is not answering properly".to_owned(),
            };
            let ago = span(now_ms.saturating_sub(binding.since_ms));
            lines.push(format!(
                "- GitHub, {login} (bound {ago} ago by {}): {said}",
                binding.by.name
            ));
        }
        if !renamed.is_empty() {
            self.rewrite(tenant, settings.clone(), |next| {
                for (id, login) in &renamed {
                    if let Some(binding) = next.bindings.get_mut(id) {
                        binding.login.clone_from(login);
                    }
                }
            })
            .await?;
        }
        Ok(lines)
    }
}

const ENDED: &str = "has ended, because the app was uninstalled there. Bind it again or remove it";

fn ended(login: &str, tenant: &Tenant) -> String {
    let setup = tenant.command(Command::Setup);
    format!(
        "The app is no longer installed at {login}. Nothing was changed: install it there, then use `{setup}` again."
    )
}

/// What keeps an installation from being used, and where its owner can fix that.
fn state(there: &Installation) -> Option<String> {
    let page = &there.page;
    if there.is_suspended {
        return Some(format!("is suspended by its owner, who can lift that here: {page}"));
    }
    let missing = there.missing.join(", ");
    (!missing.is_empty()).then(|| format!("lacks {missing}. Its owner can grant that here: {page}"))
}
