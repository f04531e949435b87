//! KMS through AWS's Rust SDK: what is sealed opens for its key and its context alone, and a refusal bears AWS's own
//! name (API reference of `Encrypt`, `Decrypt` and `DescribeKey`, "Errors"). The walk of AWS's Python SDK (`sdks.rs`)
//! goes over the same.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_kms::Client;
use aws_sdk_kms::error::ProvideErrorMetadata as _;
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{KeySpec, KeyState};

use crate::support::{Folder, Stack, sdk_config};

fn kms(stack: &Stack) -> Client {
    Client::from_conf(sdk_config!(aws_sdk_kms, stack.engine.endpoint()).build())
}

fn context(pairs: &[(&str, &str)]) -> Option<HashMap<String, String>> {
    let pairs = pairs.iter();
    Some(pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

async fn seal(kms: &Client, key: &str, pairs: &[(&str, &str)], value: &str) -> Vec<u8> {
    let call = kms.encrypt().key_id(key).plaintext(Blob::new(value));
    let sealed = call.set_encryption_context(context(pairs)).send().await.unwrap();
    sealed.ciphertext_blob.unwrap().into_inner()
}

/// The value, or AWS's name of the refusal.
async fn open(
    kms: &Client,
    key: Option<&str>,
    pairs: &[(&str, &str)],
    sealed: &[u8],
) -> Result<String, String> {
    let call = kms.decrypt().set_key_id(key.map(str::to_owned));
    let call = call.ciphertext_blob(Blob::new(sealed)).set_encryption_context(context(pairs));
    match call.send().await {
        Ok(opened) => Ok(String::from_utf8(opened.plaintext.unwrap().into_inner()).unwrap()),
        Err(error) => Err(error.code().unwrap().to_owned()),
    }
}

#[tokio::test]
async fn sealed_value_needs_key_and_context() {
    let stack = Stack::start().await;
    let kms = kms(&stack);
    let (key, other) =
        (stack.engine.resource("Seal").unwrap(), stack.engine.resource("OtherSeal").unwrap());
    let here = [("stack", "test"), ("tenant", "discord:1"), ("kind", "daytona")];
    let sealed = seal(&kms, &key, &here, "canary-value").await;
    assert!(!sealed.windows(6).any(|part| part == b"canary"));
    assert_ne!(sealed, seal(&kms, &key, &here, "canary-value").await);
    let found = Ok("canary-value".to_owned());
    assert_eq!(open(&kms, Some(&key), &here, &sealed).await, found);
    // The order says nothing, and the key may be left out.
    let turned = [here[2], here[0], here[1]];
    assert_eq!(open(&kms, None, &turned, &sealed).await, found);

    let broken = Err("InvalidCiphertextException".to_owned());
    for wrong in [
        &[][..],
        &here[..2],
        &[here[0], ("tenant", "discord:2"), here[2]],
        &[here[0], ("tenant", "DISCORD:1"), here[2]],
        &[here[0], here[1], ("kind", "openai")],
        // The same letters, cut elsewhere.
        &[here[0], ("tenant", "discord:1kind"), ("daytona", "")],
        &[here[0], here[1], here[2], ("more", "")],
    ] {
        assert_eq!(open(&kms, Some(&key), wrong, &sealed).await, broken, "{wrong:?}");
    }
    for at in 0..sealed.len() {
        let mut flipped = sealed.clone();
        flipped[at] ^= 1;
        let refused = open(&kms, Some(&key), &here, &flipped).await;
        let named = refused.expect_err("it was changed");
        // A changed id names another key, or none.
        assert!(
            named == "InvalidCiphertextException"
                || (1..17).contains(&at) && named == "IncorrectKeyException",
            "byte {at}: {named}"
        );
    }
    for length in [1, 17, 29, sealed.len() - 1] {
        assert_eq!(open(&kms, Some(&key), &here, &sealed[..length]).await, broken, "{length}");
    }
    let wrong_key = open(&kms, Some(&other), &here, &sealed).await;
    assert_eq!(wrong_key, Err("IncorrectKeyException".to_owned()));
    let nowhere = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-4000-8000-000000000000";
    for key in [nowhere, "nobody"] {
        let missing = open(&kms, Some(key), &here, &sealed).await;
        assert_eq!(missing, Err("NotFoundException".to_owned()), "{key}");
    }
}

#[tokio::test]
async fn values_are_bounded_and_keys_described() {
    let stack = Stack::start().await;
    let kms = kms(&stack);
    let key = stack.engine.resource("Seal").unwrap();
    seal(&kms, &key, &[], &"x".repeat(4_096)).await;
    for value in [String::new(), "x".repeat(4_097)] {
        let call = kms.encrypt().key_id(&key).plaintext(Blob::new(value));
        let refused = call.send().await.unwrap_err();
        assert_eq!(refused.code(), Some("ValidationException"));
    }
    let described = kms.describe_key().key_id(&key).send().await.unwrap();
    let told = described.key_metadata.unwrap();
    let arn = told.arn.unwrap();
    assert_eq!(arn, format!("arn:aws:kms:us-east-1:000000000000:key/{key}"));
    assert_eq!((told.key_state, told.enabled), (Some(KeyState::Enabled), true));
    assert_eq!(
        (told.key_spec, told.description.as_deref()),
        (Some(KeySpec::SymmetricDefault), Some("Seals"))
    );
    let by_arn = kms.describe_key().key_id(arn).send().await.unwrap();
    assert_eq!(by_arn.key_metadata.unwrap().key_id, key);
    let alias = kms.describe_key().key_id("alias/none").send().await.unwrap_err();
    assert_eq!(alias.code(), Some("NotFoundException"));
}

#[tokio::test]
async fn a_key_outlives_the_engine() {
    let folder = Arc::new(Folder::new());
    let first = Stack::start_in(Arc::clone(&folder)).await;
    let key = first.engine.resource("Seal").unwrap();
    let sealed = seal(&kms(&first), &key, &[], "kept").await;
    first.engine.stop().await;
    let second = Stack::start_in(folder).await;
    assert_eq!(second.engine.resource("Seal").as_deref(), Some(key.as_str()));
    let opened = open(&kms(&second), Some(&key), &[], &sealed).await;
    assert_eq!(opened, Ok("kept".to_owned()));
}
