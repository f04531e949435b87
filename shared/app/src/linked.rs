//! People's own accounts at the forge: who has connected one, and a token to act as them.
//!
//! Promised: a token is opened for the person who connected the account, and for nobody else; a refresh token, which is
//! good once, is replaced in the table before what it gave is used; one worker renews at a time. An account whose
//! sign-in has ended is forgotten, and the person is told. No token is in an error.

use std::sync::Arc;

use bobbin_cloud::aws::Aws;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::sealing::{Seal, SealError};
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_cloud::store::{KeptLinked, Store};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, Tenant};
use bobbin_core::base::person;
use bobbin_core::base::secret::Secret;
use bobbin_core::records::carried::ForgeRepository;
use bobbin_core::records::publication::Presser;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::linked::{LinkedAccount, linked_seal};
use bobbin_forge::{ForgeError, ForgeErrorKind, People, Permission, Person, SignIn};

use crate::forge::{StackForge, target};

/// Attempts to seal and store a new token: the one before is gone by then.
const KEEPS_MAX: usize = 3;
/// Wait for another worker's renewal.
const RENEWAL_WAIT_MS: u64 = 2_000;

/// Said where nobody can sign in.
pub(crate) const OFF: &str = "Nobody can sign in with GitHub here. The operator switches it on with the app's client secret (`bobbin secrets`) and the template's parameter TenantCredentials=yes.";

/// The forge as people see it who have signed in there.
pub struct SignedIn {
    pub(crate) people: Arc<dyn People>,
    pub(crate) store: Store,
    pub(crate) seal: Seal,
    pub(crate) stack: String,
    /// Ingress's address, to which people come back; empty: unknown.
    pub(crate) own_url: String,
}

/// A person's account, and a token to act as it.
#[derive(Debug)]
pub struct AccountAccess {
    /// Whose it is: the tenant's person.
    pub of: (Tenant, String),
    /// The account.
    pub account: LinkedAccount,
    /// Good for some hours; it can do what both the person and the app may.
    pub access: Secret,
}

/// Why nothing can be done as a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotLinked {
    /// They have connected no account.
    #[error("You have not connected your GitHub account.")]
    Never,
    /// The sign-in has ended, and the account is forgotten.
    #[error(
        "The sign-in of the GitHub account {login} has ended: it was taken back at GitHub, or not used for too long."
    )]
    Ended {
        /// The account's name when it was last seen.
        login: String,
    },
    /// Nobody can connect an account here.
    #[error("{OFF}")]
    Off,
    /// Any other failure.
    #[error("{0}")]
    Failed(Failure),
}

impl From<Failure> for NotLinked {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl SignedIn {
    /// `None` without the app's client secret, or without the key that seals.
    pub(crate) fn new<P: People + 'static>(
        aws: &Aws,
        config: &Config,
        keys: &WorkerKeys,
        people: &Arc<P>,
    ) -> Option<Self> {
        let arn = config.credentials_key.as_str();
        let has_all = !arn.is_empty() && !keys.of(Key::GitHubClientSecret).is_empty();
        has_all.then(|| Self {
            people: Arc::<P>::clone(people),
            store: Store::new(aws, &config.table),
            seal: Seal::new(aws, arn),
            stack: config.stack.clone(),
            own_url: config.own_url.clone(),
        })
    }

    /// The person's account with a token that works.
    async fn access(&self, tenant: &Tenant, person: &str) -> Result<AccountAccess, NotLinked> {
        let kept = self.store.linked(tenant, person).await.map_err(|e| e.failure())?;
        let Some(account) = kept.account.clone() else {
            return Err(NotLinked::Never);
        };
        if account.is_renewing(now_ms()) {
            return Err(busy().into());
        }
        let context = linked_seal(&self.stack, tenant, person);
        let token = match self.seal.open(&account.sealed, &context).await {
            Ok(token) => token,
            Err(SealError::Broken) => return Err(self.ended(tenant, person, &kept).await),
            Err(error) => return Err(error.failure().into()),
        };
        if account.renews {
            return self.renewed(tenant, person, (kept, account), &token).await;
        }
        match self.people.person(&token).await {
            Ok(there) if there.id == account.id => {
                let of = (tenant.clone(), person.to_owned());
                Ok(AccountAccess { of, account, access: token })
            }
            Ok(_) => Err(self.ended(tenant, person, &kept).await),
            Err(error) if error.kind == ForgeErrorKind::SignInEnded => {
                Err(self.ended(tenant, person, &kept).await)
            }
            Err(error) => Err(error.failure.into()),
        }
    }

