//! `sandbox-setup`: a server's or workspace's own keys, shown, entered and removed in the chat.
//!
//! Promised: only people who may manage the place get a link, and a key entered with it is checked as theirs; a key
//! counts only when its provider has accepted it, and until then the previous one stays in use; live sandboxes are not
//! cut off, neither by another account's key nor by the removal of their own; a repeat changes nothing. No reply
//! contains a key's value. Deliberately absent: the entry of a key, which is ingress's.

use std::time::Duration;

use bobbin_cloud::sealing::SealError;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, Tenant, ThreadKey};
use bobbin_core::base::secret::Secret;
use bobbin_core::records::control::Control;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::{KeyState as Stored, OwnKey, OwnKeyRequest, line};
use bobbin_core::tenant::project_secrets::SecretRequest;
use bobbin_core::tenant::settings::{NotChanged, Settings, places};
use bobbin_core::tenant::setup_link::{Purpose, SetupLink, StoredLink, link_id};
use bobbin_core::text::span;
use bobbin_sandbox::{ErrorKind, ProviderError};

use super::config::NOT_SAID;
use crate::arrival::Arrival;
use crate::control::Lane;
use crate::model_keys::KeyState;
use crate::tenants::NOT_ON;

/// Sandboxes looked up in another account before its key is accepted.
const COMPARED_MAX: usize = 5;
/// Longest wait for the name of the server or workspace before a link is given without it.
const PLACE_MS_MAX: u64 = 3_000;
pub(super) const NO_PAGE: &str = "The address of Bobbin's pages is unknown. The operator has to deploy template.yaml again, or set page_url in the parameter Overrides.";
const UNKNOWN: &str =
    "No key can be stored for that provider. Choose daytona, anthropic, openai or openrouter.";
const GONE: &str = "The entered key is no longer there. Nothing was changed; ask for a new link.";
const NEWER: &str = "Another key was stored after this one was entered, so nothing was changed.";

/// Result of a request: a reply to its author.
type SetupResult = Result<String, Failure>;

