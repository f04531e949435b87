//! Creates or updates the template's tables.

use serde_json::{Value, json};

use super::error::DynamoError;
use super::service::Dynamo;

/// A table of the template, as a `CreateTable` request, and its time-to-live attribute.
#[derive(Clone, Debug)]
pub(crate) struct TableSettings {
    pub(crate) create: Value,
    pub(crate) ttl_attribute: Option<String>,
}

impl Dynamo {
    /// Creates a table of the template, or updates the indexes and time to live of an existing one.
    pub(crate) async fn deploy(&self, table: &TableSettings) -> Result<(), DynamoError> {
        let name = table.create["TableName"].as_str().unwrap_or_default();
        let described = self.call("DescribeTable", name, &json!({ "TableName": name })).await;
        match described {
            Ok(present) => {
                if present["Table"]["KeySchema"] != table.create["KeySchema"] {
                    return Err(DynamoError::KeySchema(name.to_owned()));
                }
                self.deploy_indexes(name, table, &present["Table"]).await?;
                self.deploy_protection(name, table, &present["Table"]).await?;
            }
            Err(_) => {
                self.call("CreateTable", name, &table.create).await?;
            }
        }
        self.deploy_ttl(name, table.ttl_attribute.as_deref()).await
    }

    async fn deploy_indexes(
        &self,
        name: &str,
        table: &TableSettings,
        present: &Value,
    ) -> Result<(), DynamoError> {
        let wanted = indexes(&table.create);
        let present = indexes(present);
        let is_same = |a: &Value, b: &Value| {
            ["IndexName", "KeySchema"].iter().all(|field| a[field] == b[field])
                && a["Projection"]["ProjectionType"] == b["Projection"]["ProjectionType"]
        };
        let removed = present
            .iter()
            .filter(|index| !wanted.iter().any(|other| is_same(other, index)))
            .map(|index| json!({ "Delete": { "IndexName": index["IndexName"] } }));
        let added = wanted
            .iter()
            .filter(|index| !present.iter().any(|other| is_same(other, index)))
            .map(|index| json!({ "Create": index }));
        // One index change per call (AWS).
        for update in removed.chain(added) {
            let request = json!({
                "TableName": name,
                "AttributeDefinitions": table.create["AttributeDefinitions"],
                "GlobalSecondaryIndexUpdates": [update],
            });
            self.call("UpdateTable", name, &request).await?;
        }
        Ok(())
    }

    async fn deploy_protection(
        &self,
        name: &str,
        table: &TableSettings,
        present: &Value,
    ) -> Result<(), DynamoError> {
        let is_protected = |table: &Value| table["DeletionProtectionEnabled"] == true;
        let wanted = is_protected(&table.create);
        if wanted != is_protected(present) {
            let request = json!({ "TableName": name, "DeletionProtectionEnabled": wanted });
            self.call("UpdateTable", name, &request).await?;
        }
        Ok(())
    }

    async fn deploy_ttl(&self, name: &str, attribute: Option<&str>) -> Result<(), DynamoError> {
        let described =
            self.call("DescribeTimeToLive", name, &json!({ "TableName": name })).await?;
        let described = &described["TimeToLiveDescription"];
        let present = described["AttributeName"]
            .as_str()
            .filter(|_| described["TimeToLiveStatus"] == "ENABLED");
        if present == attribute {
            return Ok(());
        }
        let changes = [(present, false), (attribute, true)];
        for (attribute, enabled) in changes {
            let Some(attribute) = attribute else { continue };
            let request = json!({
                "TableName": name,
                "TimeToLiveSpecification": { "AttributeName": attribute, "Enabled": enabled },
            });
            self.call("UpdateTimeToLive", name, &request).await?;
        }
        Ok(())
    }
}

fn indexes(table: &Value) -> Vec<Value> {
    table["GlobalSecondaryIndexes"].as_array().cloned().unwrap_or_default()
}
