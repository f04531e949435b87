//! SQS's AWS JSON 1.0 protocol: requests in, answers and errors out.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::SqsError;
use super::queue::Queue;
use super::send::{self, MessageEntry};
use super::service::Sqs;
use super::transaction::QueueTransaction;
use super::wire::{SqsResult, parse, response, unless_empty, value};
use super::{receipt, stored};
use crate::limits;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CreateQueue {
    #[serde(default)]
    queue_name: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default, rename = "tags")]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetQueueUrl {
    #[serde(default)]
    queue_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ListQueues {
    queue_name_prefix: String,
    max_results: Option<usize>,
    next_token: String,
}

/// Fields of the actions on one queue.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OnQueue {
    #[serde(default)]
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    tag_keys: Vec<String>,
    #[serde(default)]
    receipt_handle: String,
    visibility_timeout: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessage {
    #[serde(default)]
    queue_url: String,
    #[serde(flatten)]
    entry: MessageEntry,
}

impl Sqs {
    /// Answers one request; `action` is what follows `AmazonSQS.` in `X-Amz-Target`.
    pub(crate) async fn answer(&self, action: &str, headers: &HeaderMap, body: &Bytes) -> Response {
        let answer = match action {
            "ReceiveMessage" => self.receive_message(body).await.map(Some),
            _ => self.act(action, body),
        };
        response(answer, headers)
    }

    fn act(&self, action: &str, body: &Bytes) -> Result<Option<Value>, SqsError> {
        let reply = match action {
            "CreateQueue" => self.create_queue(parse(body)?),
            "GetQueueUrl" => self.get_queue_url(&parse(body)?),
            "ListQueues" => self.list_queues(&parse(body)?),
            "SendMessage" => {
                let request: SendMessage = parse(body)?;
                self.on_queue(&request.queue_url, |transaction, queue| {
                    Ok(value(&send::send(transaction, queue, request.entry)?))
                })
            }
            "SendMessageBatch" => self.send_batch(parse(body)?),
            "DeleteMessageBatch" => {
                self.receipt_batch(parse(body)?, |transaction, queue, entry| {
                    receipt::delete(transaction, queue, &entry.receipt_handle)
                })
            }
            "ChangeMessageVisibilityBatch" => {
                self.receipt_batch(parse(body)?, |transaction, queue, entry| {
                    let seconds = entry.visibility_timeout;
                    receipt::change_visibility(transaction, queue, &entry.receipt_handle, seconds)
                })
            }
            _ if !ON_QUEUE.contains(&action) => return Err(SqsError::unknown_action(action)),
            _ => return self.act_on_queue(action, parse(body)?),
        };
        reply.map(Some)
    }

    fn act_on_queue(&self, action: &str, request: OnQueue) -> Result<Option<Value>, SqsError> {
        let url = request.queue_url.clone();
        self.on_queue(&url, |transaction, queue| {
            let name = &queue.name;
            match action {
                "DeleteQueue" => stored::delete(transaction, name)?,
                "PurgeQueue" => stored::purge(transaction, name)?,
                "SetQueueAttributes" => {
                    stored::set_attributes(transaction, name, &request.attributes)?
                }
                "GetQueueAttributes" => {
                    return attributes(transaction, queue, &request.attribute_names).map(Some);
                }
                "DeleteMessage" => receipt::delete(transaction, queue, &request.receipt_handle)?,
                "ChangeMessageVisibility" => {
                    let seconds = request.visibility_timeout;
                    receipt::change_visibility(
                        transaction,
                        queue,
                        &request.receipt_handle,
                        seconds,
                    )?;
                }
                "ListQueueTags" => {
                    return Ok(Some(unless_empty("Tags", json!(stored::tags(transaction, name)?))));
                }
                "TagQueue" => {
                    let mut tags = stored::tags(transaction, name)?;
                    tags.extend(request.tags);
                    stored::set_tags(transaction, name, &tags)?;
                }
                "UntagQueue" => {
                    let mut tags = stored::tags(transaction, name)?;
                    tags.retain(|key, _| !request.tag_keys.contains(key));
                    stored::set_tags(transaction, name, &tags)?;
                }
                other => return Err(SqsError::unknown_action(other)),
            }
            Ok(None)
        })
    }

    fn create_queue(&self, request: CreateQueue) -> SqsResult {
        if request.queue_name.is_empty() {
            return Err(SqsError::missing("QueueName"));
        }
        self.transaction(|transaction| {
            stored::create(transaction, &request.queue_name, &request.attributes, &request.tags)
        })?;
        Ok(json!({ "QueueUrl": self.account.queue_url(&request.queue_name) }))
    }

    fn get_queue_url(&self, request: &GetQueueUrl) -> SqsResult {
        if request.queue_name.is_empty() {
            return Err(SqsError::missing("QueueName"));
        }
        self.transaction(|transaction| stored::find(transaction, &request.queue_name))?;
        Ok(json!({ "QueueUrl": self.account.queue_url(&request.queue_name) }))
    }

    fn list_queues(&self, request: &ListQueues) -> SqsResult {
        let count_max = request
            .max_results
            .unwrap_or(limits::LISTED_QUEUES_MAX)
            .clamp(1, limits::LISTED_QUEUES_MAX);
        let mut names = self.transaction(|transaction| {
            stored::names(
                transaction,
                &request.queue_name_prefix,
                &request.next_token,
                count_max + 1,
            )
        })?;
        let has_more = names.len() > count_max;
        names.truncate(count_max);
        let token = names.last().filter(|_| has_more).cloned();
        let mut reply = unless_empty("QueueUrls", json!(self.urls(names)));
        // A token is returned only to clients that asked for pages (AWS).
        if let (Some(token), Some(_)) = (token, request.max_results) {
            reply["NextToken"] = json!(token);
        }
        Ok(reply)
    }

    fn urls(&self, names: Vec<String>) -> Vec<String> {
        names.iter().map(|name| self.account.queue_url(name)).collect()
    }
}

/// Actions on one queue with the fields of [`OnQueue`].
const ON_QUEUE: [&str; 9] = [
    "DeleteQueue",
    "PurgeQueue",
    "SetQueueAttributes",
    "GetQueueAttributes",
    "DeleteMessage",
    "ChangeMessageVisibility",
    "ListQueueTags",
    "TagQueue",
    "UntagQueue",
];

fn attributes(transaction: &QueueTransaction<'_>, queue: &Queue, asked: &[String]) -> SqsResult {
    let mut reported = queue.reported_attributes(&transaction.arn(&queue.name));
    for (name, count) in stored::counts(transaction, queue)? {
        reported.insert(name.to_owned(), count.to_string());
    }
    if !asked.iter().any(|name| name == "All") {
        // The only known attribute that a queue may lack.
        if let Some(unknown) =
            asked.iter().find(|name| !reported.contains_key(*name) && *name != "RedrivePolicy")
        {
            return Err(SqsError::attribute_name(unknown));
        }
        reported.retain(|name, _| asked.contains(name));
    }
    Ok(unless_empty("Attributes", json!(reported)))
}
