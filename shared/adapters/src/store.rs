//! DynamoDB: the record of a thread, written by condition only, and the marks of the control lane beside it.
//!
//! One item a thread (`thread`, `item = "session"`): `record` (JSON), `version`, `phase`, `tenant`, while something is
//! due `due_shard` and `due_at`, and a mark each as an attribute of its own (`cancel#<turn>`, `ask#<ask>`), so that the
//! control lane and the worker never write the same attribute.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::message::Person;
use bobbin_core::ports::Saved;
use bobbin_core::session::{Marks, Session, Settlement};

use crate::aws::words;

const SESSION: &str = "session";
const CANCEL: &str = "cancel#";
const ASK: &str = "ask#";
/// Shards of the due index.
pub const DUE_SHARDS: u8 = 16;
/// Threads that one look at a shard returns; the next tick sees the rest.
pub const DUE_PAGE: i32 = 500;

type Item = HashMap<String, AttributeValue>;

/// A call to the table failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The table is missing or the role may not: repeating cannot help.
    #[error("the table cannot be used: {0}")]
    Refused(String),
    /// Throttled, or no answer: try again later.
    #[error("the table does not answer: {0}")]
    Later(String),
    /// The item cannot be read: written by something else, or damaged.
    #[error("the record cannot be read: {0}")]
    Damaged(String),
}

impl StoreError {
    /// What to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Refused(_) | Self::Damaged(_) => Failure::NonRecoverable {
                advice: self.to_string(),
            },
            Self::Later(seen) => Failure::Wait {
                after_ms: 0,
                seen: format!("the table does not answer: {seen}"),
            },
        }
    }
}

/// The table of sessions.
#[derive(Debug, Clone)]
pub struct Store {
    client: aws_sdk_dynamodb::Client,
    table: String,
}

