//! Links that lead from the chat to a page of Bobbin's: for entering a key, or for signing in at the forge.
//!
//! A link works once and for a short time. It is stored under a hash of its secret part, so that a reader of the table
//! cannot follow it.

use serde::{Deserialize, Serialize};

use super::own_keys::keyed;
use crate::base::ids::{Ms, Tenant, ThreadKey, digest};
use crate::base::person::{Membership, Person};
use crate::base::reply::Reply;
use crate::tenant::keys::Key;
use crate::tenant::project_secrets::SecretRequest;
use crate::tenant::sign_in::StoredSignIn;

/// The word for the forge's owners, beside the providers of keys.
pub const OWNERS: &str = "github";
const ACCOUNT: &str = "github-account";
const SECRET: &str = "project-secret";

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Purpose {
    /// Entering a key of the tenant's own.
    Key(Key),
    /// Entering a secret of a project ([`SetupLink::secret`]).
    ProjectSecret,
    /// Binding an owner of repositories to the tenant.
    BindOwner,
    /// Connecting a person's own account at the forge.
    ConnectAccount,
}

impl Purpose {
    /// The word that is stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key(key) => match key.provider() {
                Some(provider) => provider,
                None => key.name(),
            },
            Self::ProjectSecret => SECRET,
            Self::BindOwner => OWNERS,
            Self::ConnectAccount => ACCOUNT,
        }
    }
}

impl From<Purpose> for String {
    fn from(purpose: Purpose) -> Self {
        purpose.word().to_owned()
    }
}

impl TryFrom<String> for Purpose {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        match word.as_str() {
            SECRET => Ok(Self::ProjectSecret),
            OWNERS => Ok(Self::BindOwner),
            ACCOUNT => Ok(Self::ConnectAccount),
            word => Key::of_tenant(word)
                .map(Self::Key)
                .ok_or_else(|| format!("no link is for {word:?}")),
        }
    }
}

/// A link, stored under [`link_id`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SetupLink {
    /// What it is for.
    pub purpose: Purpose,
    /// Where it was requested; the tenant follows from this.
    pub thread: ThreadKey,
    /// The server's or workspace's name, if it could be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The person who requested the link and is told the result.
    pub by: Person,
    /// Their channel, roles and permissions there.
    pub membership: Membership,
    /// How they are told the result.
    pub reply: Reply,
    /// The link works until then.
    pub until_ms: Ms,
    /// The forge's page for signing in, to which the state is added. `None` for a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<String>,
    /// The secret to be entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRequest>,
}

/// State of a link, from its item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLink {
    /// The link.
    pub link: SetupLink,
    /// The entered value, sealed, in base64; `None` until something is entered.
    pub sealed: Option<String>,
    /// When it was entered.
    pub entered_at_ms: Option<Ms>,
    /// The newest sign-in through it.
    pub sign_in: Option<StoredSignIn>,
}

impl StoredLink {
    /// Whether a key can still be entered, or somebody can sign in.
    #[must_use]
    pub fn is_open(&self, now_ms: Ms) -> bool {
        let is_pressed = self.sign_in.as_ref().is_some_and(|sign_in| sign_in.pressed.is_some());
        self.sealed.is_none() && !is_pressed && now_ms < self.link.until_ms
    }
}

/// The secret part of a link. It is derived from the stack's key and the request, so that a repeat makes the same link,
/// and nobody without the stack's key can make one.
#[must_use]
pub fn link_token(
    stack_key: &str,
    tenant: &Tenant,
    person: &str,
    purpose: Purpose,
    request: &str,
) -> String {
    let parts = ["setup-link", tenant.as_str(), person, purpose.word(), request];
    keyed(stack_key, &parts)
}

/// The name of a link's item.
#[must_use]
pub fn link_id(token: &str) -> String {
    digest(&["setup-link", token])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        let key = ThreadKey::discord(name, "2").expect("ids");
        key.tenant()
    }

    #[test]
    fn link_depends_on_every_input() {
        let token = |stack_key, guild, person, purpose, request| {
            link_token(stack_key, &tenant(guild), person, purpose, request)
        };
        let daytona = Purpose::Key(Key::DaytonaApiKey);
        let one = token("k", "1", "7", daytona, "i-1");
        assert_eq!(one.len(), 64);
        assert_eq!(one, token("k", "1", "7", daytona, "i-1"));
        for other in [
            token("l", "1", "7", daytona, "i-1"),
            token("k", "2", "7", daytona, "i-1"),
            token("k", "1", "8", daytona, "i-1"),
            token("k", "1", "7", Purpose::Key(Key::OpenAiApiKey), "i-1"),
            token("k", "1", "7", Purpose::BindOwner, "i-1"),
            token("k", "1", "7", Purpose::ConnectAccount, "i-1"),
            token("k", "1", "7", daytona, "i-2"),
        ] {
            assert_ne!(one, other);
        }
        assert_ne!(link_id(&one), one);
    }

    #[test]
    fn stored_words_name_one_purpose() {
        const OTHERS: [Purpose; 3] =
            [Purpose::ProjectSecret, Purpose::BindOwner, Purpose::ConnectAccount];
        let keys = Key::OF_TENANTS.map(Purpose::Key);
        for purpose in keys.into_iter().chain(OTHERS) {
            assert_eq!(Purpose::try_from(purpose.word().to_owned()), Ok(purpose));
        }
        assert!(Purpose::try_from("gitlab".to_owned()).is_err());
    }
}