impl Lane<'_> {
    pub(super) async fn own_key(
        &self,
        control: &Control,
        wish: &OwnKeyRequest,
        settings: Settings,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let words = self.answer_own_key(control, wish, settings, arrival.now_ms).await?;
        self.answer_done(control, arrival, &words).await
    }

    async fn answer_own_key(
        &self,
        control: &Control,
        wish: &OwnKeyRequest,
        settings: Settings,
        now_ms: Ms,
    ) -> SetupResult {
        if !self.tenants.is_on() {
            return Ok(NOT_ON.to_owned());
        }
        match self.membership(control).await {
            Ok(membership) if membership.manages => {}
            Ok(_) => return Ok(NotChanged::NotAllowed.to_string()),
            Err(failure @ Failure::Wait { .. }) => return Err(failure),
            Err(_) => return Ok(NOT_SAID.to_owned()),
        }
        let of = |provider: &str| Key::of_tenant(provider);
        match wish {
            OwnKeyRequest::Show => self.shown(control, settings, now_ms).await,
            OwnKeyRequest::Enter { provider } => match of(provider) {
                Some(key) => self.linked(control, key, now_ms).await,
                None => Ok(UNKNOWN.to_owned()),
            },
            OwnKeyRequest::Remove { provider } => match of(provider) {
                Some(key) => self.removed(control, key, settings).await,
                None => Ok(UNKNOWN.to_owned()),
            },
            OwnKeyRequest::Check { link } => self.checked(control, link, settings, now_ms).await,
        }
    }

    /// A link for the requester; a repeat gets the same one.
    async fn linked(&self, control: &Control, key: Key, now_ms: Ms) -> SetupResult {
        let tenant = control.thread.tenant();
        let what = (Purpose::Key(key), None, None);
        let Some(address) = self.make_link(control, what, now_ms).await? else {
            return Ok(NO_PAGE.to_owned());
        };
        let within_ms = self.limits.tenant.setup_link_ms;
        tracing::info!(event = "own_key.link", %tenant, by = control.by.id, key = key.name(), "a link to enter a key was created");
        Ok(format!(
            "Enter the {} key on this page within {}: {address}\nThe link works once, for anybody who has it, so do not pass it on. Never write a key into a message.",
            key.brand(),
            span(within_ms)
        ))
    }

    /// Stores a link for the requester and returns its address; `None` if the page's address is unknown. A repeat gets
    /// the same one.
    pub(super) async fn make_link(
        &self,
        control: &Control,
        (purpose, sign_in, secret): (Purpose, Option<String>, Option<SecretRequest>),
        now_ms: Ms,
    ) -> Result<Option<String>, Failure> {
        let tenant = control.thread.tenant();
        let made = self.tenants.link(&tenant, &control.by.id, purpose, &control.id);
        let Some((address, token)) = made else {
            return Ok(None);
        };
        let link = SetupLink {
            purpose,
            thread: control.thread.clone(),
            place: self.place(&control.thread).await,
            by: control.by.clone(),
            membership: control.membership.clone(),
            reply: control.reply.clone(),
            until_ms: now_ms + self.limits.tenant.setup_link_ms,
            sign_in,
            secret,
        };
        let stored = self.store.make_link(&link_id(&token), &link, None).await;
        stored.map_err(|e| e.failure())?;
        Ok(Some(address))
    }

    /// The name of the server or workspace. Without it the page shows only its id.
    async fn place(&self, thread: &ThreadKey) -> Option<String> {
        let chat = self.chat.of(thread).ok()?;
        let within = Duration::from_millis(PLACE_MS_MAX);
        tokio::time::timeout(within, chat.place(thread)).await.ok()?
    }

    /// The entered key counts from now on, if its provider accepts it.
    async fn checked(
        &self,
        control: &Control,
        link: &str,
        settings: Settings,
        now_ms: Ms,
    ) -> SetupResult {
        let tenant = control.thread.tenant();
        let found = self.store.link(link).await.map_err(|e| e.failure())?;
        let entered = found.filter(|found| found.link.thread.tenant() == tenant);
        let Some(StoredLink {
            link: SetupLink { purpose, secret, .. },
            sealed: Some(sealed),
            entered_at_ms: Some(since_ms),
            ..
        }) = entered
        else {
            return Ok(GONE.to_owned());
        };
        let key = match (purpose, secret) {
            (Purpose::Key(key), _) => key,
            (Purpose::ProjectSecret, Some(wish)) => {
                return self.secret_entered(control, &wish, (sealed, since_ms), settings).await;
            }
            _ => return Ok(GONE.to_owned()),
        };
        let brand = key.brand();
        match settings.own_key(key) {
            Some(own) if own.sealed == sealed => return Ok(done(key, own)),
            Some(own) if own.since_ms >= since_ms => return Ok(NEWER.to_owned()),
            _ => {}
        }
        let value = match self.tenants.opened(&tenant, key, &sealed).await {
            Ok(value) => value,
            Err(SealError::Broken) => {
                return Ok(format!(
                    "The entered key cannot be decrypted: it is damaged, or was entered for another server or workspace. Nothing was changed; use `{}` again for the {brand} key.",
                    control.thread.command(Command::Setup)
                ));
            }
            Err(error) => return Err(error.failure()),
        };
        match self.tenants.tried(&tenant, key, &value).await {
            KeyState::Valid(_) | KeyState::Restricted => {}
            KeyState::Refused => {
                return Ok(format!(
                    "{brand} does not accept this key. Nothing was changed: the key used until now stays in use. Check that you copied the whole key and that it is still valid, then ask for a new link."
                ));
            }
            KeyState::Unclear(seen) => return Err(Failure::Wait { after_ms: 0, seen }),
        }
        if key == Key::OF_ACCOUNT
            && let Some(words) = self.of_another_account(&tenant, &settings, &value).await?
        {
            return Ok(words);
        }
        let own = OwnKey {
            sealed,
            fingerprint: self.tenants.fingerprint(key, &value),
            state: Stored::Valid,
            by: control.by.clone(),
            since_ms,
            checked_at_ms: now_ms,
        };
        let words = done(key, &own);
        self.write_own_key(&tenant, key, settings, Some(own)).await?;
        tracing::info!(event = "own_key.stored", %tenant, by = control.by.id, key = key.name(), "a tenant's own key was stored");
        Ok(words)
    }

    /// Why a key cannot replace the present one: sandboxes live in an account that it does not open.
    async fn of_another_account(
        &self,
        tenant: &Tenant,
        settings: &Settings,
        value: &Secret,
    ) -> Result<Option<String>, Failure> {
        let Some(present) = settings.own_key(Key::OF_ACCOUNT) else {
            return Ok(None);
        };
        let opened = self.tenants.opened(tenant, Key::OF_ACCOUNT, &present.sealed);
        let before = match opened.await {
            Ok(before) => before,
            // This key reaches nothing, so nothing is cut off.
            Err(SealError::Broken) => return Ok(None),
            Err(error) => return Err(error.failure()),
        };
        let account = |value: &Secret| {
            let account = self.tenants.account(value);
            account.map_err(|advice| Failure::NonRecoverable { advice })
        };
        let (before, after) = (account(&before)?, account(value)?);
        let living = match before.list(Some(tenant)).await {
            Ok(living) => living,
            Err(error) if error.kind == ErrorKind::KeyRefused => return Ok(None),
            Err(error) => return Err(waiting(error)),
        };
        let living = living.iter().filter(|one| one.state != SandboxState::Gone);
        for sandbox in living.take(COMPARED_MAX) {
            match after.observe(&sandbox.id).await {
                Ok(_) => return Ok(None),
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(waiting(error)),
            }
            // It may just have been deleted.
            if before.observe(&sandbox.id).await.is_ok() {
                return Ok(Some(format!(
                    "This key belongs to another {} account. Sandboxes still exist in the current account, and nobody could reach them with this key. Nothing was changed. Wait until they are destroyed (`{}` in their threads, or three hours without use), then use `{}` again.",
                    Key::OF_ACCOUNT.brand(),
                    tenant.command(Command::Reset),
                    tenant.command(Command::Setup)
                )));
            }
        }
        Ok(None)
    }

    /// Removes a key, if no sandbox needs it.
    async fn removed(&self, control: &Control, key: Key, settings: Settings) -> SetupResult {
        let tenant = control.thread.tenant();
        let brand = key.brand();
        if settings.own_key(key).is_none() {
            return Ok(format!("This server or workspace has no {brand} key of its own."));
        }
        let used = self.used(&tenant, key, &settings).await?;
        if used > 0 {
            return Ok(format!(
                "{used} of your sandboxes may still use the {brand} key, so it stays. Destroy them first (`{}` in their threads, or three hours without use), or store another key in its place.",
                tenant.command(Command::Reset)
            ));
        }
        self.write_own_key(&tenant, key, settings, None).await?;
        tracing::info!(event = "own_key.removed", %tenant, by = control.by.id, key = key.name(), "a tenant's own key was removed");
        Ok(format!(
            "Done: the {brand} key is removed, and the operator's key is used from now on. Revoke it at {brand} too, if nothing else uses it."
        ))
    }

    /// Number of live sandboxes where a key is used: a model key may be in any of them.
    async fn used(&self, tenant: &Tenant, key: Key, settings: &Settings) -> Result<u32, Failure> {
        let has_own = settings.sandbox_credentials().is_some();
        let mut places = Vec::new();
        if has_own || key == Key::OF_ACCOUNT {
            places.push((true, None));
        }
        if key != Key::OF_ACCOUNT {
            let all = self.tenants.set_up().names();
            places.extend(all.map(|provider| (false, Some(provider))));
        }
        let mut used = 0;
        for (own, provider) in places {
            let counted = match self.tenants.of(tenant, settings, own, (provider, None)).await {
                Ok(sandboxes) => sandboxes.living(tenant).await,
                // A key that does not open is used by nobody.
                Err(Failure::NonRecoverable { .. }) => continue,
                Err(failure) => return Err(failure),
            };
            used += match counted {
                Ok(count) => count,
                Err(error) if error.kind == ErrorKind::KeyRefused => 0,
                Err(error) => return Err(waiting(error)),
            };
        }
        Ok(used)
    }

    /// The stored keys, each with its provider's current verdict.
    async fn shown(&self, control: &Control, settings: Settings, now_ms: Ms) -> SetupResult {
        let tenant = control.thread.tenant();
        let mut lines = Vec::new();
        for key in Key::OF_TENANTS {
            let Some(own) = settings.own_key(key) else {
                continue;
            };
            let state = match self.tenants.opened(&tenant, key, &own.sealed).await {
                Ok(value) => match self.tenants.tried(&tenant, key, &value).await {
                    KeyState::Valid(_) | KeyState::Restricted => Some(Stored::Valid),
                    KeyState::Refused => Some(Stored::Refused),
                    KeyState::Unclear(_) => None,
                },
                Err(SealError::Broken) => Some(Stored::Unreadable),
                Err(error) => return Err(error.failure()),
            };
            let mut own = own.clone();
            if let Some(state) = state {
                own.state = state;
                own.checked_at_ms = now_ms;
                self.note_state(&tenant, key, &own).await?;
            }
            lines.push(format!("- {}", line(key, &own, now_ms)));
        }
        let providers = self.tenants.set_up();
        let names: Vec<&str> = providers.names().collect();
        let here = &control.membership.channel;
        let configured = self.tenants.configured();
        let lacks = |name: &str| providers.lacking(name);
        let places = places(&settings, here, configured, &names, lacks);
        let bound = self.bound_lines(&tenant, &settings, now_ms).await?;
        let bound: String = bound.into_iter().map(|line| format!("\n{line}")).collect();
        if lines.is_empty() {
            let setup = tenant.command(Command::Setup);
            return Ok(format!(
                "{places}\nThis server or workspace has no keys of its own: sandboxes and models use the operator's. `{setup}` with a provider's name stores one.{bound}"
            ));
        }
        let missing = settings.sandbox_credentials().is_some()
            && Key::OF_TENANTS[1..].iter().all(|key| settings.own_key(*key).is_none());
        if missing {
            lines.push(MODELS.to_owned());
        }
        Ok(format!("{places}\n{}{bound}", lines.join("\n")))
    }

    /// Records a provider's verdict on a key, unless the key was replaced.
    async fn note_state(&self, tenant: &Tenant, key: Key, own: &OwnKey) -> Result<(), Failure> {
        let settings = self.store.settings(tenant).await.map_err(|e| e.failure())?;
        let there = settings.own_key(key);
        if there.is_none_or(|there| there.sealed != own.sealed || there.state == own.state) {
            return Ok(());
        }
        let provider = key.provider().unwrap_or_default();
        let mut next = settings.clone();
        next.own_keys.insert(provider.to_owned(), own.clone());
        let saved = self.store.save_settings(tenant, &next, settings.version);
        saved.await.map(drop).map_err(|e| e.failure())
    }

    /// Replaces a key, unless a newer one was stored meanwhile, or removes it.
    async fn write_own_key(
        &self,
        tenant: &Tenant,
        key: Key,
        settings: Settings,
        own: Option<OwnKey>,
    ) -> Result<(), Failure> {
        let provider = key.provider().unwrap_or_default();
        self.rewrite(tenant, settings, |next| {
            let stored = next.own_key(key).map(|there| there.since_ms);
            match &own {
                Some(own) if stored > Some(own.since_ms) => {}
                Some(own) => {
                    next.own_keys.insert(provider.to_owned(), own.clone());
                }
                None => {
                    next.own_keys.remove(provider);
                }
            }
        })
        .await
    }
}