impl Store {
    /// A client for this table.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodb::Client, table: &str) -> Self {
        Self {
            client,
            table: table.to_owned(),
        }
    }

    /// Reads a record consistently, with the marks beside it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load(&self, thread: &ThreadKey) -> Result<Option<(Session, Marks)>, StoreError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(thread)))
            .consistent_read(true)
            .send()
            .await;
        let answer = answer.map_err(|e| classify(e.code(), words(&e)))?;
        // A mark can stand beside no record yet: then there is no session.
        match answer.item {
            Some(item) if item.contains_key("version") => Ok(Some((session(&item)?, marks(&item)))),
            _ => Ok(None),
        }
    }

    /// Writes the record if the stored version is `expected` (0: none is stored). Removes the marks in `stale`.
    ///
    /// # Errors
    /// [`StoreError`]; the write may or may not have happened, and the version tells.
    pub async fn save(
        &self,
        session: &Session,
        expected: u64,
        stale: &Marks,
    ) -> Result<Saved, StoreError> {
        let stored = Session {
            version: expected + 1,
            ..session.clone()
        };
        let mut set = vec![
            "#record = :record",
            "#version = :version",
            "#phase = :phase",
            "#tenant = :tenant",
        ];
        let mut remove: Vec<String> = Vec::new();
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(&session.thread)))
            .expression_attribute_names("#record", "record")
            .expression_attribute_names("#version", "version")
            .expression_attribute_names("#phase", "phase")
            .expression_attribute_names("#tenant", "tenant")
            .expression_attribute_names("#shard", "due_shard")
            .expression_attribute_names("#due", "due_at")
            .expression_attribute_values(":record", AttributeValue::S(stored.encode()))
            .expression_attribute_values(":version", number(stored.version))
            .expression_attribute_values(
                ":phase",
                AttributeValue::S(stored.phase.word().to_owned()),
            )
            .expression_attribute_values(":tenant", AttributeValue::S(stored.thread.tenant()))
            .return_values(ReturnValue::AllNew);
        if let Some(due) = stored.due_at_ms {
            set.extend(["#shard = :shard", "#due = :due"]);
            update = update
                .expression_attribute_values(":shard", number(u64::from(stored.thread.due_shard())))
                .expression_attribute_values(":due", number(due));
        } else {
            remove.extend(["#shard".to_owned(), "#due".to_owned()]);
        }
        for (index, name) in names(stale).into_iter().enumerate() {
            update = update.expression_attribute_names(format!("#m{index}"), name);
            remove.push(format!("#m{index}"));
        }
        let mut expression = format!("SET {}", set.join(", "));
        if !remove.is_empty() {
            expression.push_str(&format!(" REMOVE {}", remove.join(", ")));
        }
        update = update.update_expression(expression);
        update = if expected == 0 {
            update.condition_expression("attribute_not_exists(#version)")
        } else {
            update
                .condition_expression("#version = :expected")
                .expression_attribute_values(":expected", number(expected))
        };
        match update.send().await {
            Ok(answer) => Ok(Saved::Written(
                answer.attributes.as_ref().map(marks).unwrap_or_default(),
            )),
            Err(e) if e.code() == Some("ConditionalCheckFailedException") => Ok(Saved::Conflict),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    /// Sets a cancel mark for a turn. The first one stands.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_cancelled(
        &self,
        thread: &ThreadKey,
        turn: &str,
        by: &Person,
    ) -> Result<(), StoreError> {
        self.mark(
            thread,
            &format!("{CANCEL}{turn}"),
            serde_json::to_string(by),
        )
        .await
        .map(|_| ())
    }

    /// Settles an ask; false if somebody was first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_settled(
        &self,
        thread: &ThreadKey,
        ask: &str,
        settlement: &Settlement,
    ) -> Result<bool, StoreError> {
        self.mark(
            thread,
            &format!("{ASK}{ask}"),
            serde_json::to_string(settlement),
        )
        .await
    }

    async fn mark(
        &self,
        thread: &ThreadKey,
        name: &str,
        value: serde_json::Result<String>,
    ) -> Result<bool, StoreError> {
        let value = value.map_err(|e| StoreError::Damaged(e.to_string()))?;
        let answer = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(thread)))
            .update_expression("SET #mark = :mark")
            .condition_expression("attribute_not_exists(#mark)")
            .expression_attribute_names("#mark", name)
            .expression_attribute_values(":mark", AttributeValue::S(value))
            .send()
            .await;
        match answer {
            Ok(_) => Ok(true),
            Err(e) if e.code() == Some("ConditionalCheckFailedException") => Ok(false),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    /// Threads of one shard that are due, with their due times. A hint: the index lags behind the records.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due(&self, shard: u8, now_ms: Ms) -> Result<Vec<(ThreadKey, Ms)>, StoreError> {
        let answer = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("due")
            .key_condition_expression("#shard = :shard AND #due <= :now")
            .expression_attribute_names("#shard", "due_shard")
            .expression_attribute_names("#due", "due_at")
            .expression_attribute_values(":shard", number(u64::from(shard)))
            .expression_attribute_values(":now", number(now_ms))
            .limit(DUE_PAGE)
            .send()
            .await
            .map_err(|e| classify(e.code(), words(&e)))?;
        let read = |item: &Item| {
            Some((
                text(item, "thread")?.parse().ok()?,
                item.get("due_at")?.as_n().ok()?.parse().ok()?,
            ))
        };
        Ok(answer.items().iter().filter_map(read).collect())
    }
}

fn key(thread: &ThreadKey) -> Item {
    HashMap::from([
        ("thread".to_owned(), AttributeValue::S(thread.to_string())),
        ("item".to_owned(), AttributeValue::S(SESSION.to_owned())),
    ])
}

fn number(n: u64) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

fn session(item: &Item) -> Result<Session, StoreError> {
    let record = text(item, "record")
        .ok_or_else(|| StoreError::Damaged("there is no record attribute".to_owned()))?;
    Session::decode(record).map_err(StoreError::Damaged)
}

fn marks(item: &Item) -> Marks {
    let mut marks = Marks::default();
    for (name, value) in item {
        let Ok(value) = value.as_s() else { continue };
        if let Some(turn) = name.strip_prefix(CANCEL)
            && let Ok(by) = serde_json::from_str(value)
        {
            marks.cancelled.insert(turn.to_owned(), by);
        } else if let Some(ask) = name.strip_prefix(ASK)
            && let Ok(settlement) = serde_json::from_str(value)
        {
            marks.settled.insert(ask.to_owned(), settlement);
        }
    }
    marks
}

fn names(marks: &Marks) -> Vec<String> {
    let cancelled = marks.cancelled.keys().map(|turn| format!("{CANCEL}{turn}"));
    cancelled
        .chain(marks.settled.keys().map(|ask| format!("{ASK}{ask}")))
        .collect()
}

fn classify(code: Option<&str>, seen: String) -> StoreError {
    match code {
        Some(
            "ResourceNotFoundException"
            | "AccessDeniedException"
            | "UnrecognizedClientException"
            | "ValidationException",
        ) => StoreError::Refused(seen),
        _ => StoreError::Later(seen),
    }
}
