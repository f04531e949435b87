//! Snapshots of sandboxes: the content of a sandbox's disk at one moment, kept under a name of ours.
//!
//! They are not the images from which a stack's sandboxes start. Some providers call those snapshots too, but they are
//! built once by the operator, while these hold a tenant's work. The name contains everything: providers keep no labels
//! with a snapshot.

use std::fmt;

use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, digest};
use bobbin_core::base::names::sandbox_name;

use crate::labels::StackIdentity;

/// Hex digits of the stack's hash in a snapshot's name, which tell stacks with one name apart.
const STACK_DIGITS: usize = 8;
/// Hex digits of the tenant's hash.
const TENANT_DIGITS: usize = 12;

/// The name of a snapshot: `<name of the sandbox>-at<time>-<hash of the stack's id><hash of the tenant>`, with the time
/// in milliseconds since 1970. The same sandbox at the same time has the same name, so that a repeat finds the existing
/// snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotName {
    sandbox: String,
    at_ms: Ms,
    stack: String,
    tenant: String,
}

impl SnapshotName {
    /// For a snapshot of this generation of a sandbox, requested at this time.
    #[must_use]
    pub fn new(stack: StackIdentity<'_>, key: &SandboxKey, generation: u32, at_ms: Ms) -> Self {
        Self {
            sandbox: sandbox_name(stack.name, key, generation),
            at_ms,
            stack: stack_digits(stack.id),
            tenant: tenant_digits(&key.tenant()),
        }
    }

    /// For a prebuild, which no person chooses.
    #[must_use]
    pub fn prebuild(
        stack: StackIdentity<'_>,
        key: &SandboxKey,
        generation: u32,
        at_ms: Ms,
    ) -> Self {
        let tenant = prebuild_digits(&key.tenant());
        Self { tenant, ..Self::new(stack, key, generation, at_ms) }
    }

    /// Parses the name of a snapshot of this very stack; `None` for any other name.
    #[must_use]
    pub fn parse(stack: StackIdentity<'_>, name: &str) -> Option<Self> {
        let (rest, digits) = name.rsplit_once('-')?;
        let (sandbox, at) = rest.rsplit_once("-at")?;
        let read = Self {
            sandbox: sandbox.to_owned(),
            at_ms: at.parse().ok()?,
            stack: digits.get(..STACK_DIGITS)?.to_owned(),
            tenant: digits.get(STACK_DIGITS..)?.to_owned(),
        };
        let ours = sandbox.starts_with(&stack_prefix(stack))
            && read.stack == stack_digits(stack.id)
            && read.tenant.len() == TENANT_DIGITS
            // Another spelling of the same number is not one of our names.
            && read.to_string() == name;
        ours.then_some(read)
    }

    /// The name of its sandbox.
    #[must_use]
    pub fn sandbox(&self) -> &str {
        &self.sandbox
    }

    /// When it was requested.
    #[must_use]
    pub const fn at_ms(&self) -> Ms {
        self.at_ms
    }

    /// Whether its sandbox belongs to this tenant. Check this before creating a sandbox from a snapshot: it holds
    /// everything that its sandbox held.
    #[must_use]
    pub fn is_of_tenant(&self, tenant: &Tenant) -> bool {
        self.tenant == tenant_digits(tenant)
    }

    /// Whether it is a prebuild of this tenant.
    #[must_use]
    pub fn is_prebuild_of(&self, tenant: &Tenant) -> bool {
        self.tenant == prebuild_digits(tenant)
    }

    /// Whether it is of this sandbox, in any generation.
    #[must_use]
    pub fn is_of(&self, stack: StackIdentity<'_>, key: &SandboxKey) -> bool {
        let generation = self.sandbox.rsplit_once("-g").map(|(_, number)| number);
        let generation = generation.and_then(|number| number.parse().ok());
        generation
            .is_some_and(|generation| sandbox_name(stack.name, key, generation) == self.sandbox)
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sandbox, at_ms, stack, tenant } = self;
        write!(f, "{sandbox}-at{at_ms}-{stack}{tenant}")
    }
}

/// Prefix of the names of a stack's sandboxes and snapshots; a namesake has the same one.
#[must_use]
pub fn stack_prefix(stack: StackIdentity<'_>) -> String {
    format!("bobbin-{}-", stack.name)
}

