//! The tests' AWS calls: JSON over HTTP, signed by AWS's own crate, the same for both engines. They do not use the SDK,
//! whose own behaviour (retries, endpoints) would come between a test and its observations.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use bobbin_core::base::ids::ThreadKey;
use bobbin_core::base::names::wake_name;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::parked::Parked;
use bobbin_core::records::session::Session;
use bobbin_core::schema::{self, Shape};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::http::{Answer, send};
use crate::limits::SCAN_PAGES_MAX;

const REGION: &str = "us-east-1";
/// The key that ministack accepts as root.
pub(crate) const ROOT: &str = "test";

/// One engine's address, with a key of it.
#[derive(Debug, Clone)]
pub struct Aws {
    client: Client,
    key: Credentials,
    /// Address of the engine, `http://127.0.0.1:PORT`.
    pub endpoint: String,
}

/// A one-time schedule's words for a time, rounded up to seconds.
#[must_use]
pub fn schedule_at(ms: u64) -> String {
    let at_s = i64::try_from(ms.div_ceil(1_000)).expect("a time");
    let date = DateTime::from_secs(at_s).fmt(Format::DateTime).expect("a date");
    format!("at({})", date.trim_end_matches('Z'))
}

impl Aws {
    /// Calls to this address, signed with this key (id and secret).
    #[must_use]
    pub fn new(client: &Client, endpoint: &str, (id, secret): &(String, String)) -> Self {
        Self {
            client: client.clone(),
            key: Credentials::new(id, secret, None, None, "tests"),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
        }
    }

    async fn post(
        &self,
        service: &str,
        path: &str,
        body: &str,
        extra: &[(&str, &str)],
    ) -> Result<Answer, String> {
        self.request(Method::POST, service, path, body, extra).await
    }