const MODELS: &str = "Sandboxes in your own account use only your own model keys, and there is none yet: store one too.";

fn done(key: Key, own: &OwnKey) -> String {
    let (brand, fingerprint) = (key.brand(), &own.fingerprint);
    match key {
        Key::OF_ACCOUNT => format!(
            "Done: {brand} accepts the key `{fingerprint}`, and new sandboxes are created with it. Existing sandboxes stay where they are. In your own account they use only your own model keys: store one too, if you have not yet."
        ),
        _ => format!(
            "Done: {brand} accepts the key `{fingerprint}`. Every sandbox or server that starts from now on uses it."
        ),
    }
}

/// A failure to wait out when a provider did not answer properly.
fn waiting(error: ProviderError) -> Failure {
    match error.failure {
        failure @ (Failure::Wait { .. } | Failure::Outage { .. }) => failure,
        _ => Failure::Wait { after_ms: 0, seen: error.seen },
    }
}

#[cfg(test)]
mod tests {
    use bobbin_core::base::person::Person;

    use super::*;

    #[test]
    fn a_stored_key_is_named_by_its_fingerprint() {
        let own = OwnKey {
            sealed: "sealed".to_owned(),
            fingerprint: "3f9a".to_owned(),
            state: Stored::Valid,
            by: Person::default(),
            since_ms: 1,
            checked_at_ms: 1,
        };
        let daytona = done(Key::DaytonaApiKey, &own);
        let anthropic = done(Key::AnthropicApiKey, &own);
        assert!(daytona.starts_with("Done: Daytona accepts the key `3f9a`, and new sandboxes"));
        assert!(anthropic.starts_with("Done: Anthropic accepts the key `3f9a`. Every sandbox"));
        assert!(!daytona.contains("sealed") && !anthropic.contains("sealed"));
    }
}
