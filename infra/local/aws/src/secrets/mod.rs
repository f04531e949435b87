//! Secrets Manager: just what functions use.
//!
//! Promised: a secret of the template exists from the start; `GenerateSecretString` generates once, while its template
//! part follows the parameters at each start; a put value stays until that part changes. `GetSecretValue`,
//! `DescribeSecret` and `PutSecretValue` work, for the current version. Deliberately absent: encryption, rotation,
//! earlier versions, binary values, deletion.

mod api;
mod error;
mod source;

use std::sync::Arc;

use rusqlite::{OptionalExtension, Transaction, params};
use sha2::{Digest, Sha256};

use crate::account::AwsAccount;
use crate::clock::Clock;
use crate::store::Database;

pub(crate) use source::{Generate, PASSWORD_LENGTH_DEFAULT, SecretSource};

use error::SecretError;
use source::compose;

/// The secrets of this stack.
pub(crate) struct StackSecrets {
    store: Arc<Database>,
    clock: Clock,
    account: AwsAccount,
}

struct SecretRow {
    name: String,
    version: String,
    value: String,
    changed_ms: i64,
    created_ms: i64,
}

/// ARN of a secret; its last six characters are derived from its name, so they survive restarts.
pub(crate) fn arn(account: &AwsAccount, name: &str) -> String {
    let digest = hex::encode(Sha256::digest(name.as_bytes()));
    account.arn("secretsmanager", &format!("secret:{name}-{}", &digest[..6]))
}

impl StackSecrets {
    pub(crate) fn new(store: Arc<Database>, clock: Clock, account: AwsAccount) -> Self {
        Self { store, clock, account }
    }

    /// Creates a secret of the template, or updates its part from the parameters.
    ///
    /// A value put at run time stays until the template's part changes.
    pub(crate) fn deploy(&self, name: &str, source: &SecretSource) -> Result<(), SecretError> {
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
                 ON CONFLICT (name) DO UPDATE SET version = excluded.version, value = excluded.value,
                   generated = excluded.generated, template_value = excluded.template_value,
                   changed_ms = excluded.changed_ms",
                params![name, new_version(), value, generated, self.clock.now_ms()],
            )?;
            Ok(())
        })
    }

    /// Replaces the value of a secret by name or ARN. An unchanged value makes no new version.
    pub(crate) fn put(&self, id: &str, value: &str) -> Result<(), SecretError> {
        self.store.transaction(|tx| {
            let secret = self.find(tx, id)?;
            if secret.value == value {
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
            "UPDATE secrets SET value = ?2, version = ?3, changed_ms = ?4 WHERE name = ?1",
            params![name, value, version, self.clock.now_ms()],
        )?;
        Ok(())
    }

    /// Finds a secret by name or by ARN, complete or without its last six characters.
    fn find(&self, tx: &Transaction<'_>, id: &str) -> Result<SecretRow, SecretError> {
        let mut statement =
            tx.prepare_cached("SELECT name, version, value, changed_ms, created_ms FROM secrets")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let arn = arn(&self.account, &name);
            if id == name || id == arn || arn.rsplit_once('-').is_some_and(|(stem, _)| stem == id) {
                let changed_ms = row.get(3)?;
                return Ok(SecretRow {
                    name,
                    version: row.get(1)?,
                    value: row.get(2)?,
                    changed_ms,
                    created_ms: row.get::<_, Option<i64>>(4)?.unwrap_or(changed_ms),
                });
            }
        }
        Err(SecretError::Missing)
    }
}

fn new_version() -> String {
    uuid::Uuid::new_v4().to_string()
}
