//! The repositories that managers want beside a thread's own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tenant::environments::ENVIRONMENTS_MAX;

/// Repositories beside one.
pub const BESIDE_MAX: usize = 4;
/// Where they stand, below the thread's checkout: git does not list what is in there among its files.
const FOLDER: &str = ".bobbin/repositories";

/// By repository, as `owner/name` in small letters: the names of those beside it, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepositoriesBeside(BTreeMap<String, Vec<String>>);

impl RepositoriesBeside {
    /// None are wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those beside the repository with this [name](crate::tenant::environments::name_of).
    #[must_use]
    pub fn of(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Those beside this repository are these from now on. False: there are too many repositories.
    #[must_use]
    pub fn set(&mut self, name: &str, beside: &[String]) -> bool {
        if beside.is_empty() {
            self.0.remove(name);
            return true;
        }
        let is_full = self.0.len() >= ENVIRONMENTS_MAX && !self.0.contains_key(name);
        if !is_full {
            self.0.insert(name.to_owned(), beside.to_vec());
        }
        !is_full
    }

    /// All, by repository.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(name, beside)| (&**name, beside.as_slice()))
    }
}

/// The folder of one.
#[must_use]
pub fn folder(name: &str) -> String {
    format!("{FOLDER}/{}", name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beside_is_no_entry() {
        let mut beside = RepositoriesBeside::default();
        assert!(beside.set("acme/shop", &["acme/api".to_owned()]));
        assert_eq!(
            (beside.of("acme/shop"), beside.of("acme/api")),
            (&["acme/api".to_owned()][..], &[][..])
        );
        assert!(beside.set("acme/shop", &[]) && beside.is_empty());
        assert_eq!(folder("Acme/API"), ".bobbin/repositories/acme/api");
    }
}
