//! The two items of a tenant: its settings, written by condition only, and its catalogue, where the last write wins.
//!
//! They stand in a partition of their own (`thread = "tenant:<tenant>"`, `item = "settings"` or `"catalogue"`), each as
//! JSON in an attribute of the same name, the settings with their `version` beside it. Neither has a due time, so the
//! sweeper's index never holds one, nor an end, so the table never forgets one.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;
use bobbin_core::schema::{self, Kept, Shape};
use bobbin_core::settings::{Catalogue, Settings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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
        let stored = self.tenant_item(tenant, SETTINGS).await?;
        stored.map_or_else(|| Ok(Settings::default()), |item| settings(&item))
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
        let text = schema::write(Shape::Settings, &stored, &stored.kept);
        let mut item = item(tenant, SETTINGS, text)?;
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
        match self.tenant_item(tenant, CATALOGUE).await? {
            Some(item) => read_catalogue(text(&item, CATALOGUE)),
            None => Ok(Catalogue::default()),
        }
    }

    /// Writes the catalogue, whatever stands there, unless it is of a newer shape than this worker reads: it holds
    /// suggestions, and the next turn mends what two workers took from each other.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn save_catalogue(
        &self,
        tenant: &str,
        catalogue: &Catalogue,
    ) -> Result<(), StoreError> {
        let text = schema::write(Shape::Catalogue, catalogue, &catalogue.kept);
        let mut item = item(tenant, CATALOGUE, text)?;
        let shape = catalogue.kept.schema().max(Shape::Catalogue.writes());
        item.insert(schema::FIELD.to_owned(), number(shape.into()));
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#schema) OR #schema <= :reads")
            .expression_attribute_names("#schema", schema::FIELD)
            .expression_attribute_values(":reads", number(Shape::Catalogue.reads().into()));
        match put.send().await {
            Ok(_) => Ok(()),
            Err(e) if e.code() == Some(CONDITION_FAILED) => Err(StoreError::Newer(
                "the catalogue has become one of a newer worker's".to_owned(),
            )),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    async fn tenant_item(&self, tenant: &str, name: &str) -> Result<Option<Item>, StoreError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(tenant, name)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|e| classify(e.code(), words(&e)))?;
        Ok(answer.item)
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
        match self.item(tenant, SETTINGS).await? {
            Some(item) => read_settings(item[SETTINGS]["S"].as_str()),
            None => Ok(Settings::default()),
        }
    }

    /// The catalogue of a tenant, as [`Store::catalogue`] reads it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn catalogue(&self, tenant: &str) -> Result<Catalogue, StoreError> {
        match self.item(tenant, CATALOGUE).await? {
            Some(item) => read_catalogue(item[CATALOGUE]["S"].as_str()),
            None => Ok(Catalogue::default()),
        }
    }

    async fn item(&self, tenant: &str, name: &str) -> Result<Option<Value>, StoreError> {
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
        Ok(answer.get("Item").cloned())
    }
}

/// The key of a tenant's settings.
pub(super) fn settings_key(tenant: &str) -> Item {
    key(tenant, SETTINGS)
}

/// The settings that an item holds.
pub(super) fn settings(item: &Item) -> Result<Settings, StoreError> {
    read_settings(text(item, SETTINGS))
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

fn read_settings(text: Option<&str>) -> Result<Settings, StoreError> {
    let (read, kept) = decode::<Settings>(Shape::Settings, text)?;
    Ok(Settings { kept, ..read })
}

fn read_catalogue(text: Option<&str>) -> Result<Catalogue, StoreError> {
    let (read, kept) = decode::<Catalogue>(Shape::Catalogue, text)?;
    Ok(Catalogue { kept, ..read })
}

fn decode<T: DeserializeOwned + Serialize>(
    shape: Shape,
    text: Option<&str>,
) -> Result<(T, Kept), StoreError> {
    let text = text.ok_or_else(|| {
        StoreError::Damaged(format!("there is no attribute with the {}", shape.word()))
    })?;
    Ok(schema::read(shape, text)?)
}
