//! Secrets Manager: as much of it as functions use.
//!
//! Promised: a secret of the template exists from the start; what `GenerateSecretString` makes is made once and kept,
//! while the template part of it follows the parameters at each start; what was put stays until that part changes. `GetSecretValue`, `DescribeSecret` and
//! `PutSecretValue` answer, for the current version and the one before it. Deliberately absent: encryption, rotation, older
//! versions, binary values, deletion.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rand::Rng as _;
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::account::Account;
use crate::clock::Clock;
use crate::limits;
use crate::store::Store;

/// The secrets of this stack.
pub(crate) struct Secrets {
    store: Arc<Store>,
    clock: Clock,
    account: Account,
}

/// How a secret of the template gets its value.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// `SecretString`.
    Text(String),
    /// `GenerateSecretString`.
    Generated(Generate),
}

/// The parts of `GenerateSecretString` that are honoured.
#[derive(Clone, Debug)]
pub(crate) struct Generate {
    pub(crate) secret_string_template: Option<String>,
    pub(crate) generate_string_key: Option<String>,
    pub(crate) password_length: usize,
    pub(crate) exclude_punctuation: bool,
}

/// `PasswordLength` when the template names none (AWS).
pub(crate) const PASSWORD_LENGTH_DEFAULT: usize = 32;

/// Why a secret could not be made or found; never carries a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("Secrets Manager can't find the specified secret.")]
    Missing,
    #[error("Secrets Manager can't find the specified secret value for {0}.")]
    MissingVersion(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Parameter(String),
    #[error(
        "You can't use ClientRequestToken {0} because that value is already in use for a version of this secret."
    )]
    TokenUsed(String),
    #[error("{0} is not a call that this engine has.")]
    UnknownOperation(String),
    #[error("The request could not be read: {0}.")]
    Serialization(serde_json::Error),
    #[error(
        "the secret's file could not be used ({0}); check free space and rights of the state folder"
    )]
    Store(#[from] rusqlite::Error),
}

struct StoredSecret {
    name: String,
    created_ms: i64,
    current: Version,
    previous: Option<Version>,
}

#[derive(Clone)]
struct Version {
    id: String,
    value: String,
    created_ms: i64,
}

const CURRENT: &str = "AWSCURRENT";
const PREVIOUS: &str = "AWSPREVIOUS";

/// The ARN of a secret; its six last characters follow from its name, so that it stays over restarts.
pub(crate) fn arn(account: &Account, name: &str) -> String {
    let digest = hex::encode(Sha256::digest(name.as_bytes()));
    account.arn("secretsmanager", &format!("secret:{name}-{}", &digest[..6]))
}

impl Secrets {
    pub(crate) fn new(store: Arc<Store>, clock: Clock, account: Account) -> Self {
        Self {
            store,
            clock,
            account,
        }
    }

