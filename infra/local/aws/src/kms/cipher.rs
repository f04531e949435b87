//! Ciphertext format: key id, nonce, and the AES-256-GCM ciphertext, with key id and context authenticated.

use std::collections::BTreeMap;

use rand::Rng as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use uuid::Uuid;

/// Bytes of a key's material.
pub(super) const KEY_BYTES: usize = 32;
/// First byte of a ciphertext: the format version.
const FORM: u8 = 1;
const ID_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + ID_BYTES + NONCE_LEN;

pub(super) fn seal(
    id: &Uuid,
    material: &[u8; KEY_BYTES],
    context: &BTreeMap<String, String>,
    value: &[u8],
) -> Option<Vec<u8>> {
    let nonce: [u8; NONCE_LEN] = rand::rng().random();
    let mut sealed = value.to_vec();
    key(material)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound(id, context)),
            &mut sealed,
        )
        .ok()?;
    let mut blob = vec![FORM];
    blob.extend_from_slice(id.as_bytes());
    blob.extend_from_slice(&nonce);
    blob.extend_from_slice(&sealed);
    Some(blob)
}

/// Key id in a ciphertext.
pub(super) fn key_of(blob: &[u8]) -> Option<Uuid> {
    if blob.len() <= HEAD_BYTES || blob[0] != FORM {
        return None;
    }
    Uuid::from_slice(&blob[1..=ID_BYTES]).ok()
}

/// Decrypts with this key; `None` if the ciphertext, the key or the context does not match.
pub(super) fn open(
    id: &Uuid,
    material: &[u8; KEY_BYTES],
    context: &BTreeMap<String, String>,
    blob: &[u8],
) -> Option<Vec<u8>> {
    let nonce = blob.get(1 + ID_BYTES..HEAD_BYTES)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut sealed = blob.get(HEAD_BYTES..)?.to_vec();
    let value =
        key(material)?.open_in_place(nonce, Aad::from(bound(id, context)), &mut sealed).ok()?;
    Some(value.to_vec())
}

fn key(material: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, material).ok().map(LessSafeKey::new)
}

/// Authenticated data: the key id and the sorted context, each part prefixed with its length.
fn bound(id: &Uuid, context: &BTreeMap<String, String>) -> Vec<u8> {
    let mut bytes = id.as_bytes().to_vec();
    for part in context.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}
