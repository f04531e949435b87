//! The interface to a forge as a person sees it, who has signed in on the forge's own page.

use async_trait::async_trait;
use bobbin_core::base::secret::Secret;

use crate::error::ForgeResult;
use crate::forge::{Installation, Owner, RepositoryAt};

/// The tokens of a sign-in, or of its renewal. They can do what both the person and the app may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// For calls as the person.
    pub access: Secret,
    /// Seconds for which it is good; `None`: until it is revoked.
    pub access_s: Option<u64>,
    /// For the next renewal, once; `None` if the access token does not expire.
    pub refresh: Option<Secret>,
    /// Seconds for which that is good.
    pub refresh_s: Option<u64>,
}

/// A person's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The forge's id, which a renamed account keeps.
    pub id: u64,
    /// The account's name, for show: another person may get it later.
    pub login: String,
}

/// What a person is in an organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrganizationMembership {
    /// No member, or one who has not accepted yet.
    None,
    /// A member.
    Member,
    /// A member who administrates it.
    Admin,
}

/// What a person may do in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Nothing, or what everybody may.
    None,
    /// Read.
    Read,
    /// Push.
    Write,
    /// Administrate.
    Admin,
}

/// A forge, seen as a person who signed in. An access token that is not accepted any more is
/// [`SignInEnded`](crate::ForgeErrorKind::SignInEnded).
#[async_trait]
pub trait People: Send + Sync {
    /// The forge's page on which a person signs in. It leads to `redirect` with a code, and with what is added to this
    /// address as `&state=`.
    fn sign_in_page(&self, redirect: &str) -> String;

    /// The tokens for the code of a sign-in. A code is good once.
    async fn sign_in(&self, code: &str, redirect: &str) -> ForgeResult<SignIn>;

    /// New tokens for a refresh token, which ends by it: the answer has to be stored before it is used.
    async fn renew(&self, refresh: &Secret) -> ForgeResult<SignIn>;

    /// Whose access token it is.
    async fn person(&self, access: &Secret) -> ForgeResult<Person>;

    /// The app's installations of which the person of the access token sees something, at most a hundred. That proves
    /// nothing: they may be a reader of one repository.
    async fn visible_installations(&self, access: &Secret) -> ForgeResult<Vec<Installation>>;

    /// What the person of the access token is in an organisation.
    async fn membership(
        &self,
        access: &Secret,
        organization: &Owner,
    ) -> ForgeResult<OrganizationMembership>;

    /// What a person may do in a repository, as the app sees it.
    async fn permission(&self, at: &RepositoryAt, person: &Person) -> ForgeResult<Permission>;

    /// Ends an access token. One that has ended is success.
    async fn revoke(&self, access: &Secret) -> ForgeResult<()>;

    /// Ends the app's authorisation by the person of the access token, with all their tokens. One that has ended is
    /// success.
    async fn disconnect(&self, access: &Secret) -> ForgeResult<()>;
}
