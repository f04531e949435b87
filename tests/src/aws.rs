//! The AWS calls that tests make: JSON over HTTP, signed (Signature Version 4), the same for both engines. Small enough
//! to do without the SDK, whose own behaviour (retries, endpoints) is not under test here.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::ids::{ThreadKey, wake_name};
use bobbin_core::ledger::Entry;
use bobbin_core::session::Session;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::{Answer, call, send};
use crate::limits::SCAN_PAGES_MAX;

const REGION: &str = "us-east-1";
/// Both engines take this key: ministack as its root's.
const KEY: &str = "test";

/// One engine's address, with the development key.
#[derive(Debug, Clone)]
pub struct Aws {
    client: Client,
    /// `http://127.0.0.1:PORT`.
    pub endpoint: String,
}

/// Signs a POST; answers the headers to send.
struct Signer<'a> {
    service: &'a str,
    host: &'a str,
    path: &'a str,
    body: &'a str,
    extra: &'a [(&'a str, &'a str)],
}

impl Signer<'_> {
    fn headers(&self, now_s: u64) -> Vec<(String, String)> {
        let (date, time) = calendar(now_s);
        let stamp = format!("{date}T{time}Z");
        let mut headers = vec![
            ("host".to_owned(), self.host.to_owned()),
            ("x-amz-date".to_owned(), stamp.clone()),
        ];
        headers.extend(
            self.extra
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        headers.sort();
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let names = headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(";");
        let canonical = format!(
            "POST\n{}\n\n{lines}\n{names}\n{}",
            self.path,
            sha256(self.body)
        );
        let scope = format!("{date}/{REGION}/{}/aws4_request", self.service);
        let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", sha256(&canonical));
        let mut key = mac(format!("AWS4{KEY}").as_bytes(), &date);
        for part in [REGION, self.service, "aws4_request"] {
            key = mac(&key, part);
        }
        let signature = hex::encode(mac(&key, &to_sign));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        headers.retain(|(name, _)| name != "host");
        headers.push(("authorization".to_owned(), authorization));
        headers
    }
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A one-time schedule's words for a time, rounded up to seconds.
#[must_use]
pub fn schedule_at(ms: u64) -> String {
    let (day, time) = calendar(ms.div_ceil(1_000));
    let (year, month, day) = (&day[..4], &day[4..6], &day[6..]);
    let (hour, minute, second) = (&time[..2], &time[2..4], &time[4..]);
    format!("at({year}-{month}-{day}T{hour}:{minute}:{second})")
}

/// `YYYYMMDD` and `HHMMSS` of a time in seconds since 1970 (civil calendar from days, Howard Hinnant's algorithm).
fn calendar(now_s: u64) -> (String, String) {
    let days = now_s / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let second = now_s % 86_400;
    (
        format!("{year:04}{month:02}{day:02}"),
        format!(
            "{:02}{:02}{:02}",
            second / 3_600,
            second / 60 % 60,
            second % 60
        ),
    )
}

impl Aws {
    /// Calls to this address.
    #[must_use]
    pub fn new(client: &Client, endpoint: &str) -> Self {
        Self {
            client: client.clone(),
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
        let host = self.endpoint.split("://").nth(1).unwrap_or_default();
        let now_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let mut request = self
            .client
            .post(format!("{}{path}", self.endpoint))
            .body(body.to_owned());
        for (name, value) in (Signer {
            service,
            host,
            path,
            body,
            extra,
        })
        .headers(now_s)
        {
            request = request.header(name, value);
        }
        send(request).await
    }

    /// A call of the JSON protocol, such as (`dynamodb`, `DynamoDB_20120810.Scan`).
    ///
    /// # Errors
    /// What the service refused, or that there was no answer.
    pub async fn call(&self, service: &str, target: &str, body: &Value) -> Result<Value, String> {
        let extra = [
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", target),
        ];
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
            .post(
                "lambda",
                &path,
                &payload.to_string(),
                &[("content-type", "application/json")],
            )
            .await?;
        let value = answer.ok().map_err(|why| format!("{function}: {why}"))?;
        match value.get("errorMessage") {
            Some(error) => Err(format!("{function} failed: {error}")),
            None => Ok(value),
        }
    }

    /// Kills the processes of a function (by its logical id) as the system would; the embedded engine only. Answers
    /// which ones.
    ///
    /// # Errors
    /// When there is no such function.
    pub async fn kill(&self, function: &str) -> Result<Vec<u64>, String> {
        let path = format!("/_bobbin/functions/{function}/kill");
        let answer = self.post("lambda", &path, "", &[]).await?.ok()?;
        let killed = answer["killed"].as_array().cloned().unwrap_or_default();
        Ok(killed.iter().filter_map(Value::as_u64).collect())
    }

    /// Every item of a table.
    ///
    /// # Errors
    /// When the table cannot be read, or is larger than a test's can be.
    pub async fn scan(&self, table: &str) -> Result<Vec<Value>, String> {
        let mut items = Vec::new();
        let mut body = json!({"TableName": table, "ConsistentRead": true});
        for _ in 0..SCAN_PAGES_MAX {
            let page = self
                .call("dynamodb", "DynamoDB_20120810.Scan", &body)
                .await?;
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
        let records = items.iter().filter_map(|item| item["record"]["S"].as_str());
        let read = |text| Session::decode(text).map_err(|e| e.to_string());
        records.map(read).collect()
    }

    /// The record of one thread.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn session(&self, table: &str, thread: &ThreadKey) -> Result<Session, String> {
        let key = json!({"thread": {"S": thread.to_string()}, "item": {"S": "session"}});
        let body = json!({"TableName": table, "ConsistentRead": true, "Key": key});
        let answer = self
            .call("dynamodb", "DynamoDB_20120810.GetItem", &body)
            .await?;
        let text = answer["Item"]["record"]["S"]
            .as_str()
            .ok_or_else(|| format!("no record of {thread}"))?;
        Session::decode(text).map_err(|e| e.to_string())
    }

    /// What the ledger holds of a turn.
    ///
    /// # Errors
    /// When there is nothing, or it cannot be read.
    pub async fn entry(
        &self,
        table: &str,
        thread: &ThreadKey,
        turn: &str,
    ) -> Result<Entry, String> {
        let item = format!("turn#{turn}");
        let key = json!({"thread": {"S": thread.to_string()}, "item": {"S": item}});
        let body = json!({"TableName": table, "ConsistentRead": true, "Key": key});
        let answer = self
            .call("dynamodb", "DynamoDB_20120810.GetItem", &body)
            .await?;
        let text = answer["Item"]["entry"]["S"]
            .as_str()
            .ok_or_else(|| format!("no entry of {turn}"))?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// A thread's wake-up, as EventBridge Scheduler has it.
    ///
    /// # Errors
    /// When there is none.
    pub async fn schedule(&self, group: &str, thread: &ThreadKey) -> Result<Value, String> {
        // The embedded engine routes by path and checks no signature, so one that signs nothing will do.
        const UNSIGNED: &str = "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/scheduler/aws4_request, SignedHeaders=host, Signature=0";
        let name = wake_name(thread);
        let url = format!("{}/schedules/{name}?groupName={group}", self.endpoint);
        let answer = call(&self.client, Method::GET, &url, UNSIGNED, &Value::Null).await?;
        answer.ok()
    }

    /// Messages of a queue that wait and that are being worked on.
    ///
    /// # Errors
    /// When the queue cannot be asked.
    pub async fn queued(&self, queue_url: &str) -> Result<u64, String> {
        let names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
        ];
        let body = json!({"QueueUrl": queue_url, "AttributeNames": names});
        let answer = self
            .call("sqs", "AmazonSQS.GetQueueAttributes", &body)
            .await?;
        let number = |name: &str| {
            answer["Attributes"][name]
                .as_str()
                .and_then(|text| text.parse::<u64>().ok())
        };
        names
            .into_iter()
            .map(|name| number(name).ok_or_else(|| format!("{name} is missing: {answer}")))
            .sum()
    }
}
