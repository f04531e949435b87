//! What was spent and set aside, by scope and period: an item each (`thread = "budget:<tenant>"` or `"budget:stack"`,
//! `item` names scope and period), with `used` in millionths of a US dollar, `tenant`, and `expires_at`. Changed in the
//! transactions that begin and end turns; the limits are configuration.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use bobbin_core::base::ids::Tenant;
use bobbin_core::tenant::budgets::{BudgetScope, BudgetWrite, MicroUsd};

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, number, s, text};

const USED: &str = "used";
/// Most pages (of 1 MB) of one tenant's sums: 200 people for 40 days are one.
const PAGES_MAX: usize = 20;

/// A stored sum: the name of its item, and the amount.
pub type StoredSum = (String, MicroUsd);

impl Store {
    /// The sums of these scopes, in their order; 0 where nothing is stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sums(
        &self,
        tenant: &Tenant,
        scopes: &[BudgetScope],
    ) -> Result<Vec<MicroUsd>, StoreError> {
        if scopes.is_empty() {
            return Ok(Vec::new());
        }
        let items = self.read(scopes.iter().map(|scope| key(tenant, scope))).await?;
        let of = |scope: &BudgetScope| {
            let (partition, name) = scope.place(tenant);
            let is_it = |item: &&TableItem| {
                text(item, ITEM) == Some(&*name) && text(item, "thread") == Some(&*partition)
            };
            items.iter().find(is_it).map_or(0, used)
        };
        Ok(scopes.iter().map(of).collect())
    }

    /// Every stored sum of a tenant, by the names of the items.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_sums(&self, tenant: &Tenant) -> Result<Vec<StoredSum>, StoreError> {
        self.sums_in(&format!("budget:{tenant}")).await
    }

    /// Every stored sum of the stack.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stack_sums(&self) -> Result<Vec<StoredSum>, StoreError> {
        self.sums_in("budget:stack").await
    }

    async fn sums_in(&self, partition: &str) -> Result<Vec<StoredSum>, StoreError> {
        let (mut sums, mut start) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let query = self
                .table
                .query("#thread = :thread")
                .expression_attribute_names("#thread", "thread")
                .expression_attribute_values(":thread", s(partition))
                .set_exclusive_start_key(start);
            let page = self.table.queried(query).await?;
            let named = |item: &TableItem| Some((text(item, ITEM)?.to_owned(), used(item)));
            sums.extend(page.items.iter().filter_map(named));
            start = page.next;
            if start.is_none() {
                return Ok(sums);
            }
        }
        Err(StoreError::Damaged(format!("{partition} has more than {PAGES_MAX} MB")))
    }

    /// Deletes the sums of a person but those of the days named: turns that run may still be settled in them. Returns
    /// how many were deleted.
    ///
    /// # Errors
    /// [`StoreError`]; a repeat deletes the rest.
    pub async fn forget_sums(
        &self,
        tenant: &Tenant,
        person: &str,
        but: &[String],
    ) -> Result<usize, StoreError> {
        let begins = format!("user#{person}#");
        let all = self.all_sums(tenant).await?;
        let is_kept = |name: &str| but.iter().any(|day| name.ends_with(&format!("#{day}")));
        let theirs =
            all.into_iter().filter(|(name, _)| name.starts_with(&begins) && !is_kept(name));
        let mut deleted = 0;
        for (name, _) in theirs {
            let key = item_key(&format!("budget:{tenant}"), &name);
            self.table.write(ItemWrite::delete(key)).await?;
            deleted += 1;
        }
        Ok(deleted)
    }
}

/// The write that changes a sum.
pub(super) fn budget_write(tenant: &Tenant, write: &BudgetWrite) -> ItemWrite {
    let BudgetWrite { scope, add, at_most, expires_at_ms } = write;
    let change = "ADD #used :add SET #tenant = if_not_exists(#tenant, :tenant), \
                  #expires = if_not_exists(#expires, :expires)";
    let update = ItemWrite::update(key(tenant, scope), change)
        .name("#used", USED)
        .name("#tenant", "tenant")
        .name("#expires", "expires_at")
        .value(":add", AttributeValue::N(add.to_string()))
        .value(":tenant", s(scope_owner(tenant, scope)))
        .value(":expires", n(expires_at_ms / 1_000));
    match at_most {
        Some(at_most) => update
            .condition("attribute_not_exists(#used) OR #used <= :at_most")
            .value(":at_most", n(*at_most))
            .showing_item(),
        None => update,
    }
}

/// The sum of an item; one below zero counts as nothing.
pub(super) fn used(item: &TableItem) -> MicroUsd {
    number(item, USED).unwrap_or(0)
}

fn scope_owner(tenant: &Tenant, scope: &BudgetScope) -> String {
    match scope {
        BudgetScope::Stack { .. } => "stack".to_owned(),
        _ => tenant.to_string(),
    }
}

fn key(tenant: &Tenant, scope: &BudgetScope) -> TableItem {
    let (partition, name) = scope.place(tenant);
    item_key(&partition, &name)
}

fn item_key(partition: &str, name: &str) -> TableItem {
    HashMap::from([("thread".to_owned(), s(partition)), (ITEM.to_owned(), s(name))])
}