    /// A new token for the refresh token, which is good once: the claim keeps other workers from using it too.
    async fn renewed(
        &self,
        tenant: &Tenant,
        person: &str,
        (kept, account): (KeptLinked, LinkedAccount),
        refresh: &Secret,
    ) -> Result<AccountAccess, NotLinked> {
        let claim = LinkedAccount { renewing_ms: Some(now_ms()), ..account.clone() };
        let claimed = self.store.keep_linked(tenant, person, claim, &kept).await;
        let Some(claimed) = claimed.map_err(|e| e.failure())? else {
            return Err(busy().into());
        };
        let sign_in = match self.people.renew(refresh).await {
            Ok(sign_in) => sign_in,
            Err(error) if error.kind == ForgeErrorKind::SignInEnded => {
                return Err(self.ended(tenant, person, &claimed).await);
            }
            Err(ForgeError { failure, .. }) => {
                // Without this the next attempt waits until the claim is old.
                let _ = self.store.keep_linked(tenant, person, account, &claimed).await;
                return Err(failure.into());
            }
        };
        let access = sign_in.access.clone();
        let account = self.keep(tenant, person, (claimed, account), sign_in).await?;
        Ok(AccountAccess { of: (tenant.clone(), person.to_owned()), account, access })
    }

    /// The account with the token of a sign-in, sealed.
    pub(crate) async fn sealed(
        &self,
        tenant: &Tenant,
        person: &str,
        account: LinkedAccount,
        sign_in: SignIn,
    ) -> Result<LinkedAccount, Failure> {
        let renews = sign_in.refresh.is_some();
        let token = sign_in.refresh.as_ref().unwrap_or(&sign_in.access);
        let ends_s = if renews { sign_in.refresh_s } else { sign_in.access_s };
        let context = linked_seal(&self.stack, tenant, person);
        let mut last = busy();
        for _ in 0..KEEPS_MAX {
            match self.seal.close(token, &context).await {
                Ok(sealed) => {
                    let ends_ms = ends_s.map(|s| now_ms().saturating_add(s.saturating_mul(1_000)));
                    return Ok(LinkedAccount {
                        sealed,
                        renews,
                        ends_ms,
                        renewing_ms: None,
                        ..account
                    });
                }
                Err(error) => last = error.failure(),
            }
        }
        Err(last)
    }

    /// Stores the token of a sign-in with the account, over what was read.
    async fn keep(
        &self,
        tenant: &Tenant,
        person: &str,
        (before, account): (KeptLinked, LinkedAccount),
        sign_in: SignIn,
    ) -> Result<LinkedAccount, Failure> {
        let account = self.sealed(tenant, person, account, sign_in).await?;
        let mut last = busy();
        for _ in 0..KEEPS_MAX {
            match self.store.keep_linked(tenant, person, account.clone(), &before).await {
                Ok(Some(_)) => return Ok(account),
                // Somebody was faster, or the answer to our own write was lost.
                Ok(None) => match self.store.linked(tenant, person).await {
                    Ok(there) if there.account.as_ref() == Some(&account) => return Ok(account),
                    Ok(_) => return Err(busy()),
                    Err(error) => last = error.failure(),
                },
                Err(error) => last = error.failure(),
            }
        }
        Err(last)
    }

    /// Forgets an account whose token does not work any more.
    async fn ended(&self, tenant: &Tenant, person: &str, kept: &KeptLinked) -> NotLinked {
        let login = kept.account.as_ref().map(|account| account.login.clone()).unwrap_or_default();
        match self.store.forget_linked(tenant, person, kept, now_ms()).await {
            Ok(true) => {
                tracing::info!(event = "linked.ended", %tenant, by = person, "the sign-in of a person's own account has ended");
                NotLinked::Ended { login }
            }
            Ok(false) => busy().into(),
            Err(error) => error.failure().into(),
        }
    }
}

