//! Whom a hint of the forge concerns: an item for each installation that is bound (`thread =
//! "forge:installation:<id>"`, `item = "concerned"`) and for each account that is connected (`"forge:account:<id>"`),
//! with the set `who`: tenants, or a tenant and a person each. It is written in one transaction with the binding or the
//! account.

use std::collections::HashMap;

use bobbin_core::base::ids::Tenant;

use super::layout::ITEM;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, s, set, set_of};

const CONCERNED: &str = "concerned";
const WHO: &str = "who";

/// The subject of a forge webhook.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    Installation(u64),
    Account(u64),
}

impl Of {
    fn key(self) -> TableItem {
        let thread = match self {
            Self::Installation(id) => format!("forge:installation:{id}"),
            Self::Account(id) => format!("forge:account:{id}"),
        };
        HashMap::from([("thread".to_owned(), s(thread)), (ITEM.to_owned(), s(CONCERNED))])
    }

    /// Notes somebody, who may be noted already.
    pub(super) fn add(self, who: String) -> ItemWrite {
        self.change("ADD #who :who", who)
    }

    /// Strikes somebody, who may not be noted.
    pub(super) fn strike(self, who: String) -> ItemWrite {
        self.change("DELETE #who :who", who)
    }

    fn change(self, change: &str, who: String) -> ItemWrite {
        ItemWrite::update(self.key(), change).name("#who", WHO).value(":who", set_of(who))
    }
}

/// How a person is noted.
pub(super) fn person_of(tenant: &Tenant, person: &str) -> String {
    format!("{tenant} {person}")
}

impl Store {
    /// The tenants that have bound this installation.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn bound_to(&self, installation: u64) -> Result<Vec<Tenant>, StoreError> {
        let who = self.concerned(Of::Installation(installation)).await?;
        who.iter().map(|tenant| tenant_of(tenant)).collect()
    }

    /// The people who have connected this account, each in a tenant.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn linked_to(&self, account: u64) -> Result<Vec<(Tenant, String)>, StoreError> {
        let who = self.concerned(Of::Account(account)).await?;
        let people = who.iter().map(|who| match who.split_once(' ') {
            Some((tenant, person)) => Ok((tenant_of(tenant)?, person.to_owned())),
            None => Err(StoreError::Damaged(format!("{who:?} is no person of a tenant"))),
        });
        people.collect()
    }

    async fn concerned(&self, of: Of) -> Result<Vec<String>, StoreError> {
        let item = self.table.get(of.key()).await?;
        Ok(item.map_or_else(Vec::new, |item| set(&item, WHO)))
    }
}

fn tenant_of(text: &str) -> Result<Tenant, StoreError> {
    text.parse().map_err(|_| StoreError::Damaged(format!("{text:?} is no tenant")))
}
