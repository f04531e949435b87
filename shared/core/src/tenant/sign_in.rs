//! Signing in at the forge through a link: who came back from there, and what they may choose.
//!
//! Whoever comes back gets a press token, which nobody else has: somebody could lead another person through the sign-in
//! with a link of their own, and only that person may press on what it brought. The forge's code is stored sealed for
//! one link ([`code_seal`]) until the worker trades it. Deliberately absent: the code and the tokens in the clear.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, Tenant, digest};
use crate::tenant::linked::LinkedAccount;
use crate::tenant::own_keys::seal_context;

/// Owners from which a person can choose.
pub const CHOICES_MAX: usize = 20;
/// Before the link's id in the kind of a sealed code.
const KIND: &str = "sign-in:";

/// A sign-in, stored with its link. The next one through the same link replaces it, until something is pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSignIn {
    /// Names the sign-in: [`press_id`] of its press token.
    pub press: String,
    /// The forge's code, sealed, in base64.
    pub code: String,
    /// What the worker has found.
    pub found: Option<SignInFound>,
    /// What was pressed, and when.
    pub pressed: Option<(String, Ms)>,
}

/// What a sign-in brought.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum SignInFound {
    /// The owners whose repositories the person may have bound.
    Owners {
        /// The person's account.
        login: String,
        /// At most [`CHOICES_MAX`].
        owners: Vec<OwnerChoice>,
        /// Organisations about which the forge did not say what the person is there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unsaid: Vec<String>,
        /// The page on which the app is installed elsewhere.
        install: String,
    },
    /// The person's account, which is theirs alone to connect.
    Account {
        /// With its token sealed.
        account: LinkedAccount,
    },
    /// Nothing can be done.
    Refused {
        /// Why, and what to do, for the person.
        why: String,
    },
}

/// An owner at which the app is installed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnerChoice {
    /// The forge's id.
    pub id: u64,
    /// Its name, for show.
    pub login: String,
    /// An organisation, and not a person.
    pub is_organization: bool,
    /// The app's installation there.
    pub installation: u64,
    /// The owner has suspended it.
    pub is_suspended: bool,
    /// The page on which the owner changes it.
    pub page: String,
}

impl SignInFound {
    /// What can be pressed: an owner's id each, or [`CONNECT`].
    #[must_use]
    pub fn is_choice(&self, pressed: &str) -> bool {
        match self {
            Self::Owners { .. } => self.owner(pressed).is_some(),
            Self::Account { .. } => pressed == CONNECT,
            Self::Refused { .. } => false,
        }
    }

    /// The owner that was pressed.
    #[must_use]
    pub fn owner(&self, pressed: &str) -> Option<&OwnerChoice> {
        let Self::Owners { owners, .. } = self else {
            return None;
        };
        let id: u64 = pressed.parse().ok()?;
        owners.iter().find(|owner| owner.id == id && !owner.is_suspended)
    }
}

/// What is pressed to connect the account.
pub const CONNECT: &str = "connect";

/// Requests about the forge. Those of the page name a link by its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum ForgeRequest {
    /// Send a link for binding an owner.
    Bind,
    /// End the binding of an owner.
    Unbind {
        /// Its name or id; `None`: it was not named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// Send a link for connecting the person's own account.
    Connect,
    /// Show the person's own account.
    Account,
    /// Forget the person's own account, and end what they allowed the app.
    Disconnect,
    /// Somebody came back from the forge.
    SignedIn {
        /// The link.
        link: String,
        /// The sign-in ([`StoredSignIn::press`]).
        press: String,
    },
    /// Somebody pressed on what their sign-in brought.
    Pressed {
        /// The link.
        link: String,
    },
}

impl ForgeRequest {
    /// Whether its own step says who may: managers always may manage, and a page only knows who asked for its link.
    #[must_use]
    pub const fn is_admitted_later(&self) -> bool {
        match self {
            Self::Bind | Self::Unbind { .. } | Self::SignedIn { .. } | Self::Pressed { .. } => true,
            Self::Connect | Self::Account | Self::Disconnect => false,
        }
    }
}

/// The name of the sign-in to which a press token belongs.
#[must_use]
pub fn press_id(token: &str) -> String {
    digest(&["press", token])
}

/// Recognises a code that comes again.
#[must_use]
pub fn code_id(code: &str) -> String {
    digest(&["sign-in-code", code])
}

/// KMS's encryption context of a code: it opens for one link of one tenant.
#[must_use]
pub fn code_seal(stack: &str, tenant: &Tenant, link: &str) -> BTreeMap<String, String> {
    seal_context(stack, tenant, &format!("{KIND}{link}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_offered_owners_can_be_pressed() {
        let owner = |id, is_suspended| OwnerChoice {
            id,
            login: "acme".to_owned(),
            is_organization: true,
            installation: 7,
            is_suspended,
            page: String::new(),
        };
        let found = SignInFound::Owners {
            login: "ada".to_owned(),
            owners: vec![owner(1, false), owner(2, true)],
            unsaid: Vec::new(),
            install: String::new(),
        };
        let may = ["1", "2", "3", "connect", ""].map(|pressed| found.is_choice(pressed));
        assert_eq!(may, [true, false, false, false, false]);
        assert!(!SignInFound::Refused { why: String::new() }.is_choice(CONNECT));
    }
}
