//! The AWS JSON 1.1 protocol of Secrets Manager.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rusqlite::Transaction;
use serde_json::{Value, json};

use super::error::SecretError;
use super::{CURRENT, PREVIOUS, Secrets, StoredSecret, arn, new_version};
use crate::limits;

impl Secrets {
    /// Answers one request; `action` is what follows `secretsmanager.` in `X-Amz-Target`.
    pub(crate) fn answer(&self, action: &str, body: &Bytes) -> Response {
        let reply = serde_json::from_slice(body)
            .map_err(SecretError::Serialization)
            .and_then(|request: Value| self.act(action, &request));
        let (status, body) = match reply {
            Ok(value) => (StatusCode::OK, value),
            Err(error) => refusal(&error),
        };
        (
            status,
            [("content-type", "application/x-amz-json-1.1")],
            body.to_string(),
        )
            .into_response()
    }

    fn act(&self, action: &str, request: &Value) -> Result<Value, SecretError> {
        let act = match action {
            "GetSecretValue" => Self::get,
            "DescribeSecret" => Self::describe,
            "PutSecretValue" => Self::put_value,
            other => return Err(SecretError::UnknownOperation(other.to_owned())),
        };
        let id = text(request, "SecretId")?
            .ok_or_else(|| SecretError::Parameter("SecretId is required.".to_owned()))?;
        self.store.transaction(|tx| {
            let secret = self.find(tx, id)?;
            act(self, tx, &secret, request)
        })
    }

    fn get(
        &self,
        _: &Transaction<'_>,
        secret: &StoredSecret,
        request: &Value,
    ) -> Result<Value, SecretError> {
        let stage = text(request, "VersionStage")?;
        let id = text(request, "VersionId")?;
        let (version, stages) = secret.version(id, stage)?;
        Ok(json!({
            "ARN": arn(&self.account, &secret.name),
            "Name": secret.name,
            "VersionId": version.id,
            "SecretString": version.value,
            "VersionStages": [stages],
            "CreatedDate": seconds(version.created_ms),
        }))
    }

    fn describe(
        &self,
        _: &Transaction<'_>,
        secret: &StoredSecret,
        _: &Value,
    ) -> Result<Value, SecretError> {
        let mut stages = json!({ &secret.current.id: [CURRENT] });
        if let Some(previous) = &secret.previous {
            stages[&previous.id] = json!([PREVIOUS]);
        }
        Ok(json!({
            "ARN": arn(&self.account, &secret.name),
            "Name": secret.name,
            "CreatedDate": seconds(secret.created_ms),
            "LastChangedDate": seconds(secret.current.created_ms),
            "VersionIdsToStages": stages,
        }))
    }

    /// The same token with the same value is a repeat of the same call; with another value it is refused (AWS).
    fn put_value(
        &self,
        tx: &Transaction<'_>,
        secret: &StoredSecret,
        request: &Value,
    ) -> Result<Value, SecretError> {
        let value = text(request, "SecretString")?.ok_or_else(|| {
            SecretError::Invalid(
                "You must provide SecretString; binary secrets are not kept here.".to_owned(),
            )
        })?;
        if !(1..=limits::SECRET_BYTES_MAX).contains(&value.len()) {
            return Err(SecretError::Parameter(format!(
                "SecretString must have 1 to {} bytes.",
                limits::SECRET_BYTES_MAX
            )));
        }
        let token = text(request, "ClientRequestToken")?;
        if token.is_some_and(|token| !(32..=64).contains(&token.len())) {
            return Err(SecretError::Parameter(
                "ClientRequestToken must have 32 to 64 characters.".to_owned(),
            ));
        }
        let version = token.map_or_else(new_version, str::to_owned);
        let stage = match secret.by_id(&version) {
            None => {
                self.replace(tx, &secret.name, value, &version)?;
                CURRENT
            }
            Some((present, stage)) if present.value == value => stage,
            Some(_) => return Err(SecretError::TokenUsed(version)),
        };
        Ok(json!({
            "ARN": arn(&self.account, &secret.name),
            "Name": secret.name,
            "VersionId": version,
            "VersionStages": [stage],
        }))
    }
}

/// A member that is a text, or absent.
fn text<'a>(request: &'a Value, member: &str) -> Result<Option<&'a str>, SecretError> {
    match &request[member] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(SecretError::Serialization(serde::de::Error::custom(
            format!("{member} is not a text"),
        ))),
    }
}

fn seconds(ms: i64) -> Value {
    json!(ms / 1000)
}

fn refusal(error: &SecretError) -> (StatusCode, Value) {
    let (status, kind) = match error {
        SecretError::Missing | SecretError::MissingVersion(_) => {
            (StatusCode::BAD_REQUEST, "ResourceNotFoundException")
        }
        SecretError::Invalid(_) => (StatusCode::BAD_REQUEST, "InvalidRequestException"),
        SecretError::Parameter(_) => (StatusCode::BAD_REQUEST, "InvalidParameterException"),
        SecretError::TokenUsed(_) => (StatusCode::BAD_REQUEST, "ResourceExistsException"),
        SecretError::UnknownOperation(_) => (StatusCode::BAD_REQUEST, "UnknownOperationException"),
        SecretError::Serialization(_) => (StatusCode::BAD_REQUEST, "SerializationException"),
        SecretError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServiceError"),
    };
    (
        status,
        json!({ "__type": kind, "Message": error.to_string() }),
    )
}
