//! The two items of a tenant: its settings, written only by condition, and its catalogue, where the last write wins.
//!
//! They are in a separate partition (`thread = "tenant:<tenant>"`, `item = "settings"` or `"catalogue"`), each as JSON
//! in an attribute of the same name, the settings with their `version` beside it. Neither has a due time, so the
//! sweeper's index never holds one; neither expires, so the table never deletes one.

use bobbin_core::base::ids::Tenant;
use std::collections::{BTreeSet, HashMap};

use bobbin_core::schema::{self, Shape, UnknownFields};
use bobbin_core::tenant::catalogue::Catalogue;
use bobbin_core::tenant::settings::Settings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::layout::ITEM;
use super::webhook_targets::Of;
use super::{Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, n, s, text};

/// The item of the settings, and its attribute.
pub(super) const SETTINGS: &str = "settings";
const CATALOGUE: &str = "catalogue";

impl Store {
    /// The settings of a tenant, read consistently; the defaults if it has none.
    ///
    /// # Errors
    /// [`StoreError`]. Unreadable settings are an error: they may deny access to somebody.
    pub async fn settings(&self, tenant: &Tenant) -> Result<Settings, StoreError> {
        let stored = self.tenant_item(tenant, SETTINGS).await?;
        stored.map_or_else(|| Ok(Settings::default()), |item| settings(&item))
    }

    /// Writes the settings if the stored ones are still of version `expected` (0: none are stored), as version
    /// `expected + 1`; false if another write came first.
    ///
    /// # Errors
    /// [`StoreError`]; the write may or may not have happened, and the version tells.
    pub async fn save_settings(
        &self,
        tenant: &Tenant,
        settings: &Settings,
        expected: u64,
    ) -> Result<bool, StoreError> {
        Ok(self.table.write(settings_write(tenant, settings, expected)?).await?)
    }

    /// The same over the settings that were read, where the bindings differ: the tenant is noted for each installation
    /// that is bound now, and struck for each that is not any more.
    ///
    /// # Errors
    /// As [`Store::save_settings`].
    pub async fn save_bindings(
        &self,
        tenant: &Tenant,
        settings: &Settings,
        before: &Settings,
    ) -> Result<bool, StoreError> {
        let of = |settings: &Settings| -> BTreeSet<u64> {
            settings.bindings.values().map(|binding| binding.installation).collect()
        };
        let (now, then) = (of(settings), of(before));
        let who = || tenant.as_str().to_owned();
        let mut writes = vec![settings_write(tenant, settings, before.version)?];
        writes.extend(now.difference(&then).map(|id| Of::Installation(*id).add(who())));
        writes.extend(then.difference(&now).map(|id| Of::Installation(*id).strike(who())));
        Ok(self.table.transact(writes).await?)
    }

    /// The catalogue of a tenant; empty if it has none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn catalogue(&self, tenant: &Tenant) -> Result<Catalogue, StoreError> {
        match self.tenant_item(tenant, CATALOGUE).await? {
            Some(item) => {
                let (read, unknown) =
                    decode::<Catalogue>(Shape::Catalogue, text(&item, CATALOGUE))?;
                Ok(Catalogue { unknown, ..read })
            }
            None => Ok(Catalogue::default()),
        }
    }

    /// Overwrites the catalogue, unless the stored one has a newer shape than this worker reads: it holds suggestions,
    /// and the next turn repairs what two concurrent writes lost.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn save_catalogue(
        &self,
        tenant: &Tenant,
        catalogue: &Catalogue,
    ) -> Result<(), StoreError> {
        let text = schema::write(Shape::Catalogue, catalogue, &catalogue.unknown);
        let mut item = item(tenant, CATALOGUE, text)?;
        let shape = catalogue.unknown.schema().max(Shape::Catalogue.writes());
        item.insert(schema::FIELD.to_owned(), n(shape));
        let put = ItemWrite::put(item)
            .condition("attribute_not_exists(#schema) OR #schema <= :reads")
            .name("#schema", schema::FIELD)
            .value(":reads", n(Shape::Catalogue.reads()));
        if self.table.write(put).await? {
            Ok(())
        } else {
            Err(StoreError::Newer("a newer worker has written the catalogue".to_owned()))
        }
    }

    async fn tenant_item(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<TableItem>, StoreError> {
        Ok(self.table.get(key(tenant, name)).await?)
    }
}

/// The key of a tenant's settings.
pub(super) fn settings_key(tenant: &Tenant) -> TableItem {
    key(tenant, SETTINGS)
}

fn settings_write(
    tenant: &Tenant,
    settings: &Settings,
    expected: u64,
) -> Result<ItemWrite, StoreError> {
    let stored = Settings { version: expected + 1, ..settings.clone() };
    let mut item = item(tenant, SETTINGS, stored.encode())?;
    item.insert("version".to_owned(), n(stored.version));
    Ok(ItemWrite::put(item).if_version(expected))
}

/// The settings that an item holds.
pub(super) fn settings(item: &TableItem) -> Result<Settings, StoreError> {
    let (read, unknown) = decode::<Settings>(Shape::Settings, text(item, SETTINGS))?;
    Ok(Settings { unknown, ..read })
}

fn key(tenant: &Tenant, item: &str) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("tenant:{tenant}"))),
        (ITEM.to_owned(), s(item)),
    ])
}

fn item(
    tenant: &Tenant,
    name: &str,
    body: serde_json::Result<String>,
) -> Result<TableItem, StoreError> {
    let body = body.map_err(|e| StoreError::Damaged(e.to_string()))?;
    let mut item = key(tenant, name);
    item.insert(name.to_owned(), s(body));
    item.insert("tenant".to_owned(), s(tenant.as_str()));
    Ok(item)
}

fn decode<T: DeserializeOwned + Serialize>(
    shape: Shape,
    text: Option<&str>,
) -> Result<(T, UnknownFields), StoreError> {
    let text = text.ok_or_else(|| {
        StoreError::Damaged(format!("there is no attribute with the {}", shape.word()))
    })?;
    Ok(schema::read(shape, text)?)
}
