//! The owners of repositories that managers have bound to their server or workspace by signing in at the forge.
//!
//! A binding is one installation of the app at one owner: it ends with that installation, and one that is made later is
//! another. It opens no repository by itself ([`super::repositories`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;
use crate::base::person::Person;

/// Bindings of one tenant.
pub const BINDINGS_MAX: usize = 20;

/// The bindings, by the forge's id of the owner.
pub type Bindings = BTreeMap<u64, Binding>;

/// An owner that is bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The owner's name when it was last seen, for show: another account may get it later.
    pub login: String,
    /// An organisation, and not a person.
    pub is_organization: bool,
    /// The app's installation there.
    pub installation: u64,
    /// The person who bound it.
    pub by: Person,
    /// When they pressed (Unix milliseconds).
    pub since_ms: Ms,
}

/// The id of the bound owner with this name or id.
#[must_use]
pub fn named(bindings: &Bindings, owner: &str) -> Option<u64> {
    let owner = owner.trim().trim_start_matches('@');
    let id = owner.parse().ok().filter(|id| bindings.contains_key(id));
    let mut all = bindings.iter();
    all.find(|(_, binding)| binding.login.eq_ignore_ascii_case(owner)).map(|(id, _)| *id).or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_owner_is_found_by_name_or_id() {
        let binding = Binding {
            login: "Acme".to_owned(),
            is_organization: true,
            installation: 7,
            by: Person::default(),
            since_ms: 1,
        };
        let bindings = Bindings::from([(41, binding)]);
        let found = ["acme", " @ACME ", "41", "42", "other"].map(|owner| named(&bindings, owner));
        assert_eq!(found, [Some(41), Some(41), Some(41), None, None]);
    }
}
