//! `/sandbox-setup` and its form: the place for new sandboxes, keys of the server's own, and owners at the forge.

use bobbin_core::base::secret::Secret;
use bobbin_core::records::control::ControlAction;
use bobbin_core::tenant::commands::argument::{OWNER, PROVIDER, REMOVE};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::own_keys::{OwnKeyRequest, usable};
use bobbin_core::tenant::settings::NotChanged;
use bobbin_core::tenant::setup_link::{OWNERS, Purpose, SetupLink, link_id};
use bobbin_core::tenant::sign_in::ForgeRequest;

use super::request::{AdmittedInteraction, Refused, RequestOutcome, refuse};
use crate::commands::FilledIn;
use crate::discord::answer::{self, FORM_KEY};
use crate::discord::configure;
use crate::discord::interaction::{InvokedCommand, Modal};
use crate::{Entered, Inbound};

const UNKNOWN: &str =
    "This provider is no longer supported. `/sandbox-setup` shows the supported ones.";
const BY_PAGE: &str = "Keys are entered on a page here, not in a form. Use `/sandbox-setup` again.";
const NOT_STORED: &str = "The key could not be stored just now, and nothing was changed. Use `/sandbox-setup` again in a minute.";
const NO_KEY: &str = "That is not a key: a key is one word of 8 to 512 characters. Nothing was stored; use `/sandbox-setup` again.";

impl AdmittedInteraction<'_> {
    pub(super) fn setup(&self, command: &InvokedCommand) -> RequestOutcome {
        if let Some(change) = configure::place(command) {
            let want = ControlAction::Configure { change };
            let answer = answer::deferred_word();
            return Ok(self.control(self.here()?, want, answer, "discord: provider"));
        }
        if command.text(PROVIDER) == Some(OWNERS) {
            let forge = if command.flag(REMOVE) {
                ForgeRequest::Unbind { owner: command.text(OWNER).map(str::to_owned) }
            } else {
                ForgeRequest::Bind
            };
            let (want, answer) = (ControlAction::Forge { forge }, answer::deferred_word());
            return Ok(self.control(self.here()?, want, answer, "discord: owners"));
        }
        let key = match command.text(PROVIDER).map(Key::of_tenant) {
            None => return self.own_key(OwnKeyRequest::Show),
            Some(None) => return refuse(UNKNOWN, "discord: unknown provider of a key"),
            Some(Some(key)) => key,
        };
        let provider = key.provider().unwrap_or_default().to_owned();
        if command.flag(REMOVE) {
            return self.own_key(OwnKeyRequest::Remove { provider });
        }
        if self.app.keys_by_form {
            self.managing()?;
            return Ok(Inbound::only(answer::key_form(key), "discord: form opened"));
        }
        self.own_key(OwnKeyRequest::Enter { provider })
    }

    /// The form, filled in: the key goes only to the code that seals it.
    pub(super) fn key_form(&self, provider: &str, modal: &Modal) -> RequestOutcome {
        if !self.app.keys_by_form {
            return refuse(BY_PAGE, "discord: key in a form");
        }
        self.managing()?;
        let Some(key) = Key::of_tenant(provider) else {
            return refuse(UNKNOWN, "discord: unknown provider of a key");
        };
        let typed = modal.field(FORM_KEY).and_then(|field| field.value.as_str());
        let Some(value) = typed.and_then(usable) else {
            return refuse(NO_KEY, "discord: no key in the form");
        };
        let thread = self.here()?;
        let link = link_id(&format!("form {}", self.interaction.id));
        let about = SetupLink {
            purpose: Purpose::Key(key),
            thread: thread.clone(),
            place: None,
            by: self.by.clone(),
            membership: self.membership.clone(),
            reply: self.reply(),
            until_ms: self.now_ms + self.app.limits.tenant.setup_link_ms,
            sign_in: None,
            secret: None,
        };
        let want = ControlAction::OwnKey { key: OwnKeyRequest::Check { link: link.clone() } };
        let accepted = self.control(thread, want, answer::deferred_word(), "discord: key entered");
        Ok(Inbound {
            entered: Some(Entered {
                key,
                value: Secret::from(value.to_owned()),
                link,
                about,
                on_failure: answer::word(NOT_STORED),
            }),
            ..accepted
        })
    }

    fn managing(&self) -> Result<(), Refused> {
        if self.membership.manages {
            Ok(())
        } else {
            refuse(
                NotChanged::NotAllowed.to_string(),
                "discord: keys of a server that is not theirs",
            )
        }
    }

    fn own_key(&self, key: OwnKeyRequest) -> RequestOutcome {
        let want = ControlAction::OwnKey { key };
        let answer = answer::deferred_word();
        Ok(self.control(self.here()?, want, answer, "discord: keys"))
    }
}
