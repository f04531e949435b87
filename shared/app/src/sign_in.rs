//! Who came back from the forge's sign-in, and what they may choose.
//!
//! Promised: an organisation is offered only to a person who administrates it, as the forge says, and a person's own
//! account only to them; what an installation says about itself proves nothing. The tokens of a sign-in for binding are
//! revoked before its result is stored; those of a person's own account are in that result, sealed. No code and no
//! token is in an error.

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::sealing::SealError;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::linked::LinkedAccount;
use bobbin_core::tenant::setup_link::{Purpose, SetupLink};
use bobbin_core::tenant::sign_in::{
    CHOICES_MAX, OwnerChoice, SignInFound, StoredSignIn, code_seal,
};
use bobbin_forge::github::manifest::SIGNED_IN;
use bobbin_forge::{ForgeResult, Installation, OrganizationMembership, OwnerKind, Person, SignIn};
use futures::future::join_all;

use crate::linked::SignedIn;

const AGAIN: &str = "This sign-in cannot be used. Open the link from the chat and sign in again.";

/// What the forge says of an installation and the person who signed in.
enum Administrates {
    Yes,
    No,
    /// It did not say.
    Unsaid,
}

impl SignedIn {
    /// The forge's page for signing in; `None` if it is unknown where people come back to.
    pub(crate) fn page(&self) -> Option<String> {
        (!self.own_url.is_empty()).then(|| self.people.sign_in_page(&self.redirect()))
    }

    fn redirect(&self) -> String {
        format!("{}{SIGNED_IN}", self.own_url)
    }

    /// Trades the code of a sign-in, and finds out what it is good for.
    ///
    /// # Errors
    /// To be tried again: the code was not traded, as far as anybody knows.
    pub(crate) async fn look(
        &self,
        install: &str,
        id: &str,
        (link, sign_in): (&SetupLink, &StoredSignIn),
    ) -> Result<SignInFound, Failure> {
        let context = code_seal(&self.stack, &link.thread.tenant(), id);
        let code = match self.seal.open(&sign_in.code, &context).await {
            Ok(code) => code,
            Err(SealError::Broken) => return Ok(refused(AGAIN)),
            Err(error) => return Err(error.failure()),
        };
        let tokens = match self.people.sign_in(code.expose(), &self.redirect()).await {
            Ok(tokens) => tokens,
            Err(error) => match error.failure {
                failure @ (Failure::Wait { .. } | Failure::Outage { .. }) => return Err(failure),
                _ => return Ok(refused(&error.seen)),
            },
        };
        let access = tokens.access.clone();
        let found = match link.purpose {
            Purpose::BindOwner => self.owners(&access, install).await,
            Purpose::ConnectAccount => self.account(id, link, tokens).await,
            Purpose::Key(_) | Purpose::ProjectSecret => Ok(refused(AGAIN)),
        };
        if !matches!(found, Ok(SignInFound::Account { .. }))
            && let Err(error) = self.people.revoke(&access).await
        {
            tracing::warn!(event = "sign_in.unrevoked", %error, "the token of a sign-in could not be revoked, and ends by itself");
        }
        Ok(found.unwrap_or_else(|error| {
            refused(&format!("{}. {AGAIN}", error.seen.trim_end_matches('.')))
        }))
    }

    async fn account(
        &self,
        id: &str,
        link: &SetupLink,
        tokens: SignIn,
    ) -> ForgeResult<SignInFound> {
        let Person { id: account, login } = self.people.person(&tokens.access).await?;
        let account = LinkedAccount {
            id: account,
            login,
            sealed: String::new(),
            renews: false,
            since_ms: now_ms(),
            ends_ms: None,
            link: id.to_owned(),
            renewing_ms: None,
        };
        let account = self.sealed(&link.thread.tenant(), &link.by.id, account, tokens).await?;
        Ok(SignInFound::Account { account })
    }

    /// The owners whose repositories this person may have bound.
    async fn owners(&self, access: &Secret, install: &str) -> ForgeResult<SignInFound> {
        let person = self.people.person(access).await?;
        let seen = self.people.visible_installations(access).await?;
        let own = |one: &Installation| match one.owner.kind {
            OwnerKind::Organization => true,
            OwnerKind::User => one.owner.id == person.id,
        };
        let seen: Vec<Installation> = seen.into_iter().filter(own).take(CHOICES_MAX).collect();
        let asked = seen.iter().map(|one| self.administrates(access, one));
        let asked = join_all(asked).await;
        let (mut owners, mut unsaid) = (Vec::new(), Vec::new());
        for (one, may) in seen.into_iter().zip(asked) {
            match may? {
                Administrates::Yes => owners.push(OwnerChoice {
                    id: one.owner.id,
                    login: one.owner.login,
                    is_organization: one.owner.kind == OwnerKind::Organization,
                    installation: one.id,
                    is_suspended: one.is_suspended,
                    page: one.page,
                }),
                Administrates::No => {}
                Administrates::Unsaid => unsaid.push(one.owner.login),
            }
        }
        let (login, install) = (person.login, install.to_owned());
        Ok(SignInFound::Owners { login, owners, unsaid, install })
    }

    async fn administrates(
        &self,
        access: &Secret,
        one: &Installation,
    ) -> ForgeResult<Administrates> {
        if one.owner.kind == OwnerKind::User {
            return Ok(Administrates::Yes);
        }
        match self.people.membership(access, &one.owner).await {
            Ok(OrganizationMembership::Admin) => Ok(Administrates::Yes),
            Ok(OrganizationMembership::Member | OrganizationMembership::None) => {
                Ok(Administrates::No)
            }
            Err(error) => match error.failure {
                Failure::Wait { .. } | Failure::Outage { .. } => Err(error),
                // The app may not ask there, or the organisation wants another sign-in first.
                _ => Ok(Administrates::Unsaid),
            },
        }
    }
}

fn refused(why: &str) -> SignInFound {
    SignInFound::Refused { why: why.to_owned() }
}