fn tenant_digits(tenant: &Tenant) -> String {
    digest(&["snapshot-of-tenant", tenant.as_str()])[..TENANT_DIGITS].to_owned()
}

fn prebuild_digits(tenant: &Tenant) -> String {
    digest(&["prebuild-of-tenant", tenant.as_str()])[..TENANT_DIGITS].to_owned()
}

fn stack_digits(stack_id: &str) -> String {
    digest(&["snapshot-of-stack", stack_id])[..STACK_DIGITS].to_owned()
}

/// State of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotState {
    /// Being made, or being activated: observe later.
    Underway,
    /// Sandboxes can be created from it.
    Ready,
    /// Deactivated by the provider for lack of use: a create activates it, and takes longer.
    Asleep,
    /// It will not become ready: delete it.
    Failed {
        /// The provider's reason.
        reason: String,
    },
    /// Does not exist, or is being deleted.
    Absent,
}

/// A snapshot, as listed.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Its name, which identifies the owner and the time.
    pub name: SnapshotName,
    /// Its state; never [`SnapshotState::Absent`].
    pub state: SnapshotState,
    /// Its size at the provider in GiB, if reported.
    pub gib: Option<f64>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    const DEV: StackIdentity<'_> = StackIdentity { name: "dev-eu", id: "a" };

    #[test]
    fn snapshot_name_round_trips() {
        let key = ThreadKey::discord("1", "2").unwrap().sandbox();
        let other = ThreadKey::discord("1", "3").unwrap().sandbox();
        let name = SnapshotName::new(DEV, &key, 3, 1_700_000_000_123);
        let text = name.to_string();
        assert_eq!(text, SnapshotName::new(DEV, &key, 3, 1_700_000_000_123).to_string());
        assert!(text.starts_with(&sandbox_name("dev-eu", &key, 3)), "{text}");
        assert!(text.contains("-at1700000000123-"), "{text}");
        assert_eq!(SnapshotName::parse(DEV, &text), Some(name.clone()));
        assert_eq!(
            (name.sandbox(), name.at_ms()),
            (sandbox_name("dev-eu", &key, 3).as_str(), 1_700_000_000_123)
        );
        assert!(name.is_of(DEV, &key) && !name.is_of(DEV, &other));
    }

    #[test]
    fn prebuild_is_no_persons_snapshot() {
        let key = ThreadKey::discord("1", "2").unwrap().sandbox();
        let other = ThreadKey::discord("9", "2").unwrap().tenant();
        let kept = SnapshotName::new(DEV, &key, 3, 7);
        let prebuild = SnapshotName::prebuild(DEV, &key, 3, 7);
        assert_eq!(SnapshotName::parse(DEV, &prebuild.to_string()), Some(prebuild.clone()));
        assert!(prebuild.is_prebuild_of(&key.tenant()) && !prebuild.is_prebuild_of(&other));
        assert!(!prebuild.is_of_tenant(&key.tenant()) && !kept.is_prebuild_of(&key.tenant()));
        assert!(prebuild.is_of(DEV, &key));
    }

    #[test]
    fn foreign_snapshot_names_are_rejected() {
        let key = ThreadKey::discord("1", "2").unwrap().sandbox();
        let text = SnapshotName::new(DEV, &key, 1, 7).to_string();
        let namesake = StackIdentity { id: "b", ..DEV };
        assert_eq!(SnapshotName::parse(namesake, &text), None);
        assert_eq!(
            SnapshotName::parse(
                StackIdentity { name: "dev", ..DEV },
                &text.replace("dev-eu", "prod")
            ),
            None
        );
        let digits = text.rsplit_once('-').unwrap().1;
        for foreign in [
            "bobbin-sandbox-0123456789ab".to_owned(),
            "my snapshot".to_owned(),
            text.replace("-at7-", "-at07-"),
            text.replace("-at7-", "-at-"),
            format!("{text}x"),
            format!("bobbin-prod-x-g1-at7-{digits}"),
        ] {
            assert_eq!(SnapshotName::parse(DEV, &foreign), None, "{foreign}");
        }
    }
}
