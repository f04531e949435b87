//! The AWS JSON 1.1 protocol of KMS.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::KmsError;
use super::{Kms, StoredKey, arn, cipher};
use crate::limits;

/// Algorithm of symmetric keys, the only kind here.
const ALGORITHM: &str = "SYMMETRIC_DEFAULT";

impl Kms {
    /// Answers one request; `action` is what follows `TrentService.` in `X-Amz-Target`.
    pub(crate) fn answer(&self, action: &str, body: &Bytes) -> Response {
        let reply = serde_json::from_slice(body).map_err(|_| KmsError::Serialization).and_then(
            |request: Value| match action {
                "Encrypt" => self.encrypt(&request),
                "Decrypt" => self.decrypt(&request),
                "DescribeKey" => self.describe(&request),
                other => Err(KmsError::UnknownOperation(other.to_owned())),
            },
        );
        let (status, body) = match reply {
            Ok(value) => (StatusCode::OK, value),
            Err(error) => refusal(&error),
        };
        (status, [("content-type", "application/x-amz-json-1.1")], body.to_string()).into_response()
    }

    fn encrypt(&self, request: &Value) -> Result<Value, KmsError> {
        symmetric(request)?;
        let key = self.find(required(request, "KeyId")?)?;
        let value = blob(request, "Plaintext", limits::KMS_PLAINTEXT_BYTES_MAX)?;
        let sealed = cipher::seal(&key.id, &key.material, &context(request)?, &value);
        let sealed = sealed.ok_or(KmsError::Internal)?;
        Ok(json!({
            "CiphertextBlob": STANDARD.encode(sealed),
            "KeyId": arn(&self.account, &key.id),
            "EncryptionAlgorithm": ALGORITHM,
        }))
    }

    fn decrypt(&self, request: &Value) -> Result<Value, KmsError> {
        symmetric(request)?;
        let sealed = blob(request, "CiphertextBlob", limits::KMS_CIPHERTEXT_BYTES_MAX)?;
        let named = text(request, "KeyId")?.map(|named| self.find(named));
        let named = named.transpose()?;
        let id = cipher::key_of(&sealed).ok_or(KmsError::InvalidCiphertext)?;
        if named.is_some_and(|key| key.id != id) {
            return Err(KmsError::IncorrectKey);
        }
        let key = self.by_id(&id)?.ok_or(KmsError::InvalidCiphertext)?;
        let value = cipher::open(&key.id, &key.material, &context(request)?, &sealed);
        let value = value.ok_or(KmsError::InvalidCiphertext)?;
        Ok(json!({
            "KeyId": arn(&self.account, &key.id),
            "Plaintext": STANDARD.encode(value),
            "EncryptionAlgorithm": ALGORITHM,
        }))
    }

    fn describe(&self, request: &Value) -> Result<Value, KmsError> {
        let key = self.find(required(request, "KeyId")?)?;
        Ok(json!({ "KeyMetadata": self.metadata(&key) }))
    }

    fn metadata(&self, key: &StoredKey) -> Value {
        json!({
            "AWSAccountId": self.account.id,
            "KeyId": key.id.to_string(),
            "Arn": arn(&self.account, &key.id),
            "CreationDate": key.created_ms / 1000,
            "Enabled": true,
            "Description": key.description,
            "KeyUsage": "ENCRYPT_DECRYPT",
            "KeyState": "Enabled",
            "Origin": "AWS_KMS",
            "KeyManager": "CUSTOMER",
            "CustomerMasterKeySpec": ALGORITHM,
            "KeySpec": ALGORITHM,
            "EncryptionAlgorithms": [ALGORITHM],
            "MultiRegion": false,
        })
    }
}

/// Refuses other algorithms: they belong to asymmetric keys.
fn symmetric(request: &Value) -> Result<(), KmsError> {
    match text(request, "EncryptionAlgorithm")? {
        None | Some(ALGORITHM) => Ok(()),
        Some(other) => Err(KmsError::Validation(format!(
            "Algorithm {other} and key spec {ALGORITHM} are incompatible."
        ))),
    }
}

fn context(request: &Value) -> Result<BTreeMap<String, String>, KmsError> {
    match &request["EncryptionContext"] {
        Value::Null => Ok(BTreeMap::new()),
        given => serde_json::from_value(given.clone()).map_err(|_| KmsError::Serialization),
    }
}

/// Reads base64 bytes; refuses none or too many.
fn blob(request: &Value, member: &str, bytes_max: usize) -> Result<Vec<u8>, KmsError> {
    let bytes = STANDARD.decode(required(request, member)?);
    let bytes = bytes.map_err(|_| KmsError::Serialization)?;
    let unfit = |constraint: &str, bound: usize| {
        KmsError::Validation(format!(
            "1 validation error detected: Value at '{}' failed to satisfy constraint: Member must have length {constraint} than or equal to {bound}",
            lower(member)
        ))
    };
    match bytes.len() {
        0 => Err(unfit("greater", 1)),
        length if length > bytes_max => Err(unfit("less", bytes_max)),
        _ => Ok(bytes),
    }
}

fn required<'a>(request: &'a Value, member: &str) -> Result<&'a str, KmsError> {
    text(request, member)?.ok_or_else(|| {
        KmsError::Validation(format!(
            "1 validation error detected: Value null at '{}' failed to satisfy constraint: Member must not be null",
            lower(member)
        ))
    })
}

/// Reads an optional text member.
fn text<'a>(request: &'a Value, member: &str) -> Result<Option<&'a str>, KmsError> {
    match &request[member] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(KmsError::Serialization),
    }
}

/// A member's name as in AWS's validation messages.
fn lower(member: &str) -> String {
    let mut letters = member.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn refusal(error: &KmsError) -> (StatusCode, Value) {
    let status = match error {
        KmsError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    let body = match error {
        KmsError::InvalidCiphertext => json!({ "__type": error.name() }),
        told => json!({ "__type": error.name(), "message": told.to_string() }),
    };
    (status, body)
}
