//! The AWS JSON 1.0 protocol of SQS: requests in, answers and refusals out.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::digest::{self, MessageAttribute};
use super::queue::{self, Queue};
use super::receive::{self, Received, Wish};
use super::send::{self, Entry};
use super::{Sqs, SqsError, Step, counts, moves, receipt};
use crate::limits;

type Reply = Result<Value, SqsError>;

/// `None` is an empty body: what AWS answers where an action has no output.
type Answered = Result<Option<Value>, SqsError>;

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

/// Every action on one queue: the fields that some of them carry.
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
    entry: Entry,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Batch<E> {
    #[serde(default)]
    queue_url: String,
    #[serde(default = "Vec::new")]
    entries: Vec<E>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiptEntry {
    #[serde(default)]
    id: String,
    #[serde(default)]
    receipt_handle: String,
    visibility_timeout: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveMessage {
    #[serde(default)]
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    message_system_attribute_names: Vec<String>,
    #[serde(default)]
    message_attribute_names: Vec<String>,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MoveTask {
    #[serde(default)]
    source_arn: String,
    destination_arn: Option<String>,
    max_number_of_messages_per_second: Option<i64>,
    #[serde(default)]
    task_handle: String,
    max_results: Option<usize>,
}

impl Sqs {
    /// Answers one request; `action` is what follows `AmazonSQS.` in `X-Amz-Target`.
    pub(crate) async fn answer(&self, action: &str, headers: &HeaderMap, body: &Bytes) -> Response {
        let reply = match action {
            "ReceiveMessage" => self.receive_message(body).await.map(Some),
            _ => self.act(action, body),
        };
        match reply {
            Ok(value) => (
                StatusCode::OK,
                [("content-type", "application/x-amz-json-1.0")],
                value.map_or_else(String::new, |value| value.to_string()),
            )
                .into_response(),
            Err(error) => refusal(&error, asks_for_query_codes(headers)),
        }
    }

    fn act(&self, action: &str, body: &Bytes) -> Answered {
        let reply = match action {
            "CreateQueue" => self.create_queue(parse(body)?),
            "GetQueueUrl" => self.get_queue_url(&parse(body)?),
            "ListQueues" => self.list_queues(&parse(body)?),
            "SendMessage" => {
                let request: SendMessage = parse(body)?;
                self.on_queue(&request.queue_url, |step, queue| {
                    Ok(value(&send::send(step, queue, request.entry)?))
                })
            }
            "SendMessageBatch" => self.send_batch(parse(body)?),
            "DeleteMessageBatch" => self.receipt_batch(parse(body)?, |step, queue, entry| {
                receipt::delete(step, queue, &entry.receipt_handle)
            }),
            "ChangeMessageVisibilityBatch" => {
                self.receipt_batch(parse(body)?, |step, queue, entry| {
                    let seconds = entry
                        .visibility_timeout
                        .ok_or_else(|| SqsError::missing("VisibilityTimeout"))?;
                    receipt::change_visibility(step, queue, &entry.receipt_handle, seconds)
                })
            }
            "StartMessageMoveTask" | "ListMessageMoveTasks" | "CancelMessageMoveTask" => {
                self.move_task(action, &parse(body)?)
            }
            _ if !ON_QUEUE.contains(&action) => return Err(SqsError::unknown_action(action)),
            _ => return self.act_on_queue(action, parse(body)?),
        };
        reply.map(Some)
    }

    fn act_on_queue(&self, action: &str, request: OnQueue) -> Answered {
        let url = request.queue_url.clone();
        self.on_queue(&url, |step, queue| {
            let name = &queue.name;
            match action {
                "DeleteQueue" => queue::delete(step, name)?,
                "PurgeQueue" => queue::purge(step, name)?,
                "SetQueueAttributes" => queue::set_attributes(step, name, &request.attributes)?,
                "GetQueueAttributes" => {
                    return attributes(step, queue, &request.attribute_names).map(Some);
                }
                "DeleteMessage" => receipt::delete(step, queue, &request.receipt_handle)?,
                "ChangeMessageVisibility" => {
                    let seconds = request
                        .visibility_timeout
                        .ok_or_else(|| SqsError::missing("VisibilityTimeout"))?;
                    receipt::change_visibility(step, queue, &request.receipt_handle, seconds)?;
                }
                "ListQueueTags" => {
                    return Ok(Some(unless_empty("Tags", json!(queue::tags(step, name)?))));
                }
                "TagQueue" => {
                    let mut tags = queue::tags(step, name)?;
                    tags.extend(request.tags);
                    queue::set_tags(step, name, &tags)?;
                }
                "UntagQueue" => {
                    let mut tags = queue::tags(step, name)?;
                    tags.retain(|key, _| !request.tag_keys.contains(key));
                    queue::set_tags(step, name, &tags)?;
                }
                "ListDeadLetterSourceQueues" => {
                    let urls = self.urls(queue::sources_of(step, name)?);
                    return Ok(Some(json!({ "queueUrls": urls })));
                }
                other => return Err(SqsError::unknown_action(other)),
            }
            Ok(None)
        })
    }

    fn on_queue<T>(
        &self,
        url: &str,
        work: impl FnOnce(&mut Step<'_>, &Queue) -> Result<T, SqsError>,
    ) -> Result<T, SqsError> {
        let name = name_of_url(url)?;
        self.step(|step| {
            let queue = queue::find(step, name)?;
            work(step, &queue)
        })
    }

    fn create_queue(&self, request: CreateQueue) -> Reply {
        if request.queue_name.is_empty() {
            return Err(SqsError::missing("QueueName"));
        }
        self.step(|step| {
            queue::create(
                step,
                &request.queue_name,
                &request.attributes,
                &request.tags,
            )
        })?;
        Ok(json!({ "QueueUrl": self.account.queue_url(&request.queue_name) }))
    }

    fn get_queue_url(&self, request: &GetQueueUrl) -> Reply {
        if request.queue_name.is_empty() {
            return Err(SqsError::missing("QueueName"));
        }
        self.step(|step| queue::find(step, &request.queue_name))?;
        Ok(json!({ "QueueUrl": self.account.queue_url(&request.queue_name) }))
    }

    fn list_queues(&self, request: &ListQueues) -> Reply {
        let count_max = request
            .max_results
            .unwrap_or(limits::LISTED_QUEUES_MAX)
            .clamp(1, limits::LISTED_QUEUES_MAX);
        let mut names = self.step(|step| {
            queue::names(
                step,
                &request.queue_name_prefix,
                &request.next_token,
                count_max + 1,
            )
        })?;
        let has_more = names.len() > count_max;
        names.truncate(count_max);
        let token = names.last().filter(|_| has_more).cloned();
        let mut reply = unless_empty("QueueUrls", json!(self.urls(names)));
        // A token is told only to those who asked for pages (AWS).
        if let (Some(token), Some(_)) = (token, request.max_results) {
            reply["NextToken"] = json!(token);
        }
        Ok(reply)
    }

    fn urls(&self, names: Vec<String>) -> Vec<String> {
        names
            .iter()
            .map(|name| self.account.queue_url(name))
            .collect()
    }

    fn send_batch(&self, request: Batch<Entry>) -> Reply {
        check_batch(request.entries.iter().map(|entry| entry.id.as_str()))?;
        let bytes: usize = request.entries.iter().map(send::size_bytes).sum();
        if bytes > limits::MESSAGE_BYTES_MAX {
            return Err(SqsError::batch_bytes(bytes, limits::MESSAGE_BYTES_MAX));
        }
        self.on_queue(&request.queue_url, |step, queue| {
            let mut reply = BatchReply::default();
            for entry in request.entries {
                let id = entry.id.clone();
                reply.add(&id, send::send(step, queue, entry).map(|sent| value(&sent)))?;
            }
            Ok(reply.value())
        })
    }

    fn receipt_batch(
        &self,
        request: Batch<ReceiptEntry>,
        work: impl Fn(&mut Step<'_>, &Queue, &ReceiptEntry) -> Result<(), SqsError>,
    ) -> Reply {
        check_batch(request.entries.iter().map(|entry| entry.id.as_str()))?;
        self.on_queue(&request.queue_url, |step, queue| {
            let mut reply = BatchReply::default();
            for entry in &request.entries {
                let done = work(step, queue, entry).map(|()| json!({ "Id": entry.id }));
                reply.add(&entry.id, done)?;
            }
            Ok(reply.value())
        })
    }

    fn move_task(&self, action: &str, request: &MoveTask) -> Reply {
        let reply = self.step(|step| match action {
            "StartMessageMoveTask" => {
                let handle = moves::start(
                    step,
                    &request.source_arn,
                    request.destination_arn.as_deref(),
                    request.max_number_of_messages_per_second,
                )?;
                Ok(json!({ "TaskHandle": handle }))
            }
            "ListMessageMoveTasks" => {
                let count_max = request.max_results.unwrap_or(1).clamp(1, 10);
                let tasks = moves::list(step, &request.source_arn, count_max)?;
                Ok(unless_empty("Results", json!(tasks)))
            }
            _ => {
                let moved = moves::cancel(step, &request.task_handle)?;
                Ok(json!({ "ApproximateNumberOfMessagesMoved": moved }))
            }
        })?;
        while self.step(moves::progress)? {}
        Ok(reply)
    }

    async fn receive_message(&self, body: &Bytes) -> Reply {
        let request: ReceiveMessage = parse(body)?;
        let name = name_of_url(&request.queue_url)?;
        let queue = self.step(|step| queue::find(step, name))?;
        let (wish, wait_seconds) = wish(&request, &queue)?;
        let deadline_ms = self.clock.now_ms() + wait_seconds * 1000;
        let mut seen = self.watch(name);
        loop {
            let received = self.step(|step| {
                let queue = queue::find(step, name)?;
                receive::receive(step, &queue, wish)
            })?;
            let is_over = self.clock.now_ms() >= deadline_ms || self.stopping.is_cancelled();
            if received.is_empty() && !is_over {
                tokio::select! {
                    () = self.changed(name, &mut seen) => {}
                    () = self.clock.sleep_until_ms(deadline_ms) => {}
                }
                continue;
            }
            let messages: Vec<Value> = received
                .iter()
                .map(|message| told_message(message, &request))
                .collect();
            return Ok(unless_empty("Messages", json!(messages)));
        }
    }
}

/// Actions on one queue that carry the fields of [`OnQueue`].
const ON_QUEUE: [&str; 10] = [
    "DeleteQueue",
    "PurgeQueue",
    "SetQueueAttributes",
    "GetQueueAttributes",
    "DeleteMessage",
    "ChangeMessageVisibility",
    "ListQueueTags",
    "TagQueue",
    "UntagQueue",
    "ListDeadLetterSourceQueues",
];

/// What a receive can be asked to tell of a message.
const SYSTEM_ATTRIBUTES: [&str; 10] = [
    "All",
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn",
];

/// AWS leaves an empty list or map out, unless its model calls the member required.
fn unless_empty(member: &str, value: Value) -> Value {
    let is_empty = match &value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if is_empty {
        json!({})
    } else {
        json!({ member: value })
    }
}

/// Clients that were built for the older protocol ask for its error codes beside the new ones.
pub(crate) fn asks_for_query_codes(headers: &HeaderMap) -> bool {
    headers
        .get("x-amzn-query-mode")
        .is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"true"))
}

fn wish(request: &ReceiveMessage, queue: &Queue) -> Result<(Wish, i64), SqsError> {
    let asked = request
        .attribute_names
        .iter()
        .chain(&request.message_system_attribute_names);
    if let Some(unknown) = { asked }.find(|name| !SYSTEM_ATTRIBUTES.contains(&name.as_str())) {
        return Err(SqsError::attribute_name(unknown));
    }
    let in_range = |parameter: &str, number: i64, min: i64, max: i64| {
        if (min..=max).contains(&number) {
            Ok(number)
        } else {
            Err(SqsError::value(
                parameter,
                number,
                &format!("Must be between {min} and {max}, if provided."),
            ))
        }
    };
    let count = in_range(
        "MaxNumberOfMessages",
        request.max_number_of_messages.unwrap_or(1),
        1,
        10,
    )?;
    let visibility_seconds = in_range(
        "VisibilityTimeout",
        request
            .visibility_timeout
            .unwrap_or_else(|| queue.visibility_seconds()),
        0,
        limits::VISIBILITY_SECONDS_MAX,
    )?;
    let wait_seconds = in_range(
        "WaitTimeSeconds",
        request
            .wait_time_seconds
            .unwrap_or_else(|| queue.wait_seconds()),
        0,
        limits::WAIT_SECONDS_MAX,
    )?;
    let wish = Wish {
        count_max: usize::try_from(count).unwrap_or(1),
        visibility_seconds,
        for_function: false,
    };
    Ok((wish, wait_seconds))
}

fn told_message(message: &Received, request: &ReceiveMessage) -> Value {
    let mut told = json!({
        "MessageId": message.id,
        "ReceiptHandle": message.receipt,
        "MD5OfBody": digest::of_body(&message.body),
        "Body": message.body,
    });
    let asked = |name: &str| {
        request
            .attribute_names
            .iter()
            .chain(&request.message_system_attribute_names)
            .any(|asked| asked == "All" || asked == name)
    };
    let system: BTreeMap<_, _> = message
        .system_attributes
        .iter()
        .filter(|(name, _)| asked(name))
        .collect();
    if !system.is_empty() {
        told["Attributes"] = json!(system);
    }
    let attributes: BTreeMap<String, MessageAttribute> = message
        .message_attributes
        .iter()
        .filter(|(name, _)| is_asked(name, &request.message_attribute_names))
        .map(|(name, attribute)| (name.clone(), attribute.clone()))
        .collect();
    if let Some(md5) = digest::of_attributes(&attributes) {
        told["MD5OfMessageAttributes"] = json!(md5);
        told["MessageAttributes"] = json!(attributes);
    }
    told
}

fn is_asked(name: &str, asked: &[String]) -> bool {
    asked.iter().any(|asked| {
        let prefix = asked.strip_suffix(".*");
        asked == "All"
            || asked == name
            || prefix.is_some_and(|prefix| prefix.is_empty() || name.starts_with(prefix))
    })
}

fn attributes(step: &Step<'_>, queue: &Queue, asked: &[String]) -> Reply {
    let mut told = queue.told_attributes(&step.arn(&queue.name));
    for (name, count) in counts(step, queue)? {
        told.insert(name.to_owned(), count.to_string());
    }
    if !asked.iter().any(|name| name == "All") {
        const OPTIONAL: [&str; 5] = [
            "RedrivePolicy",
            "RedriveAllowPolicy",
            "Policy",
            "KmsMasterKeyId",
            "KmsDataKeyReusePeriodSeconds",
        ];
        if let Some(unknown) = asked
            .iter()
            .find(|name| !told.contains_key(*name) && !OPTIONAL.contains(&name.as_str()))
        {
            return Err(SqsError::attribute_name(unknown));
        }
        told.retain(|name, _| asked.contains(name));
    }
    Ok(unless_empty("Attributes", json!(told)))
}

/// The two lists of a batch's answer.
#[derive(Default)]
struct BatchReply {
    successful: Vec<Value>,
    failed: Vec<Value>,
}

impl BatchReply {
    /// Notes one entry's outcome; a failure of the store fails the whole request.
    fn add(&mut self, id: &str, outcome: Reply) -> Result<(), SqsError> {
        match outcome {
            Ok(value) => self.successful.push(value),
            Err(error) if error.status.is_server_error() => return Err(error),
            Err(error) => self.failed.push(json!({
                "Id": id,
                "SenderFault": true,
                "Code": error.code,
                "Message": error.message,
            })),
        }
        Ok(())
    }

    fn value(self) -> Value {
        json!({ "Successful": self.successful, "Failed": self.failed })
    }
}

fn check_batch<'a>(ids: impl Iterator<Item = &'a str>) -> Result<(), SqsError> {
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for id in ids {
        count += 1;
        let fits = (1..=80).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if !fits {
            return Err(SqsError::batch_id_format());
        }
        if !seen.insert(id) {
            return Err(SqsError::batch_ids(id));
        }
    }
    match count {
        0 => Err(SqsError::empty_batch()),
        1..=limits::BATCH_ENTRIES_MAX => Ok(()),
        _ => Err(SqsError::batch_entries(count, limits::BATCH_ENTRIES_MAX)),
    }
}

/// The queue's name is the last part of its URL; host and port may be from an earlier start.
fn name_of_url(url: &str) -> Result<&str, SqsError> {
    match url.rsplit('/').next() {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(SqsError::missing("QueueUrl")),
    }
}

/// A member that is null counts as absent.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, SqsError> {
    let mut members: Map<String, Value> =
        serde_json::from_slice(body).map_err(SqsError::serialization)?;
    members.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(members)).map_err(SqsError::serialization)
}

fn value<T: serde::Serialize>(of: &T) -> Value {
    serde_json::to_value(of).expect("answers are always valid JSON")
}

fn refusal(error: &SqsError, with_query_code: bool) -> Response {
    let fault = if error.status.is_server_error() {
        "Receiver"
    } else {
        "Sender"
    };
    let kind = error.type_name();
    // What is refused before the service itself sees it has a capital message.
    let member = if kind.starts_with("com.amazonaws.") {
        "message"
    } else {
        "Message"
    };
    let mut body = json!({ "__type": kind });
    if !error.message.is_empty() {
        body[member] = json!(error.message);
    }
    let query_code =
        with_query_code.then(|| [("x-amzn-query-error", format!("{};{fault}", error.code))]);
    (
        error.status,
        [("content-type", "application/x-amz-json-1.0")],
        AppendHeaders(query_code.into_iter().flatten()),
        body.to_string(),
    )
        .into_response()
}