    async fn request(
        &self,
        method: Method,
        service: &str,
        path: &str,
        body: &str,
        extra: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let url = format!("{}{path}", self.endpoint);
        let identity = self.key.clone().into();
        let signing = v4::SigningParams::builder()
            .identity(&identity)
            .region(REGION)
            .name(service)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|e| e.to_string())?
            .into();
        let signable = SignableRequest::new(
            method.as_str(),
            &url,
            extra.iter().copied(),
            SignableBody::Bytes(body.as_bytes()),
        );
        let signed = sign(signable.map_err(|e| e.to_string())?, &signing);
        let (signed, _) = signed.map_err(|e| e.to_string())?.into_parts();
        let mut request = self.client.request(method, &url).body(body.to_owned());
        for (name, value) in extra.iter().copied().chain(signed.headers()) {
            request = request.header(name, value);
        }
        send(request).await
    }

    /// A call of the JSON protocol, such as (`dynamodb`, `DynamoDB_20120810.Scan`).
    ///
    /// # Errors
    /// What the service refused, or that there was no answer.
    pub async fn call(&self, service: &str, target: &str, body: &Value) -> Result<Value, String> {
        let extra = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target)];
        let answer = self.post(service, "/", &body.to_string(), &extra).await?;
        answer.ok().map_err(|why| format!("{target}: {why}"))
    }

    /// Invokes a function and waits for its answer.
    ///
    /// # Errors
    /// When it cannot be invoked, or failed.
    pub async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, String> {
        let path = format!("/2015-03-31/functions/{function}/invocations");
        let answer = self
            .post("lambda", &path, &payload.to_string(), &[("content-type", "application/json")])
            .await?;
        let value = answer.ok().map_err(|why| format!("{function}: {why}"))?;
        match value.get("errorMessage") {
            Some(error) => Err(format!("{function} failed: {error}")),
            None => Ok(value),
        }
    }

    /// Every item of a table.
    ///
    /// # Errors
    /// When the table cannot be read, or is larger than a test's table can be.
    pub async fn scan(&self, table: &str) -> Result<Vec<Value>, String> {
        let mut items = Vec::new();
        let mut body = json!({"TableName": table, "ConsistentRead": true});
        for _ in 0..SCAN_PAGES_MAX {
            let page = self.call("dynamodb", "DynamoDB_20120810.Scan", &body).await?;
            items.extend(page["Items"].as_array().cloned().unwrap_or_default());
            if page["LastEvaluatedKey"].is_null() {
                return Ok(items);
            }
            body["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
        }
        Err(format!("the table has more than {SCAN_PAGES_MAX} pages"))
    }

    /// Every session record.
    ///
    /// # Errors
    /// When the table, or a record in it, cannot be read.
    pub async fn sessions(&self, table: &str) -> Result<Vec<Session>, String> {
        let items = self.scan(table).await?;
        let of = |kind: &'static str| {
            let is_one = move |item: &&Value| item["item"]["S"] == kind;
            items.iter().filter(is_one)
        };
        let read = |thread: &Value| {
            let text = thread["record"]["S"].as_str()?;
            let sandbox = of("sandbox").find(|one| one["thread"] == thread["thread"]);
            let sandbox = sandbox.and_then(|one| one["record"]["S"].as_str());
            Some(Session::decode(text, sandbox).map_err(|e| e.to_string()))
        };
        of("session").filter_map(read).collect()
    }

    /// The record of one thread.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn session(&self, table: &str, thread: &ThreadKey) -> Result<Session, String> {
        let key = |item: &str| json!({"thread": {"S": thread.to_string()}, "item": {"S": item}});
        let wanted = json!({"ConsistentRead": true, "Keys": [key("session"), key("sandbox")]});
        let body = json!({"RequestItems": {table: wanted}});
        let answer = self.call("dynamodb", "DynamoDB_20120810.BatchGetItem", &body).await?;
        let items = answer["Responses"][table].as_array();
        let record = |kind: &str| {
            let mut items = items.into_iter().flatten();
            let item = items.find(|item| item["item"]["S"] == kind)?;
            item["record"]["S"].as_str()
        };
        let text = record("session").ok_or_else(|| format!("no record of {thread}"))?;
        Session::decode(text, record("sandbox")).map_err(|e| e.to_string())
    }

    /// The state that the last delivery of a thread's turn saved for the next one.
    ///
    /// # Errors
    /// When there is nothing, or it cannot be read.
    pub async fn parked(&self, table: &str, thread: &ThreadKey) -> Result<Parked, String> {
        let key = json!({"thread": {"S": thread.to_string()}, "item": {"S": "parked"}});
        let body = json!({"TableName": table, "ConsistentRead": true, "Key": key});
        let answer = self.call("dynamodb", "DynamoDB_20120810.GetItem", &body).await?;
        let text = answer["Item"]["parked"]["S"].as_str();
        let text = text.ok_or_else(|| format!("nothing was left of {thread}"))?;
        let (parked, _) = schema::read(Shape::Parked, text).map_err(|e| e.to_string())?;
        Ok(parked)
    }

    /// The ledger's entry for a turn.
    ///
    /// # Errors
    /// When there is nothing, or it cannot be read.
    pub async fn entry(
        &self,
        table: &str,
        thread: &ThreadKey,
        turn: &str,
    ) -> Result<LedgerEntry, String> {
        let item = format!("turn#{turn}");
        let key = json!({"thread": {"S": thread.to_string()}, "item": {"S": item}});
        let body = json!({"TableName": table, "ConsistentRead": true, "Key": key});
        let answer = self.call("dynamodb", "DynamoDB_20120810.GetItem", &body).await?;
        let text =
            answer["Item"]["entry"]["S"].as_str().ok_or_else(|| format!("no entry of {turn}"))?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// The wake-up of a thread's own sandbox, as EventBridge Scheduler has it.
    ///
    /// # Errors
    /// When there is none.
    pub async fn schedule(&self, group: &str, thread: &ThreadKey) -> Result<Value, String> {
        let of_sandbox = wake_name(&thread.sandbox().group());
        let path = format!("/schedules/{of_sandbox}?groupName={group}");
        let answer = self.request(Method::GET, "scheduler", &path, "", &[]);
        answer.await?.ok()
    }

    /// How many messages of a queue wait, and how many are being worked on.
    ///
    /// # Errors
    /// When the queue cannot be asked.
    pub async fn queued(&self, queue_url: &str) -> Result<u64, String> {
        let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let body = json!({"QueueUrl": queue_url, "AttributeNames": names});
        let answer = self.call("sqs", "AmazonSQS.GetQueueAttributes", &body).await?;
        let number = |name: &str| {
            answer["Attributes"][name].as_str().and_then(|text| text.parse::<u64>().ok())
        };
        names
            .into_iter()
            .map(|name| number(name).ok_or_else(|| format!("{name} is missing: {answer}")))
            .sum()
    }
}
