//! The two items of a tenant: its settings, written by condition only, and its catalogue, where the last write wins.
//!
//! They stand in a partition of their own (`thread = "tenant:<tenant>"`, `item = "settings"` or `"catalogue"`), each as
//! JSON in an attribute of the same name, the settings with their `version` beside it. Neither has a due time, so the
//! sweeper's index never holds one, nor an end, so the table never forgets one.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;
use bobbin_core::settings::{Catalogue, Settings};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{CONDITION_FAILED, ITEM, Item, Store, StoreError, classify, number, text};
use crate::aws::words;
use crate::direct::{Direct, Service};

/// The item of the settings, and its attribute.
pub(super) const SETTINGS: &str = "settings";
const CATALOGUE: &str = "catalogue";
/// Longest wait for an item that is read without the SDK.
const READ_MS_MAX: u64 = 10_000;

impl Store {
    /// The settings of a tenant, read consistently; those of a tenant that has none are the default ones.
    ///
    /// # Errors
    /// [`StoreError`]. Settings that cannot be read are an error: they may say who is to be kept out.
    pub async fn settings(&self, tenant: &str) -> Result<Settings, StoreError> {
        self.tenant_item(tenant, SETTINGS).await
    }

    /// Writes the settings if the stored ones are still of version `expected` (0: none are stored), as version
    /// `expected + 1`; false if somebody else wrote first.
    ///
    /// # Errors
    /// [`StoreError`]; the write may or may not have happened, and the version tells.
    pub async fn save_settings(
        &self,
        tenant: &str,
        settings: &Settings,
        expected: u64,
    ) -> Result<bool, StoreError> {
        let stored = Settings {
            version: expected + 1,
            ..settings.clone()
        };
        let mut item = item(tenant, SETTINGS, serde_json::to_string(&stored))?;
        item.insert("version".to_owned(), number(stored.version));
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .expression_attribute_names("#version", "version");
        let put = match expected {
            0 => put.condition_expression("attribute_not_exists(#version)"),
            _ => put
                .condition_expression("#version = :expected")
                .expression_attribute_values(":expected", number(expected)),
        };
        match put.send().await {
            Ok(_) => Ok(true),
            Err(e) if e.code() == Some(CONDITION_FAILED) => Ok(false),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    /// The catalogue of a tenant; one that has none offers nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn catalogue(&self, tenant: &str) -> Result<Catalogue, StoreError> {
        self.tenant_item(tenant, CATALOGUE).await
    }

    /// Writes the catalogue, whatever stands there: it holds suggestions, and the next turn mends what two workers
    /// took from each other.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn save_catalogue(
        &self,
        tenant: &str,
        catalogue: &Catalogue,
    ) -> Result<(), StoreError> {
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item(
                tenant,
                CATALOGUE,
                serde_json::to_string(catalogue),
            )?))
            .send()
            .await
            .map(|_| ())
            .map_err(|e| classify(e.code(), words(&e)))
    }

    async fn tenant_item<T: DeserializeOwned + Default>(
        &self,
        tenant: &str,
        name: &str,
    ) -> Result<T, StoreError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(tenant, name)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|e| classify(e.code(), words(&e)))?;
        answer
            .item
            .map_or_else(|| Ok(T::default()), |item| read(&item, name))
    }
}

/// The items of tenants, read alone, without the SDK: for the function that is in a hurry.
#[derive(Debug, Clone)]
pub struct Tenants {
    aws: Direct,
    table: String,
}

impl Tenants {
    /// Those of this table.
    #[must_use]
    pub fn new(aws: Direct, table: &str) -> Self {
        Self {
            aws,
            table: table.to_owned(),
        }
    }

    /// The settings of a tenant, as [`Store::settings`] reads them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn settings(&self, tenant: &str) -> Result<Settings, StoreError> {
        self.item(tenant, SETTINGS).await
    }

    /// The catalogue of a tenant, as [`Store::catalogue`] reads it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn catalogue(&self, tenant: &str) -> Result<Catalogue, StoreError> {
        self.item(tenant, CATALOGUE).await
    }

    async fn item<T: DeserializeOwned + Default>(
        &self,
        tenant: &str,
        name: &str,
    ) -> Result<T, StoreError> {
        let request = json!({
            "TableName": self.table,
            "Key": { "thread": { "S": partition(tenant) }, ITEM: { "S": name } },
            "ConsistentRead": true,
        });
        let answer = self
            .aws
            .call(Service::Tables, "GetItem", &request, READ_MS_MAX)
            .await
            .map_err(|e| classify(e.code(), e.to_string()))?;
        match answer.get("Item") {
            Some(item) => decode(item[name]["S"].as_str(), name),
            None => Ok(T::default()),
        }
    }
}

/// The key of a tenant's settings.
pub(super) fn settings_key(tenant: &str) -> Item {
    key(tenant, SETTINGS)
}

/// The settings that an item holds.
pub(super) fn settings(item: &Item) -> Result<Settings, StoreError> {
    read(item, SETTINGS)
}

fn partition(tenant: &str) -> String {
    format!("tenant:{tenant}")
}

fn key(tenant: &str, item: &str) -> Item {
    HashMap::from([
        ("thread".to_owned(), AttributeValue::S(partition(tenant))),
        (ITEM.to_owned(), AttributeValue::S(item.to_owned())),
    ])
}

fn item(tenant: &str, name: &str, body: serde_json::Result<String>) -> Result<Item, StoreError> {
    let body = body.map_err(|e| StoreError::Damaged(e.to_string()))?;
    let mut item = key(tenant, name);
    item.insert(name.to_owned(), AttributeValue::S(body));
    item.insert("tenant".to_owned(), AttributeValue::S(tenant.to_owned()));
    Ok(item)
}

fn read<T: DeserializeOwned>(item: &Item, name: &str) -> Result<T, StoreError> {
    decode(text(item, name), name)
}

fn decode<T: DeserializeOwned>(body: Option<&str>, name: &str) -> Result<T, StoreError> {
    let body = body.ok_or_else(|| StoreError::Damaged(format!("there is no {name} attribute")))?;
    serde_json::from_str(body)
        .map_err(|e| StoreError::Damaged(format!("the {name} cannot be read: {e}")))
}
