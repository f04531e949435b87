//! The AWS JSON 1.1 protocol of Secrets Manager.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rusqlite::Transaction;
use serde_json::{Value, json};

use super::error::SecretError;
use super::{SecretRow, StackSecrets, arn, new_version};
use crate::limits;

/// Stage of the only version.
const CURRENT: &str = "AWSCURRENT";

impl StackSecrets {
    /// Answers one request; `action` is what follows `secretsmanager.` in `X-Amz-Target`.
    pub(crate) fn answer(&self, action: &str, body: &Bytes) -> Response {
        let reply = serde_json::from_slice(body)
            .map_err(SecretError::Serialization)
            .and_then(|request: Value| self.act(action, &request));
        let (status, body) = match reply {
            Ok(value) => (StatusCode::OK, value),
            Err(error) => refusal(&error),
        };
        (status, [("content-type", "application/x-amz-json-1.1")], body.to_string()).into_response()
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
        secret: &SecretRow,
        request: &Value,
    ) -> Result<Value, SecretError> {
        let (stage, id) = (text(request, "VersionStage")?, text(request, "VersionId")?);
        if let Some(id) = id.filter(|id| *id != secret.version) {
            return Err(SecretError::MissingVersion(format!("VersionId: {id}")));
        }
        if let Some(stage) = stage.filter(|stage| *stage != CURRENT) {
            return Err(SecretError::MissingVersion(format!("staging label: {stage}")));
        }
        Ok(json!({
            "ARN": arn(&self.account, &secret.name),
            "Name": secret.name,
            "VersionId": secret.version,
            "SecretString": secret.value,
            "VersionStages": [CURRENT],
            "CreatedDate": secret.changed_ms / 1000,
        }))
    }

    fn describe(
        &self,
        _: &Transaction<'_>,
        secret: &SecretRow,
        _: &Value,
    ) -> Result<Value, SecretError> {
        Ok(json!({
            "ARN": arn(&self.account, &secret.name),
            "Name": secret.name,
            "CreatedDate": secret.created_ms / 1000,
            "LastChangedDate": secret.changed_ms / 1000,
            "VersionIdsToStages": { &secret.version: [CURRENT] },
        }))
    }

    /// The same token with the same value is a repeat of the call; with another value it is refused (AWS).
    fn put_value(
        &self,
        tx: &Transaction<'_>,
        secret: &SecretRow,
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
        if version != secret.version {
            self.replace(tx, &secret.name, value, &version)?;
        } else if value != secret.value {
            return Err(SecretError::TokenUsed(version));
        }
        Ok(json!({
            "ARN": arn(&self.account, &secret.name),
            "Name": secret.name,
            "VersionId": version,
            "VersionStages": [CURRENT],
        }))
    }
}

/// Reads an optional text member.
fn text<'a>(request: &'a Value, member: &str) -> Result<Option<&'a str>, SecretError> {
    match &request[member] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(SecretError::Serialization(serde::de::Error::custom(format!(
            "{member} is not a text"
        )))),
    }
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
    (status, json!({ "__type": kind, "Message": error.to_string() }))
}
