//! Labels of a sandbox, the same for every provider: its owner, and the stack that created it.

use std::collections::BTreeMap;

use bobbin_core::base::ids::{SandboxKey, Tenant};

/// Label with the stack's name, which is not unique in an organisation.
pub const LABEL_STACK: &str = "bobbin";
/// Label with the stack's unique id ([`StackIdentity::id`]). Sandboxes created before this label existed lack it.
pub const LABEL_STACK_ID: &str = "stack";
/// Label with the short hash of the thread.
pub const LABEL_THREAD: &str = "thread";
/// Label with the generation.
pub const LABEL_GENERATION: &str = "generation";
/// Label with the tenant (`ThreadKey::tenant`): a tenant's sandboxes are counted by it.
pub const LABEL_TENANT: &str = "tenant";

/// A stack, as its sandboxes identify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackIdentity<'a> {
    /// Display name. Two accounts, regions or laptops may each have a stack with this name.
    pub name: &'a str,
    /// Unique id.
    pub id: &'a str,
}

/// Label of a sandbox that has placeholders for the model keys: no key is ever passed into it.
pub const LABEL_KEYS: &str = "keys";
/// Value of that label.
pub const PLACEHOLDERS: &str = "placeholders";

/// The label that every sandbox of a stack with this name has. Other stacks with that name are told apart by
/// [`crate::Sandbox::is_foreign`].
#[must_use]
pub fn stack_label(stack: &str) -> BTreeMap<String, String> {
    [(LABEL_STACK.to_owned(), stack.to_owned())].into()
}

/// The labels that every sandbox of a tenant of a stack has.
#[must_use]
pub fn tenant_labels(stack: &str, tenant: &Tenant) -> BTreeMap<String, String> {
    let mut labels = stack_label(stack);
    labels.insert(LABEL_TENANT.to_owned(), tenant.to_owned().to_string());
    labels
}

/// The labels of a sandbox.
#[must_use]
pub fn labels(
    stack: StackIdentity<'_>,
    key: &SandboxKey,
    generation: u32,
) -> BTreeMap<String, String> {
    [
        (LABEL_STACK, stack.name.to_owned()),
        (LABEL_STACK_ID, stack.id.to_owned()),
        (LABEL_THREAD, key.to_string()),
        (LABEL_GENERATION, generation.to_string()),
        (LABEL_TENANT, key.tenant().to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    #[test]
    fn tenant_labels_mark_own_sandboxes() {
        let carries = |thread: &ThreadKey, tenant: &Tenant| {
            let dev = StackIdentity { name: "dev", id: "a" };
            let all = labels(dev, &thread.sandbox(), 1);
            tenant_labels("dev", tenant).iter().all(|(name, value)| all.get(name) == Some(value))
        };
        let thread = ThreadKey::discord("1", "2").unwrap();
        assert!(carries(&thread, &Tenant::discord("1")));
        assert!(!carries(&thread, &Tenant::discord("2")) && !carries(&thread, &Tenant::slack("1")));
        let thread = ThreadKey::slack("T1", "C1", "1.2").unwrap();
        assert!(carries(&thread, &Tenant::slack("T1")));
    }
}