    /// Creates the secret of a template, or renews what comes from the parameters.
    ///
    /// A value that was put at run time stays as long as the template's part does not change.
    pub(crate) fn deploy(&self, name: &str, source: &Source) -> Result<(), SecretError> {
        self.store.transaction(|tx| {
            let present: Option<(Option<String>, Option<String>)> = tx
                .query_row(
                    "SELECT generated, template_value FROM secrets WHERE name = ?1",
                    [name],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let generated = present.as_ref().and_then(|(generated, _)| generated.clone());
            let (value, generated) = compose(source, generated)?;
            if present.and_then(|(_, value)| value).as_ref() == Some(&value) {
                return Ok(());
            }
            tx.execute(
                "INSERT INTO secrets (name, version, value, generated, template_value, changed_ms, created_ms)
                 VALUES (?1, ?2, ?3, ?4, ?3, ?5, ?5)
                 ON CONFLICT (name) DO UPDATE SET previous_version = version, previous_value = value,
                   previous_ms = changed_ms, version = excluded.version, value = excluded.value,
                   generated = excluded.generated, template_value = excluded.template_value,
                   changed_ms = excluded.changed_ms",
                params![name, new_version(), value, generated, self.clock.now_ms()],
            )?;
            Ok(())
        })
    }

    /// Puts a value where another stands, by name or ARN. A value that is there already makes no new version.
    pub(crate) fn put(&self, id: &str, value: &str) -> Result<(), SecretError> {
        self.store.transaction(|tx| {
            let secret = self.find(tx, id)?;
            if secret.current.value == value {
                return Ok(());
            }
            self.replace(tx, &secret.name, value, &new_version())
        })
    }

    fn replace(
        &self,
        tx: &Transaction<'_>,
        name: &str,
        value: &str,
        version: &str,
    ) -> Result<(), SecretError> {
        tx.execute(
            "UPDATE secrets SET previous_version = version, previous_value = value, previous_ms = changed_ms,
               value = ?2, version = ?3, changed_ms = ?4 WHERE name = ?1",
            params![name, value, version, self.clock.now_ms()],
        )?;
        Ok(())
    }

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

    /// By name or by ARN, complete or without its last six characters.
    fn find(&self, tx: &Transaction<'_>, id: &str) -> Result<StoredSecret, SecretError> {
        let mut statement = tx.prepare_cached(
            "SELECT name, version, value, changed_ms, created_ms, previous_version, previous_value, previous_ms FROM secrets",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let arn = arn(&self.account, &name);
            if id == name || id == arn || arn.rsplit_once('-').is_some_and(|(stem, _)| stem == id) {
                let changed_ms = row.get(3)?;
                let previous: Option<String> = row.get(5)?;
                let previous = previous
                    .map(|id| {
                        Ok::<_, rusqlite::Error>(Version {
                            id,
                            value: row.get(6)?,
                            created_ms: row.get(7)?,
                        })
                    })
                    .transpose()?;
                return Ok(StoredSecret {
                    name,
                    created_ms: row.get::<_, Option<i64>>(4)?.unwrap_or(changed_ms),
                    current: Version {
                        id: row.get(1)?,
                        value: row.get(2)?,
                        created_ms: changed_ms,
                    },
                    previous,
                });
            }
        }
        Err(SecretError::Missing)
    }
}

impl StoredSecret {
    fn versions(&self) -> impl Iterator<Item = (&Version, &'static str)> {
        let current = [(&self.current, CURRENT)].into_iter();
        current.chain(self.previous.iter().map(|version| (version, PREVIOUS)))
    }

    fn by_id(&self, id: &str) -> Option<(&Version, &'static str)> {
        self.versions().find(|(version, _)| version.id == id)
    }

    /// The version that is asked for by id, by stage, by both, or the current one.
    fn version(
        &self,
        id: Option<&str>,
        stage: Option<&str>,
    ) -> Result<(&Version, &'static str), SecretError> {
        let wanted_stage = stage.or(id.is_none().then_some(CURRENT));
        self.versions()
            .find(|(version, stage)| {
                id.is_none_or(|id| version.id == id)
                    && wanted_stage.is_none_or(|wanted| wanted == *stage)
            })
            .ok_or_else(|| {
                SecretError::MissingVersion(match (id, stage) {
                    (Some(id), _) => format!("VersionId: {id}"),
                    (None, stage) => format!("staging label: {}", stage.unwrap_or(CURRENT)),
                })
            })
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

fn compose(
    source: &Source,
    present: Option<String>,
) -> Result<(String, Option<String>), SecretError> {
    let generate = match source {
        Source::Text(text) => return Ok((text.clone(), None)),
        Source::Generated(generate) => generate,
    };
    let generated = present.unwrap_or_else(|| password(generate));
    let value = match (
        &generate.secret_string_template,
        &generate.generate_string_key,
    ) {
        (Some(template), Some(key)) => {
            // The parse error would quote the text, and the text holds credentials.
            let mut object: serde_json::Map<String, Value> = serde_json::from_str(template)
                .map_err(|_| {
                    SecretError::Invalid(
                        "SecretStringTemplate is not a JSON object after its parameters were put in; look for quotation marks or backslashes in the parameters".to_owned(),
                    )
                })?;
            object.insert(key.clone(), Value::String(generated.clone()));
            Value::Object(object).to_string()
        }
        (None, None) => generated.clone(),
        _ => {
            return Err(SecretError::Invalid(
                "SecretStringTemplate and GenerateStringKey belong together".to_owned(),
            ));
        }
    };
    Ok((value, Some(generated)))
}

fn password(generate: &Generate) -> String {
    const PUNCTUATION: &str = "!#$%&'()*+,-./:;<=>?@[]^_`{|}~";
    let mut alphabet: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    if !generate.exclude_punctuation {
        alphabet.extend(PUNCTUATION.chars());
    }
    let mut random = rand::rng();
    (0..generate.password_length)
        .map(|_| alphabet[random.random_range(0..alphabet.len())])
        .collect()
}

fn new_version() -> String {
    uuid::Uuid::new_v4().to_string()
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