impl StackForge {
    /// The account that a person has connected, as it is on record.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn linked(
        &self,
        tenant: &Tenant,
        person: &str,
    ) -> Result<Option<LinkedAccount>, Failure> {
        let Some(signed_in) = &self.signed_in else {
            return Ok(None);
        };
        let kept = signed_in.store.linked(tenant, person).await;
        kept.map(|kept| kept.account).map_err(|error| error.failure())
    }

    /// The person of a tenant who has connected this account; the first of several.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn person_of(
        &self,
        account: u64,
        tenant: &Tenant,
    ) -> Result<Option<person::Person>, Failure> {
        let Some(signed_in) = &self.signed_in else {
            return Ok(None);
        };
        let all = signed_in.store.linked_to(account).await.map_err(|error| error.failure())?;
        let Some((_, id)) = all.into_iter().find(|(of, _)| of == tenant) else {
            return Ok(None);
        };
        let linked = self.linked(tenant, &id).await?.filter(|linked| linked.id == account);
        Ok(linked.map(|linked| person::Person { id, name: linked.login }))
    }

    /// A token to act as a person, for one operation.
    ///
    /// # Errors
    /// [`NotLinked`], worded for the person.
    pub async fn access_of(
        &self,
        tenant: &Tenant,
        person: &str,
    ) -> Result<AccountAccess, NotLinked> {
        match &self.signed_in {
            Some(signed_in) => signed_in.access(tenant, person).await,
            None => Err(NotLinked::Off),
        }
    }

    /// The error of a call that the forge refuses a person for good; any other is a failure. So is the end of a
    /// sign-in, if another use of the account has renewed the token since: that ends the one before.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn refusal_of(
        &self,
        AccountAccess { of: (tenant, person), account, .. }: &AccountAccess,
        error: ForgeError,
    ) -> Result<ForgeError, Failure> {
        if error.kind == ForgeErrorKind::SignInEnded
            && let Some(kept) = self.linked(tenant, person).await?
            && has_other_token(&kept, account, now_ms())
        {
            return Err(busy());
        }
        self.refusal(error)
    }

    /// The account of a person who wants something pushed.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn presser(
        &self,
        repository: &ForgeRepository,
        (tenant, person): (&Tenant, &str),
    ) -> Result<Presser, Failure> {
        let Some(account) = self.linked(tenant, person).await? else {
            return Ok(Presser::NotLinked);
        };
        Ok(match self.permission(repository, &account).await? {
            Permission::Write | Permission::Admin => Presser::MayPush,
            Permission::Read => Presser::MayRead { login: account.login },
            Permission::None => Presser::MayNotPush { login: account.login },
        })
    }

    /// The account of the person in whose name a pull request is opened; `None`: the app's.
    ///
    /// # Errors
    /// The class of the failure.
    pub(crate) async fn author(
        &self,
        repository: &ForgeRepository,
        presser: (&Tenant, &str),
    ) -> Result<Option<AccountAccess>, Failure> {
        if self.presser(repository, presser).await? != Presser::MayPush {
            return Ok(None);
        }
        match self.access_of(presser.0, presser.1).await {
            Ok(as_person) => Ok(Some(as_person)),
            Err(NotLinked::Failed(failure)) => Err(failure),
            Err(NotLinked::Never | NotLinked::Ended { .. } | NotLinked::Off) => Ok(None),
        }
    }

    /// Whether a person's account may push to a repository, as the forge says now.
    ///
    /// # Errors
    /// The class of the failure.
    pub async fn may_push(
        &self,
        repository: &ForgeRepository,
        account: &LinkedAccount,
    ) -> Result<bool, Failure> {
        Ok(self.permission(repository, account).await? >= Permission::Write)
    }

    async fn permission(
        &self,
        repository: &ForgeRepository,
        account: &LinkedAccount,
    ) -> Result<Permission, Failure> {
        let Some(signed_in) = &self.signed_in else {
            return Ok(Permission::None);
        };
        let person = Person { id: account.id, login: account.login.clone() };
        let found = signed_in.people.permission(&target(repository)?, &person).await;
        found.map_err(|error| error.failure)
    }
}

/// Whether the account's token is another one than that which was used, or is about to be.
fn has_other_token(kept: &LinkedAccount, used: &LinkedAccount, now_ms: Ms) -> bool {
    kept.sealed != used.sealed || kept.is_renewing(now_ms)
}

pub(crate) fn busy() -> Failure {
    Failure::Wait {
        after_ms: RENEWAL_WAIT_MS,
        seen: "another worker renews the sign-in of this account".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_ends_a_token_not_the_connection() {
        let used = LinkedAccount {
            id: 1,
            login: "ada".to_owned(),
            sealed: "b25l".to_owned(),
            renews: true,
            since_ms: 0,
            ends_ms: None,
            link: "link".to_owned(),
            renewing_ms: None,
        };
        let renewed = LinkedAccount { sealed: "dHdv".to_owned(), ..used.clone() };
        let renewing = LinkedAccount { renewing_ms: Some(5), ..used.clone() };
        let has_other = |kept: &LinkedAccount| has_other_token(kept, &used, 10);
        assert_eq!([&used, &renewed, &renewing].map(has_other), [false, true, true]);
    }
}
