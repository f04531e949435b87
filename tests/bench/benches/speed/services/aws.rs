//! Queues, secrets, table and scheduler.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::table::Table;
use super::{Reply, Request, Service};

/// AWS.
pub(super) struct Aws {
    provider_key: String,
    table: Mutex<Table>,
    schedules: Mutex<BTreeSet<String>>,
}

impl Service for Aws {
    fn answer(&self, request: &Request) -> Reply {
        let target = request.header("x-amz-target");
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let Some((service, operation)) = target.split_once('.') else {
            return self.schedule(request);
        };
        let name = match (service, operation) {
            ("AmazonSQS", _) => format!("queue: {operation}"),
            ("secretsmanager", _) => format!("secret: {operation}"),
            _ => format!("table: {operation}"),
        };
        let done = match (service, operation) {
            ("AmazonSQS", "ChangeMessageVisibility") => return Reply::empty(name, 200),
            ("AmazonSQS", "SendMessage") => Ok(json!({
                "MessageId": "5fea7756-0ea4-451a-a703-a558b933e274",
                "MD5OfMessageBody": format!("{:x}", md5::compute(asked["MessageBody"].as_str().unwrap_or_default())),
                "SequenceNumber": "18849496460467696128",
            })),
            ("secretsmanager", "GetSecretValue") => Ok(self.secret(&asked["SecretId"])),
            ("DynamoDB_20120810", operation) => {
                let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
                table.perform(operation, &asked)
            }
            _ => return Reply::unknown(request),
        };
        match done {
            Ok(answer) => Reply::json(name, &answer),
            Err((exception, message)) => {
                let error = json!({"__type": exception, "message": message});
                Reply::of(name, 400, &error)
            }
        }
    }
}

impl Aws {
    /// With this key in the secret of the provider.
    pub(super) fn new(provider_key: &str) -> Self {
        Self {
            provider_key: provider_key.to_owned(),
            table: Mutex::default(),
            schedules: Mutex::default(),
        }
    }

    fn secret(&self, id: &Value) -> Value {
        let keys = match id.as_str() {
            Some("worker-secret") => {
                json!({"discord_bot_token": "a token of the bench", "anthropic_api_key": "a key of the bench"})
            }
            Some("provider-secret") => json!({"daytona_api_key": self.provider_key}),
            _ => json!({"stack_key": "a key of the bench, as long as the template makes one"}),
        };
        json!({"Name": id, "SecretString": keys.to_string(), "VersionId": "11111111-1111-4111-8111-111111111111"})
    }

    /// The one service that is spoken to by paths.
    fn schedule(&self, request: &Request) -> Reply {
        let Some(name) = request.path.strip_prefix("/schedules/") else {
            return Reply::unknown(request);
        };
        let mut schedules = self
            .schedules
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let arn = json!({"ScheduleArn": format!("arn:aws:scheduler:eu-central-1:123456789012:schedule/bench/{name}")});
        match request.method.as_str() {
            "POST" if !schedules.insert(name.to_owned()) => {
                let error = json!({"Message": "Schedule already exists."});
                let mut reply = Reply::of("schedule: CreateSchedule", 409, &error);
                let kind = ("x-amzn-errortype", "ConflictException".to_owned());
                reply.headers.push(kind);
                reply
            }
            "POST" => Reply::json("schedule: CreateSchedule", &arn),
            "PUT" => Reply::json("schedule: UpdateSchedule", &arn),
            _ => Reply::unknown(request),
        }
    }
}
