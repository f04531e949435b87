//! `github`: people's own accounts, and the sign-in at the forge that these and bindings ([`super::bind`]) need.
//!
//! Promised: an account is connected to the person who asked for the link, and only the browser that came back from
//! the forge can press. A repeat changes nothing. Deliberately absent: the pages, which are ingress's.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::records::control::Control;
use bobbin_core::tenant::commands::Command;
use bobbin_core::tenant::linked::LinkedAccount;
use bobbin_core::tenant::settings::Settings;
use bobbin_core::tenant::setup_link::{Purpose, StoredLink};
use bobbin_core::tenant::sign_in::{ForgeRequest, SignInFound, StoredSignIn};
use bobbin_core::text::span;

use super::setup::NO_PAGE;
use crate::arrival::Arrival;
use crate::control::Lane;
use crate::forge::StackForge;
use crate::linked::{NotLinked, OFF, SignedIn, busy};

const NO_FORGE: &str =
    "No GitHub app is set up here. The operator sets one up as docs/GITHUB.md says.";
const GONE: &str = "What you pressed is no longer there. Nothing was changed; ask for a new link.";

/// Words for the requester.
pub(super) type ForgeAnswer = Result<String, Failure>;

impl Lane<'_> {
    pub(super) async fn at_forge(
        &self,
        control: &Control,
        wish: &ForgeRequest,
        settings: Settings,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let now_ms = arrival.now_ms;
        let words = match wish {
            ForgeRequest::SignedIn { link, press } => {
                return self.signed_in(control, link, press).await;
            }
            ForgeRequest::Pressed { link } => {
                return self.pressed(control, link, settings, arrival).await;
            }
            ForgeRequest::Bind => self.bind_link(control, now_ms).await?,
            ForgeRequest::Unbind { owner } => {
                self.unbind(control, owner.as_deref(), settings).await?
            }
            ForgeRequest::Connect => {
                let words = "The link works once, for anybody who has it, so do not pass it on.";
                self.sign_in_link(control, (Purpose::ConnectAccount, words), now_ms).await?
            }
            ForgeRequest::Account => self.account(control, now_ms).await?,
            ForgeRequest::Disconnect => self.disconnect(control, now_ms).await?,
        };
        self.answer_done(control, arrival, &words).await
    }

    /// The forge and its sign-in, or who has to switch them on.
    pub(super) fn sign_in(&self) -> Result<(&StackForge, &SignedIn), &'static str> {
        let forge = self.forge.ok_or(NO_FORGE)?;
        Ok((forge, forge.signed_in.as_ref().ok_or(OFF)?))
    }

    /// A link for the requester; a repeat gets the same one.
    pub(super) async fn sign_in_link(
        &self,
        control: &Control,
        (purpose, words): (Purpose, &str),
        now_ms: Ms,
    ) -> ForgeAnswer {
        let page = match self.sign_in() {
            Ok((_, signed_in)) => signed_in.page(),
            Err(off) => return Ok(off.to_owned()),
        };
        let Some(page) = page else {
            return Ok(NO_PAGE.to_owned());
        };
        let made = self.make_link(control, (purpose, Some(page), None), now_ms).await?;
        let Some(address) = made else {
            return Ok(NO_PAGE.to_owned());
        };
        let tenant = control.thread.tenant();
        tracing::info!(event = "sign_in.link", %tenant, by = control.by.id, purpose = purpose.word(), "a link to sign in was created");
        let within = span(self.limits.tenant.setup_link_ms);
        Ok(format!("Sign in with GitHub on this page within {within}: {address}\n{words}"))
    }

    /// Finds out who came back from the forge, for the page on which they wait.
    async fn signed_in(&self, control: &Control, id: &str, press: &str) -> Result<(), Failure> {
        let Some((link, sign_in)) = self.newest_sign_in(control, id).await? else {
            return Ok(());
        };
        if sign_in.press != press || sign_in.found.is_some() || sign_in.pressed.is_some() {
            return Ok(());
        }
        let Ok((forge, signed_in)) = self.sign_in() else {
            return Ok(());
        };
        let install = forge.client().facts().install;
        let found = signed_in.look(install, id, (&link.link, &sign_in)).await?;
        self.store.note_sign_in(id, press, &found).await.map_err(|e| e.failure())
    }

    /// The link's newest sign-in, if the link is of the requester's tenant.
    async fn newest_sign_in(
        &self,
        control: &Control,
        id: &str,
    ) -> Result<Option<(StoredLink, StoredSignIn)>, Failure> {
        let found = self.store.link(id).await.map_err(|e| e.failure())?;
        let tenant = control.thread.tenant();
        let found = found.filter(|found| found.link.thread.tenant() == tenant);
        Ok(found.and_then(|mut found| {
            let sign_in = found.sign_in.take()?;
            Some((found, sign_in))
        }))
    }

    /// Carries out what was pressed, once: a repeat that comes after the answer finds nothing to carry out.
    async fn pressed(
        &self,
        control: &Control,
        id: &str,
        settings: Settings,
        arrival: Arrival,
    ) -> Result<(), Failure> {
        let Some((link, sign_in)) = self.newest_sign_in(control, id).await? else {
            return self.chat.answer(&control.reply, GONE).await;
        };
        let (Some(found), Some((pressed, at_ms))) = (sign_in.found, sign_in.pressed) else {
            return Ok(());
        };
        let press = (link.link.purpose, &found, (pressed.as_str(), at_ms));
        let words = self.carried_out(control, press, settings).await?;
        self.answer_done(control, arrival, &words).await?;
        self.store.end_sign_in(id, at_ms).await.map_err(|e| e.failure())
    }

    async fn carried_out(
        &self,
        control: &Control,
        (purpose, found, (pressed, at_ms)): (Purpose, &SignInFound, (&str, Ms)),
        settings: Settings,
    ) -> ForgeAnswer {
        match (purpose, found) {
            (Purpose::BindOwner, SignInFound::Owners { .. }) => match found.owner(pressed) {
                Some(owner) => self.bind(control, owner, at_ms, settings).await,
                None => Ok(GONE.to_owned()),
            },
            (Purpose::ConnectAccount, SignInFound::Account { account }) => {
                match settings.admit(&control.membership, &control.by.id) {
                    Ok(()) => self.keep_account(control, account).await,
                    Err(refusal) => Ok(refusal.to_string()),
                }
            }
            _ => Ok(GONE.to_owned()),
        }
    }

    /// Keeps the account that was pressed as the requester's own.
    async fn keep_account(&self, control: &Control, account: &LinkedAccount) -> ForgeAnswer {
        let (tenant, person) = (control.thread.tenant(), &control.by.id);
        let kept = self.store.linked(&tenant, person).await.map_err(|e| e.failure())?;
        let is_there = kept.account.as_ref().is_some_and(|there| there.link == account.link);
        if !is_there {
            let written = self.store.keep_linked(&tenant, person, account.clone(), &kept).await;
            if written.map_err(|e| e.failure())?.is_none() {
                return Err(busy());
            }
            tracing::info!(event = "linked.stored", %tenant, by = person, "a person's own account was connected");
        }
        let before = kept.account.filter(|before| before.id != account.id);
        let before = before.map_or_else(String::new, |before| {
            format!(
                " {} is not used any more; take its permission back at GitHub too.",
                before.login
            )
        });
        Ok(format!(
            "Done: your GitHub account {} is connected. The pull requests that you open here are yours, where that account may push.{before}",
            account.login
        ))
    }

    async fn account(&self, control: &Control, now_ms: Ms) -> ForgeAnswer {
        let forge = match self.sign_in() {
            Ok((forge, _)) => forge,
            Err(off) => return Ok(off.to_owned()),
        };
        let tenant = control.thread.tenant();
        Ok(match forge.linked(&tenant, &control.by.id).await? {
            Some(account) => format!(
                "Your GitHub account {} is connected, for {}. `{} disconnect` ends that.",
                account.login,
                span(now_ms.saturating_sub(account.since_ms)),
                typed(control)
            ),
            None => none(control),
        })
    }

    /// Ends what the person allowed the app, and forgets their account.
    async fn disconnect(&self, control: &Control, now_ms: Ms) -> ForgeAnswer {
        let (forge, signed_in) = match self.sign_in() {
            Ok(both) => both,
            Err(off) => return Ok(off.to_owned()),
        };
        let (tenant, person) = (control.thread.tenant(), &control.by.id);
        let as_person = match forge.access_of(&tenant, person).await {
            Ok(as_person) => as_person,
            Err(NotLinked::Never) => return Ok(none(control)),
            Err(NotLinked::Failed(failure)) => return Err(failure),
            Err(ended @ (NotLinked::Ended { .. } | NotLinked::Off)) => return Ok(ended.to_string()),
        };
        let ended = signed_in.people.disconnect(&as_person.access).await;
        ended.map_err(|error| forge.failed(error))?;
        let kept = self.store.linked(&tenant, person).await.map_err(|e| e.failure())?;
        let is_same = kept.account.as_ref().is_some_and(|kept| kept.id == as_person.account.id);
        if is_same {
            let forgotten = self.store.forget_linked(&tenant, person, &kept, now_ms).await;
            if !forgotten.map_err(|e| e.failure())? {
                return Err(busy());
            }
        }
        tracing::info!(event = "linked.forgotten", %tenant, by = person, "a person's own account was disconnected");
        Ok(format!(
            "Done: Bobbin has forgotten your GitHub account {}, and revoked what you allowed its app at GitHub, wherever you had connected it.",
            as_person.account.login
        ))
    }
}

/// The command as the requester types it.
fn typed(control: &Control) -> String {
    control.thread.command(Command::GitHub)
}

fn none(control: &Control) -> String {
    format!("You have connected no GitHub account here. `{} connect` does that.", typed(control))
}
