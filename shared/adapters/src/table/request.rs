//! What is asked of one item or of a range of them, with the expressions in which DynamoDB is told conditions and changes.

use std::collections::HashMap;

use serde::Serialize;

use super::attribute::{Attribute, Item};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Get,
    Put,
    Update,
    Delete,
    Query,
    Scan,
}

impl Action {
    /// Its name, and that of the writes in a transaction.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Get => ("GetItem", "Get"),
            Self::Put => ("PutItem", "Put"),
            Self::Update => ("UpdateItem", "Update"),
            Self::Delete => ("DeleteItem", "Delete"),
            Self::Query => ("Query", "Query"),
            Self::Scan => ("Scan", "Scan"),
        }
    }
}

/// One request, with its expressions and the names and values that they use.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    #[serde(skip)]
    pub(super) action: Action,
    /// Filled in by the table.
    table_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consistent_read: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive_start_key: Option<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_values: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_condition_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_expression: Option<String>,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    expression_attribute_names: HashMap<String, String>,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    expression_attribute_values: Item,
}

impl Request {
    fn new(action: Action) -> Self {
        Self {
            action,
            table_name: String::new(),
            key: None,
            item: None,
            index_name: None,
            consistent_read: None,
            limit: None,
            exclusive_start_key: None,
            return_values: None,
            update_expression: None,
            condition_expression: None,
            key_condition_expression: None,
            filter_expression: None,
            expression_attribute_names: HashMap::new(),
            expression_attribute_values: HashMap::new(),
        }
    }

    /// Reads an item consistently.
    pub(super) fn get(key: Item) -> Self {
        Self {
            key: Some(key),
            consistent_read: Some(true),
            ..Self::new(Action::Get)
        }
    }

    /// Writes an item, in the place of the one that stands there.
    #[must_use]
    pub fn put(item: Item) -> Self {
        let item = Some(item);
        Self {
            item,
            ..Self::new(Action::Put)
        }
    }

    /// Changes attributes of an item, or makes it.
    #[must_use]
    pub fn update(key: Item, expression: impl Into<String>) -> Self {
        Self {
            key: Some(key),
            update_expression: Some(expression.into()),
            ..Self::new(Action::Update)
        }
    }

    /// Deletes an item, if it is there.
    #[must_use]
    pub fn delete(key: Item) -> Self {
        Self {
            key: Some(key),
            ..Self::new(Action::Delete)
        }
    }

    /// Reads the items of a partition of the table, consistently.
    #[must_use]
    pub fn query(condition: &str) -> Self {
        Self {
            key_condition_expression: Some(condition.to_owned()),
            consistent_read: Some(true),
            ..Self::new(Action::Query)
        }
    }

    /// Reads what an index holds, which lags behind the table.
    #[must_use]
    pub fn query_index(index: &'static str, condition: &str) -> Self {
        Self {
            index_name: Some(index),
            consistent_read: None,
            ..Self::query(condition)
        }
    }

    /// Reads the whole table, as it was a moment ago.
    #[must_use]
    pub fn scan() -> Self {
        Self::new(Action::Scan)
    }

    /// To this table.
    pub(super) fn to(mut self, table: &str) -> Self {
        self.table_name = table.to_owned();
        self
    }

    /// Answers the whole item as it is after the write.
    pub(super) fn answering_all(mut self) -> Self {
        self.return_values = Some("ALL_NEW");
        self
    }

    /// What must hold for the write.
    #[must_use]
    pub fn condition(mut self, expression: &str) -> Self {
        self.condition_expression = Some(expression.to_owned());
        self
    }

    /// The write holds only for an item whose `version` is this one (0: there is no item yet).
    #[must_use]
    pub fn if_version(self, expected: u64) -> Self {
        let named = self.name("#version", "version");
        match expected {
            0 => named.condition("attribute_not_exists(#version)"),
            _ => named
                .condition("#version = :expected")
                .value(":expected", expected),
        }
    }

    /// What is read and left out.
    #[must_use]
    pub fn filter(mut self, expression: &str) -> Self {
        self.filter_expression = Some(expression.to_owned());
        self
    }

    /// What a name in the expressions stands for.
    #[must_use]
    pub fn name(mut self, placeholder: &str, name: impl Into<String>) -> Self {
        let names = &mut self.expression_attribute_names;
        names.insert(placeholder.to_owned(), name.into());
        self
    }

    /// What a value in the expressions stands for.
    #[must_use]
    pub fn value(mut self, placeholder: &str, value: impl Into<Attribute>) -> Self {
        let values = &mut self.expression_attribute_values;
        values.insert(placeholder.to_owned(), value.into());
        self
    }

    /// Items that a page has at most.
    #[must_use]
    pub fn limit(mut self, items_max: u32) -> Self {
        self.limit = Some(items_max);
        self
    }

    /// From behind this key on.
    #[must_use]
    pub fn after(mut self, key: Option<Item>) -> Self {
        self.exclusive_start_key = key;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_uses_and_nothing_else() {
        let key = HashMap::from([("thread".to_owned(), Attribute::from("a"))]);
        let request = Request::update(key, "SET #mark = :mark")
            .condition("#version = :version")
            .name("#mark", "cancel#1")
            .value(":version", 7);
        let written: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&request).expect("JSON")).expect("JSON");
        assert_eq!(
            written,
            serde_json::json!({
                "TableName": "", "Key": {"thread": {"S": "a"}},
                "UpdateExpression": "SET #mark = :mark", "ConditionExpression": "#version = :version",
                "ExpressionAttributeNames": {"#mark": "cancel#1"},
                "ExpressionAttributeValues": {":version": {"N": "7"}},
            })
        );
    }
}
