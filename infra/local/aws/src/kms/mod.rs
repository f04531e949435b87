//! KMS: just what functions use.
//!
//! Promised: a key of the template exists from the start, with material that is generated once; ciphertexts are
//! authenticated (AES-256-GCM) and decrypt only unchanged, with the same key and encryption context; `Encrypt`,
//! `Decrypt` and `DescribeKey` work, for symmetric keys. Deliberately absent: hardware (the material is in the state
//! file), policies and grants, aliases, rotation, data keys, other algorithms, deletion.

mod api;
mod cipher;
mod error;

use std::sync::Arc;

use rand::Rng as _;
use rusqlite::{OptionalExtension, Row, params};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::account::AwsAccount;
use crate::clock::Clock;
use crate::store::Database;

use cipher::KEY_BYTES;
use error::KmsError;

/// The keys of this stack.
pub(crate) struct Kms {
    store: Arc<Database>,
    clock: Clock,
    account: AwsAccount,
}

/// A key as it is stored.
struct StoredKey {
    id: Uuid,
    material: [u8; KEY_BYTES],
    description: String,
    created_ms: i64,
}

/// Id of a template's key; derived from its name, so it survives restarts.
pub(crate) fn key_id(account: &AwsAccount, name: &str) -> Uuid {
    let digest = Sha256::digest(format!("{} {} {name}", account.id, account.region).as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// The ARN of a key.
pub(crate) fn arn(account: &AwsAccount, id: &Uuid) -> String {
    account.arn("kms", &format!("key/{id}"))
}

impl Kms {
    pub(crate) fn new(store: Arc<Database>, clock: Clock, account: AwsAccount) -> Self {
        Self { store, clock, account }
    }

    /// Creates a key of the template unless it exists; its material is never regenerated.
    pub(crate) fn deploy(&self, name: &str, description: &str) -> Result<(), rusqlite::Error> {
        let id = key_id(&self.account, name).to_string();
        let material: [u8; KEY_BYTES] = rand::rng().random();
        self.store.transaction(|tx| {
            tx.execute(
                "INSERT INTO kms_keys (id, material, description, created_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET description = excluded.description",
                params![id, material.as_slice(), description, self.clock.now_ms()],
            )
        })?;
        Ok(())
    }

    /// Finds a key by id or ARN.
    fn find(&self, named: &str) -> Result<StoredKey, KmsError> {
        let missing = || KmsError::Missing(self.spelled(named));
        let own = self.account.arn("kms", "key/");
        let id = named.strip_prefix(&own).unwrap_or(named);
        let id = Uuid::parse_str(id).map_err(|_| missing())?;
        self.by_id(&id)?.ok_or_else(missing)
    }

    fn by_id(&self, id: &Uuid) -> Result<Option<StoredKey>, KmsError> {
        let read = |row: &Row<'_>| {
            let (material, description): (Vec<u8>, String) = (row.get(0)?, row.get(1)?);
            Ok((material, description, row.get(2)?))
        };
        let found = self.store.transaction(|tx| {
            tx.query_row(
                "SELECT material, description, created_ms FROM kms_keys WHERE id = ?1",
                [id.to_string()],
                read,
            )
            .optional()
        })?;
        let Some((material, description, created_ms)) = found else {
            return Ok(None);
        };
        Ok(Some(StoredKey {
            id: *id,
            material: material.try_into().map_err(|_| KmsError::Internal)?,
            description,
            created_ms,
        }))
    }

    /// A key as named in AWS's errors.
    fn spelled(&self, named: &str) -> String {
        if named.starts_with("arn:") {
            named.to_owned()
        } else {
            self.account.arn("kms", &format!("key/{named}"))
        }
    }
}
